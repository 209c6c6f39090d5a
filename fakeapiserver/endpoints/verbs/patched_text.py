"""The text of a patched document, as the message about one that can't be decoded shows it.

What a patch touched is written with its keys in order; what it left alone as Go's marshaller wrote the object, in the order of Go's
structs, which the numbers of protobuf's fields mostly follow; and what a JSON patch put in, as the patch had it.
Upstream: gopkg.in/evanphx/json-patch.v4 (partialDoc, lazyNode).
"""

from collections.abc import Sequence
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from fakeapiserver.apimachinery.depth import continued
from fakeapiserver.apimachinery.go.strconv import atoi
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.patch.operations import Operation
from fakeapiserver.apimachinery.patch.texts import Text, opened
from fakeapiserver.apimachinery.schema.resolve import Definitions, Schema, reference
from fakeapiserver.apis.field_order import field_order

# Types that Go keeps as the text they came in.
_TEXTS: Final = (
    "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1",
    "io.k8s.apimachinery.pkg.runtime.RawExtension",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON",
)
# A schema or something simpler, which is shown as what it is.
_CRD: Final = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1."
_SCHEMA_OR: Final = (_CRD + "JSONSchemaPropsOrBool", _CRD + "JSONSchemaPropsOrArray")
_SCHEMA: Final[Schema] = {"$ref": "#/components/schemas/" + _CRD + "JSONSchemaProps"}


def ordered(
    patched: Any, operations: Sequence[Operation], current: Object, definition: Schema | None, definitions: Definitions
) -> Any:
    """The document with its members in the order of that text.

    `patched` shares its untouched parts with `current`, whose type is `definition` (None: a custom resource). `operations` are
    those of the JSON patch that made it, if one did.
    """
    if operations:
        return _after(operations, _as_struct(current, definition, definitions))
    untouched: dict[int, tuple[Any, Schema | None]] = {}
    _mark(current, definition, definitions, untouched)
    met = current if isinstance(patched, dict) else None  # a list is the new document
    return _ordered(patched, met, untouched, definitions)


def as_written(text: bytes, value: Any) -> Any:
    """The value of a JSON text with its numbers and strings as they stand there (1.0, 18446744073709551616, "\\u00fc"), for an
    encoder; `value` where only the slow decoder reads it."""
    try:
        return _scalars_as_written(text.strip())
    except (msgspec.DecodeError, UnicodeDecodeError):
        return value


def _scalars_as_written(text: Text) -> Any:
    text = opened(text)
    try:
        if isinstance(text, dict):
            return {key: _scalars_as_written(item) for key, item in text.items()}
        if isinstance(text, list):
            return [_scalars_as_written(item) for item in text]
    except RecursionError:
        return continued(_scalars_as_written, text)
    return None if text == b"null" else msgspec.Raw(text)


def operations_as_written(operations: Sequence[Operation]) -> Sequence[Operation]:
    return [replace(one, value=as_written(one.text, one.value)) if one.text else one for one in operations]


class _Lazy:
    """A value of a document that a JSON patch changes: a text, whose order stays, until something looks into it."""

    __slots__ = ("_members", "_raw")

    def __init__(self, raw: Any) -> None:
        self._raw = raw
        self._members: dict[str, _Lazy] | list[_Lazy] | None = None

    def members(self) -> "dict[str, _Lazy] | list[_Lazy]":
        if self._members is None:
            raw = self._raw
            self._members = [_Lazy(v) for v in raw] if isinstance(raw, list) else {k: _Lazy(v) for k, v in raw.items()}
        return self._members

    def look_through(self) -> None:
        """Parses all members, as comparing does."""
        waiting = [self]
        while waiting:
            value = waiting.pop()
            if value._members is not None or isinstance(value._raw, dict | list):
                members = value.members()
                waiting += members.values() if isinstance(members, dict) else members

    def get(self, key: str) -> "_Lazy":
        members = self.members()
        return members[atoi(key)] if isinstance(members, list) else members.get(key, _Lazy(None))

    def add(self, key: str, value: "_Lazy") -> None:
        members = self.members()
        if isinstance(members, dict):
            members[key] = value
        else:
            at = len(members) if key == "-" else atoi(key)
            members.insert(at + len(members) + 1 if at < 0 else at, value)

    def replace(self, key: str, value: "_Lazy") -> None:
        members = self.members()
        if isinstance(members, dict):
            members[key] = value
        else:
            members[atoi(key)] = value

    def remove(self, key: str) -> None:
        members = self.members()
        if isinstance(members, dict):
            members.pop(key, None)
        else:
            del members[atoi(key)]

    def value(self) -> Any:
        members = self._members
        try:
            if isinstance(members, dict):
                return {key: members[key].value() for key in sorted(members)}
            return self._raw if members is None else [member.value() for member in members]
        except RecursionError:
            return continued(self.value)


def _after(operations: Sequence[Operation], document: Any) -> Any:
    """The document after operations that are known to apply."""
    root = _Lazy(document)
    root.members()
    for operation in operations:
        if operation.path == "":
            if operation.op == "test":
                root.look_through()
            else:
                root = _Lazy(operation.value)
                root.members()
            continue
        moved = _Lazy(None)
        if operation.op in ("move", "copy"):
            source, name = _found(root, operation.source)
            moved = source.get(name)
            if operation.op == "move":
                source.remove(name)
        container, key = _found(root, operation.path)
        match operation.op:
            case "add":
                container.add(key, _Lazy(operation.value))
            case "replace":
                container.replace(key, _Lazy(operation.value))
            case "remove":
                container.remove(key)
            case "move":
                container.add(key, moved)
            case "copy":
                container.add(key, _Lazy(moved.value()))
            case "test":
                container.get(key).look_through()
    return root.value()


def _found(root: _Lazy, pointer: str | None) -> tuple[_Lazy, str]:
    """The container that a pointer ends in, looked into, and the key there."""
    *words, key = [word.replace("~1", "/").replace("~0", "~") for word in (pointer or "").split("/")[1:]]
    for word in words:
        root = root.get(word)
    root.members()
    return root, key


def _ordered(value: Any, before: Any, untouched: dict[int, tuple[Any, Schema | None]], definitions: Definitions) -> Any:
    """`before` is what the patch met in this place."""
    if id(value) in untouched:
        return _as_struct(value, untouched[id(value)][1], definitions)
    try:
        if isinstance(value, dict):
            inner = before if isinstance(before, dict) else {}
            return {key: _ordered(value[key], inner.get(key), untouched, definitions) for key in sorted(value)}
        if isinstance(value, list) and not isinstance(before, dict):  # what replaces an object isn't looked into
            return [_ordered(item, None, untouched, definitions) for item in value]
    except RecursionError:
        return continued(_ordered, value, before, untouched, definitions)
    return value


def _mark(
    value: Any, schema: Schema | None, definitions: Definitions, into: dict[int, tuple[Any, Schema | None]]
) -> None:
    waiting = [(value, schema)]
    while waiting:
        value, schema = waiting.pop()
        if isinstance(value, dict):
            into[id(value)] = (value, schema)
            waiting += [(item, _child(schema, key, definitions)) for key, item in value.items()]
        elif isinstance(value, list):
            into[id(value)] = (value, schema)
            waiting += [(item, _items(schema, definitions)) for item in value]


def _as_struct(value: Any, schema: Schema | None, definitions: Definitions) -> Any:
    try:
        if isinstance(value, list):
            return [_as_struct(item, _items(schema, definitions), definitions) for item in value]
        if not isinstance(value, dict) or _is_text(schema):
            return value
        order = _field_order(schema)
        keys = sorted(value, key=lambda key: (order.get(key, len(order)), key))
        return {key: _as_struct(value[key], _child(schema, key, definitions), definitions) for key in keys}
    except RecursionError:
        return continued(_as_struct, value, schema, definitions)


def _field_order(schema: Schema | None) -> dict[str, int]:
    """The places of a struct's fields; empty for maps."""
    name = reference(schema) if schema else ""
    return {key: place for place, key in enumerate(field_order(name))} if name else {}


def _resolved(schema: Schema | None, definitions: Definitions) -> Schema:
    if schema is None:
        return {}
    name = reference(schema)
    return definitions.get(name, {}) if name else schema


def _child(schema: Schema | None, key: str, definitions: Definitions) -> Schema | None:
    if _is_text(schema):
        return schema  # and so is all that is in it
    resolved = _resolved(schema, definitions)
    child = resolved.get("properties", {}).get(key)
    if child is None and isinstance(additional := resolved.get("additionalProperties"), dict):
        return additional
    return _SCHEMA if child and reference(child) in _SCHEMA_OR else child


def _is_text(schema: Schema | None) -> bool:
    return schema is not None and reference(schema) in _TEXTS


def _items(schema: Schema | None, definitions: Definitions) -> Schema | None:
    return schema if _is_text(schema) else _resolved(schema, definitions).get("items")
