"""What a CRD's schema must be like: structural, and without what Kubernetes leaves out of OpenAPI.

Upstream: k8s.io/apiextensions-apiserver/pkg/apiserver/schema/{validation,complete}.go,
pkg/apis/apiextensions/validation/validation.go (ValidateCustomResourceDefinitionOpenAPISchema)

Left out as yet: whether defaults fit their schemas, and x-kubernetes-validations.
"""

from collections.abc import Iterator
from typing import Any, Final, Literal

from fakeapiserver.apimachinery.field import (
    Error,
    ErrorList,
    Path,
    forbidden,
    go_quote,
    invalid,
    not_supported,
    required,
)
from fakeapiserver.apimachinery.schema.resolve import Schema

Level = Literal["root", "item", "field"]

_TYPES: Final = ("array", "boolean", "integer", "number", "object", "string")
_UNSUPPORTED: Final = ("id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref")
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
# RE2's words for what is wrong with a pattern -> Go's, where they differ.
_PATTERN_PROBLEMS: Final = {
    "missing ]": "missing closing ]",
    "missing )": "missing closing )",
    "trailing \\": "trailing backslash at end of expression",
    "no argument for repetition operator": "missing argument to repetition operator",
    "invalid repetition size": "invalid repeat count",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
}


def validate_schema(open_api_v3_schema: Schema, path: Path) -> ErrorList:
    """What is wrong with a CRD version's openAPIV3Schema, whose place is `path`."""
    errors: ErrorList = []
    if open_api_v3_schema.get("nullable"):
        errors.append(forbidden(f"{path}.nullable", "nullable cannot be true at the root"))
    if not any(set(_UNSUPPORTED) & schema.keys() for _, schema in _walk(open_api_v3_schema, path)):
        structural = _structural(open_api_v3_schema, "root", path)
        structural += _incomplete_junctors(open_api_v3_schema, open_api_v3_schema, path, path)
        errors += sorted(structural, key=str)
    for place, schema in _walk(open_api_v3_schema, path):
        errors += _standard(schema, place, at_root=place == path)
    return errors


def _walk(schema: Schema, path: Path) -> Iterator[tuple[Path, Schema]]:
    """A schema and every schema in it."""
    yield path, schema
    if isinstance(others := schema.get("additionalProperties"), dict):
        yield from _walk(others, path.child("additionalProperties"))
    for key, sub in schema.get("properties", {}).items():
        yield from _walk(sub, path.child("properties").key(key))
    if schema.get("not") is not None:
        yield from _walk(schema["not"], path.child("not"))
    for junctor in ("allOf", "oneOf", "anyOf"):
        for i, sub in enumerate(schema.get(junctor, ())):
            yield from _walk(sub, path.child(junctor).index(i))
    if isinstance(items := schema.get("items"), dict):
        yield from _walk(items, path.child("items"))


def _standard(schema: Schema, path: Path, *, at_root: bool) -> ErrorList:
    """Keys of OpenAPI and Kubernetes' own, each for itself."""
    errors: ErrorList = []
    kind = schema.get("type", "")
    if kind and kind not in _TYPES:
        errors.append(not_supported(path.child("type"), kind, _TYPES))
    errors += [forbidden(path.child(key), f"{key} is not supported") for key in _UNSUPPORTED if schema.get(key)]
    if kind == "null":
        errors.append(forbidden(path.child("type"), "type cannot be set to null, use nullable as an alternative"))
    if isinstance(schema.get("items"), list):
        errors.append(forbidden(path.child("items"), "items must be a schema object and not an array"))
    if schema.get("uniqueItems"):
        detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        errors.append(forbidden(path.child("uniqueItems"), detail))
    if schema.get("properties") and schema.get("additionalProperties", True) is not True:
        detail = "additionalProperties and properties are mutual exclusive"
        errors.append(forbidden(path.child("additionalProperties"), detail))
    if schema.get("x-kubernetes-preserve-unknown-fields") is False:
        place = path.child("x-kubernetes-preserve-unknown-fields")
        errors.append(invalid(place, False, "must be true or undefined"))
    if at_root:
        for key in ("apiVersion", "kind", "metadata"):
            if "default" in schema.get("properties", {}).get(key, {}):
                place = path.child("properties").key(key).child("default")
                errors.append(forbidden(place, f"must not be set in top-level {key}"))
    return errors + _collections(schema, path)


def _collections(schema: Schema, path: Path) -> ErrorList:
    errors: ErrorList = []
    map_type, list_type = schema.get("x-kubernetes-map-type"), schema.get("x-kubernetes-list-type")
    if map_type is not None:
        errors += _type_for(schema, "object", "x-kubernetes-map-type", path)
        errors += _one_of(map_type, ("atomic", "granular"), path.child("x-kubernetes-map-type"))
    keys = schema.get("x-kubernetes-list-map-keys", ())
    place = path.child("x-kubernetes-list-type")
    if list_type is not None:
        wrong = _type_for(schema, "array", "x-kubernetes-list-type", path)
        errors += wrong or (_set_items(schema, path) if list_type == "set" else [])
        errors += _one_of(list_type, ("atomic", "set", "map"), place)
    if keys and list_type is None:
        errors.append(required(place, "must be map if x-kubernetes-list-map-keys is non-empty"))
    elif keys and list_type != "map":
        errors.append(invalid(place, list_type, "must be map if x-kubernetes-list-map-keys is non-empty"))
    if list_type == "map":
        errors += _list_map(schema, path)
    if list_type in ("set", "map") and isinstance(items := schema.get("items"), dict):
        errors += _null_items(schema, items, path.child("items"))
    return errors


def _one_of(value: str, allowed: tuple[str, ...], path: Path) -> ErrorList:
    if value in allowed:
        return []
    return [Error("FieldValueNotSupported", str(path), value, "supported values: " + ", ".join(map(go_quote, allowed)))]


def _type_for(schema: Schema, kind: str, key: str, path: Path) -> ErrorList:
    found = schema.get("type", "")
    if found == kind:
        return []
    detail = f"must be {kind} if {key} is specified"
    return [invalid(path.child("type"), found, detail) if found else required(path.child("type"), detail)]


def _set_items(schema: Schema, path: Path) -> ErrorList:
    items = schema.get("items", {})
    detail = "must be atomic as item of a list with x-kubernetes-list-type=set"
    place, list_type = path.child("items"), items.get("x-kubernetes-list-type")
    if items.get("type") == "array" and list_type not in (None, "atomic"):
        return [invalid(place.child("x-kubernetes-list-type"), list_type, detail)]
    if items.get("type") == "object" and items.get("x-kubernetes-map-type") != "atomic":
        # Upstream shows the list type here.
        return [invalid(place.child("x-kubernetes-map-type"), list_type, detail)]
    return []


def _list_map(schema: Schema, path: Path) -> ErrorList:
    errors: ErrorList = []
    keys, items = schema.get("x-kubernetes-list-map-keys", []), schema.get("items")
    place = path.child("x-kubernetes-list-map-keys")
    if not keys:
        errors.append(required(place, "must not be empty if x-kubernetes-list-type is map"))
    if not isinstance(items, dict):
        return [*errors, required(path.child("items"), "must have a schema if x-kubernetes-list-type is map")]
    kind = items.get("type", "")
    if kind != "object":
        detail = "must be object if parent array's x-kubernetes-list-type is map"
        return [*errors, invalid(path.child("items", "type"), kind, detail)]
    properties = items.get("properties", {})
    for i, key in enumerate(keys):
        if key not in properties:
            errors.append(invalid(place, keys, "entries must all be names of item properties"))
        elif properties[key].get("type") in ("array", "object"):
            detail = "must be a scalar type if parent array's x-kubernetes-list-type is map"
            errors.append(invalid(path.child("items", "properties").key(key).child("type"), kind, detail))
        if key in keys[:i]:
            errors.append(invalid(place, keys, "must not contain duplicate entries"))
    return errors


def _null_items(schema: Schema, items: Schema, path: Path) -> ErrorList:
    errors: ErrorList = []
    list_type = schema["x-kubernetes-list-type"]
    if items.get("nullable"):
        detail = f"cannot be nullable when x-kubernetes-list-type is {list_type}"
        errors.append(forbidden(path.child("nullable"), detail))
    for key in schema.get("x-kubernetes-list-map-keys", ()) if list_type == "map" else ():
        field = items.get("properties", {}).get(key)
        place = path.child("properties").key(key)
        because = "this property is in x-kubernetes-list-map-keys, so it"
        if field is not None and key not in items.get("required", ()) and field.get("default") is None:
            errors.append(required(place.child("default"), f"{because} must have a default or be a required property"))
        if field is not None and field.get("nullable"):
            errors.append(forbidden(place.child("nullable"), f"{because} cannot be nullable"))
    return errors


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
        found = properties.get(key, {}).get("type", "")
        if key in properties and found != kind:
            errors.append(invalid(path.child("properties").key(key).child("type"), found, f"must be {kind}"))
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
    if (pattern := schema.get("pattern")) and (problem := _pattern_problem(pattern)):
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
        if schema.get(key) or (wanted == "undefined" and schema.get(key) is not None):
            errors.append(forbidden(path.child(key), f"must be {wanted} to be structural"))
    if schema.get("x-kubernetes-validations"):
        errors.append(forbidden(path.child("x-kubernetes-validations"), "must be empty to be structural"))
    if "metadata" in schema.get("properties", {}):
        place = path.child("properties").key("metadata")
        errors.append(forbidden(place, "must not be specified in a nested context"))
    return errors


def _pattern_problem(pattern: str) -> str:
    """Go's words for a malformed pattern, empty for a good one."""
    import re2  # type: ignore[import-untyped]  # heavy, and only schemas with patterns need it

    options = re2.Options()
    options.log_errors = False
    try:
        re2.compile(pattern, options)
    except re2.error as error:
        text = error.args[0].decode() if isinstance(error.args[0], bytes) else str(error.args[0])
        problem, _, piece = text.partition(": ")
        if piece.startswith("(?<"):
            # Go takes every (?< for the beginning of a name.
            rest = pattern[pattern.index(piece) :]
            problem, piece = "invalid named capture", rest[: rest.find(">") + 1] or rest
        return f"error parsing regexp: {_PATTERN_PROBLEMS.get(problem, problem)}: `{piece}`"
    return ""


def _incomplete_junctors(schema: Schema, structure: Schema | None, at: Path, path: Path) -> ErrorList:
    """Fields that only anyOf, allOf, oneOf or not speak of."""
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
