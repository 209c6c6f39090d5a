"""The rules for a CRD version's openAPIV3Schema: structural, and within Kubernetes' part of OpenAPI.

Upstream: k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go
(validateCustomResourceDefinitionValidation, ValidateCustomResourceDefinitionOpenAPISchema)
"""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from msgspec.structs import replace

from fakeapiserver.apimachinery.cel import definition, field_path
from fakeapiserver.apimachinery.field import (
    ErrorList,
    Path,
    forbidden,
    invalid,
    not_supported,
    not_supported_text,
    repetitions,
    required,
)
from fakeapiserver.apimachinery.message import Message
from fakeapiserver.apimachinery.schema.default_rules import default_errors
from fakeapiserver.apimachinery.schema.embedded import DecodeMetadata
from fakeapiserver.apimachinery.schema.go_schema import go_fields, go_items, go_schema
from fakeapiserver.apimachinery.schema.resolve import Schema, has_rules
from fakeapiserver.apimachinery.schema.structural_rules import construction_problem, structural_errors
from fakeapiserver.languages.cel.versions import NEWEST

if TYPE_CHECKING:
    from fakeapiserver.apimachinery.cel.definition import Scope

_TYPES: Final = ("array", "boolean", "integer", "number", "object", "string")
# Those that are refused even if they say nothing.
_UNSUPPORTED_EMPTY: Final = ("additionalItems", "$ref", "dependencies")
_UNSUPPORTED: Final = ("id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref")
_REASONS: Final = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")
_META_FIELDS: Final = ("metadata", "kind", "apiVersion")
_LINE_BREAK: Final = re.compile(r"[\n\r]")
# What a schema may say at its root beside status, in upstream's words and order.
_WITH_STATUS: Final = (
    "Description",
    "Type",
    "Format",
    "Title",
    "Maximum",
    "ExclusiveMaximum",
    "Minimum",
    "ExclusiveMinimum",
    "MaxLength",
    "MinLength",
    "Pattern",
    "MaxItems",
    "MinItems",
    "UniqueItems",
    "MultipleOf",
    "Required",
    "Items",
    "Properties",
    "ExternalDocs",
    "Example",
    "XPreserveUnknownFields",
    "XValidations",
)


class _Position(Struct, frozen=True):
    """The position of a schema:

    whether it may have defaults (and why not), whether it describes a resource's metadata.
    """

    forbidden_default: str = ""
    inside_metadata: bool = False


def validate_schema(
    schema: Schema, path: Path, decode_metadata: DecodeMetadata, version: str = NEWEST, *, has_status: bool
) -> ErrorList:
    """Returns the errors of the openAPIV3Schema at `path`.

    `version`: Kubernetes's. `has_status`: its version has the status subresource.
    """
    errors = _root_errors(schema, path) if has_status else []
    if schema.get("nullable"):
        errors.append(forbidden(f"{path}.nullable", "nullable cannot be true at the root"))
    problem = construction_problem(schema)
    if not problem:
        wrong = structural_errors(schema, path) or default_errors(schema, path, decode_metadata, version)
        if not wrong and has_rules(schema):
            # Expressions are compiled only for schemas that have some.

            findings = definition.Findings()
            errors += _openapi_errors(
                schema, path, _Position(), definition.Scope(findings, version=version), at_root=True
            )
            return errors + findings.errors + findings.total_errors(path)
        errors += wrong
    errors += _openapi_errors(schema, path, _Position(), None, at_root=True)
    # Only rules of structural schemas are left, or errors would be reported twice.
    return errors or ([invalid(path, "", problem)] if problem else [])


def _root_errors(schema: Schema, path: Path) -> ErrorList:
    """The schema of the status is taken out of the whole one, so little may be said of both."""
    for name in go_fields(schema):
        if name == "Type" and (kind := schema["type"]) != "object":
            detail = (
                'only "object" is allowed as the type at the root of the schema if the status subresource is enabled'
            )
            return [invalid(f"{path}.type", kind, detail)]
        if name not in _WITH_STATUS:
            allowed = " ".join(_WITH_STATUS)
            detail = (
                f"only [{allowed}] fields are allowed at the root of the schema if the status subresource is enabled"
            )
            return [invalid(path, go_schema(schema), detail)]
    return []


def _openapi_errors(
    schema: Schema, path: Path, place: _Position, scope: "Scope | None", *, at_root: bool = False
) -> ErrorList:
    """`scope` is where expressions are compiled, None if they aren't."""
    errors = _standard(schema, path, place)
    for sub, at, where in _below(schema, path, place, at_root):
        errors += _openapi_errors(sub, at, where, _scope_below(scope, schema, sub, path))
    if schema.get("x-kubernetes-preserve-unknown-fields") is False:
        errors.append(invalid(path.child("x-kubernetes-preserve-unknown-fields"), False, "must be true or undefined"))
    errors += _collections(schema, path) + _rules(schema, path)
    if scope is not None and not errors:
        scope.check(schema, path)
    return errors


def _scope_below(scope: "Scope | None", schema: Schema, sub: Schema, path: Path) -> "Scope | None":
    """Returns the scope of a property, item or value; None within anyOf, allOf, oneOf and not."""
    if scope is None:
        return None
    is_item, is_value = sub is schema.get("items"), sub is schema.get("additionalProperties")
    is_property = any(sub is property_schema for property_schema in schema.get("properties", {}).values())
    if not (is_item or is_value or is_property):
        return None
    return scope.below(schema, sub, path, is_item=is_item, is_property=is_property)


def _below(schema: Schema, path: Path, place: _Position, at_root: bool) -> Iterator[tuple[Schema, Path, _Position]]:
    """The schemas in a schema, in upstream's order (which has none among properties)."""
    if isinstance(others := schema.get("additionalProperties"), dict):
        why = "inside additionalProperties applying to object metadata"
        where = replace(place, forbidden_default=why) if place.inside_metadata else place
        yield others, path.child("additionalProperties"), where
    for key, sub in schema.get("properties", {}).items():
        where = place
        if key in _META_FIELDS and (at_root or schema.get("x-kubernetes-embedded-resource")):
            where = replace(place, inside_metadata=True)
            if at_root:
                where = replace(where, forbidden_default=f"in top-level {key}")
        yield sub, path.child("properties").key(key), where
    if schema.get("not") is not None:
        yield schema["not"], path.child("not"), place
    for junctor in ("allOf", "oneOf", "anyOf"):
        for i, sub in enumerate(schema.get(junctor, ())):
            yield sub, path.child(junctor).index(i), place
    for key, sub in schema.get("definitions", {}).items():
        yield sub, path.child("definitions").key(key), place
    items = schema.get("items")
    if isinstance(items, dict):
        yield items, path.child("items"), place
    for i, sub in enumerate(items if isinstance(items, list) else ()):
        yield sub, path.child("items").index(i), place
    for key, sub in schema.get("dependencies", {}).items():
        if isinstance(sub, dict):
            yield sub, path.child("dependencies").key(key), place


def _standard(schema: Schema, path: Path, place: _Position) -> ErrorList:
    """Keys of OpenAPI, each for itself."""
    errors: ErrorList = []
    kind = schema.get("type", "")
    if kind and kind not in _TYPES:
        errors.append(not_supported_text(path.child("type"), kind, _TYPES))
    if place.forbidden_default and schema.get("default") is not None:
        errors.append(forbidden(path.child("default"), f"must not be set {place.forbidden_default}"))
    for key in _UNSUPPORTED:
        if schema.get(key) or (key in _UNSUPPORTED_EMPTY and schema.get(key) is not None):
            errors.append(forbidden(path.child(key), f"{key} is not supported"))
    if kind == "null":
        errors.append(forbidden(path.child("type"), "type cannot be set to null, use nullable as an alternative"))
    if isinstance(schema.get("items"), list):
        errors.append(forbidden(path.child("items"), "items must be a schema object and not an array"))
    if place.inside_metadata and schema.get("x-kubernetes-embedded-resource"):
        errors.append(
            forbidden(path.child("x-kubernetes-embedded-resource"), "must not be used inside of resource meta")
        )
    if schema.get("uniqueItems"):
        detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        errors.append(forbidden(path.child("uniqueItems"), detail))
    if schema.get("properties") and schema.get("additionalProperties", True) is not True:
        detail = "additionalProperties and properties are mutual exclusive"
        errors.append(forbidden(path.child("additionalProperties"), detail))
    return errors


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
    return [not_supported_text(path, value, allowed)]


def _type_for(schema: Schema, kind: str, key: str, path: Path) -> ErrorList:
    name = schema.get("type", "")
    if name == kind:
        return []
    detail = f"must be {kind} if {key} is specified"
    return [invalid(path.child("type"), name, detail) if name else required(path.child("type"), detail)]


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
    if items is None:
        return [*errors, required(path.child("items"), "must have a schema if x-kubernetes-list-type is map")]
    if not isinstance(items, dict):
        detail = "must only have a single schema if x-kubernetes-list-type is map"
        return [*errors, invalid(path.child("items"), go_items(items), detail)]
    kind = items.get("type", "")
    if kind != "object":
        detail = "must be object if parent array's x-kubernetes-list-type is map"
        return [*errors, invalid(path.child("items", "type"), kind, detail)]
    properties = items.get("properties", {})
    repeated = repetitions(keys)
    for i, key in enumerate(keys):
        if key not in properties:
            errors.append(invalid(place, keys, "entries must all be names of item properties"))
        elif properties[key].get("type") in ("array", "object"):
            detail = "must be a scalar type if parent array's x-kubernetes-list-type is map"
            errors.append(invalid(path.child("items", "properties").key(key).child("type"), kind, detail))
        if i in repeated:
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


def _rules(schema: Schema, path: Path) -> ErrorList:
    """Returns the errors in x-kubernetes-validations, apart from those in expressions."""
    errors: ErrorList = []
    for i, rule in enumerate(schema.get("x-kubernetes-validations", ())):
        at = path.child("x-kubernetes-validations").index(i)
        errors += _rule(rule, at)
        expression, where = rule.get("messageExpression", ""), rule.get("fieldPath", "")
        if expression and not expression.strip():
            detail = "messageExpression must be non-empty if specified"
            errors.append(required(at.child("messageExpression"), detail))
        if "reason" in rule and rule["reason"] not in _REASONS:
            errors.append(not_supported(at.child("reason"), rule["reason"], _REASONS))
        if where and not where.strip():
            errors.append(invalid(at.child("fieldPath"), where, "must be non-empty if specified"))
        if _LINE_BREAK.search(where):
            errors.append(invalid(at.child("fieldPath"), where, "must not contain line breaks"))
        if where and not _is_field_path(where, schema):
            errors.append(invalid(at.child("fieldPath"), where, Message("must be a valid path", "fieldPath")))
    return errors


def _is_field_path(text: str, schema: Schema) -> bool:
    return field_path.normalized(text, schema) is not None


def _rule(rule: dict[str, Any], at: Path) -> ErrorList:
    text, message = rule.get("rule", "").strip(), rule.get("message", "")
    if not text:
        return [required(at.child("rule"), "rule is not specified")]
    if message and not message.strip():
        return [invalid(at.child("message"), message, "must be non-empty if specified")]
    if _LINE_BREAK.search(message.strip()):
        return [invalid(at.child("message"), message, "must not contain line breaks")]
    if _LINE_BREAK.search(text) and not message.strip():
        return [required(at.child("message"), "message must be specified if rule contains line breaks")]
    return []
