"""Rows and published schemas of custom resources."""

from typing import Any

import pytest

from fakeapiserver.apimachinery.gvk import GroupVersionKind
from fakeapiserver.apis.custom_definitions import custom_definitions, published
from fakeapiserver.apis.custom_resources import resources_of

META = "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1."
WIDGET = GroupVersionKind("stable.example.com", "v1", "Widget")


def crd(version: dict[str, Any], **names: Any) -> dict[str, Any]:
    spec = {
        "group": "stable.example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget", **names},
        "versions": [{"name": "v1", "served": True, "storage": True, **version}],
    }
    return {"spec": spec}


def test_row() -> None:
    (row,) = resources_of(crd({"subresources": {"status": {}, "scale": {}}}, shortNames=["wg"]))
    assert row.gvk == WIDGET
    assert (row.singular, row.namespaced, row.short_names, row.custom) == ("widget", True, ("wg",), True)
    assert list(row.subresources) == ["status", "scale"]
    assert row.subresources["scale"].gvk == GroupVersionKind("autoscaling", "v1", "Scale")
    assert set(row.definitions or ()) == {"com.example.stable.v1.Widget", "com.example.stable.v1.WidgetList"}


@pytest.mark.parametrize(
    ("columns", "shown"),
    [
        ([], [("Name", "string", "name", 0), ("Age", "date", "", 0)]),
        (
            [{"name": "Size", "type": "integer", "jsonPath": ".spec.size", "priority": 1}],
            [("Name", "string", "name", 0), ("Size", "integer", "", 1)],
        ),
    ],
)
def test_columns(columns: list[dict[str, Any]], shown: list[tuple[str, str, str, int]]) -> None:
    (row,) = resources_of(crd({"additionalPrinterColumns": columns}))
    assert [tuple(column[key] for key in ("name", "type", "format", "priority")) for column in row.columns] == shown


def test_unserved_versions_have_no_row() -> None:
    assert resources_of(crd({"served": False})) == ()


def test_a_list_may_have_a_name_of_its_own() -> None:
    assert resources_of(crd({}))[0].list_kind == "WidgetList"
    (row,) = resources_of(crd({}, listKind="Widgetry"))
    assert row.list_kind == "Widgetry"
    assert set(row.definitions or ()) == {"com.example.stable.v1.Widget", "com.example.stable.v1.Widgetry"}


def test_embedded_resource_must_say_its_type() -> None:
    shown = published({"type": "object", "x-kubernetes-embedded-resource": True, "required": ["spec", "kind"]})
    assert shown["required"] == ["spec", "kind", "apiVersion"]
    assert shown["properties"]["metadata"] == {"allOf": [{"$ref": META + "ObjectMeta"}]}


def test_accepted_names_count() -> None:
    definition = {**crd({}, shortNames=["wg", "taken"]), "status": {"acceptedNames": {"shortNames": ["wg"]}}}
    assert resources_of(definition)[0].short_names == ("wg",)


@pytest.mark.parametrize(
    ("schema", "shown"),
    [
        (
            {"type": "string", "description": "the author's words"},
            {"type": "string", "description": "the author's words"},
        ),
        (
            {"type": "object", "properties": {"description": {"type": "string"}}},
            {"type": "object", "properties": {"description": {"type": "string"}}},
        ),
        (
            {"x-kubernetes-int-or-string": True},
            {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]},
        ),
        (
            {"type": "array", "items": {"type": "string"}},
            {"type": "array", "items": {"type": "string"}},
        ),
        ({"type": "object", "additionalProperties": True}, {"type": "object", "additionalProperties": True}),
    ],
)
def test_published_schema(schema: dict[str, Any], shown: dict[str, Any]) -> None:
    assert published(schema) == shown


def test_kind_and_list_get_type_and_object_metadata() -> None:
    own = {"type": "object", "properties": {"metadata": {"type": "object"}, "spec": {"type": "object"}}}
    definitions = custom_definitions(WIDGET, "WidgetList", own, [".spec.size"])
    widget = definitions["com.example.stable.v1.Widget"]
    assert widget["properties"]["metadata"] == {"allOf": [{"$ref": META + "ObjectMeta"}]}
    assert set(widget["properties"]) == {"apiVersion", "kind", "metadata", "spec"}
    assert widget["x-kubernetes-selectable-fields"] == [{"fieldPath": "spec.size"}]
    listed = definitions["com.example.stable.v1.WidgetList"]
    assert listed["properties"]["items"]["items"] == {"$ref": "#/components/schemas/com.example.stable.v1.Widget"}


def test_without_a_schema_anything_goes() -> None:
    widget = custom_definitions(WIDGET, "WidgetList", None)["com.example.stable.v1.Widget"]
    assert widget["x-kubernetes-preserve-unknown-fields"] is True
