"""The part of the test control that is about outages of the whole server."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol

from fastapi import APIRouter, HTTPException
from pydantic import Field

from fakeapiserver.apimachinery.duration import parse_duration
from fakeapiserver.server.control.errors import Body, refused
from fakeapiserver.server.outage import Listener

# Seconds after which the port is closed, so that the caller has the answer.
_DELAY = 0.02


class Controlled(Protocol):
    """The part of an API server that has a port."""

    @property
    def listener(self) -> Listener | None: ...


class OutageWanted(Body):
    """An outage: the port is closed, and connections are reset."""

    duration: str = Field(description="A duration such as 10s, on the cluster's clock")


class RestartWanted(Body):
    """A restart: connections are reset, and watches end."""

    compact: bool = Field(default=False, description="The history is forgotten, so that watches can't be resumed")


def router(server: Controlled) -> APIRouter:
    """Returns the paths for a server, without the prefix."""
    routes = APIRouter()
    running: set[asyncio.Future[object]] = set()

    def listener() -> Listener:
        if server.listener is None:
            raise HTTPException(404, "another program serves this application: only that can close its port")
        return server.listener

    def soon(work: Callable[[], Awaitable[object]]) -> None:
        def begin() -> None:
            task = asyncio.ensure_future(work())
            running.add(task)
            task.add_done_callback(running.discard)

        asyncio.get_running_loop().call_later(_DELAY, begin)

    @routes.post("/outage", status_code=202)
    async def begin_outage(wanted: OutageWanted) -> OutageWanted:
        """Lets the server be unreachable for a while, from just after this answer on."""
        with refused():
            seconds = parse_duration(wanted.duration)
            if seconds <= 0:
                raise ValueError(f"an outage lasts more than nothing, not {wanted.duration}")
        port = listener()
        soon(lambda: port.begin_outage(seconds))
        return wanted

    @routes.post("/restart", status_code=202)
    async def restart(wanted: RestartWanted) -> RestartWanted:
        """Restarts the server as clients see it, just after this answer."""
        port = listener()
        soon(lambda: port.restart(compact=wanted.compact))
        return wanted

    return routes
