"""Where a paged list goes on: opaque to clients, readable to any server of the same storage.

Upstream: k8s.io/apiserver/pkg/storage/continue.go.
"""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as Base64Error
from dataclasses import dataclass
from typing import Final

from fakeapiserver.apimachinery.errors import StatusError, new_bad_request

_VERSION: Final = "meta.k8s.io/v1"


@dataclass(frozen=True, slots=True)
class Position:
    """`revision` 0: go on at the newest state (an inconsistent continuation); keys behind `start_after`."""

    revision: int
    start_after: str


def encode(last_key: str, prefix: str, revision: int) -> str:
    """The token of a page that ended with `last_key`."""
    start = last_key.removeprefix(prefix) + "\0"
    token = json.dumps({"v": _VERSION, "rv": revision, "start": start}, separators=(",", ":"))
    return urlsafe_b64encode(token.encode()).rstrip(b"=").decode()


def decode(token: str, prefix: str) -> Position:
    """StatusError 400 for a token that no server made, or that leads out of its collection."""
    try:
        data = urlsafe_b64decode(token + "=" * (-len(token) % 4))
        document = json.loads(data)
    except (Base64Error, ValueError, UnicodeError):
        raise _invalid("continue key is not valid") from None
    if not isinstance(document, dict) or document.get("v") != _VERSION:
        version = document.get("v", "") if isinstance(document, dict) else ""
        raise _invalid(f'continue key is not valid: server does not recognize this encoded version "{version}"')
    revision, start = document.get("rv", 0), document.get("start", "")
    if revision == 0 or not isinstance(revision, int):
        raise _invalid("continue key is not valid: incorrect encoded start resourceVersion (version meta.k8s.io/v1)")
    if not isinstance(start, str) or not start:
        raise _invalid("continue key is not valid: encoded start key empty (version meta.k8s.io/v1)")
    if any(part in (".", "..") for part in start.rstrip("\0").split("/")) or start.startswith("/"):
        raise _invalid(f"continue key is not valid: {start}")
    return Position(max(revision, 0), prefix + start.removesuffix("\0"))


def _invalid(text: str) -> StatusError:
    return new_bad_request(text)
