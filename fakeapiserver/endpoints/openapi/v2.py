"""OpenAPI v2 as JSON: every definition, and each path with its operations.

Only `kubectl explain --output=plaintext-openapiv2` and clients older than 1.27 ask for it, as protobuf. Parameters are written
in place where the real document shares them.

Upstream: k8s.io/kube-openapi/pkg/handler/handler.go, k8s.io/apiextensions-apiserver/pkg/controller/openapi/v2/conversion.go
"""

from collections.abc import Iterable
from typing import Any, Final

from fakeapiserver.apis.resource_table import ResourceTable
from fakeapiserver.endpoints.openapi import OpenAPI

Document = dict[str, Any]

# What the older version cannot say is left out, or leaves nothing known about a value.
UNKNOWN_TO_V2: Final = frozenset({"default", "nullable", "oneOf", "anyOf", "not"})
UNTYPED: Final = ("nullable", "x-kubernetes-int-or-string", "x-kubernetes-preserve-unknown-fields")
NAMES: Final = ("properties", "definitions")


def document(table: ResourceTable, openapi: OpenAPI) -> Document:
    """The whole document as JSON data; built from the documents of every group version."""
    facts = table.scheme.facts
    definitions: Document = dict(table.scheme.definitions)
    paths: Document = {}
    for key in openapi.listed():
        paths |= openapi.build(key)["paths"]
    for row in table:
        definitions |= row.definitions or {}
    return {
        **facts["openapiInfo"],
        "paths": {path: _item(item) for path, item in sorted(paths.items())},
        "definitions": {name: definition(definitions[name]) for name in sorted(definitions)},
        **facts["openapiSecurity"],
    }


def definition(schema: Document) -> Document:
    """A version 3 schema as version 2 says it."""
    kept = {key: _convert(key, value) for key, value in schema.items() if key not in UNKNOWN_TO_V2}
    if len(all_of := schema.get("allOf", ())) == 1:
        del kept["allOf"]
        return {**definition(all_of[0]), **kept}
    if own := schema.get("x-kubernetes-preserve-unknown-fields") and schema.get("x-kubernetes-group-version-kind"):
        return {"type": "object", "x-kubernetes-group-version-kind": own}
    if any(schema.get(key) for key in UNTYPED):
        return {key: value for key, value in kept.items() if key.startswith("x-")}
    if "oneOf" in schema and "type" not in schema:
        kept["type"] = "string"
    return kept


def _convert(key: str, value: Any) -> Any:
    if key == "$ref":
        return value.replace("#/components/schemas/", "#/definitions/")
    if key in NAMES:
        return {name: definition(child) for name, child in value.items()}
    if key in ("items", "additionalProperties") and isinstance(value, dict):
        return definition(value)
    return value


def _item(item: Document) -> Document:
    return {key: _parameters(value) if key == "parameters" else _operation(value) for key, value in item.items()}


def _operation(operation: Document) -> Document:
    body = operation.get("requestBody")
    kept = {key: value for key, value in operation.items() if key not in ("requestBody", "responses", "parameters")}
    parameters = _parameters(operation.get("parameters", ()))
    if body:
        kept["consumes"] = list(body["content"])
        parameters.insert(0, {"name": "body", "in": "body", **_required(body), "schema": _schema(body)})
    responses = operation["responses"]
    kept["produces"] = list(responses.get("200", {}).get("content", ()))
    shown = {code: {key: response[key] for key in ("description",)} for code, response in responses.items()}
    for code, response in responses.items():
        if "content" in response:
            shown[code]["schema"] = _schema(response)
    return {**kept, **({"parameters": parameters} if parameters else {}), "responses": shown}


def _required(body: Document) -> Document:
    return {"required": True} if body.get("required") else {}


def _schema(holder: Document) -> Document:
    return definition(next(iter(holder["content"].values()))["schema"])


def _parameters(parameters: Iterable[Document]) -> list[Document]:
    return [{**{key: value for key, value in row.items() if key != "schema"}, **row["schema"]} for row in parameters]
