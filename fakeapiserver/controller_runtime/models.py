"""Typed kinds as pydantic models: snake_case in Python, camelCase on the wire, and what a model doesn't know is kept.

@resource("example.com/v1", "Widget", short_names=["wd"], columns=[Column("Size", ".spec.size", "integer")])
class Widget(CustomResource):
    spec: WidgetSpec
    status: WidgetStatus | None = None
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import Annotated, Any, Final

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    PlainSerializer,
    WithJsonSchema,
)
from pydantic.alias_generators import to_camel
from pydantic_core import CoreSchema

from fakeapiserver.apimachinery import quantity
from fakeapiserver.apimachinery.duration import format_duration, parse_duration

__all__ = [
    "BUILTIN",
    "QUANTITY",
    "Condition",
    "CustomResource",
    "Duration",
    "Int32",
    "Model",
    "ObjectMeta",
    "Quantity",
    "is_condition_true",
    "set_condition",
]

# A field's schema is one of Kubernetes' own types': `builtin`.
BUILTIN: Final = "x-fakeapiserver-builtin"
# Which strings are quantities, as the server's definitions say it (sigs.k8s.io/controller-tools/pkg/crd/known_types.go).
QUANTITY: Final = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
)
_TYPE: Final = (
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
)


def _is_quantity(value: int | str) -> int | str:
    quantity.parse(str(value))
    return value


def _to_timedelta(value: object) -> object:
    return timedelta(seconds=parse_duration(value)) if isinstance(value, str) else value


# resource.Quantity: `cpu: models.Quantity = "100m"`. In wire form. Raises ValidationError for an invalid one.
Quantity = Annotated[int | str, AfterValidator(_is_quantity), Field(json_schema_extra={"pattern": QUANTITY})]
# metav1.Duration: a timedelta here, "1h30m" on the wire. Raises ValidationError for an invalid one.
Duration = Annotated[
    timedelta,
    BeforeValidator(_to_timedelta),
    PlainSerializer(lambda value: format_duration(value.total_seconds()), return_type=str),
    WithJsonSchema({"type": "string"}),
]


class _Int32:
    """Narrows an int's bounds; a Field's narrower ones stay."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        schema: Any = handler(source)
        return {
            **schema,
            "ge": max(schema.get("ge", _MIN_INT32), _MIN_INT32),
            "le": min(schema.get("le", _MAX_INT32), _MAX_INT32),
        }

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {**handler(schema), "format": "int32"}


_MIN_INT32: Final = -(2**31)
_MAX_INT32: Final = 2**31 - 1
# Go's int32: `replicas: models.Int32 = 1`. ValidationError beyond it.
Int32 = Annotated[int, _Int32()]


class Model(BaseModel):
    """The base of every part of a kind."""

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, extra="allow", use_attribute_docstrings=True
    )


class ObjectMeta(Model):
    """metav1.ObjectMeta. Times as they are on the wire."""

    name: str = ""
    generate_name: str | None = None
    namespace: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    generation: int | None = None
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    finalizers: list[str] | None = None
    owner_references: list[dict[str, Any]] | None = None


class Condition(Model):
    """metav1.Condition."""

    type: str = Field(max_length=316, pattern=_TYPE)
    status: str = Field(json_schema_extra={"enum": ["True", "False", "Unknown"]})
    observed_generation: int | None = Field(default=None, ge=0)
    last_transition_time: str = Field(json_schema_extra={"format": "date-time"})
    reason: str = Field(min_length=1, max_length=1024, pattern=r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$")
    message: str = Field(max_length=32768)


class CustomResource(Model):
    """The base of a kind; `resource` (or scheme.kind) says of which."""

    metadata: ObjectMeta = Field(default_factory=ObjectMeta)


def is_condition_true(conditions: Sequence[Condition], kind: str) -> bool:
    """Returns whether there is a condition of this type with the status True (upstream: meta.IsStatusConditionTrue)."""
    return any(condition.type == kind and condition.status == "True" for condition in conditions)


def set_condition(
    conditions: list[Condition], kind: str, status: str, reason: str, message: str, *, generation: int | None, now: str
) -> bool:
    """Puts or changes a condition, in place; its time changes with its status only. Whether anything changed (upstream:
    k8s.io/apimachinery/pkg/api/meta/conditions.go). `now` is a metav1.Time."""
    wanted = Condition(
        type=kind,
        status=status,
        reason=reason,
        message=message,
        observed_generation=generation,
        last_transition_time=now,
    )
    for place, old in enumerate(conditions):
        if old.type == kind:
            if old.status == status:
                wanted.last_transition_time = old.last_transition_time
            conditions[place] = wanted
            return wanted != old
    conditions.append(wanted)
    return True
