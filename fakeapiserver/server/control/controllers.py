"""The part of the test control that is about controllers, and about waiting for them."""

from typing import TYPE_CHECKING, Annotated, Final, Literal, Protocol

from fastapi import APIRouter, HTTPException, Query
from pydantic import BaseModel, Field

from fakeapiserver.apimachinery.duration import parse_duration
from fakeapiserver.server.control.errors import Body, refused

if TYPE_CHECKING:
    from fakeapiserver.controller_manager.manager import ControllerManager

_LONGEST_SETTLE: Final = 600.0  # seconds


class Controlled(Protocol):
    """The part of an API server that has controllers."""

    @property
    def controllers(self) -> "ControllerManager | None": ...


class ControllerState(BaseModel):
    """A controller, and whether it runs by itself, when `step` says so, or not at all."""

    name: str
    mode: Literal["run", "step", "off"]
    failure: str = Field(default="", description="What ended it, though it should run")


class ControllerMode(Body):
    """The new mode of a controller."""

    mode: Literal["run", "step", "off"]


class Stepped(BaseModel):
    """The number of requests that the controller has processed."""

    requests: int


class Queue(BaseModel):
    """The items of a controller's queue, mostly `namespace/name`."""

    ready: list[str] = Field(description="Those that it will take next, in their order")
    delayed: dict[str, float] = Field(description="Those that wait, and for how many seconds")
    processing: list[str] = Field(description="Those that it works on")


class Settled(BaseModel):
    """The work that is still moving, in words; empty for a cluster at rest."""

    moving: list[str]


def _patience(timeout: str) -> float:
    """Seconds. ValueError."""
    seconds = parse_duration(timeout)
    if not 0 < seconds <= _LONGEST_SETTLE:
        raise ValueError(f"timeout is a duration of more than nothing and 10m at most, not {timeout}")
    return seconds


def router(server: Controlled) -> APIRouter:
    """Returns its paths, without the prefix."""
    routes = APIRouter()

    def controllers() -> "ControllerManager":
        if server.controllers is None:
            raise HTTPException(404, "no controllers run here: start the server with --controllers='*'")
        return server.controllers

    @routes.get("/controllers")
    async def list_controllers() -> list[ControllerState]:
        """Every controller there is."""
        manager = controllers()
        return [
            ControllerState(name=name, mode=mode, failure=manager.failures.get(name, ""))
            for name, mode in manager.modes.items()
        ]

    @routes.put("/controllers/{name}")
    async def set_controller(name: str, wanted: ControllerMode) -> ControllerState:
        """Lets a controller run, waits for steps, or ends it."""
        manager = controllers()
        with refused():
            await manager.set_mode(name, wanted.mode)
        return ControllerState(name=name, mode=wanted.mode)

    @routes.post("/controllers/{name}/step")
    async def step_controller(name: str) -> Stepped:
        """Lets a controller in mode step do what there is to do now."""
        with refused():
            return Stepped(requests=await controllers().step(name))

    @routes.get("/controllers/{name}/queue")
    async def read_queue(name: str) -> Queue:
        """Returns the contents of a controller's queue."""
        with refused():
            contents = controllers().queue(name)
        return Queue(ready=[*contents.ready], delayed=dict(contents.delayed), processing=[*contents.processing])

    @routes.post("/settle")
    async def settle(
        timeout: Annotated[str, Query(description="A duration such as 500ms, 30s, 2m; ten minutes at most")] = "30s",
    ) -> Settled:
        """Answers when every controller and every watch of theirs is at rest, or with 504 and what moves."""
        with refused():
            await controllers().settle(_patience(timeout))
        return Settled(moving=[])

    return routes
