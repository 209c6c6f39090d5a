"""The kind Welcome: a page that greets its visitors."""

from fakeapiserver.controller_runtime.markers import Column, resource
from fakeapiserver.controller_runtime.models import Condition, CustomResource, Model
from pydantic import Field


class WelcomeSpec(Model):
    """The desired state."""

    name: str = Field(min_length=1, max_length=253)
    """The name that the page greets."""
    image: str = "ghcr.io/example/welcome:1"
    """The image that serves the page on `port`."""
    replicas: int = Field(default=1, ge=0, le=100)
    port: int = Field(default=8080, ge=1, le=65535)


class WelcomeStatus(Model):
    """The observed state."""

    observed_generation: int | None = None
    ready_replicas: int = 0
    conditions: list[Condition] = Field(
        default_factory=list,
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
    )


@resource(
    "apps.example.com/v1alpha1",
    "Welcome",
    plural="welcomes",
    columns=[
        Column("Greets", ".spec.name"),
        Column("Ready", '.status.conditions[?(@.type=="Ready")].status'),
        Column("Age", ".metadata.creationTimestamp", "date"),
    ],
)
class Welcome(CustomResource):
    """A page, its Deployment and its Service."""

    spec: WelcomeSpec
    status: WelcomeStatus | None = None
