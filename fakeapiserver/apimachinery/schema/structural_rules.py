"""Structural schemas: each value has a type of its own, which anyOf, allOf, oneOf and not only restrict.

Upstream: k8s.io/apiextensions-apiserver/pkg/apiserver/schema/{convert,validation,complete}.go
"""

from typing import Any, Final, Literal

from fakeapiserver.apimachinery.field import ErrorList, Path, forbidden, invalid, required
from fakeapiserver.apimachinery.schema.patterns import pattern_problem
from fakeapiserver.apimachinery.schema.resolve import Schema

Level = Literal["root", "item", "field"]

_JUNCTORS: Final = ("anyOf", "allOf", "oneOf")
_INT_OR_STRING: Final = [{"type": "integer"}, {"type": "string"}]
_NO_TYPE: Final[dict[Level, str]] = {
    "root": "must not be empty at the root",
    "item": "must not be empty for specified array items",
    "field": "must not be empty for specified object fields",
}
# Key -> what a schema below anyOf, allOf, oneOf or not must leave it.
_NESTED: Final = {
    "type": "empty",
    "additionalProperties": "undefined",
    "default": "undefined",
    "title": "empty",
    "description": "empty",
    "nullable": "false",
    "x-kubernetes-preserve-unknown-fields": "false",
    "x-kubernetes-embedded-resource": "false",
    "x-kubernetes-int-or-string": "false",
    "x-kubernetes-list-map-keys": "empty",
    "x-kubernetes-list-type": "undefined",
    "x-kubernetes-map-type": "undefined",
}
# Key -> its name in the complaint; in upstream's order. What is empty doesn't count, but for pointers.
_UNSUPPORTED: Final = {
    "id": "id",
    "$schema": "schema",
    "$ref": "$ref",
    "patternProperties": "patternProperties",
    "dependencies": "dependencies",
    "additionalItems": "additionalItems",
    "definitions": "definitions",
}


def construction_problem(schema: Schema) -> str:
    """Why no structural schema can be made of a schema, empty if one can."""
    for key, name in _UNSUPPORTED.items():
        if schema.get(key) or (key == "additionalItems" and key in schema):
            return f"OpenAPIV3Schema '{name}' is not supported"
    below = [schema["not"]] if schema.get("not") is not None else []
    below += [sub for junctor in ("allOf", "anyOf", "oneOf") for sub in schema.get(junctor, ())]
    for sub in below:
        if problem := construction_problem(sub):
            return problem
    if schema.get("x-kubernetes-preserve-unknown-fields") is False:
        return "internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined"
    if isinstance(items := schema.get("items"), list) and items:
        return "OpenAPIV3Schema 'items' must be a schema, but is an array"
    inner = [items] if isinstance(items, dict) else []
    inner += schema.get("properties", {}).values()
    inner += [others] if isinstance(others := schema.get("additionalProperties"), dict) else []
    return next((problem for sub in inner if (problem := construction_problem(sub))), "")


def structural_errors(schema: Schema, path: Path) -> ErrorList:
    """Returns the errors that keep a schema at `path` from being structural, in upstream's order."""
    errors = _structural(schema, "root", path) + _incomplete_junctors(schema, schema, path, path)
    return sorted(errors, key=str)


def _structural(schema: Schema, level: Level, path: Path) -> ErrorList:
    errors: ErrorList = []
    items = schema.get("items")
    if schema.get("type") == "array" and items is None:
        errors.append(required(path.child("items"), "must be specified"))
    if isinstance(items, dict):
        errors += _structural(items, "item", path.child("items"))
    for key, sub in schema.get("properties", {}).items():
        errors += _structural(sub, "field", path.child("properties").key(key))
    if "additionalProperties" in schema:
        errors += _structural_others(schema, level, path.child("additionalProperties"))
    for key in ("x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"):
        if schema.get("x-kubernetes-int-or-string") and schema.get(key):
            errors.append(invalid(path.child(key), True, "must be false if x-kubernetes-int-or-string is true"))
    errors += _junctors(schema, path)
    return errors + _structural_type(schema, level, path) + _metadata(schema, level, path)


def _structural_others(schema: Schema, level: Level, path: Path) -> ErrorList:
    errors: ErrorList = []
    if level == "root":
        errors.append(forbidden(path, "must not be used at the root"))
    if isinstance(others := schema["additionalProperties"], dict):
        errors += _structural(others, "field", path)
    if schema.get("x-kubernetes-embedded-resource"):
        errors.append(forbidden(path, "must not be used if x-kubernetes-embedded-resource is set"))
    return errors


def _structural_type(schema: Schema, level: Level, path: Path) -> ErrorList:
    errors: ErrorList = []
    kind, embedded = schema.get("type", ""), schema.get("x-kubernetes-embedded-resource")
    free = schema.get("x-kubernetes-int-or-string") or schema.get("x-kubernetes-preserve-unknown-fields")
    place, detail = path.child("type"), "must be object if x-kubernetes-embedded-resource is true"
    if embedded and kind != "object":
        errors.append(invalid(place, kind, detail) if kind else required(place, detail))
    elif not kind and not free:
        errors.append(required(place, _NO_TYPE[level]))
    if level == "root" and kind not in ("", "object"):
        errors.append(invalid(place, kind, "must be object at the root"))
    if embedded and not schema.get("x-kubernetes-preserve-unknown-fields") and not schema.get("properties"):
        detail = (
            "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields"
        )
        errors.append(required(path.child("properties"), detail))
    return errors


def _metadata(schema: Schema, level: Level, path: Path) -> ErrorList:
    """apiVersion, kind and metadata of a resource can hardly be restricted."""
    errors: ErrorList = []
    properties = schema.get("properties", {})
    if level != "root" and not schema.get("x-kubernetes-embedded-resource"):
        return errors
    for key, kind in (("kind", "string"), ("apiVersion", "string"), ("metadata", "object")):
        type_name = properties.get(key, {}).get("type", "")
        if key in properties and type_name != kind:
            errors.append(invalid(path.child("properties").key(key).child("type"), type_name, f"must be {kind}"))
    restricted = properties.get("metadata", {})
    beyond = restricted.keys() - {"type", "default", "properties"}
    if level == "root" and (beyond or not restricted.get("properties", {}).keys() <= {"name", "generateName"}):
        detail = "must not specify anything other than name and generateName, but metadata is implicitly specified"
        errors.append(forbidden(path.child("properties").key("metadata"), detail))
    return errors


def _junctors(schema: Schema, path: Path) -> ErrorList:
    """The schemas below anyOf, allOf, oneOf and not, and the pattern beside them."""
    errors: ErrorList = []
    for junctor in _JUNCTORS:
        if junctor == "anyOf" and schema.get("anyOf") == _INT_OR_STRING:
            continue
        for i, sub in enumerate(schema.get(junctor, ())):
            first = junctor == "allOf" and i == 0 and sub.get("anyOf") == _INT_OR_STRING
            errors += _nested({**sub, "anyOf": []} if first else sub, path.child(junctor).index(i))
    if schema.get("not") is not None:
        errors += _nested(schema["not"], path.child("not"))
    if (pattern := schema.get("pattern")) and (problem := pattern_problem(pattern)):
        detail = f"must be a valid regular expression, but isn't: {problem}"
        errors.append(invalid(path.child("pattern"), pattern, detail))
    return errors


def _nested(schema: Schema, path: Path) -> ErrorList:
    errors = _junctors(schema, path)
    if isinstance(items := schema.get("items"), dict):
        errors += _nested(items, path.child("items"))
    for key, sub in schema.get("properties", {}).items():
        errors += _nested(sub, path.child("properties").key(key))
    for key, wanted in _NESTED.items():
        nested = schema.get(key)
        is_left_out = nested is None or (key == "additionalProperties" and nested is False)
        if nested or (wanted == "undefined" and not is_left_out):
            errors.append(forbidden(path.child(key), f"must be {wanted} to be structural"))
    if schema.get("x-kubernetes-validations"):
        errors.append(forbidden(path.child("x-kubernetes-validations"), "must be empty to be structural"))
    if "metadata" in schema.get("properties", {}):
        place = path.child("properties").key("metadata")
        errors.append(forbidden(place, "must not be specified in a nested context"))
    return errors


def _incomplete_junctors(schema: Schema, structure: Schema | None, at: Path, path: Path) -> ErrorList:
    """Returns errors for fields that occur only in anyOf, allOf, oneOf or not."""
    errors: ErrorList = []
    below = [(schema["not"], path.child("not"))] if schema.get("not") is not None else []
    below += [(s, path.child(junctor).index(i)) for junctor in _JUNCTORS for i, s in enumerate(schema.get(junctor, ()))]
    for sub, place in below:
        errors += _incomplete(sub, structure, at, place)
    return errors


def _incomplete(schema: Schema, structure: Any, at: Path, path: Path) -> ErrorList:
    if not isinstance(structure, dict):
        return [required(at, f"because it is defined in {path}")]
    errors = _incomplete_junctors(schema, structure, at, path)
    if isinstance(items := schema.get("items"), dict):
        errors += _incomplete(items, structure.get("items"), at.child("items"), path.child("items"))
    for key, sub in schema.get("properties", {}).items():
        known = structure.get("properties", {}).get(key)
        errors += _incomplete(sub, known, at.child("properties").key(key), path.child("properties").key(key))
    return errors
