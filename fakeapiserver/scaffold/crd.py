"""CustomResourceDefinitions of pydantic models.

Upstream: sigs.k8s.io/controller-tools/pkg/crd; the rules of structural schemas: k8s.io/apiextensions-apiserver/pkg/apiserver/schema.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from fakeapiserver.controller_runtime.markers import RESOURCE, Resource, noted
from fakeapiserver.controller_runtime.scheme import gvk_for

Json = dict[str, Any]
# What pydantic says and definitions have no use for, or no place.
_DROPPED: Final = frozenset(("title", "$defs", "$ref", "examples", "discriminator", "const", "deprecated"))
_BOUNDS: Final = (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum"))
# apiVersion, kind and metadata are the server's.
_TYPE_META: Final[Json] = {
    "apiVersion": {"type": "string", "description": "The version of this object's schema, as group/version."},
    "kind": {"type": "string", "description": "The kind of this object, in CamelCase."},
    "metadata": {"type": "object"},
}


def definition(*models: type[Any]) -> Json:
    """The definition of a kind whose versions are these models, each with `@resource`. ValueError with one sentence for what no
    definition can say."""
    kinds = {gvk_for(model).group_kind for model in models}
    if len(kinds) != 1:
        raise ValueError(f"one definition is of one kind, not of {', '.join(sorted(map(str, kinds))) or 'none'}")
    found = [(model, _resource(model)) for model in models]
    stored = [model for model, resource in found if resource.storage]
    if len(stored) != 1:
        versions = ", ".join(gvk_for(model).version for model in models)
        raise ValueError(
            f"{next(iter(kinds))}: one of the versions {versions} must be stored (storage=True), not {len(stored)}"
        )
    gvk, resource = gvk_for(stored[0]), _resource(stored[0])
    names: Json = {
        "kind": gvk.kind,
        "listKind": f"{gvk.kind}List",
        "plural": resource.plural,
        "singular": resource.singular,
    }
    if resource.short_names:
        names["shortNames"] = [*resource.short_names]
    if resource.categories:
        names["categories"] = [*resource.categories]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{resource.plural}.{gvk.group}"},
        "spec": {
            "group": gvk.group,
            "names": names,
            "scope": resource.scope,
            "versions": [_version(model, row) for model, row in found],
        },
    }


def _resource(model: type[Any]) -> Resource:
    found = noted(model, RESOURCE)
    if not isinstance(found, Resource):
        raise ValueError(f"{model.__name__} is no custom resource: decorate it with @resource")
    return found


def _version(model: type[Any], resource: Resource) -> Json:
    version: Json = {"name": gvk_for(model).version, "served": resource.served, "storage": resource.storage}
    if resource.deprecated is not None:
        version["deprecated"] = True
        if resource.deprecated:
            version["deprecationWarning"] = resource.deprecated
    version["schema"] = {"openAPIV3Schema": schema_of(model)}
    subresources: Json = {}
    if resource.status:
        subresources["status"] = {}
    if resource.scale is not None:
        scale = {
            "specReplicasPath": resource.scale.spec_replicas_path,
            "statusReplicasPath": resource.scale.status_replicas_path,
            "labelSelectorPath": resource.scale.label_selector_path,
        }
        subresources["scale"] = {key: path for key, path in scale.items() if path}
    if subresources:
        version["subresources"] = subresources
    if resource.columns:
        version["additionalPrinterColumns"] = [
            {
                key: value
                for key, value in (
                    ("name", column.name),
                    ("type", column.type),
                    ("format", column.format),
                    ("description", column.description),
                    ("jsonPath", column.json_path),
                    ("priority", column.priority),
                )
                if value
            }
            for column in resource.columns
        ]
    if resource.selectable_fields:
        version["selectableFields"] = [{"jsonPath": path} for path in resource.selectable_fields]
    return version


def schema_of(model: type[Any]) -> Json:
    """The structural schema of a whole object. ValueError."""
    whole = model.model_json_schema(by_alias=True, mode="validation")
    properties = {key: value for key, value in whole.get("properties", {}).items() if key not in _TYPE_META}
    found = _structural({**whole, "properties": properties}, whole.get("$defs", {}), (model.__name__,))
    required = [name for name in found.pop("required", ()) if name not in _TYPE_META]
    made: Json = {"type": "object"}
    if description := found.get("description"):
        made["description"] = description
    made["properties"] = {**_TYPE_META, **found.get("properties", {})}
    if required:
        made["required"] = required
    return made | {key: value for key, value in found.items() if key.startswith("x-kubernetes-")}


def _structural(schema: Mapping[str, Any], known: Mapping[str, Any], path: Sequence[str]) -> Json:
    """The schema with every reference in its place, in OpenAPI v3.0's words."""
    where = ".".join(path)
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        if f"<{name}>" in path:
            raise ValueError(
                f"{where}: {name} holds itself, which a definition can't say: use dict[str, Any] somewhere"
            )
        beside = {key: value for key, value in schema.items() if key != "$ref"}
        return _structural({**known[name], **beside}, known, (*path, f"<{name}>"))
    if "prefixItems" in schema:
        raise ValueError(f"{where}: tuples have no place in a definition: use a list")
    if "anyOf" in schema or "oneOf" in schema:
        return _one_of(schema, known, path)
    found = {key: value for key, value in schema.items() if key not in _DROPPED and value is not None}
    if found.get("default") in ([], {}):
        del found["default"]  # what is left out is as good as empty, and isn't stored
    if "allOf" in found and len(found["allOf"]) == 1:
        found = {**found.pop("allOf")[0], **found}
        return _structural(found, known, path)
    if "const" in schema:
        found["enum"] = [schema["const"]]
    for exclusive, bound in _BOUNDS:
        if isinstance(found.get(exclusive), int | float):
            found[bound] = found[exclusive]
            found[exclusive] = True
    _nest(found, known, path)
    if found.get("type") == "integer":
        found.setdefault("format", "int64")
    if "type" not in found and "x-kubernetes-int-or-string" not in found:
        found["x-kubernetes-preserve-unknown-fields"] = True
    return found


def _nest(found: Json, known: Mapping[str, Any], path: Sequence[str]) -> None:
    """What is within an object or a list, in place."""
    if "properties" in found:
        found["properties"] = {
            key: _structural(value, known, (*path, key)) for key, value in found["properties"].items()
        }
        found.pop("additionalProperties", None)
    elif isinstance(found.get("additionalProperties"), dict):
        found["additionalProperties"] = _structural(found["additionalProperties"], known, (*path, "*"))
    elif found.get("type") == "object":
        found.pop("additionalProperties", None)
        found["x-kubernetes-preserve-unknown-fields"] = True
    if found.get("type") == "array":
        found["items"] = _structural(found.get("items") or {}, known, (*path, "[]"))
        if found.pop("uniqueItems", False):
            found.setdefault("x-kubernetes-list-type", "set")


def _one_of(schema: Mapping[str, Any], known: Mapping[str, Any], path: Sequence[str]) -> Json:
    """`X | None` is X that may be left out; `int | str` is upstream's IntOrString."""
    branches = [row for row in schema.get("anyOf") or schema["oneOf"] if row.get("type") != "null"]
    beside = {key: value for key, value in schema.items() if key not in ("anyOf", "oneOf", "default")}
    if schema.get("default") is not None:
        beside["default"] = schema["default"]
    if len(branches) == 1:
        return _structural({**branches[0], **beside}, known, path)
    if sorted(row.get("type", "") for row in branches) == ["integer", "string"]:
        kept = {key: value for key, value in beside.items() if key not in _DROPPED}
        return {**kept, "anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}
    raise ValueError(
        f"{'.'.join(path)}: a definition has one type for a field, not several; `int | str` is the exception"
    )
