"""A custom schema in the older OpenAPI document, as k8s.io/apiextensions-apiserver converts it."""

from typing import Any

import pytest

from fakeapiserver.apimachinery.gvk import GroupVersionKind
from fakeapiserver.apis.custom_definitions import custom_definitions

GVK = GroupVersionKind("example.com", "v1", "Widget")
TEXT = {"type": "string"}
PRESERVE = "x-kubernetes-preserve-unknown-fields"


def of_version_2(schema: dict[str, Any]) -> dict[str, Any]:
    return custom_definitions(GVK, "WidgetList", schema, version_2=True)["com.example.v1.Widget"]


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({**TEXT, "title": "T", "enum": ["a"], "nullable": True}, {"title": "T", "enum": ["a"]}),
        ({**TEXT, "anyOf": [{"maxLength": 1}], "not": {"maxLength": 0}}, TEXT),
        ({"x-kubernetes-int-or-string": True, "pattern": "a"}, {"x-kubernetes-int-or-string": True, "pattern": "a"}),
        ({"type": "object", PRESERVE: True, "description": "d"}, {PRESERVE: True, "description": "d"}),
        ({"type": "array", PRESERVE: True, "items": TEXT}, {PRESERVE: True}),
        ({"type": "array", "items": {**TEXT, "nullable": True}}, {"type": "array", "items": {}}),
        (
            {"type": "object", "required": ["a", "b"], "properties": {"a": {**TEXT, "nullable": True}, "b": TEXT}},
            {"type": "object", "required": ["b"], "properties": {"a": {}, "b": TEXT}},
        ),
        (
            {"type": "object", "x-kubernetes-embedded-resource": True, PRESERVE: True},
            {"x-kubernetes-embedded-resource": True, PRESERVE: True},
        ),
    ],
)
def test_what_version_2_says(schema: dict[str, Any], expected: dict[str, Any]) -> None:
    found = of_version_2({"type": "object", "properties": {"spec": schema}})
    assert found["properties"]["spec"] == expected


def test_a_root_that_preserves_fields_says_nothing_else() -> None:
    found = of_version_2({"type": "object", PRESERVE: True, "properties": {"spec": TEXT}})
    assert set(found) == {"type", "x-kubernetes-group-version-kind"}
