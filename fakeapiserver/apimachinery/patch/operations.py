"""The operations of a JSON patch: decoding them as kube-apiserver does, and in its words.

Upstream: gopkg.in/evanphx/json-patch.v4/patch.go, k8s.io/apiserver/pkg/endpoints/handlers/patch.go (jsonPatchOp).
"""

from typing import Any, Final

import msgspec
from msgspec import Struct

from fakeapiserver.apimachinery.errors import new_bad_request, new_request_entity_too_large
from fakeapiserver.apimachinery.patch.texts import go_text, raw_array, raw_object
from fakeapiserver.apimachinery.serializer import json

MAX_OPERATIONS: Final = 10_000
_FIELDS: Final = ("op", "path", "from", "value")
_GO_NAMES: Final = {dict: "object", list: "array", str: "string", bool: "bool", int: "number", float: "number"}


class Operation(Struct, frozen=True):
    """A step of a patch.

    `path` and `source` (the member `from`) are None if missing or no text; `mistyped` and `mistyped_source` have
    Go's words for that.

    `text` is the value as written, None if it is missing.
    """

    op: str
    path: str | None
    source: str | None
    value: Any
    text: bytes | None
    mistyped: str = ""
    mistyped_source: str = ""


def decode(data: bytes, *, field_validation: str = "Warn") -> list[Operation]:
    """Decodes the operations of a patch. Raises StatusError 400 for an invalid list, 413 for more than 10,000.

    With field_validation "Ignore" upstream leaves out one of two decodings: texts differ, and members of a wrong type fail later.
    """
    lenient = field_validation == "Ignore"
    try:
        items = json.decode(data)
    except json.NumberTooLarge as error:
        field = "value" if lenient else "struct field jsonPatchOp.value"
        text = f"json: cannot unmarshal number {error.number} into Go {field} of type float64"
        raise new_bad_request(text if lenient else f"error decoding patch: {text}") from None
    except json.DecodeError as error:
        raise new_bad_request(str(error) if lenient else f"error decoding patch: {error}") from None
    why = _mistyped(items, lenient)
    if why:
        raise new_bad_request(why if lenient else f"error decoding patch: {why}")
    if not items:
        return []
    if len(items) > MAX_OPERATIONS:
        raise new_request_entity_too_large(
            f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {len(items)}"
        )
    return _operations(data, items)


def complaints(data: bytes) -> list[str]:
    """Returns the warnings of strict decoding about a patch that decode() accepts:

    `json patch unknown field "[0].foo"` and duplicates.
    """
    items = json.decode(data)
    texts = json.duplicate_fields(data, items)
    for index, item in enumerate(items or ()):
        texts += [f'unknown field "[{index}].{name}"' for name in item or () if name not in _FIELDS]
    return [f"json patch {text}" for text in texts]


def _mistyped(items: Any, lenient: bool) -> str:
    """Returns Go's error for the first value of a wrong type, or "". Null is a value of every type."""
    operation = "jsonpatch.Operation" if lenient else "handlers.jsonPatchOp"
    if items is None:
        return ""
    if not isinstance(items, list):
        whole = "jsonpatch.Patch" if lenient else f"[]{operation}"
        return f"json: cannot unmarshal {_GO_NAMES[type(items)]} into Go value of type {whole}"
    for item in items:
        if item is not None and not isinstance(item, dict):
            return f"json: cannot unmarshal {_GO_NAMES[type(item)]} into Go value of type {operation}"
        for name, value in () if lenient or not item else item.items():
            if name in ("op", "path", "from") and value is not None and not isinstance(value, str):
                field = f"jsonPatchOp.{name}"
                return f"json: cannot unmarshal {_GO_NAMES[type(value)]} into Go struct field {field} of type string"
    return ""


def _operations(data: bytes, items: list[Any]) -> list[Operation]:
    texts = _value_texts(data, items)
    operations = []
    for item, text in zip(items, texts, strict=True):
        op, path, source = ((item or {}).get(name) for name in ("op", "path", "from"))
        operations.append(
            Operation(
                op if isinstance(op, str) else "unknown",
                path if isinstance(path, str) else None,
                source if isinstance(source, str) else None,
                (item or {}).get("value"),
                text,
                _no_text(path),
                _no_text(source),
            )
        )
    return operations


def _no_text(value: Any) -> str:
    if value is None or isinstance(value, str):
        return ""
    return f"json: cannot unmarshal {_GO_NAMES[type(value)]} into Go value of type string"


def _value_texts(data: bytes, items: list[Any]) -> list[bytes | None]:
    try:
        return [_value_text(raw) for raw in raw_array(data)]
    except (msgspec.DecodeError, RecursionError):
        # Text only the slow parser reads, such as bad UTF-8, or deep values: what it became stands for it.
        return [go_text(item["value"]) if item and "value" in item else None for item in items]


def _value_text(raw: msgspec.Raw) -> bytes | None:
    value = None if bytes(raw) == b"null" else raw_object(raw).get("value")
    return None if value is None else bytes(value)
