"""The order in which Go's encoder writes keys."""

from typing import Any

import pytest

from fakeapiserver.apimachinery.schema.key_order import arrangement
from fakeapiserver.apis import scheme
from fakeapiserver.apis.field_order import field_order

POD = "io.k8s.api.core.v1.Pod"
DEFINITION = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition"
REVISION = "io.k8s.api.apps.v1.ControllerRevision"


def _spec(**schema: Any) -> dict[str, Any]:
    return {"spec": {"versions": [{"schema": {"openAPIV3Schema": schema}}]}}


@pytest.mark.parametrize(
    ("kind", "obj", "arranged"),
    [
        (
            POD,
            {"spec": {}, "metadata": {"labels": {"b": "1", "a": "2"}, "name": "x"}, "apiVersion": "v1", "kind": "Pod"},
            {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "x", "labels": {"a": "2", "b": "1"}}, "spec": {}},
        ),
        (
            POD,
            {
                "spec": {
                    "containers": [{"image": "i", "name": "c", "resources": {"limits": {"memory": "1", "cpu": "2"}}}]
                }
            },
            {
                "spec": {
                    "containers": [{"name": "c", "image": "i", "resources": {"limits": {"cpu": "2", "memory": "1"}}}]
                }
            },
        ),
        # Uppercase letters and digits come first, as bytes are compared.
        (
            POD,
            {"metadata": {"labels": {"a": "", "B": "", "1": ""}}},
            {"metadata": {"labels": {"1": "", "B": "", "a": ""}}},
        ),
        # A text that is kept as it is; what is unknown comes last; null and values of another type pass.
        (REVISION, {"revision": 1, "data": {"b": 1, "a": 2}}, {"data": {"b": 1, "a": 2}, "revision": 1}),
        (POD, {"later": 1, "status": None, "spec": None}, {"spec": None, "status": None, "later": 1}),
        (POD, {"spec": {"containers": {"b": 1, "a": 2}}}, {"spec": {"containers": {"b": 1, "a": 2}}}),
        # Schemas hold schemas; upstream decodes their JSON values, such as defaults, into maps.
        (
            DEFINITION,
            _spec(properties={"b": {"type": "string", "description": "d"}, "a": {"items": {"type": "x", "$ref": "y"}}}),
            _spec(properties={"a": {"items": {"$ref": "y", "type": "x"}}, "b": {"description": "d", "type": "string"}}),
        ),
        (
            DEFINITION,
            _spec(default={"b": [{"d": 1, "c": 2}], "a": 1}, additionalProperties={"type": "x", "format": "y"}),
            _spec(default={"a": 1, "b": [{"c": 2, "d": 1}]}, additionalProperties={"type": "x", "format": "y"}),
        ),
    ],
)
def test_structs_are_in_the_order_of_their_declaration_and_maps_are_sorted(
    kind: str, obj: dict[str, Any], arranged: dict[str, Any]
) -> None:
    before = repr(obj)
    arrange = arrangement(scheme.load().definitions, kind, field_order)
    assert repr(arrange(obj)) == repr(arranged)
    assert repr(arrange(arranged)) == repr(arranged)
    assert repr(obj) == before


def test_a_value_in_order_is_returned_as_it_is() -> None:
    arrange = arrangement(scheme.load().definitions, POD, field_order)
    obj = {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "x", "labels": {"a": "1", "b": "2"}}}
    assert arrange(obj) is obj


def test_every_property_of_every_definition_has_its_place() -> None:
    definitions = scheme.load().definitions
    without = {
        name: missing
        for name, schema in definitions.items()
        if (missing := schema.get("properties", {}).keys() - set(field_order(name)))
    }
    assert without == {}
