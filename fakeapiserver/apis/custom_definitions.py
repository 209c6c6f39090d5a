"""The published schemas of a custom resource: what its CustomResourceDefinition says, plus the type and object metadata.

Upstream: k8s.io/apiextensions-apiserver/pkg/controller/openapi/builder/builder.go, .../pkg/apiserver/schema/kubeopenapi.go
"""

from collections.abc import Sequence
from typing import Any, Final

from fakeapiserver.apimachinery.gvk import GroupVersionKind
from fakeapiserver.apimachinery.schema.resolve import Schema

META: Final = "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1."
TYPE_META: Final[Schema] = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}}
OBJECT_META: Final[Schema] = {"allOf": [{"$ref": META + "ObjectMeta"}]}
LIST_META: Final[Schema] = {"allOf": [{"$ref": META + "ListMeta"}]}
INT_OR_STRING: Final = ({"type": "integer"}, {"type": "string"})
NESTED: Final = ("items", "additionalProperties")


def definition_name(gvk: GroupVersionKind) -> str:
    """The schema's name: the group reversed, version and kind.

    >>> definition_name(GroupVersionKind("stable.example.com", "v1", "Widget"))
    'com.example.stable.v1.Widget'
    """
    return ".".join([*reversed(gvk.group.split(".")), gvk.version, gvk.kind])


def custom_definitions(
    gvk: GroupVersionKind, list_kind: str, schema: Schema | None, selectable: Sequence[str] = ()
) -> dict[str, Schema]:
    """The schemas of a kind and its list by name, to be the `definitions` of its APIResource.

    `schema` is the version's openAPIV3Schema (None: anything goes); `selectable` are the jsonPaths of its selectable fields.
    """
    name, listed_name = definition_name(gvk), definition_name(gvk._replace(kind=list_kind))
    extra = (
        {"x-kubernetes-selectable-fields": [{"fieldPath": path.removeprefix(".")} for path in selectable]}
        if selectable
        else {}
    )
    body: Schema = published(schema) if schema else {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    own = {key: value for key, value in body.get("properties", {}).items() if key != "metadata"}
    body |= {"properties": {**TYPE_META, **own, "metadata": OBJECT_META}, **extra, **_kind(gvk, gvk.kind)}
    items = {"type": "array", "items": {"$ref": f"#/components/schemas/{name}"}}
    listed = {
        "type": "object",
        "required": ["items"],
        "properties": {**TYPE_META, "items": items, "metadata": LIST_META},
    }
    return {name: body, listed_name: {**listed, **extra, **_kind(gvk, list_kind)}}


def published(schema: Schema) -> Schema:
    """A structural schema as documents show it, with what its extensions imply written out."""
    shown: dict[str, Any] = dict(schema)
    if "properties" in shown:
        shown["properties"] = {name: published(child) for name, child in shown["properties"].items()}
    for key in NESTED:
        if isinstance(shown.get(key), dict):
            shown[key] = published(shown[key])
    if shown.get("x-kubernetes-int-or-string") and not any(key in shown for key in ("anyOf", "allOf")):
        shown["anyOf"] = list(INT_OR_STRING)
    if shown.get("x-kubernetes-embedded-resource"):
        shown["properties"] = {**shown.get("properties", {}), **TYPE_META, "metadata": OBJECT_META}
        required = shown.get("required", ())
        shown["required"] = [*required, *(name for name in ("kind", "apiVersion") if name not in required)]
    return shown


def _kind(gvk: GroupVersionKind, kind: str) -> Schema:
    return {"x-kubernetes-group-version-kind": [{"group": gvk.group, "kind": kind, "version": gvk.version}]}
