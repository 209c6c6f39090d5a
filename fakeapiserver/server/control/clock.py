"""The part of the test control that is about time."""

from typing import Protocol

from fastapi import APIRouter, HTTPException
from pydantic import BaseModel, Field

from fakeapiserver.apimachinery.duration import parse_duration
from fakeapiserver.apimachinery.timestamp import rfc3339
from fakeapiserver.clock import AdjustableClock, Clock
from fakeapiserver.server.control.errors import Body, refused


class Controlled(Protocol):
    """The part of an API server that has time."""

    @property
    def clock(self) -> Clock: ...

    async def advance(self, seconds: float) -> None: ...


class Time(BaseModel):
    """The server's clock."""

    now: str = Field(description="RFC 3339")
    stopped: bool
    next_due: float | None = Field(default=None, description="Seconds until something is due; null if nothing waits")


class TimeChange(Body):
    """A change of the clock: first it is stopped or started, then it jumps, then it is advanced."""

    stopped: bool | None = None
    advance: str = Field(
        default="0s", description="A duration such as 90s, 1h30m; controllers do what is due meanwhile"
    )
    jump: str = Field(
        default="0s",
        description="A duration such as 1h or -5m, by which the wall clock is set; what waits isn't affected",
    )


def router(server: Controlled) -> APIRouter:
    """Returns its paths, without the prefix."""
    routes = APIRouter()

    def clock() -> AdjustableClock:
        if not isinstance(server.clock, AdjustableClock):
            raise HTTPException(404, "the clock of this server can't be turned")
        return server.clock

    def time_now() -> Time:
        return Time(now=rfc3339(clock().now()), stopped=clock().stopped, next_due=clock().next_due)

    @routes.get("/clock")
    async def get_clock() -> Time:
        """Returns the cluster's time."""
        return time_now()

    @routes.put("/clock")
    async def set_clock(change: TimeChange) -> Time:
        """Stops, starts, sets or moves the clock on."""
        with refused():
            seconds, jump = parse_duration(change.advance), parse_duration(change.jump)
            if jump:
                clock().jump(jump)
            if change.stopped is not None:
                _set_stopped(clock(), change.stopped)
            await server.advance(seconds)
        return time_now()

    return routes


def _set_stopped(clock: AdjustableClock, stopped: bool) -> None:
    if stopped:
        clock.stop()
    else:
        clock.start()
