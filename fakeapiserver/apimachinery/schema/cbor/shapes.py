"""The places of bytes and floats in a definition's objects: CBOR distinguishes them from texts and whole numbers, JSON does not."""

from collections.abc import Mapping

from fakeapiserver.apimachinery.schema.resolve import Definitions, Schema, reference


class Shape:
    """The places in a definition's objects where texts are bytes and whole numbers floats.

    None for types without either.
    """

    def __init__(self, *, is_bytes: bool = False, is_float: bool = False) -> None:
        self.is_bytes, self.is_float = is_bytes, is_float
        self.fields: Mapping[str, Shape] = {}
        self.values: Shape | None = None


def shape_of(definitions: Definitions, name: str) -> Shape | None:
    """The shape of a definition's objects."""
    return _Shapes(definitions).named(name)


def list_shape(item: Shape | None) -> Shape | None:
    """The shape of a list's document."""
    if item is None:
        return None
    items, list_shape = Shape(), Shape()
    items.values, list_shape.fields = item, {"items": items}
    return list_shape


class _Shapes:
    def __init__(self, definitions: Definitions) -> None:
        self._definitions = definitions
        self._named: dict[str, Shape | None] = {}

    def named(self, name: str) -> Shape | None:
        if name not in self._named:
            struct_shape = self._named[name] = Shape()
            properties = self._definitions[name].get("properties", {})
            inner = {key: self._schema(prop) for key, prop in properties.items()}
            struct_shape.fields = {key: shape for key, shape in inner.items() if shape is not None}
            if not struct_shape.fields:
                self._named[name] = None
        return self._named[name]

    def _schema(self, schema: Schema) -> Shape | None:
        if name := reference(schema):
            return self.named(name)
        kind = schema.get("type", "")
        if kind == "string" and schema.get("format") == "byte":
            return Shape(is_bytes=True)
        if kind == "number":
            return Shape(is_float=True)
        values = schema.get("items") if kind == "array" else schema.get("additionalProperties")
        inner = self._schema(values) if isinstance(values, dict) else None
        if inner is None:
            return None
        shape = Shape()
        shape.values = inner
        return shape
