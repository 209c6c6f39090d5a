"""Schemas of pydantic models, in a definition's words."""

from typing import Any, Literal

import pytest
from pydantic import Field

from fakeapiserver.controller_runtime.markers import Column, Scale, plural_of, resource
from fakeapiserver.controller_runtime.models import CustomResource, Model
from fakeapiserver.scaffold import crd


class Nested(Model):
    """Something within."""

    port: int = Field(gt=0, le=65535)
    target: int | str | None = None


class Recursive(Model):
    children: "list[Recursive]" = Field(default_factory=list)


INTEGER = {"type": "integer", "format": "int64"}
NESTED = {
    "type": "object",
    "description": "Something within.",
    "properties": {
        "port": {**INTEGER, "minimum": 0, "exclusiveMinimum": True, "maximum": 65535},
        "target": {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True},
    },
    "required": ["port"],
}
RULE: dict[str, Any] = {"rule": "self > 1"}


def field_schema(annotation: Any, default: Any) -> Any:
    """The schema of a field with this annotation."""
    model = type("Spec", (Model,), {"__annotations__": {"some_field": annotation}, "some_field": default})
    return crd.schema_of(model)["properties"]["someField"]


@pytest.mark.parametrize(
    ("annotation", "default", "schema"),
    [
        (str, ..., {"type": "string"}),
        (str, "a", {"type": "string", "default": "a"}),
        (str | None, None, {"type": "string"}),
        (int, Field(ge=0, lt=10), {**INTEGER, "minimum": 0, "maximum": 10, "exclusiveMaximum": True}),
        (float, ..., {"type": "number"}),
        (bool, False, {"type": "boolean", "default": False}),
        (Literal["a", "b"], "a", {"type": "string", "enum": ["a", "b"], "default": "a"}),
        (Literal["a"], ..., {"type": "string", "enum": ["a"]}),
        (list[int], [], {"type": "array", "items": INTEGER}),
        (set[str], ..., {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}),
        (dict[str, int], {}, {"type": "object", "additionalProperties": INTEGER}),
        (dict[str, Any], ..., {"type": "object", "x-kubernetes-preserve-unknown-fields": True}),
        (Any, None, {"x-kubernetes-preserve-unknown-fields": True}),
        (Nested, ..., NESTED),
        (list[Nested] | None, None, {"type": "array", "items": NESTED}),
        (
            int,
            Field(json_schema_extra={"x-kubernetes-validations": [RULE]}),
            {**INTEGER, "x-kubernetes-validations": [RULE]},
        ),
        (
            str,
            Field(description="what it is", pattern="^a$"),
            {"type": "string", "description": "what it is", "pattern": "^a$"},
        ),
    ],
)
def test_fields(annotation: Any, default: Any, schema: dict[str, Any]) -> None:
    assert field_schema(annotation, default) == schema


@pytest.mark.parametrize(
    ("annotation", "message"),
    [
        (int | bool, r"Spec\.someField: a definition has one type for a field"),
        (tuple[int, str], r"Spec\.someField: tuples have no place"),
        (Recursive, "Recursive holds itself"),
    ],
)
def test_what_no_definition_can_say(annotation: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        field_schema(annotation, ...)


def test_a_definition_of_several_versions() -> None:
    columns = [Column("Size", ".spec.size", "integer", priority=1)]

    @resource("example.com/v1", "Policy", short_names=["pol"], scale=Scale(".spec.size"), columns=columns)
    class Policy(CustomResource):
        """What may be."""

        spec: Nested

    @resource("example.com/v1beta1", "Policy", storage=False, status=False, deprecated="use v1")
    class OldPolicy(CustomResource):
        spec: Nested | None = None

    found = crd.definition(Policy, OldPolicy)
    assert found["metadata"] == {"name": "policies.example.com"}
    names = {
        "kind": "Policy",
        "listKind": "PolicyList",
        "plural": "policies",
        "singular": "policy",
        "shortNames": ["pol"],
    }
    assert found["spec"]["names"] == names
    new, old = found["spec"]["versions"]
    schema = new.pop("schema")["openAPIV3Schema"]
    assert (schema["required"], schema["description"], schema["properties"]["spec"]) == (
        ["spec"],
        "What may be.",
        NESTED,
    )
    assert new == {
        "name": "v1",
        "served": True,
        "storage": True,
        "subresources": {
            "status": {},
            "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.replicas"},
        },
        "additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": ".spec.size", "priority": 1}],
    }
    old.pop("schema")
    assert old == {
        "name": "v1beta1",
        "served": True,
        "storage": False,
        "deprecated": True,
        "deprecationWarning": "use v1",
    }
    with pytest.raises(ValueError, match=r"one of the versions v1beta1 must be stored"):
        crd.definition(OldPolicy)


@pytest.mark.parametrize(
    ("kind", "plural"),
    [("Widget", "widgets"), ("Policy", "policies"), ("Gateway", "gateways"), ("Class", "classes"), ("Box", "boxes")],
)
def test_plurals(kind: str, plural: str) -> None:
    assert plural_of(kind) == plural
