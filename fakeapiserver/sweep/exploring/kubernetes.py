"""Schemas of fields that a CustomResourceDefinition leaves open (`x-kubernetes-preserve-unknown-fields`), such as the template of a pod.

A field that is called like a structure of Kubernetes has the schema of that structure, as the API server's OpenAPI has it."""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final

from fakeapiserver.apimachinery.schema.resolve import Definitions, reference
from fakeapiserver.apis import recorded
from fakeapiserver.sweep.exploring import values
from fakeapiserver.sweep.exploring.values import Schema

_KEEPS: Final = "x-kubernetes-preserve-unknown-fields"
_CORE: Final = "io.k8s.api.core.v1."
_APPS: Final = "io.k8s.api.apps.v1."
_TEXTS: Final[Schema] = {"type": "object", "additionalProperties": {"type": "string"}}
_METADATA: Final[Schema] = {"type": "object", "properties": {"labels": _TEXTS, "annotations": _TEXTS}}
# Definitions for which a simpler schema is enough.
_SIMPLE: Final[Mapping[str, Schema]] = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": {"type": "string"},
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": {"x-kubernetes-int-or-string": True},
    "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta": _METADATA,
}
# The ends of the paths of fields, and the definition that each suggests. The first that fits counts.
_PLACES: Final[Sequence[tuple[re.Pattern[str], str]]] = tuple(
    (re.compile(rf"(.*\.)?({pattern})"), definition)
    for pattern, definition in (
        (r"(\w*[sS]tatefulSet|statefulset|sts)\.spec", f"{_APPS}StatefulSetSpec"),
        (r"\w*[dD]eployment\.spec", f"{_APPS}DeploymentSpec"),
        (r"\w*[dD]aemonSet\.spec", f"{_APPS}DaemonSetSpec"),
        (r"template|\w*[pP]odTemplate(Spec)?", f"{_CORE}PodTemplateSpec"),
        (r"(template|\w*[pP]odTemplate)\.spec|\w*[pP]odSpec", f"{_CORE}PodSpec"),
        (r"\w*[sS]ervice(\.spec|Spec)", f"{_CORE}ServiceSpec"),
        (r"\w*[cC]laim(Template)?(\.spec|Spec)", f"{_CORE}PersistentVolumeClaimSpec"),
        (r"\w*[vV]olumeClaimTemplate", f"{_CORE}PersistentVolumeClaim"),
        (r"(?!node|pod)\w*[aA]ffinity", f"{_CORE}Affinity"),
        (r"\w*[rR]esources", f"{_CORE}ResourceRequirements"),
        (r"\w*podSecurityContext", f"{_CORE}PodSecurityContext"),
        (r"\w*[sS]ecurityContext", f"{_CORE}SecurityContext"),
        (r"\w*([lL]iveness|[rR]eadiness|[sS]tartup)Probe", f"{_CORE}Probe"),
        (r"\w*[tT]olerations\[\]", f"{_CORE}Toleration"),
        (r"\w*[tT]opologySpreadConstraints\[\]", f"{_CORE}TopologySpreadConstraint"),
        (r"(\w*[cC]ontainers|sidecars)\[\]|\w*[cC]ontainer", f"{_CORE}Container"),
        (r"env(Vars|ironment)?\[\]", f"{_CORE}EnvVar"),
        (r"\w*[vV]olumes\[\]", f"{_CORE}Volume"),
        (r"\w*[vV]olumeMounts\[\]", f"{_CORE}VolumeMount"),
        (r"imagePullSecrets\[\]", f"{_CORE}LocalObjectReference"),
        (r"\w*[mM]etadata|objectMeta", "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"),
    )
)
_LISTS: Final = re.compile(
    r"\w*[tT]olerations|\w*[tT]opologySpreadConstraints|\w*[cC]ontainers|sidecars|env(Vars|ironment)?|\w*[vV]olumes|\w*[vV]olumeMounts"
    r"|imagePullSecrets"
)
_MAPS: Final = re.compile(r"\w*[lL]abels|\w*[aA]nnotations|\w*[nN]odeSelector|matchLabels")
# Structures that a custom resource completes: the operator fills in what they require.
_PARTIAL: Final = re.compile(r".*(StatefulSet|Deployment|DaemonSet|PodTemplate|Pod|Service|PersistentVolumeClaim)Spec")
# Objects within each other below such a field. What is deeper has a schema only where the object has a value.
_DEEPEST: Final = 5
_CUT: Final[Schema] = {"type": "object", _KEEPS: True}
# Structures of which only the members themselves are worth a schema.
_SHALLOW: Final = re.compile(
    r".*\.(Volume|Affinity|Probe|Lifecycle|SecurityContext|PodSecurityContext"
    r"|EphemeralContainer|PersistentVolumeClaim)"
)


def completed(schema: Schema, value: Any, field: str = "") -> Schema:
    """The schema, in which open fields have the schemas that their names and values suggest. `value` is that of the object, None if it is
    unset."""
    is_open = schema.get(_KEEPS, False) and not schema.get("x-kubernetes-int-or-string")
    if is_open and not _says_anything(schema) and not (value is None and schema is _CUT):
        schema = _suggested(field, value) or schema
    if is_open and isinstance(value, Mapping) and values.properties(schema):
        schema = _with_value(schema, value)
    members, items = values.properties(schema), schema.get("items")
    if members:
        there = value if isinstance(value, Mapping) else {}
        path = f"{field}." if field else ""
        return {
            **schema,
            "properties": {name: completed(each, there.get(name), f"{path}{name}") for name, each in members.items()},
        }
    if isinstance(items, Mapping):
        first = value[0] if isinstance(value, list) and value else None
        return {**schema, "items": completed(items, first, f"{field}[]")}
    return schema


def _says_anything(schema: Schema) -> bool:
    """Reports whether a schema names members or items, or is of a plain type."""
    if schema.get("type", "object") not in ("object", "array"):
        return True
    return any(schema.get(name) for name in ("properties", "additionalProperties", "items", "enum", "anyOf", "oneOf"))


def _suggested(field: str, value: Any) -> Schema | None:
    """The schema of an open field, or None if neither its name nor its value suggests one."""
    name = field.rpartition(".")[2]
    if _MAPS.fullmatch(name) and isinstance(value, Mapping | None):
        return _TEXTS
    if _LISTS.fullmatch(name) and isinstance(value, list | None):
        return {"type": "array", "items": _suggested(f"{field}[]", value[0] if value else None) or _CUT}
    if isinstance(value, Mapping | None):
        for pattern, definition in _PLACES:
            if pattern.fullmatch(field):
                return _of_definition(definition)
    return _of_value(value)


def _of_value(value: Any) -> Schema | None:
    """The schema that a value shows, whose members and items are open."""
    match value:
        case Mapping() if value:
            return {"type": "object", "properties": {name: {_KEEPS: True} for name in value}}
        case [first, *_]:
            return {"type": "array", "items": _of_value(first) or {_KEEPS: True}}
        case bool():
            return {"type": "boolean"}
        case int():
            return {"type": "integer"}
        case float():
            return {"type": "number"}
        case str():
            return {"type": "string"}
    return None


def _with_value(schema: Schema, value: Mapping[str, Any]) -> Schema:
    """The schema, with the members of the value that it doesn't name."""
    known = values.properties(schema)
    unknown = [name for name in value if name not in known]
    return {**schema, "properties": {**known, **{name: {_KEEPS: True} for name in unknown}}}


@cache
def _definitions() -> Definitions:
    found: Definitions = recorded.read_table(recorded.NEWEST, "schemas.json")
    return found


@cache
def _of_definition(name: str) -> Schema:
    return _whole({"$ref": f"#/components/schemas/{name}"}, _DEEPEST)


def _whole(schema: Schema, depth: int) -> Schema:
    """The schema with all that it refers to, down to so many objects within each other."""
    name = reference(dict(schema))
    if name in _SIMPLE:
        return _SIMPLE[name]
    if name:
        schema = _definitions()[name]
    if depth <= 0 and schema.get("type", "object") == "object":
        return _CUT
    if _SHALLOW.fullmatch(name):
        depth = min(depth, 1)
    # a default such as "" is that of Go's type, and the server refuses it
    resolved = {key: each for key, each in schema.items() if key != "default" or each}
    if _PARTIAL.fullmatch(name):
        resolved.pop("required", None)
    if members := values.properties(schema):
        resolved["properties"] = {key: _whole(each, depth - 1) for key, each in members.items() if key != "status"}
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), Mapping):
            resolved[key] = _whole(schema[key], depth)
    return resolved
