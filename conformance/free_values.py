"""Values that a server chooses freely: comparing ignores them, and recordings have constants in their place."""

import re
from typing import Any, Final

from conformance import wire

UID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
# As Go prints one, with or without the reading of its other clock.
_GO_TIME: Final = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)? \+0000 UTC( m=\S+)?")
_REVISION: Final = re.compile(
    r'(resourceVersion\\*"?:\s*\\*"|current: |in record \(|in object meta: |in the precondition \('
    r"|resource version: \d+ \(|decodable revision=)\d+(?![\w-])"
)
_YAML_TOKEN: Final = re.compile(r"(?m)^(  continue: ).+")
_DATE: Final = re.compile(r"^\d{4}-\d\d-\d\d$")
_TOO_OLD: Final = re.compile(r"(too old resource version: )\d+ \(\d+\)")
# What generateName adds.
_SUFFIX: Final = re.compile(r"-[bcdfghjklmnpqrstvwxz2456789]{5}(?![\w-])")
# Documents' own hashes, and when a server made them.
_HASH: Final = re.compile(r"hash=[0-9A-F]{128}")
_HTTP_DATE: Final = re.compile(r"^\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d (GMT|UTC)$")
_FINGERPRINT: Final = re.compile("X509SHA256=[0-9a-f]{64}")
_AGE: Final = re.compile(r"^\d+[smhdy](\d+[smhdy])?$")
# Keys whose values a server chooses freely; what is chosen must be there, not equal.
FREE_KEYS: Final = frozenset(
    {
        "resourceVersion",
        "continue",
        "uid",
        "clusterIP",
        "clusterIPs",
        "nodePort",
        "healthCheckNodePort",
        "serverAddress",
        "description",
        "token",
        "ETag",
    }
)
_SAME_UID: Final = "00000000-0000-4000-8000-000000000000"
_SAME_TIME: Final = "2026-01-01T00:00:00"
# Tokens that are longer than this are issued by a server or made for the run.
_LONG_TOKEN: Final = 60


def plain(value: Any) -> Any:
    """Returns a text without identities and times; other values as they are."""
    if not isinstance(value, str):
        return value
    text = _TIME.sub("TIME", UID.sub("UID", value))
    text = _FINGERPRINT.sub("X509SHA256=FINGERPRINT", _GO_TIME.sub("TIME", text))
    text = _REVISION.sub(r"\1REVISION", _TOO_OLD.sub(r"\1REVISIONS", text))
    text = _YAML_TOKEN.sub(r"\1ANYTOKEN", text)
    text = _HTTP_DATE.sub("DATE", _HASH.sub("hash=HASH", text))
    text = _SUFFIX.sub("-SUFFIX", _DATE.sub("DATE", text))
    return "AGE" if _AGE.match(text) else text


def neutral(value: Any, key: str = "") -> Any:
    """Returns an answer, or a value in it that has this key, with constants in place of the values that comparing ignores."""
    if key == "protobuf":
        return neutral(wire.plain(value))
    if key == "frames":
        return [neutral({**frame, "object": wire.plain(frame["object"])}) for frame in value]
    if isinstance(value, dict):
        return {
            UID.sub(_SAME_UID, name): neutral(item, name)
            for name, item in value.items()
            if name != "description" or not isinstance(item, str)
        }
    if isinstance(value, list):
        return [neutral(item) for item in value]
    if not isinstance(value, str):
        return value
    if key == "resourceVersion" and value.isdigit():
        return "1"
    if key in ("token", "continue") and len(value) > _LONG_TOKEN:
        return "ANYTOKEN"  # valid base64, as the data of Secrets is
    text = _HASH.sub("hash=HASH", _REVISION.sub(r"\g<1>1", UID.sub(_SAME_UID, value)))
    return _TIME.sub(lambda match: f"{_SAME_TIME}{'.000000' if match[1] else ''}Z", text)
