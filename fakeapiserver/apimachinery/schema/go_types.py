"""Names of Go types, as Go prints them, and what Go's struct tags say of a field.

Upstream: the types.go files of k8s.io/api, recorded in go_types.json; Go's reflect.Type.String.

A field's type is written `[*]TYPE[!][~][ @Embedded]`: `*` a pointer, `!` without omitempty, `~` with omitzero, `@` the
embedded struct it comes from. Only what OpenAPI does not let one expect is recorded.
"""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final

import msgspec

from fakeapiserver.apimachinery.schema.resolve import Schema, reference

QUANTITY: Final = "io.k8s.apimachinery.pkg.api.resource.Quantity"
INT_OR_STRING: Final = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"
# Go's names of types that don't follow from OpenAPI's definition names.
_PACKAGE: Final = {QUANTITY: "resource.Quantity", INT_OR_STRING: "intstr.IntOrString"}
_SCALARS: Final = {"string": "string", "boolean": "bool", "number": "float64"}


def expected_go_type(schema: Schema, required: bool) -> str:
    """The Go type and marks OpenAPI lets one expect of a field, in the notation of go_types.json."""
    go, end = go_type_of(schema), "!" if required else ""
    return go + end if not reference(schema) or "default" in schema else f"*{go}{end}"


def go_type_of(schema: Schema) -> str:
    """The name Go prints for a schema's type: `v1.PodSpec`, `[]string`, `int32`."""
    if name := reference(schema):
        return _PACKAGE.get(name) or ".".join(name.rsplit(".", 2)[1:])
    kind = schema.get("type", "")
    if kind == "array":
        return "[]" + go_type_of(schema["items"])
    if kind == "object":
        return "map[string]" + go_type_of(schema.get("additionalProperties", {"type": "string"}))
    if kind == "integer":
        return str(schema.get("format", "int64"))
    return "[]uint8" if schema.get("format") == "byte" else _SCALARS.get(kind, "interface {}")


def go_types_in(definitions: Mapping[str, Schema]) -> Mapping[str, Mapping[str, str]]:
    """Returns definition -> field -> its Go type and marks, where OpenAPI lacks them:

    the definitions' own, or the newest.
    """
    own: Mapping[str, Mapping[str, str]] | None = getattr(definitions, "go_types", None)
    return recorded_go_types() if own is None else own


@cache
def recorded_go_types() -> dict[str, dict[str, str]]:
    """Returns definition -> field -> its Go type and marks, where OpenAPI lacks them."""
    recorded = (Path(__file__).parent / "go_types.json").read_bytes()
    return msgspec.json.decode(recorded, type=dict[str, dict[str, str]])


@cache
def recorded_field_orders() -> dict[str, tuple[str, ...]]:
    """Definition -> its fields in the order Go writes them, in the newest version."""
    recorded = (Path(__file__).parent / "field_order.json").read_bytes()
    return msgspec.json.decode(recorded, type=dict[str, tuple[str, ...]])


def element_of(go_type: str, opening: str) -> str:
    """Returns the element type of `[]T` or `map[K]T`; empty for a named type, whose elements are in OpenAPI."""
    if opening == "[]":
        return go_type[2:].lstrip("*") if go_type.startswith("[]") else ""
    return go_type.partition("]")[2].lstrip("*") if go_type.startswith("map[") else ""
