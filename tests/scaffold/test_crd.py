"""Schemas of pydantic models, in a definition's words."""

import dataclasses
from datetime import datetime, timedelta
from enum import Enum
from typing import Annotated, Any, Generic, Literal, TypeVar

import msgspec
import pytest
from pydantic import BaseModel, Field

from fakeapiserver.controller_runtime.markers import (
    Column,
    Scale,
    embedded_resource,
    immutable,
    list_map,
    plural_of,
    resource,
    rules,
)
from fakeapiserver.controller_runtime.models import CustomResource, Duration, Int32, Model, Quantity
from fakeapiserver.controller_runtime.scheme import from_object, to_object
from fakeapiserver.scaffold import crd


class Nested(Model):
    """Something within."""

    port: int = Field(gt=0, le=65535)
    target: int | str | None = None


class Recursive(Model):
    children: "list[Recursive]" = Field(default_factory=list)


T = TypeVar("T")


class Box(BaseModel, Generic[T]):
    """Something in a box."""

    held: T


class Color(Enum):
    RED = "red"
    BLUE = "blue"


class Circle(Model):
    kind: Literal["circle"]
    radius: int


class Square(Model):
    kind: Literal["square"]
    side: int
    radius: int | None = None


class BigNested(Nested):
    size: Int32 = 1


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
        (Color, Color.RED, {"type": "string", "enum": ["red", "blue"], "default": "red"}),
        (Literal["a", None], None, {"type": "string", "enum": ["a"]}),
        (list[str | None], ..., {"type": "array", "items": {"type": "string", "nullable": True}}),
        (dict[int, int], ..., {"type": "object", "additionalProperties": INTEGER}),
        (int | float, ..., {"type": "number"}),
        (Literal["a"] | Literal["b"], ..., {"type": "string", "enum": ["a", "b"]}),
        (datetime, ..., {"type": "string", "format": "date-time"}),
        (Duration, timedelta(minutes=90), {"type": "string", "default": "1h30m0s"}),
        (Int32 | None, None, {"type": "integer", "format": "int32"}),
        (Int32, Field(ge=1), {"type": "integer", "format": "int32", "minimum": 1}),
        (bytes, ..., {"type": "string"}),
        (
            Circle | Square,
            ...,
            {
                "type": "object",
                "properties": {
                    "kind": {"type": "string", "enum": ["circle", "square"]},
                    "radius": INTEGER,
                    "side": INTEGER,
                },
                "required": ["kind"],
            },
        ),
        (
            Box[int],
            ...,
            {
                "type": "object",
                "properties": {"held": INTEGER},
                "required": ["held"],
            },
        ),
        (
            BigNested,
            ...,
            {
                "type": "object",
                "properties": {**NESTED["properties"], "size": {"type": "integer", "format": "int32", "default": 1}},
                "required": ["port"],
            },
        ),
        (
            list[Nested],
            Field(json_schema_extra=list_map("port")),
            {"type": "array", "items": NESTED, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["port"]},
        ),
        (
            dict[str, Any],
            Field(json_schema_extra=embedded_resource()),
            {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True},
        ),
        (
            str,
            Field(json_schema_extra=immutable("the zone")),
            {
                "type": "string",
                "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "the zone can't be changed"}],
            },
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
        (timedelta, r"Spec\.someField: the server doesn't read ISO 8601's durations: use models\.Duration"),
        (int | None, r"Spec\.someField: None isn't stored, so a field that may be None needs a default"),
        (Nested | str, r"Spec\.someField: a definition has one type for a field"),
    ],
)
def test_what_no_definition_can_say(annotation: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        field_schema(annotation, ...)


def test_a_definition_of_several_versions() -> None:
    columns = [Column("Size", ".spec.size", "integer", priority=1)]

    @resource("example.com/v1", "Policy", short_names=["pol"], scale=Scale(".spec.size"), columns=columns)
    class Policy(CustomResource):
        """Allows things."""

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
        "Allows things.",
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


@pytest.mark.parametrize(
    ("field", "message"),
    [
        (Field(json_schema_extra={"pattern": "(?=a)"}), r"pattern: Invalid value: \"\(\?=a\)\""),
        (Field(json_schema_extra=rules({"rule": "self >"})), "compilation failed"),
        (Field(json_schema_extra=list_map("x")), "x-kubernetes-list-type"),
        (Field(default="a", json_schema_extra={"enum": ["b"]}), "default: Unsupported value"),
    ],
)
def test_what_the_server_would_refuse(field: Any, message: str) -> None:
    spec = type("Spec", (Model,), {"__annotations__": {"name": str}, "name": field})
    kind = resource("example.com/v1", "Policy")(type("Policy", (CustomResource,), {"__annotations__": {"spec": spec}}))
    with pytest.raises(ValueError, match=f"^policies.example.com: .*{message}"):
        crd.definition(kind)


class StructSpec(msgspec.Struct, rename="camel"):
    """The desired state."""

    node_port: Annotated[int, msgspec.Meta(ge=1, le=10)]
    """Where."""
    tags: Annotated[list[str], msgspec.Meta(extra_json_schema=list_map())] = []
    color: Color = Color.RED
    other: str | None = None


@resource("example.com/v1", "Struct")
class Struct(msgspec.Struct):
    """A kind."""

    metadata: dict[str, Any]
    spec: StructSpec


@resource("example.com/v1", "Plain")
@dataclasses.dataclass
class Plain:
    """A kind."""

    metadata: dict[str, Any]
    spec: StructSpec
    level: Literal[1, 2] = 1
    """How high."""


SPEC = {
    "type": "object",
    "description": "The desired state.",
    "properties": {
        "nodePort": {**INTEGER, "minimum": 1, "maximum": 10, "description": "Where."},
        "tags": {
            "type": "array",
            "items": {"type": "string"},
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": [],
        },
        "color": {"type": "string", "enum": ["blue", "red"], "default": "red"},
        "other": {"type": "string"},
    },
    "required": ["nodePort"],
}


@pytest.mark.parametrize("kind", [Struct, Plain])
def test_structs_and_dataclasses(kind: type[Any]) -> None:
    schema = crd.schema_of(kind)
    assert (schema["description"], schema["required"], schema["properties"]["spec"]) == ("A kind.", ["spec"], SPEC)
    if kind is Plain:
        level = {**INTEGER, "enum": [1, 2], "default": 1, "description": "How high."}
        assert schema["properties"]["level"] == level
    obj = to_object(kind({"name": "a"}, StructSpec(3)))
    assert obj["spec"]["nodePort"] == 3
    assert to_object(from_object(obj, kind)) == obj


class Typed(Model):
    memory: Quantity = "1Gi"
    wait: Duration = timedelta(seconds=1)
    count: Int32 = 1


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"memory": "1.5Gi", "wait": "1h30m", "count": 2**31 - 1}, ""),
        ({"memory": 5}, ""),
        ({"memory": "1 Gi"}, "memory"),
        ({"wait": "soon"}, "wait"),
        ({"count": 2**31}, "count"),
    ],
)
def test_kubernetes_own_types_of_fields(fields: dict[str, Any], message: str) -> None:
    if message:
        with pytest.raises(ValueError, match=message):
            Typed.model_validate(fields)
    else:
        found = Typed.model_validate(fields).model_dump(mode="json")
        assert found == {"memory": "1Gi", "wait": "1s", "count": 1} | fields | (
            {"wait": "1h30m0s"} if "wait" in fields else {}
        )
