"""The part of the test control that shows the last requests of clients (see application.py)."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final, Literal, Protocol

import msgspec
from fastapi import APIRouter, HTTPException, Query, Response
from msgspec.structs import asdict

from fakeapiserver.evidence import audit_events, har, least_rights
from fakeapiserver.evidence.entry import RequestEntry
from fakeapiserver.evidence.request_log import RequestLog
from fakeapiserver.evidence.requests import RequestList


class Controlled(Protocol):
    """The part of an API server that keeps its requests."""

    @property
    def request_log(self) -> RequestLog | None: ...


Wait = Annotated[float, Query(ge=0, le=50, description="The seconds to wait for a request that matches")]
Agent = Annotated[str, Query(description="A shell pattern for the user agent, such as my-operator*")]
Output = Literal["json", "text", "transcript", "har", "audit", "roles"]
Since = Annotated[int, Query(ge=0, description="The seq after which requests count")]


def router(server: Controlled) -> APIRouter:
    """The paths below /fakeapiserver/requests."""
    routes = APIRouter()

    @routes.get("/requests", response_class=Response)
    async def list_requests(
        query: str = "", since: Since = 0, wait: Wait = 0.0, agent: Agent = "*", output: Output = "json"
    ) -> Response:
        """Returns the requests that match a query such as `patch deployments/status`; 504 if none came in time."""
        log = server.request_log
        if log is None:
            raise HTTPException(422, "this server doesn't keep its requests: start it with --kept-requests=1000")
        try:
            requests = _selected(log, query, since, agent)
            async with asyncio.timeout(wait):
                while wait and not requests:
                    await log.wait()
                    requests = _selected(log, query, since, agent)
        except ValueError as error:
            raise HTTPException(422, str(error)) from error
        except TimeoutError as error:
            raise HTTPException(504, f"no request {query!r} within {wait:g} seconds") from error
        content, media_type = _WRITTEN[output](requests)
        return Response(content, media_type=media_type)

    return routes


def _selected(log: RequestLog, query: str, since: int, agent: str) -> RequestList:
    requests = RequestList(log.entries).since(since).by(user_agent=agent)
    return requests[query] if query else requests


def _shown(entry: RequestEntry) -> dict[str, Any]:
    """Returns the fields of an entry without its bodies."""
    fields = asdict(entry)
    del fields["content"]
    return fields


def _as_json(requests: RequestList) -> tuple[bytes, str]:
    return msgspec.json.encode([*map(_shown, requests)]), _JSON


def _as_text(requests: RequestList) -> tuple[bytes, str]:
    return f"{requests}\n".encode(), _TEXT


def _as_transcript(requests: RequestList) -> tuple[bytes, str]:
    return requests.transcript().encode(), _TEXT


def _as_archive(requests: RequestList) -> tuple[bytes, str]:
    return har.encoded(requests.har()), _JSON


def _as_audit_log(requests: RequestList) -> tuple[bytes, str]:
    return audit_events.encoded(requests.audit_events()), "application/x-ndjson"


def _as_roles(requests: RequestList) -> tuple[bytes, str]:
    return least_rights.encoded(requests.roles()), "application/yaml"


_JSON: Final = "application/json"
_TEXT: Final = "text/plain"
_WRITTEN: Final[Mapping[Output, Callable[[RequestList], tuple[bytes, str]]]] = {
    "json": _as_json,
    "text": _as_text,
    "transcript": _as_transcript,
    "har": _as_archive,
    "audit": _as_audit_log,
    "roles": _as_roles,
}
