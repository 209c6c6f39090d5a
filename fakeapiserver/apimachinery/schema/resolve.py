"""References between recorded OpenAPI v3 schemas."""

from collections.abc import Callable, Mapping
from typing import Any, Final

Schema = dict[str, Any]
Definitions = Mapping[str, Schema]

_PREFIX: Final = "#/components/schemas/"


def reference(schema: Schema) -> str:
    """Returns the name of the definition that a schema refers to, or "".

    >>> reference({"allOf": [{"$ref": "#/components/schemas/io.k8s.api.core.v1.PodSpec"}], "default": {}})
    'io.k8s.api.core.v1.PodSpec'
    """
    target: str | None = schema.get("$ref")
    if target is None and len(all_of := schema.get("allOf", ())) == 1:
        target = all_of[0].get("$ref")
    return target.removeprefix(_PREFIX) if target else ""


def resolve(schema: Schema, definitions: Definitions) -> Schema:
    """The schema itself, or the definition it refers to. Keys beside the reference (default, description) are not merged in."""
    name = reference(schema)
    return definitions[name] if name else schema


def whole(schema: Schema, find: Callable[[str], Schema], around: frozenset[str] = frozenset()) -> Schema:
    """A schema with all that it refers to, found by name, in place; what is inside itself is an empty object there. `around` are
    the names of the definitions that it stands in.

    Upstream: k8s.io/apiserver/pkg/cel/openapi/resolver/refs.go
    """
    if name := reference(schema):
        if name in around:
            return {"type": "object"}
        schema, around = find(name), around | {name}
    resolved = dict(schema)
    if properties := schema.get("properties"):
        resolved["properties"] = {key: whole(child, find, around) for key, child in properties.items()}
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            resolved[key] = whole(schema[key], find, around)
    return resolved


def has_rules(schema: Any) -> bool:
    """Reports whether a schema or one inside it has x-kubernetes-validations."""
    if not isinstance(schema, dict):
        return False
    if schema.get("x-kubernetes-validations"):
        return True
    below = [schema.get("items"), schema.get("additionalProperties"), *(schema.get("properties") or {}).values()]
    return any(map(has_rules, below))
