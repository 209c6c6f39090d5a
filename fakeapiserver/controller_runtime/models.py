"""Typed kinds as pydantic models: snake_case in Python, camelCase on the wire, and what a model doesn't know is kept.

@resource("example.com/v1", "Widget", short_names=["wd"], columns=[Column("Size", ".spec.size", "integer")])
class Widget(CustomResource):
    spec: WidgetSpec
    status: WidgetStatus | None = None
"""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel


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

    type: str = Field(max_length=316)
    status: str = Field(json_schema_extra={"enum": ["True", "False", "Unknown"]})
    observed_generation: int | None = Field(default=None, ge=0)
    last_transition_time: str = Field(json_schema_extra={"format": "date-time"})
    reason: str = Field(min_length=1, max_length=1024, pattern=r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$")
    message: str = Field(max_length=32768)


class CustomResource(Model):
    """The base of a kind; `resource` (or scheme.kind) says of which."""

    metadata: ObjectMeta = Field(default_factory=ObjectMeta)


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
