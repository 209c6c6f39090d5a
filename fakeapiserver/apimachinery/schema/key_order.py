"""The order in which Go's encoder writes an object's keys: a struct's fields as they are declared, a map's keys sorted.

What a built-in kind keeps as raw JSON (RawExtension, FieldsV1) stays as it is: Go writes its text.

Upstream: encoding/json (encode.go: structEncoder, mapEncoder).
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

from fakeapiserver.apimachinery.depth import continued
from fakeapiserver.apimachinery.schema.resolve import Definitions, Schema, reference

# Brings the keys of a value into Go's order. The value isn't changed; it is returned as it is if nothing is out of order.
Arrange = Callable[[Any], Any]
# A definition's fields in the order of its Go struct.
FieldOrder = Callable[[str], Sequence[str]]

_API: Final = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1."
# Types that are a schema, or something else, or a list of schemas.
_SCHEMA_OR: Final = frozenset(_API + "JSONSchemaPropsOr" + kind for kind in ("Bool", "Array", "StringArray"))
# Clients choose which fields an object has, and in which order: so many combinations of one struct are remembered.
_MAX_SHAPES: Final = 256


class _Struct:
    """A definition with properties. What is to be done for the keys of a value is worked out once for each sequence of keys."""

    __slots__ = ("_inner", "_name", "_orders", "_ranks", "_shapes")

    def __init__(self, orders: "KeyOrders", name: str) -> None:
        self._orders, self._name = orders, name
        self._ranks: dict[str, int] | None = None
        self._inner: dict[str, Arrange] = {}
        # Keys as they come -> the keys in order (None if they come in order), and those whose values are looked into.
        self._shapes: dict[tuple[str, ...], tuple[list[str] | None, list[tuple[str, Arrange]]]] = {}

    def arrange(self, value: Any) -> Any:
        if value.__class__ is not dict:
            return value
        keys = tuple(value)
        shape = self._shapes.get(keys)
        ordered, inner = self._shape(keys) if shape is None else shape
        out = value if ordered is None else {key: value[key] for key in ordered}
        for key, arrange in inner:
            item = value[key]
            arranged = arrange(item)
            if arranged is not item:
                if out is value:
                    out = dict(value)
                out[key] = arranged
        return out

    def _shape(self, keys: tuple[str, ...]) -> tuple[list[str] | None, list[tuple[str, Arrange]]]:
        if self._ranks is None:
            self._ranks, self._inner = self._orders.fields(self._name)
        ranks, last = self._ranks, len(self._ranks)
        ordered = sorted(keys, key=lambda key: ranks.get(key, last))
        inner = [(key, self._inner[key]) for key in ordered if key in self._inner]
        if len(self._shapes) >= _MAX_SHAPES:
            self._shapes.clear()
        shape = self._shapes[keys] = (None if ordered == list(keys) else ordered, inner)
        return shape


class KeyOrders:
    """The arrangements of one set of definitions. Types are compiled when a value of them first comes."""

    def __init__(self, definitions: Definitions, field_order: FieldOrder) -> None:
        self._definitions = definitions
        self._field_order = field_order
        self._types: dict[str, Arrange | None] = {}

    def named(self, name: str) -> Arrange | None:
        """The arrangement of a definition; None if there is nothing to arrange."""
        if name not in self._types:
            if name in _SCHEMA_OR:
                self._types[name] = self._schema_or
            elif name == _API + "JSON":  # which upstream decodes into maps on its way
                self._types[name] = _sorted
            else:
                is_struct = "properties" in self._definitions.get(name, {})
                self._types[name] = _Struct(self, name).arrange if is_struct else None
        return self._types[name]

    def _schema_or(self, value: Any) -> Any:
        arrange = self.named(_API + "JSONSchemaProps")
        assert arrange is not None
        return list(map(arrange, value)) if isinstance(value, list) else arrange(value)

    def fields(self, name: str) -> tuple[dict[str, int], dict[str, Arrange]]:
        """Returns the rank of each of a definition's fields, and the arrangements of fields that have one."""
        properties = self._definitions[name]["properties"]
        inner = {
            key: inner_field for key, schema in properties.items() if (inner_field := self._of(schema)) is not None
        }
        return {key: rank for rank, key in enumerate(self._field_order(name))}, inner

    def _of(self, schema: Schema) -> Arrange | None:
        if name := reference(schema):
            return self.named(name)
        if "items" in schema:
            return _list(self._of(schema["items"]))
        if "additionalProperties" in schema:
            return _map(self._of(schema["additionalProperties"]))
        return None


def _sorted(value: Any) -> Any:
    """The value with the keys of all its maps sorted."""
    try:
        if isinstance(value, dict):
            return {key: _sorted(value[key]) for key in sorted(value)}
        return [_sorted(item) for item in value] if isinstance(value, list) else value
    except RecursionError:
        return continued(_sorted, value)


def _list(item: Arrange | None) -> Arrange | None:
    if item is None:
        return None
    arrange = item
    return lambda value: list(map(arrange, value)) if value.__class__ is list else value


def _map(item: Arrange | None) -> Arrange:
    def arranged(value: Any) -> Any:
        if value.__class__ is not dict:
            return value
        if item is not None:
            return {key: item(value[key]) for key in sorted(value)}
        keys = sorted(value)
        return value if keys == list(value) else {key: value[key] for key in keys}

    return arranged


# By the identity of their definitions, which they keep alive.
_orders: dict[int, KeyOrders] = {}


def arrangement(definitions: Definitions, name: str, field_order: FieldOrder) -> Arrange:
    """Brings the keys of a definition's objects into the order in which Go writes them."""
    orders = _orders.get(id(definitions))
    if orders is None:
        orders = _orders[id(definitions)] = KeyOrders(definitions, field_order)
    return orders.named(name) or _as_it_is


def _as_it_is(value: Any) -> Any:
    return value
