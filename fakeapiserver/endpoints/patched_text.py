"""The text of a patched document, as the message about one that can't be decoded shows it.

What a patch touched is written with its keys in order; what it left alone as Go's marshaller wrote the object, in the order of Go's
structs, which the numbers of protobuf's fields mostly follow; and what a JSON patch put in, as the patch had it.
Upstream: gopkg.in/evanphx/json-patch.v4 (partialDoc, lazyNode).
"""

from collections.abc import Sequence
from typing import Any, Final

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.patch.operations import Operation
from fakeapiserver.apimachinery.schema.go_types import recorded_field_orders
from fakeapiserver.apimachinery.schema.resolve import Definitions, Schema, reference
from fakeapiserver.apis.protobuf import messages

_TYPE: Final = frozenset(("kind", "apiVersion"))


def ordered(
    patched: Any, operations: Sequence[Operation], current: Object, definition: Schema | None, definitions: Definitions
) -> Any:
    """The document with its members in the order of that text.

    `patched` shares its untouched parts with `current`, whose type is `definition` (None: a custom resource), and others with the
    values of a JSON patch's operations.
    """
    untouched: dict[int, tuple[Any, Schema | None]] = {}
    _mark(current, definition, definitions, untouched)
    given: dict[int, Any] = {}
    for operation in operations:
        _collect(operation.value, given)
        # Looking at a part takes apart what it is in, as changing it does.
        if operation.op in ("test", "copy"):
            _touch(current, operation.path if operation.op == "test" else operation.source, untouched)
    return _ordered(patched, untouched, given, definitions)


def _touch(current: Any, pointer: str | None, untouched: dict[int, tuple[Any, Schema | None]]) -> None:
    node = current
    for word in (pointer or "").split("/")[1:]:
        untouched.pop(id(node), None)
        key = word.replace("~1", "/").replace("~0", "~")
        if isinstance(node, dict):
            node = node.get(key)
        elif isinstance(node, list) and key.isdigit() and int(key) < len(node):
            node = node[int(key)]


def _ordered(
    value: Any, untouched: dict[int, tuple[Any, Schema | None]], given: dict[int, Any], definitions: Definitions
) -> Any:
    if id(value) in untouched:
        return _as_struct(value, untouched[id(value)][1], definitions)
    if id(value) in given:
        return value
    if isinstance(value, dict):
        return {key: _ordered(value[key], untouched, given, definitions) for key in sorted(value)}
    return [_ordered(item, untouched, given, definitions) for item in value] if isinstance(value, list) else value


def _mark(
    value: Any, schema: Schema | None, definitions: Definitions, into: dict[int, tuple[Any, Schema | None]]
) -> None:
    if isinstance(value, dict):
        into[id(value)] = (value, schema)
        for key, item in value.items():
            _mark(item, _child(schema, key, definitions), definitions, into)
    elif isinstance(value, list):
        into[id(value)] = (value, schema)
        for item in value:
            _mark(item, _items(schema, definitions), definitions, into)


def _collect(value: Any, into: dict[int, Any]) -> None:
    if isinstance(value, dict | list):
        into[id(value)] = value
        for item in value.values() if isinstance(value, dict) else value:
            _collect(item, into)


def _as_struct(value: Any, schema: Schema | None, definitions: Definitions) -> Any:
    if isinstance(value, list):
        return [_as_struct(item, _items(schema, definitions), definitions) for item in value]
    if not isinstance(value, dict):
        return value
    order = _field_order(schema)
    keys = sorted(value, key=lambda key: (order.get(key, len(order)), key))
    return {key: _as_struct(value[key], _child(schema, key, definitions), definitions) for key in keys}


def _field_order(schema: Schema | None) -> dict[str, int]:
    """The places of a struct's fields; empty for maps."""
    name = reference(schema) if schema else ""
    if not name:
        return {}
    fields = recorded_field_orders().get(name)
    if fields is None:
        message = messages().get("k8s.io." + name.removeprefix("io.k8s.").replace("-", "_"), {})
        fields = tuple(message[number][0] for number in sorted(message))
    named = fields if not _TYPE.isdisjoint(fields) else ("kind", "apiVersion", *fields)
    return {key: place for place, key in enumerate(named)}


def _resolved(schema: Schema | None, definitions: Definitions) -> Schema:
    if schema is None:
        return {}
    name = reference(schema)
    return definitions.get(name, {}) if name else schema


def _child(schema: Schema | None, key: str, definitions: Definitions) -> Schema | None:
    resolved = _resolved(schema, definitions)
    found = resolved.get("properties", {}).get(key)
    if found is None and isinstance(additional := resolved.get("additionalProperties"), dict):
        return additional
    return found  # type: ignore[no-any-return]


def _items(schema: Schema | None, definitions: Definitions) -> Schema | None:
    return _resolved(schema, definitions).get("items")
