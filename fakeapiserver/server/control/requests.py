"""The part of the test control that shows the last requests of clients (see application.py)."""

import asyncio
from typing import Annotated, Any, Literal, Protocol

import msgspec
from fastapi import APIRouter, HTTPException, Query, Response
from msgspec.structs import asdict

from fakeapiserver.evidence.entry import RequestEntry
from fakeapiserver.evidence.request_log import RequestLog
from fakeapiserver.evidence.requests import RequestList


class Controlled(Protocol):
    """The part of an API server that keeps its requests."""

    @property
    def request_log(self) -> RequestLog | None: ...


Wait = Annotated[float, Query(ge=0, le=50, description="The seconds to wait for a request that matches")]
Since = Annotated[int, Query(ge=0, description="The seq after which requests count")]


def router(server: Controlled) -> APIRouter:
    """The paths below /fakeapiserver/requests."""
    routes = APIRouter()

    @routes.get("/requests", response_class=Response)
    async def list_requests(
        query: str = "", since: Since = 0, wait: Wait = 0.0, output: Literal["json", "text", "transcript"] = "json"
    ) -> Response:
        """Returns the requests that match a query such as `patch deployments/status`; 504 if none came in time."""
        log = server.request_log
        if log is None:
            raise HTTPException(422, "this server doesn't keep its requests: start it with --kept-requests=1000")
        try:
            requests = _selected(log, query, since)
            async with asyncio.timeout(wait):
                while wait and not requests:
                    await log.wait()
                    requests = _selected(log, query, since)
        except ValueError as error:
            raise HTTPException(422, str(error)) from error
        except TimeoutError as error:
            raise HTTPException(504, f"no request {query!r} within {wait:g} seconds") from error
        if output == "json":
            return Response(msgspec.json.encode([*map(_shown, requests)]), media_type="application/json")
        text = f"{requests}\n" if output == "text" else requests.transcript()
        return Response(text, media_type="text/plain")

    return routes


def _selected(log: RequestLog, query: str, since: int) -> RequestList:
    requests = RequestList(log.entries).since(since)
    return requests[query] if query else requests


def _shown(entry: RequestEntry) -> dict[str, Any]:
    """Returns the fields of an entry without its bodies."""
    fields = asdict(entry)
    del fields["content"]
    return fields
