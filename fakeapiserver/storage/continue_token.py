"""Where a paged list goes on: opaque to clients, readable to any server of the same storage.

Upstream: k8s.io/apiserver/pkg/storage/continue.go.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass
from posixpath import normpath
from string import ascii_letters, digits
from typing import Any, Final

from fakeapiserver.apimachinery.errors import StatusError, new_bad_request
from fakeapiserver.apimachinery.serializer import json

_VERSION: Final = "meta.k8s.io/v1"
_ALPHABET: Final = frozenset(ascii_letters + digits + "-_")
_GO_NAMES: Final = {list: "array", str: "string", bool: "bool", int: "number", float: "number", dict: "object"}
# The revision of a token that goes on at whatever is newest.
INCONSISTENT: Final = -1


@dataclass(frozen=True, slots=True)
class Position:
    """`revision` 0: go on at the newest state (an inconsistent continuation); keys from `start` on."""

    revision: int
    start: str


def encode(start: str, prefix: str, revision: int) -> str:
    """The token of a list that goes on with the key `start` (the last key with a NUL behind it, say)."""
    token = json.encode({"v": _VERSION, "rv": revision, "start": start.removeprefix(prefix)})
    return urlsafe_b64encode(token).rstrip(b"=").decode()


def decode(token: str, prefix: str) -> Position:
    """StatusError 400 for a token that no server made, or that leads out of its collection."""
    document = _document(token)
    if document.get("v") != _VERSION:
        raise _invalid(f"server does not recognize this encoded version {document.get('v', '')}")
    revision, start = document.get("rv", 0), document.get("start", "")
    for name, value, wanted, go_type in (("rv", revision, int, "int64"), ("start", start, str, "string")):
        if not isinstance(value, wanted) or isinstance(value, bool):
            found = _GO_NAMES.get(type(value), "null")
            raise _invalid(
                f"json: cannot unmarshal {found} into Go struct field continueToken.{name} of type {go_type}"
            )
    if revision == 0:
        raise _invalid(f"incorrect encoded start resourceVersion (version {_VERSION})")
    if not start:
        raise _invalid(f"encoded start key empty (version {_VERSION})")
    key = start if start.startswith("/") else f"/{start}"
    if normpath(key) != key or key.startswith("//"):
        raise _invalid(start)
    return Position(max(revision, 0), prefix + key[1:])


def _document(token: str) -> dict[str, Any]:
    bad = next((i for i, character in enumerate(token) if character not in _ALPHABET), -1)
    if bad < 0 and len(token) % 4 == 1:
        bad = len(token) - 1
    if bad >= 0:
        raise _invalid(f"illegal base64 data at input byte {bad}")
    try:
        document = json.decode(urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    except ValueError as error:
        raise _invalid(str(error)) from None
    if not isinstance(document, dict):
        found = _GO_NAMES.get(type(document), "null")
        raise _invalid(f"json: cannot unmarshal {found} into Go value of type storage.continueToken")
    return document


def _invalid(why: str) -> StatusError:
    return new_bad_request(f"invalid continue token: continue key is not valid: {why}")
