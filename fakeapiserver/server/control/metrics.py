"""The part of the test control that is about metrics (see control.py)."""

from typing import Annotated, Protocol

from fastapi import APIRouter
from pydantic import Field

from fakeapiserver.server.control.errors import Body, refused
from fakeapiserver.server.metrics_apis.apis import MetricsAPIs

Amount = Annotated[str | int | float, Field(description="A quantity, such as 250m, 64Mi, 3")]
Name = Annotated[str, Field(description="Of one object; empty: of all")]
Selector = Annotated[str, Field(description="A label selector, as kubectl's -l")]


class Controlled(Protocol):
    """The part of an API server that has metrics."""

    @property
    def metrics_apis(self) -> MetricsAPIs: ...


class Served(Body):
    """The metrics APIs that are served: resource (metrics.k8s.io), custom, external; `*` is all."""

    served: list[str]


class PodUsage(Body):
    """The usage of each matching pod, in all or in one container. Of several settings for a pod the last one counts."""

    namespace: str = ""
    name: Name = ""
    selector: Selector = ""
    container: str = ""
    usage: dict[str, Amount] = Field(default_factory=dict, description="By resource: cpu, memory")
    missing: bool = Field(default=False, description="Nothing is known of them")


class NodeUsage(Body):
    """The usage of each matching node; by default a little more than that of its pods."""

    name: Name = ""
    selector: Selector = ""
    usage: dict[str, Amount] = Field(default_factory=dict, description="By resource: cpu, memory")
    missing: bool = Field(default=False, description="Nothing is known of them")


class CustomMetric(Body):
    """A metric of objects: of pods, or of an object that is named. null: they have it no more."""

    metric: str
    value: Amount | None
    resource: str = Field(default="pods", description="As in pods, services, ingresses.networking.k8s.io")
    namespace: str = ""
    name: Name = ""
    selector: Selector = ""
    labels: dict[str, str] = Field(default_factory=dict, description="The labels of this series of the metric")


class ExternalMetric(Body):
    """A series of a metric that has nothing to do with the cluster. null: it is there no more."""

    metric: str
    value: Amount | None
    namespace: str = Field(default="", description="Whose autoscalers see it; empty: all namespaces'")
    labels: dict[str, str] = Field(default_factory=dict, description="The labels of this series of the metric")


def router(server: Controlled) -> APIRouter:
    """Its paths, without the prefix."""
    routes = APIRouter(prefix="/metrics")
    apis = server.metrics_apis

    @routes.get("")
    async def get_served() -> Served:
        """Returns the metrics APIs that are served."""
        return Served(served=[*apis.served])

    @routes.put("")
    async def set_served(wanted: Served) -> Served:
        """Serves these metrics APIs, and no others."""
        with refused():
            await apis.serve(wanted.served)
        return Served(served=[*apis.served])

    @routes.post("/pods", status_code=201)
    async def set_pods(said: PodUsage) -> PodUsage:
        """Says what pods use, those that come later too."""
        with refused():
            apis.require("resource")
            apis.values.set_pod(**said.model_dump())
        return said

    @routes.post("/nodes", status_code=201)
    async def set_nodes(said: NodeUsage) -> NodeUsage:
        """Says what nodes use."""
        with refused():
            apis.require("resource")
            apis.values.set_node(**said.model_dump())
        return said

    @routes.post("/custom", status_code=201)
    async def set_custom(said: CustomMetric) -> CustomMetric:
        """Gives objects a metric."""
        with refused():
            apis.set_custom(**said.model_dump())
        return said

    @routes.post("/external", status_code=201)
    async def set_external(said: ExternalMetric) -> ExternalMetric:
        """Gives a metric a value."""
        with refused():
            apis.set_external(**said.model_dump())
        return said

    @routes.delete("", status_code=204)
    async def clear() -> None:
        """Forgets all values; the APIs stay."""
        apis.clear()

    return routes
