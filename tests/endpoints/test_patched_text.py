"""Tests the text of a patched document in messages: unchanged parts are in the order of Go's structs."""

from typing import Any

from fakeapiserver.apis.recorded import NEWEST
from fakeapiserver.apis.scheme import serving
from fakeapiserver.endpoints.verbs.patched_text import ordered

_SCHEMA_PROPS = {
    "$ref": "#/components/schemas/io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"
}


def test_schemas_inside_schemas_are_structs_too() -> None:
    inner = {"x-kubernetes-validations": [{"reason": "r", "rule": "true"}], "format": "duration", "type": "string"}
    current: dict[str, Any] = {"additionalProperties": inner, "items": dict(inner), "type": "object"}
    found = ordered(current, (), current, _SCHEMA_PROPS, serving(NEWEST, {}, {}).definitions)
    assert list(found) == ["type", "items", "additionalProperties"]
    for shown in (found["items"], found["additionalProperties"]):
        assert list(shown) == ["type", "format", "x-kubernetes-validations"]
        assert list(shown["x-kubernetes-validations"][0]) == ["rule", "reason"]
