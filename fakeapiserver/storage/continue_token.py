"""Continue tokens: where a paged list goes on. Opaque to clients, readable to any server of the same storage.

Upstream: k8s.io/apiserver/pkg/storage/continue.go.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from posixpath import normpath
from string import ascii_letters, digits
from typing import Any, Final

from msgspec import Struct

from fakeapiserver.apimachinery.errors import StatusError, new_bad_request
from fakeapiserver.apimachinery.serializer import json

_VERSION: Final = "meta.k8s.io/v1"
_ALPHABET: Final = frozenset(ascii_letters + digits + "-_\r\n")
_GO_NAMES: Final = {list: "array", str: "string", bool: "bool", int: "number", float: "number", dict: "object"}
# The revision of a token that goes on at the newest state.
INCONSISTENT: Final = -1


class Position(Struct, frozen=True):
    """The position where a list goes on: at keys from `start` on, at `revision` (0: the newest state, an inconsistent continuation)."""

    revision: int
    start: str


def encode(start: str, prefix: str, revision: int) -> str:
    """The token of a list that goes on with the key `start`, e.g. the last key followed by a NUL."""
    token = json.encode({"v": _VERSION, "rv": revision, "start": start.removeprefix(prefix)})
    return urlsafe_b64encode(token).rstrip(b"=").decode()


def decode(token: str, prefix: str) -> Position:
    """The position in a token. Raises StatusError 400 for an invalid token, and for a token that leads out of its collection."""
    fields = _fields(_document(token))
    version, revision, start = fields["v"], fields["rv"], fields["start"]
    if version != _VERSION:
        raise _invalid(f"server does not recognize this encoded version {version}")
    if revision == 0:
        raise _invalid(f"incorrect encoded start resourceVersion (version {_VERSION})")
    if not start:
        raise _invalid(f"encoded start key empty (version {_VERSION})")
    key = start if start.startswith("/") else f"/{start}"
    if normpath(key) != key or key.startswith("//"):
        raise _invalid(start)
    return Position(max(revision, 0), prefix + key[1:])


def _fields(document: dict[str, Any]) -> dict[str, Any]:
    """The fields of a token as Go decodes them into a struct: names in any case, null leaves a field as it is."""
    fields: dict[str, Any] = {"v": "", "rv": 0, "start": ""}
    for key, value in document.items():
        name = key.lower()
        if name not in fields or value is None:
            continue
        expected_type = type(fields[name])
        if type(value) is not expected_type:
            go_name = _GO_NAMES[type(value)]
            if isinstance(value, float) and expected_type is int:
                go_name += f" {_go_float(value)}"
            go_type = "int64" if expected_type is int else "string"
            raise _invalid(
                f"json: cannot unmarshal {go_name} into Go struct field continueToken.{name} of type {go_type}"
            )
        fields[name] = value
    return fields


def _go_float(value: float) -> str:
    return str(int(value)) if value.is_integer() and abs(value) >= 2**53 else str(value)


def _document(token: str) -> dict[str, Any]:
    kept = token.replace("\r", "").replace("\n", "")  # Go's decoder skips line ends
    invalid_at = next((i for i, character in enumerate(token) if character not in _ALPHABET), -1)
    if invalid_at < 0 and len(kept) % 4 == 1:
        invalid_at = len(token) - 1
    if invalid_at >= 0:
        raise _invalid(f"illegal base64 data at input byte {invalid_at}")
    try:
        document = json.decode(urlsafe_b64decode(kept + "=" * (-len(kept) % 4)))
    except ValueError as error:
        raise _invalid(str(error)) from None
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise _invalid(
            f"json: cannot unmarshal {_GO_NAMES[type(document)]} into Go value of type storage.continueToken"
        )
    return document


def _invalid(why: str) -> StatusError:
    return new_bad_request(f"invalid continue token: continue key is not valid: {why}")
