"""A JSON schema as Go prints its internal type, which has no names for JSON: `{"ID":"","Schema":"","Ref":null,…}`.

Upstream: k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/{types_jsonschema,types}.go
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from fakeapiserver.apimachinery.schema.resolve import Schema
from fakeapiserver.apimachinery.schema.validate_value import sorted_value

_Show = Callable[[Any], Any]


def go_schema(schema: Schema) -> dict[str, Any]:
    """JSONSchemaProps."""
    return {name: show(schema[key]) if key in schema else zero for name, (key, zero, show) in _FIELDS.items()}


def go_fields(schema: Schema) -> list[str]:
    """Returns the Go fields with a value."""

    def says(key: str, show: _Show) -> bool:
        if key not in schema or show is _or_bool:  # which is there where it allows nothing
            return key in schema
        value = schema[key]
        return not (value is None or value is False or value == "")

    return [name for name, (key, _, show) in _FIELDS.items() if says(key, show)]


def go_validation(schema: Mapping[str, Any] | None) -> Any:
    """CustomResourceValidation, or null."""
    if schema is None:
        return None
    inner = schema.get("openAPIV3Schema")
    return {"OpenAPIV3Schema": None if inner is None else go_schema(inner)}


def go_items(items: Any) -> dict[str, Any]:
    """JSONSchemaPropsOrArray."""
    single = isinstance(items, dict)
    return {"Schema": go_schema(items) if single else None, "JSONSchemas": None if single else _list(items)}


def _list(schemas: list[Schema]) -> list[Any]:
    return [go_schema(schema) for schema in schemas]


def _map(schemas: Mapping[str, Schema]) -> dict[str, Any]:
    return {key: go_schema(schemas[key]) for key in sorted(schemas)}


def _or_bool(value: Any) -> dict[str, Any]:
    single = isinstance(value, dict)
    return {"Allows": True if single else value, "Schema": go_schema(value) if single else None}


def _dependencies(value: Mapping[str, Any]) -> dict[str, Any]:
    def one(item: Any) -> dict[str, Any]:
        single = isinstance(item, dict)
        return {"Schema": go_schema(item) if single else None, "Property": None if single else item}

    return {key: one(value[key]) for key in sorted(value)}


def _docs(value: Mapping[str, Any]) -> dict[str, Any]:
    return {"Description": value.get("description", ""), "URL": value.get("url", "")}


def go_rules(rules: list[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """ValidationRules."""
    names = ("rule", "message", "messageExpression", "reason", "fieldPath", "optionalOldSelf")
    zeros = {"reason": None, "optionalOldSelf": None}
    return [{name[0].upper() + name[1:]: rule.get(name, zeros.get(name, "")) for name in names} for rule in rules]


def _same(value: Any) -> Any:
    return value


# Go's field -> JSON's key, the zero value, how a value is shown; in Go's order.
_FIELDS: Final[dict[str, tuple[str, Any, _Show]]] = {
    "ID": ("id", "", _same),
    "Schema": ("$schema", "", _same),
    "Ref": ("$ref", None, _same),
    "Description": ("description", "", _same),
    "Type": ("type", "", _same),
    "Nullable": ("nullable", False, _same),
    "Format": ("format", "", _same),
    "Title": ("title", "", _same),
    "Default": ("default", None, sorted_value),
    "Maximum": ("maximum", None, _same),
    "ExclusiveMaximum": ("exclusiveMaximum", False, _same),
    "Minimum": ("minimum", None, _same),
    "ExclusiveMinimum": ("exclusiveMinimum", False, _same),
    "MaxLength": ("maxLength", None, _same),
    "MinLength": ("minLength", None, _same),
    "Pattern": ("pattern", "", _same),
    "MaxItems": ("maxItems", None, _same),
    "MinItems": ("minItems", None, _same),
    "UniqueItems": ("uniqueItems", False, _same),
    "MultipleOf": ("multipleOf", None, _same),
    "Enum": ("enum", None, sorted_value),
    "MaxProperties": ("maxProperties", None, _same),
    "MinProperties": ("minProperties", None, _same),
    "Required": ("required", None, _same),
    "Items": ("items", None, go_items),
    "AllOf": ("allOf", None, _list),
    "OneOf": ("oneOf", None, _list),
    "AnyOf": ("anyOf", None, _list),
    "Not": ("not", None, go_schema),
    "Properties": ("properties", None, _map),
    "AdditionalProperties": ("additionalProperties", None, _or_bool),
    "PatternProperties": ("patternProperties", None, _map),
    "Dependencies": ("dependencies", None, _dependencies),
    "AdditionalItems": ("additionalItems", None, _or_bool),
    "Definitions": ("definitions", None, _map),
    "ExternalDocs": ("externalDocs", None, _docs),
    "Example": ("example", None, sorted_value),
    "XPreserveUnknownFields": ("x-kubernetes-preserve-unknown-fields", None, _same),
    "XEmbeddedResource": ("x-kubernetes-embedded-resource", False, _same),
    "XIntOrString": ("x-kubernetes-int-or-string", False, _same),
    "XListMapKeys": ("x-kubernetes-list-map-keys", None, _same),
    "XListType": ("x-kubernetes-list-type", None, _same),
    "XMapType": ("x-kubernetes-map-type", None, _same),
    "XValidations": ("x-kubernetes-validations", None, go_rules),
}
