"""The part of the test control that is about time and controllers (see control.py)."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Literal, Protocol

from fastapi import APIRouter, HTTPException, Query
from pydantic import BaseModel, Field

from fakeapiserver.apimachinery.duration import parse_duration
from fakeapiserver.apimachinery.timestamp import rfc3339
from fakeapiserver.clock import AdjustableClock, Clock

if TYPE_CHECKING:
    from fakeapiserver.controller_manager.manager import ControllerManager


class Controlled(Protocol):
    """The part of an API server that has time and controllers."""

    @property
    def clock(self) -> Clock: ...

    @property
    def controllers(self) -> "ControllerManager | None": ...

    async def advance(self, seconds: float) -> None: ...


class ControllerState(BaseModel):
    """A controller, and whether it runs by itself, when `step` says so, or not at all."""

    name: str
    mode: Literal["run", "step", "off"]
    failure: str = Field(default="", description="What ended it, though it should run")


class ControllerMode(BaseModel):
    """What a controller is to do from now on."""

    mode: Literal["run", "step", "off"]


class Stepped(BaseModel):
    """How many requests the controller has worked on."""

    requests: int


class Settled(BaseModel):
    """What still moves, in words; nothing for a cluster at rest."""

    moving: list[str]


class Time(BaseModel):
    """The server's clock."""

    now: str = Field(description="RFC 3339")
    stopped: bool


class TimeChange(BaseModel):
    """What is to become of the clock: first it is stopped or started, then moved on."""

    stopped: bool | None = None
    advance: str = Field(
        default="0s", description="A duration such as 90s, 1h30m; controllers do what is due meanwhile"
    )


@contextmanager
def refused() -> Iterator[None]:
    """Says what is wrong as an answer: 400 for what can't be asked, 504 for what goes on moving."""
    try:
        yield
    except TimeoutError as error:
        raise HTTPException(504, str(error)) from error
    except ValueError as error:
        raise HTTPException(400, str(error)) from error


def router(server: Controlled) -> APIRouter:
    """Its paths, without the prefix."""
    found = APIRouter()

    def controllers() -> "ControllerManager":
        if server.controllers is None:
            raise HTTPException(404, "no controllers run here: start the server with --controllers='*'")
        return server.controllers

    def clock() -> AdjustableClock:
        if not isinstance(server.clock, AdjustableClock):
            raise HTTPException(404, "the clock of this server can't be turned")
        return server.clock

    def time_now() -> Time:
        return Time(now=rfc3339(clock().now()), stopped=clock().stopped)

    @found.get("/controllers")
    async def list_controllers() -> list[ControllerState]:
        """Every controller there is."""
        manager = controllers()
        return [
            ControllerState(name=name, mode=mode, failure=manager.failures.get(name, ""))
            for name, mode in manager.modes.items()
        ]

    @found.put("/controllers/{name}")
    async def set_controller(name: str, wanted: ControllerMode) -> ControllerState:
        """Lets a controller run, waits for steps, or ends it."""
        manager = controllers()
        with refused():
            await manager.set_mode(name, wanted.mode)
        return ControllerState(name=name, mode=wanted.mode)

    @found.post("/controllers/{name}/step")
    async def step_controller(name: str) -> Stepped:
        """Lets a controller in mode step do what there is to do now."""
        with refused():
            return Stepped(requests=await controllers().step(name))

    @found.post("/settle")
    async def settle(timeout: Annotated[float, Query(gt=0, le=600)] = 30.0) -> Settled:
        """Answers when every controller and every watch of theirs is at rest, or with 504 and what moves."""
        with refused():
            await controllers().settle(timeout)
        return Settled(moving=[])

    @found.get("/clock")
    async def get_clock() -> Time:
        """What time it is here."""
        return time_now()

    @found.put("/clock")
    async def set_clock(change: TimeChange) -> Time:
        """Stops, starts or moves the clock on."""
        with refused():
            seconds = parse_duration(change.advance)
            if change.stopped is not None:
                clock().stop() if change.stopped else clock().start()
            await server.advance(seconds)
        return time_now()

    return found
