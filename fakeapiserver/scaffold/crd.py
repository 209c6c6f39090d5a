"""CustomResourceDefinitions of typed kinds: pydantic models, dataclasses and msgspec structs.

Upstream: sigs.k8s.io/controller-tools/pkg/crd; the rules of structural schemas: k8s.io/apiextensions-apiserver/pkg/apiserver/schema.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import cache
from typing import Any, Final

import msgspec
from pydantic.json_schema import GenerateJsonSchema

from fakeapiserver.apimachinery.duration import format_duration
from fakeapiserver.apimachinery.schema.formats import is_known_format
from fakeapiserver.apis import scheme
from fakeapiserver.controller_runtime.markers import RESOURCE, Resource, noted
from fakeapiserver.controller_runtime.models import BUILTIN, QUANTITY
from fakeapiserver.controller_runtime.scheme import gvk_for
from fakeapiserver.registry.apiextensions import definition_validation, object_meta
from fakeapiserver.scaffold.docstrings import attribute_docstrings

Json = dict[str, Any]
# What JSON Schema and definitions both say, in the same words; of the rest a definition has no notion.
_KEPT: Final = frozenset(
    (
        *("type", "description", "format", "default", "enum", "nullable", "pattern", "multipleOf", "example"),
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength"),
        *("minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties"),
        *("required", "properties", "additionalProperties", "patternProperties", "items", "allOf", BUILTIN),
    )
)
_BOUNDS: Final = (("exclusiveMinimum", "minimum", max), ("exclusiveMaximum", "maximum", min))
_INT32: Final = (("minimum", -(2**31)), ("maximum", 2**31 - 1))
_TYPES: Final = {str: "string", bool: "boolean", int: "integer", float: "number"}
_INT_OR_STRING: Final[Json] = {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}
_TOPOLOGY: Final = ("x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-map-type")
_STRINGS: Final[Json] = {"type": "object", "additionalProperties": {"type": "string"}}
# Of an object within an object: what its maker decides.
_EMBEDDED_METADATA: Final[Json] = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "namespace": {"type": "string"},
        "annotations": _STRINGS,
        "labels": _STRINGS,
        "finalizers": {"type": "array", "items": {"type": "string"}},
    },
}
# apiVersion, kind and metadata are the server's.
_TYPE_META: Final[Json] = {
    "apiVersion": {"type": "string", "description": "The version of this object's schema, as group/version."},
    "kind": {"type": "string", "description": "The kind of this object, in CamelCase."},
    "metadata": {"type": "object"},
}


def definition(*models: type[Any]) -> Json:
    """Returns the definition of a kind whose versions are these models, each with `@resource`.

    Raises ValueError, with one sentence for types that a definition can't express, and with the server's message for a definition that the
    server would reject.
    """
    kinds = {gvk_for(model).group_kind for model in models}
    if len(kinds) != 1:
        raise ValueError(f"one definition is of one kind, not of {', '.join(sorted(map(str, kinds))) or 'none'}")
    resources = [(model, _resource(model)) for model in models]
    stored = [model for model, resource in resources if resource.storage]
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
    made: Json = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{resource.plural}.{gvk.group}"},
        "spec": {
            "group": gvk.group,
            "names": names,
            "scope": resource.scope,
            "versions": [_version(model, row) for model, row in resources],
        },
    }
    _check(made)
    return made


def _check(definition: Json) -> None:
    """Refuses what the server would refuse."""
    spec: Json = {"conversion": {"strategy": "None"}, **definition["spec"]}
    stored = [version["name"] for version in spec["versions"] if version["storage"]]
    created = {**definition, "spec": spec, "status": {"storedVersions": stored}}
    if errors := definition_validation.validate_definition(created, object_meta.object_meta().decode):
        raise ValueError(f"{definition['metadata']['name']}: {'; '.join(str(error) for error in errors)}")


def _resource(model: type[Any]) -> Resource:
    resource = noted(model, RESOURCE)
    if not isinstance(resource, Resource):
        raise ValueError(f"{model.__name__} is no custom resource: decorate it with @resource")
    return resource


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
    whole, known = _json_schema(model)
    whole = _resolved(whole, known)
    properties = {key: value for key, value in whole.get("properties", {}).items() if key not in _TYPE_META}
    required = [name for name in whole.get("required", ()) if name not in _TYPE_META]
    path = (model.__name__, f"<{model.__name__}>")
    schema = _structural({**whole, "properties": properties, "required": required}, known, path)
    schema["properties"] = {**_TYPE_META, **schema.get("properties", {})}
    order = ("type", "description", "properties", "required")
    made = {key: schema[key] for key in order if schema.get(key)}
    return made | {key: value for key, value in schema.items() if key.startswith("x-kubernetes-")}


def _json_schema(model: type[Any]) -> tuple[Json, Mapping[str, Any]]:
    """(the schema, those it refers to by name)."""
    if hasattr(model, "model_json_schema"):
        whole = model.model_json_schema(by_alias=True, mode="validation", schema_generator=_generator())
        return whole, whole.get("$defs", {})
    if not (dataclasses.is_dataclass(model) or issubclass(model, msgspec.Struct)):
        raise ValueError(f"{model.__name__} is no pydantic model, dataclass or msgspec struct")
    (whole,), known = msgspec.json.schema_components([model], ref_template="#/$defs/{name}")
    for name, docstrings in attribute_docstrings(model).items():
        for field, text in docstrings.items():
            known.get(name, {}).get("properties", {}).get(field, {}).setdefault("description", text)
    return whole, known


@cache
def _generator() -> type[Any]:
    """pydantic's, with defaults as they are on the wire."""

    class Generator(GenerateJsonSchema):
        def encode_default(self, dft: Any) -> Any:
            return format_duration(dft.total_seconds()) if isinstance(dft, timedelta) else super().encode_default(dft)

    return Generator


def _resolved(schema: Mapping[str, Any], known: Mapping[str, Any]) -> Json:
    if "$ref" not in schema:
        return {**schema}
    beside = {key: value for key, value in schema.items() if key != "$ref"}
    return {**known[_name(schema)], **beside}


def _name(schema: Mapping[str, Any]) -> str:
    name: str = schema["$ref"].rpartition("/")[2]
    return name


def _structural(schema: Mapping[str, Any], known: Mapping[str, Any], path: Sequence[str]) -> Json:
    """The schema with every reference in its place, in OpenAPI v3.0's words."""
    if "$ref" in schema:
        name = _name(schema)
        if f"<{name}>" in path:
            raise ValueError(
                f"{_place(path)}: {name} holds itself, which a definition can't say: use dict[str, Any] somewhere"
            )
        return _structural(_resolved(schema, known), known, (*path, f"<{name}>"))
    if "prefixItems" in schema:
        raise ValueError(f"{_place(path)}: tuples have no place in a definition: use a list")
    if schema.get("format") == "duration" and schema.get("type") == "string":
        raise ValueError(f"{_place(path)}: the server doesn't read ISO 8601's durations: use models.Duration")
    if "anyOf" in schema or "oneOf" in schema:
        return _one_of(schema, known, path)
    if len(schema.get("allOf") or ()) == 1:
        beside = {key: value for key, value in schema.items() if key != "allOf"}
        return _structural({**schema["allOf"][0], **beside}, known, path)
    structural = _kept(schema)
    if structural.get("default", ()) in ([], {}):
        del structural["default"]  # what is left out is as good as empty, and isn't stored
    if name := structural.pop(BUILTIN, ""):
        return _builtin(name) | {
            key: value for key, value in structural.items() if key not in ("type", "additionalProperties")
        }
    _say_enum(structural, schema)
    _say_bounds(structural)
    _nest(structural, known, path)
    if structural.get("type") == "integer":
        structural.setdefault("format", "int64")
    if "format" in structural and not is_known_format(structural["format"], structural.get("type", "")):
        del structural["format"]
    if "type" not in structural and "x-kubernetes-int-or-string" not in structural:
        structural["x-kubernetes-preserve-unknown-fields"] = True
    return structural


def _kept(schema: Mapping[str, Any]) -> Json:
    return {
        key: value
        for key, value in schema.items()
        if (key in _KEPT or key.startswith("x-kubernetes-")) and value is not None
    }


def _place(path: Sequence[str]) -> str:
    return ".".join(step for step in path if not step.startswith("<"))


def _say_enum(structural: Json, schema: Mapping[str, Any]) -> None:
    """Constants are enums of one, and enums have a type."""
    if "const" in schema:
        structural["enum"] = [schema["const"]]
    if "enum" not in structural:
        return
    if None in structural["enum"]:
        structural["enum"] = [value for value in structural["enum"] if value is not None]
    types = {_TYPES.get(type(value), "") for value in structural["enum"]}
    if len(types) == 1 and "type" not in structural:
        structural["type"] = types.pop()


def _say_bounds(structural: Json) -> None:
    """JSON Schema's exclusive bounds are numbers, OpenAPI's say of the bound that it is exclusive."""
    for bound, widest in _INT32:
        if structural.get("format") == "int32" and structural.get(bound) == widest:
            del structural[bound]  # the format says it
    for exclusive, bound, tighter in _BOUNDS:
        limit = structural.get(exclusive)
        if isinstance(limit, bool) or not isinstance(limit, int | float):
            continue
        if structural.get(bound, limit) == tighter(structural.get(bound, limit), limit) != limit:
            del structural[exclusive]
        else:
            structural[bound], structural[exclusive] = limit, True


def _nest(structural: Json, known: Mapping[str, Any], path: Sequence[str]) -> None:
    """Converts the schemas within an object or a list, in place."""
    if patterns := structural.pop("patternProperties", None):
        structural["additionalProperties"] = next(iter(patterns.values()))
    if "properties" in structural:
        _require_values(structural, path)
        structural["properties"] = {
            key: _structural(value, known, (*path, key)) for key, value in structural["properties"].items()
        }
        structural.pop("additionalProperties", None)
    elif isinstance(structural.get("additionalProperties"), dict) and structural["additionalProperties"]:
        structural["additionalProperties"] = _structural(structural["additionalProperties"], known, (*path, "*"))
    elif structural.get("type") == "object":
        structural.pop("additionalProperties", None)
        structural["x-kubernetes-preserve-unknown-fields"] = True
    if structural.get("required"):
        structural["required"] = sorted(structural["required"])
    else:
        structural.pop("required", None)
    if structural.get("type") == "array":
        _say_items(structural, known, path)


def _require_values(structural: Json, path: Sequence[str]) -> None:
    """A field that must be there but may be null is lost on the way: nulls aren't sent."""
    for name in structural.get("required", ()):
        branches = structural["properties"][name].get("anyOf") or ()
        if any(row.get("type") == "null" for row in branches):
            raise ValueError(
                f"{_place((*path, name))}: None isn't stored, so a field that may be None needs a default: `= None`"
            )


def _say_items(structural: Json, known: Mapping[str, Any], path: Sequence[str]) -> None:
    items = structural["items"] = _structural(structural.get("items") or {}, known, (*path, "[]"))
    if structural.pop("uniqueItems", False):
        structural.setdefault("x-kubernetes-list-type", "set")
    if structural.get("x-kubernetes-list-type") == "set" and items.get("type") in ("object", "array"):
        items.setdefault(f"x-kubernetes-{'map' if items['type'] == 'object' else 'list'}-type", "atomic")


def _one_of(schema: Mapping[str, Any], known: Mapping[str, Any], path: Sequence[str]) -> Json:
    """`X | None` is X that may be left out; `int | str` is upstream's IntOrString; of several models, or of several strings, all
    that any of them may be."""
    rows = list(schema.get("anyOf") or schema["oneOf"])
    branches = [row for row in rows if row.get("type") != "null"]
    beside = {key: value for key, value in schema.items() if key not in ("anyOf", "oneOf", "default")}
    if schema.get("default") is not None:
        beside["default"] = schema["default"]
    if len(branches) < len(rows) and path[-1] in ("[]", "*"):
        beside["nullable"] = True  # elsewhere None is left out
    if len(branches) == 1:
        return _structural({**branches[0], **beside}, known, path)
    kept = _kept(beside)
    if sorted(row.get("type", "") for row in branches) == ["integer", "string"]:
        return {**kept, **_INT_OR_STRING}
    schemas = [_structural(row, known, path) for row in branches]
    types = {row.get("type", "") for row in schemas}
    if types == {"integer", "number"}:
        return {**kept, "type": "number"}
    if len(types) == 1 and types <= {"object", "string", "integer", "number", "boolean"}:
        return {**_either(schemas, path), **kept}
    raise ValueError(
        f"{_place(path)}: a definition has one type for a field, not several; `int | str` is the exception"
    )


def _either(branches: Sequence[Json], path: Sequence[str]) -> Json:
    """Merges several schemas of one type into one, as far as one schema can express them."""
    first, *others = branches
    if first["type"] == "object" and not all("properties" in row for row in branches):
        return {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema_of_either = {
        key: value
        for key, value in first.items()
        if key not in ("description", "enum", "properties", "required") and all(row.get(key) == value for row in others)
    }
    if all("enum" in row for row in branches):
        schema_of_either["enum"] = list(dict.fromkeys(value for row in branches for value in row["enum"]))
    if "properties" in first:
        names = dict.fromkeys(name for row in branches for name in row["properties"])
        schema_of_either["properties"] = {
            name: _same_type([row["properties"][name] for row in branches if name in row["properties"]], (*path, name))
            for name in names
        }
        required = set.intersection(*(set(row.get("required", ())) for row in branches))
        if required:
            schema_of_either["required"] = sorted(required)
    return schema_of_either


def _same_type(schemas: Sequence[Json], path: Sequence[str]) -> Json:
    if all(row == schemas[0] for row in schemas):
        return schemas[0]
    if len({row.get("type") for row in schemas}) > 1 or "type" not in schemas[0] or schemas[0]["type"] == "array":
        raise ValueError(f"{_place(path)}: a definition has one type for a field, and the models of a union differ")
    return _either(schemas, path)


def _builtin(name: str) -> Json:
    """The schema of one of Kubernetes' own types, as controller-gen has it in definitions."""
    definitions = scheme.load().definitions
    if name not in definitions:
        raise ValueError(f"Kubernetes has no type {name}; for instance io.k8s.api.core.v1.PodTemplateSpec is one")
    return _of_builtin(definitions[name], definitions, name)


def _default(schema: Mapping[str, Any], key: str) -> Json:
    """Returns a property's default; for required properties and objects it is left out, because it is only Go's
    zero.
    """
    default = schema["properties"][key].get("default", {})
    return {} if default == {} or key in schema.get("required", ()) else {"default": default}


def _of_builtin(schema: Mapping[str, Any], definitions: Mapping[str, Any], name: str = "") -> Json:
    if references := [*schema.get("allOf", ()), *([schema] if "$ref" in schema else [])]:
        name = _name(references[0])
        return _of_builtin(definitions[name], definitions, name)
    short = name.rpartition(".")[2]
    if short == "ObjectMeta":
        return _EMBEDDED_METADATA
    if short == "Quantity":
        return {**_INT_OR_STRING, "pattern": QUANTITY}
    if "oneOf" in schema:
        return _INT_OR_STRING
    dropped = ("enum", "properties", "items", "additionalProperties")
    reduced = {key: value for key, value in schema.items() if key in _KEPT and key not in dropped}
    reduced |= {key: value for key, value in schema.items() if key in _TOPOLOGY}
    reduced.pop("default", None)
    if "required" in reduced:
        reduced["required"] = sorted(reduced["required"])
    if "properties" in schema:
        reduced["properties"] = {
            key: _of_builtin(row, definitions) | _default(schema, key) for key, row in schema["properties"].items()
        }
    if "items" in schema:
        reduced["items"] = _of_builtin(schema["items"], definitions)
    if "additionalProperties" in schema:
        reduced["additionalProperties"] = _of_builtin(schema["additionalProperties"], definitions)
    return reduced
