"""Types of objects as structured merge sees them, compiled lazily from OpenAPI.

Upstream: k8s.io/kube-openapi/pkg/schemaconv (openapi.go, smd.go), sigs.k8s.io/structured-merge-diff/v6/schema/elements.go.

A Node is the type of a value: a scalar, a list, a map, or any of them. Lists are atomic unless they say otherwise, maps granular.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

from fakeapiserver.apimachinery.managedfields.fieldset import key_element, named_element, value_element
from fakeapiserver.apimachinery.schema.go_types import QUANTITY, expected_go_type, go_types_in
from fakeapiserver.apimachinery.schema.resolve import Definitions, Schema, reference

OBJECT_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_RAW_EXTENSION: Final = "io.k8s.apimachinery.pkg.runtime.RawExtension"
_UNTYPED_FORMATS_EXCEPT: Final = ("", "byte")

Scalar = Literal["", "string", "numeric", "boolean", "untyped"]


class NoPathElement(ValueError):
    """A list item that has no path element: a null, or an object without any of the list's keys."""


class Node:
    """The type of a value. `scalar` empty: no scalar; `items` None: no list; `is_map` False: no map."""

    __slots__ = ("atomic_list", "atomic_map", "element", "fields", "is_map", "items", "key_defaults", "keys", "scalar")

    def __init__(self, scalar: Scalar = "") -> None:
        self.scalar: Scalar = scalar
        self.items: Node | None = None
        self.atomic_list = True
        self.keys: tuple[str, ...] = ()
        self.key_defaults: dict[str, Any] | None = None
        self.is_map = False
        self.atomic_map = False
        self.fields: Mapping[str, Node] = {}
        self.element: Node | None = None

    def child(self, key: str) -> "Node | None":
        """The type of a map's value; None: the schema has no such field."""
        return self.fields.get(key) or self.element

    def item_element(self, item: Any) -> str:
        """The path element of an associative list's item. NoPathElement: it has none."""
        if not self.keys:
            if isinstance(item, dict):
                raise NoPathElement("associative list without keys has an element that's a map type")
            if isinstance(item, list):
                raise NoPathElement("not supported: associative list with lists as elements")
            if item is None:
                raise NoPathElement("associative list without keys has an element that's an explicit null")
            return value_element(item)
        if item is None:
            raise NoPathElement("associative list with keys may not have a null element")
        if not isinstance(item, dict):
            raise NoPathElement("associative list with keys may not have non-map elements")
        return self._keyed_element(item)

    def _keyed_element(self, item: dict[str, Any]) -> str:
        defaults = self.key_defaults
        if defaults is None:
            fields = self.items.fields if self.items else {}
            defaults = {key: fields.default(key) for key in self.keys} if isinstance(fields, _Fields) else {}
            self.key_defaults = defaults
        keys = {}
        for key in self.keys:
            if key in item:
                keys[key] = item[key]
            elif defaults.get(key) is not None:
                keys[key] = defaults[key]
        if len(keys) == 1 and isinstance(value := keys.get(self.keys[0]), str):
            return named_element(self.keys[0], value)
        if not keys:
            names = " ".join(f'"{key}"' for key in self.keys)
            raise NoPathElement(
                f"associative list with keys has an element that omits all key fields [{names}] "
                "(and doesn't have default values for any key fields)"
            )
        return key_element(keys)


class _Fields(dict[str, Node]):
    """Fields of an object, compiled when they are first asked for."""

    __slots__ = ("_compile", "_schemas")

    def __init__(self, schemas: Mapping[str, Schema], compile_one: Callable[[Schema], Node]) -> None:
        super().__init__()
        self._schemas, self._compile = schemas, compile_one

    def get(self, key: str, default: Any = None) -> Any:
        compiled = dict.get(self, key)
        if compiled is None and key in self._schemas:
            compiled = self[key] = self._compile(self._schemas[key])
        return compiled

    def __contains__(self, key: object) -> bool:
        return key in self._schemas

    def default(self, key: str) -> Any:
        return self._schemas.get(key, {}).get("default")


class TypedSchema:
    """A kind's type. `empty` is what upstream compares a new object with: Go's zero value, {} for custom resources.

    `nulls`: whether a value can be an explicit null that stays (custom resources) or not (Go's structs).
    """

    __slots__ = ("empty", "nulls", "root")

    def __init__(self, root: Node, empty: dict[str, Any], nulls: bool) -> None:
        self.root, self.empty, self.nulls = root, empty, nulls


def _untyped() -> Node:
    """Anything, owned as a whole."""
    node = Node("untyped")
    node.items = node.element = node
    node.is_map = node.atomic_map = True
    return node


def _deduced() -> Node:
    """Anything: maps are granular, lists are not."""
    node = Node("untyped")
    node.items = UNTYPED
    node.is_map, node.element = True, node
    return node


UNTYPED: Final = _untyped()
_DEDUCED_NODE: Final = _deduced()
DEDUCED: Final = TypedSchema(_DEDUCED_NODE, {}, nulls=True)


class _Compiler:
    """Compiles the definitions of one document; each is compiled once."""

    def __init__(self, definitions: Definitions) -> None:
        self.definitions = definitions
        self.named: dict[tuple[str, str], Node] = {}

    def by_name(self, name: str, map_type: str = "") -> Node:
        node = self.named.get((name, map_type))
        if node is None:
            schema = self.definitions.get(name, {})
            if name == QUANTITY:
                node = Node("untyped")
            elif name == _RAW_EXTENSION:
                node = UNTYPED
            else:
                node = self.inline(schema, keep_unknown=False)
            if map_type:
                node.atomic_map = map_type == "atomic"
            self.named[name, map_type] = node
        return node

    def compile(self, schema: Schema, keep_unknown: bool = False) -> Node:
        if name := reference(schema):
            return self.by_name(name, schema.get("x-kubernetes-map-type", ""))
        return self.inline(schema, keep_unknown)

    def inline(self, schema: Schema, keep_unknown: bool) -> Node:
        keep_unknown = keep_unknown or schema.get("x-kubernetes-preserve-unknown-fields") is True
        kind = schema.get("type", "")
        node = Node(_scalar(kind, schema.get("format", "")))
        if kind in ("", "array"):
            self._list(node, schema, keep_unknown)
        if kind in ("", "object"):
            self._map(node, schema, keep_unknown)
        return node

    def _list(self, node: Node, schema: Schema, keep_unknown: bool) -> None:
        node.items = self.compile(schema["items"], keep_unknown) if "items" in schema else UNTYPED
        node.atomic_list, node.keys = _list_relation(schema)

    def _map(self, node: Node, schema: Schema, keep_unknown: bool) -> None:
        properties = schema.get("properties") or {}
        if schema.get("x-kubernetes-embedded-resource"):
            properties = _EMBEDDED | properties | {"metadata": _META}
        node.is_map = True
        node.atomic_map = schema.get("x-kubernetes-map-type") == "atomic"
        node.fields = _Fields(properties, lambda field: self.compile(field, keep_unknown)) if properties else {}
        additional = schema.get("additionalProperties")
        if isinstance(additional, dict):
            node.element = self.compile(additional, keep_unknown)
        elif additional or (additional is None and (keep_unknown or not properties)):
            node.element = _DEDUCED_NODE

    def zero(self, name: str) -> dict[str, Any] | None:
        """Go's zero value of a struct, as JSON: what is not omitted when empty."""
        schema = self.definitions.get(name, {})
        if "properties" not in schema:
            return {} if schema.get("type") == "object" and name != _RAW_EXTENSION else None
        required, marks = schema.get("required", ()), go_types_in(self.definitions).get(name, {})
        out: dict[str, Any] = {}
        for key, field in schema["properties"].items():
            go = marks.get(key) or expected_go_type(field, key in required)
            target = reference(field)
            if target and not go.startswith("*") and "~" not in go:
                out[key] = self.zero(target)
            elif "!" in go:
                out[key] = _zero_scalar(field, go)
        return out


_EMBEDDED: Final[dict[str, Schema]] = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}}
_META: Final[Schema] = {"$ref": "#/components/schemas/" + OBJECT_META}


def _zero_scalar(field: Schema, go: str) -> Any:
    if go.startswith(("*", "[", "map")):
        return None
    return {"string": "", "integer": 0, "number": 0, "boolean": False}.get(field.get("type", ""))


def _scalar(kind: str, form: str) -> Scalar:
    if kind in ("integer", "number"):
        return "numeric"
    if kind == "string":
        return "string" if form in _UNTYPED_FORMATS_EXCEPT else "untyped"
    if kind == "boolean":
        return "boolean"
    return "" if kind in ("object", "array") else "untyped"


def _list_relation(schema: Schema) -> tuple[bool, tuple[str, ...]]:
    """Whether the list is atomic, and its keys."""
    if list_type := schema.get("x-kubernetes-list-type"):
        keys = schema.get("x-kubernetes-list-map-keys", ()) if list_type == "map" else ()
        return list_type == "atomic", tuple(keys)
    if schema.get("x-kubernetes-patch-strategy") in ("merge", "merge,retainKeys"):
        key = schema.get("x-kubernetes-patch-merge-key")
        return False, (key,) if key else ()
    return True, ()


_compilers: dict[int, _Compiler] = {}


def _compiler(definitions: Definitions) -> _Compiler:
    """Returns the compiler of a document, so that kinds share their parts.

    It keeps the document, so that the id stays unique.
    """
    compiler = _compilers.get(id(definitions))
    if compiler is None:
        compiler = _compilers[id(definitions)] = _Compiler(definitions)
    return compiler


def builtin_schema(definitions: Definitions, name: str) -> TypedSchema:
    """The type of a built-in kind by its definition's name (`io.k8s.api.core.v1.Pod`)."""
    compiler = _compiler(definitions)
    return TypedSchema(compiler.by_name(name), compiler.zero(name) or {}, nulls=False)


def structural_schema(open_api_v3_schema: Schema, definitions: Definitions) -> TypedSchema:
    """The type of a custom resource by its version's openAPIV3Schema."""
    root = dict(open_api_v3_schema, **{"type": "object", "x-kubernetes-embedded-resource": True})
    return TypedSchema(_compiler(definitions).inline(root, keep_unknown=False), {}, nulls=True)
