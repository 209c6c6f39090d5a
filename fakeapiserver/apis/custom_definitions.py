"""The published schemas of a custom resource: what its CustomResourceDefinition says, plus the type and object metadata.

Upstream: k8s.io/apiextensions-apiserver/pkg/controller/openapi/builder/builder.go, .../pkg/apiserver/schema/kubeopenapi.go
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from fakeapiserver.apimachinery.gvk import GroupVersionKind
from fakeapiserver.apimachinery.schema.resolve import Schema
from fakeapiserver.apis.custom_schema import CustomSchema

META: Final = "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1."
TYPE_META: Final[Schema] = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}}
OBJECT_META: Final[Schema] = {"allOf": [{"$ref": META + "ObjectMeta"}]}
LIST_META: Final[Schema] = {"allOf": [{"$ref": META + "ListMeta"}]}
INT_OR_STRING: Final = ({"type": "integer"}, {"type": "string"})
PRESERVE: Final = "x-kubernetes-preserve-unknown-fields"
ANYTHING: Final[Schema] = {"type": "object", PRESERVE: True}
UNKNOWN_TO_V2: Final = frozenset({"allOf", "anyOf", "not", "nullable", "oneOf"})
NESTED: Final = ("items", "additionalProperties")


def definition_name(gvk: GroupVersionKind) -> str:
    """The schema's name: the group reversed, version and kind.

    >>> definition_name(GroupVersionKind("stable.example.com", "v1", "Widget"))
    'com.example.stable.v1.Widget'
    """
    return ".".join([*reversed(gvk.group.split(".")), gvk.version, gvk.kind])


class CustomDefinitions(Mapping[str, Schema]):
    """`custom_definitions` of a packed schema, made each time one is asked for."""

    def __init__(self, gvk: GroupVersionKind, list_kind: str, schema: CustomSchema, selectable: Sequence[str]) -> None:
        self._gvk, self._list_kind, self._schema, self._selectable = gvk, list_kind, schema, selectable
        self._names = (definition_name(gvk), definition_name(gvk._replace(kind=list_kind)))

    def __getitem__(self, name: str) -> Schema:
        if name not in self._names:
            raise KeyError(name)
        schema = self._schema.unpacked() if name == self._names[0] else None
        return custom_definitions(self._gvk, self._list_kind, schema, self._selectable)[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __contains__(self, name: object) -> bool:
        return name in self._names


def custom_definitions(
    gvk: GroupVersionKind,
    list_kind: str,
    schema: Schema | None,
    selectable: Sequence[str] = (),
    *,
    version_2: bool = False,
) -> dict[str, Schema]:
    """The schemas of a kind and its list by name, to be the `definitions` of its APIResource.

    `schema` is the version's openAPIV3Schema (None: anything goes); `selectable` are the jsonPaths of its selectable fields.
    `version_2` for the older document, which can say less: the schema is cut down to it first.
    """
    name, listed_name = definition_name(gvk), definition_name(gvk._replace(kind=list_kind))
    extra = (
        {"x-kubernetes-selectable-fields": [{"fieldPath": path.removeprefix(".")} for path in selectable]}
        if selectable
        else {}
    )
    body: Schema
    if version_2 and (not schema or schema.get(PRESERVE)):
        # More properties would make clients complain about all others.
        body = {"type": "object"}
    else:
        body = published(_for_version_2(schema) if version_2 and schema else schema, version_2) if schema else ANYTHING
        own = {key: value for key, value in body.get("properties", {}).items() if key != "metadata"}
        body = {**body, "properties": {**TYPE_META, **own, "metadata": OBJECT_META}}
    body |= {**extra, **_kind(gvk, gvk.kind)}
    items = {"type": "array", "items": {"$ref": f"#/components/schemas/{name}"}}
    listed = {
        "type": "object",
        "required": ["items"],
        "properties": {**TYPE_META, "items": items, "metadata": LIST_META},
    }
    return {name: body, listed_name: {**listed, **extra, **_kind(gvk, list_kind)}}


def published(schema: Schema, version_2: bool = False) -> Schema:
    """A structural schema as documents show it, with what its extensions imply written out."""
    shown: dict[str, Any] = dict(schema)
    if "properties" in shown:
        shown["properties"] = {name: published(child, version_2) for name, child in shown["properties"].items()}
    for key in NESTED:
        if isinstance(shown.get(key), dict):
            shown[key] = published(shown[key], version_2)
    if (
        shown.get("x-kubernetes-int-or-string")
        and not version_2
        and not any(key in shown for key in ("anyOf", "allOf"))
    ):
        shown["anyOf"] = list(INT_OR_STRING)
    if shown.get("x-kubernetes-embedded-resource") and not (version_2 and shown.get(PRESERVE)):
        shown["properties"] = {**shown.get("properties", {}), **TYPE_META, "metadata": OBJECT_META}
        required = shown.get("required", ())
        shown["required"] = [*required, *(name for name in ("kind", "apiVersion") if name not in required)]
    return shown


def _for_version_2(schema: Schema) -> Schema:
    """Without what OpenAPI v2 cannot say, and without what makes its readers refuse values they don't know.

    Upstream: k8s.io/apiextensions-apiserver/pkg/controller/openapi/v2/conversion.go
    """
    kept: dict[str, Any] = {key: value for key, value in schema.items() if key not in UNKNOWN_TO_V2}
    dropped = {"type", "items", "properties"} if schema.get("nullable") else set()
    if schema.get(PRESERVE):
        dropped |= {"items", "properties"} | ({"type"} if schema.get("type") == "object" else set())
    if schema.get("type") == "array" and ("items" not in schema or "items" in dropped):
        dropped |= {"type"}
    kept = {key: value for key, value in kept.items() if key not in dropped}
    properties = kept.get("properties", {})
    nullable = {name for name, child in properties.items() if child.get("nullable")}
    extra = kept.get("additionalProperties")
    required = [name for name in kept.pop("required", ()) if name not in nullable]
    if required and not (isinstance(extra, dict) and extra.get("nullable")):
        kept["required"] = required
    if properties:
        kept["properties"] = {name: _for_version_2(child) for name, child in properties.items()}
    return kept | {key: _for_version_2(kept[key]) for key in NESTED if isinstance(kept.get(key), dict)}


def _kind(gvk: GroupVersionKind, kind: str) -> Schema:
    return {"x-kubernetes-group-version-kind": [{"group": gvk.group, "kind": kind, "version": gvk.version}]}
