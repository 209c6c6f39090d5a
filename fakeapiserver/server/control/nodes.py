"""The part of the test control that is about simulated nodes and what their containers do."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Protocol

from fastapi import APIRouter, FastAPI, HTTPException, Response
from pydantic import BaseModel, Field, field_validator
from pydantic_core import PydanticCustomError

from fakeapiserver.nodes import behaviour
from fakeapiserver.server.control.docs_page import PAGE
from fakeapiserver.server.control.errors import PREFIX, Body, control_application, refused

if TYPE_CHECKING:
    from fakeapiserver.nodes.simulation import Simulation

# Fields of a script for which None says nothing in Python; null leaves them out.
_PLAIN: Final = (
    "admission_error", "exec", "exit_codes", "log", "message", "ports", "probes", "pull_error", "resize_error", "resize_infeasible",
    "resizes_after", "starts_after", "stop_exit_code", "stops_after", "usage",
)  # fmt: skip


class Controlled(Protocol):
    """The part of an API server that has simulated nodes."""

    @property
    def simulation(self) -> "Simulation | None": ...


class SimulatedNode(BaseModel):
    """A simulated node. One that doesn't run renews no lease and leaves its pods as they are."""

    name: str
    runs: bool


class NodeChange(Body):
    """Whether the node's plug is in."""

    runs: bool


class NodePressure(Body):
    """A resource that a node is short of, and how many pods are evicted until it no longer is; null:

    until it is relieved.
    """

    resource: Literal["memory", "ephemeral-storage", "pids"]
    evicts: int | None = Field(default=None, ge=1)


class NodeShutdown(Body):
    """The seconds that pods have, and the part of them that is critical pods'."""

    grace: float = Field(default=30.0, ge=0)
    critical_grace: float = Field(default=10.0, ge=0)


class CommandOutput(Body):
    """A command's output and exit code."""

    stdout: str = ""
    stderr: str = ""
    exit_code: int = Field(default=0, ge=0, le=255)


class PortAnswer(Body):
    """A port that always sends the same, once the client has sent something."""

    answer: str


class FailingProbe(Body):
    """From `after` until `until` (seconds after the container's start), no more than so many times."""

    after: float = Field(default=0.0, ge=0)
    until: float | None = None
    times: int | None = Field(default=None, ge=1)
    message: str = Field(default="", description="Nothing: what a probe of its kind says")


class LifecycleHook(Body):
    """The behaviour of a hook: it takes so many seconds, and fails if it has an error."""

    seconds: float = Field(default=0.0, ge=0)
    error: str = ""


class Script(Body):
    """The behaviour of containers of matching pods.

    Pods match by `namespace`, `name` and `selector`, containers by `container`; what is left out matches all. Of
    several scripts that match,
    the last one that sets a value counts. Times in seconds.
    """

    namespace: str = ""
    name: str = ""
    selector: str = Field(default="", description="A label selector, as kubectl's -l")
    container: str = ""
    starts_after: float | None = Field(default=None, ge=0)
    pull_error: str | None = Field(default=None, description="The image never comes, with this message")
    runs_for: float | None = Field(default=None, ge=0, description="Until it ends by itself")
    exit_codes: list[int] | None = Field(default=None, min_length=1, description="Of the first run, the second ...")
    message: str | None = Field(default=None, description="The termination message")
    ready_after: float | None = Field(default=None, ge=0, description="When it becomes ready; null: never")
    started_after: float | None = Field(default=None, ge=0, description="When its startup probe says yes")
    unhealthy_after: float | None = Field(default=None, ge=0, description="When its liveness probe begins to say no")
    probes: dict[Literal["startup", "readiness", "liveness"], FailingProbe] | None = Field(
        default=None, description="How probes fail"
    )
    pre_stop: LifecycleHook | None = None
    post_start: LifecycleHook | None = None
    stops_after: float | None = Field(default=None, ge=0)
    stop_exit_code: int | None = None
    resizes_after: float | None = Field(default=None, ge=0)
    resize_error: str | None = None
    resize_infeasible: str | None = None
    admission_error: str | None = Field(default=None, description="The node refuses the pod, with this message")
    usage: dict[str, str] | None = Field(default=None, description="memory, ephemeral-storage, pids: for evictions")
    log: str | list[tuple[float, str]] | None = Field(
        default=None, description="What it prints: a text at its start, or pairs of seconds after its start and a line"
    )
    exec: str | dict[str, str | CommandOutput] | None = Field(
        default=None,
        description='What commands print, by their words joined by blanks; "" and a mere text are for all commands',
    )
    ports: dict[Annotated[int, Field(ge=0, le=65535)], str | PortAnswer] | None = Field(
        default=None,
        description="What answers at a port (0: at any other): a server at HOST:PORT, or any other text, which is sent as the answer",
    )
    attach: None = Field(default=None, description="A function, in Python only")

    @field_validator("attach", mode="before")
    @classmethod
    def _only_in_python(cls, _: object) -> None:
        text = "attach is a function, which only a test in Python can give: cluster.nodes.script(attach=function)"
        raise PydanticCustomError("only_in_python", text)

    def changes(self) -> dict[str, Any]:
        """Returns the values as Behaviours.add takes them. null is None, as in Python."""
        changes = self.model_dump(exclude_unset=True)
        for name in _PLAIN:
            if changes.get(name, ...) is None:
                del changes[name]
        if "probes" in changes:
            changes["probes"] = {kind: behaviour.Failing(**failing) for kind, failing in changes["probes"].items()}
        for name in ("pre_stop", "post_start"):
            if changes.get(name) is not None:
                changes[name] = behaviour.Hook(**changes[name])
        return changes


def router(server: Controlled) -> APIRouter:
    """Returns the paths for a server, without the prefix."""

    def simulation() -> "Simulation":
        if server.simulation is None:
            raise HTTPException(404, "there are no simulated nodes here: start the server with --nodes=3")
        return server.simulation

    return _routes(simulation)


def nodes_control(simulation: "Simulation") -> FastAPI:
    """An application that is about simulated nodes only."""
    app = control_application("simulated nodes")
    app.include_router(_routes(lambda: simulation), prefix=PREFIX)

    @app.get(f"{PREFIX}/docs", include_in_schema=False)
    async def docs() -> Response:
        return Response(PAGE.body, headers=PAGE.headers, media_type="text/html")

    return app


def _routes(simulation: "Callable[[], Simulation]") -> APIRouter:
    """The paths about simulated nodes."""
    routes = APIRouter()

    @routes.get("/nodes")
    async def list_routes() -> list[SimulatedNode]:
        """The simulated nodes."""
        return [SimulatedNode(name=state.name, runs=state.runs) for state in simulation().nodes.values()]

    @routes.put("/nodes/{name}")
    async def set_node(name: str, change: NodeChange) -> SimulatedNode:
        """Pulls a node's plug, or puts it back."""
        with refused():
            simulation().set_running(name, change.runs)
        return SimulatedNode(name=name, runs=change.runs)

    @routes.put("/nodes/{name}/pressure", status_code=204)
    async def press_node(name: str, pressure: NodePressure) -> None:
        """Makes a node short of a resource: its condition becomes true, and pods are evicted."""
        with refused():
            simulation().press(name, pressure.resource, pressure.evicts)

    @routes.delete("/nodes/{name}/pressure", status_code=204)
    async def relieve_node(name: str) -> None:
        """Relieves a node of all pressure; its conditions become false five minutes later."""
        with refused():
            simulation().relieve(name)

    @routes.put("/nodes/{name}/shutdown", status_code=204)
    async def shut_node_down(name: str, shutdown: NodeShutdown) -> None:
        """A node ends its pods, critical ones last, and is off then."""
        with refused():
            simulation().shut_down(name, shutdown.grace, shutdown.critical_grace)

    @routes.post("/scripts", status_code=201, response_model_exclude_unset=True)
    async def add_script(script: Script) -> Script:
        """Says what containers do, of pods that are there already too."""
        with refused():
            simulation().script(**script.changes())
        return script

    @routes.delete("/scripts", status_code=204)
    async def clear_scripts() -> None:
        """Removes all scripts."""
        simulation().clear_scripts()

    return routes
