"""The part of the test control that shows what was recorded (see application.py)."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Annotated, Final, Protocol

import msgspec
from fastapi import APIRouter, HTTPException, Path, Query, Response
from pydantic import Field
from starlette.responses import StreamingResponse

from fakeapiserver.evidence.timeline import embedded, views
from fakeapiserver.evidence.timeline.recorder import Recorder
from fakeapiserver.evidence.timeline.recording import Recording
from fakeapiserver.server.control.errors import Body
from fakeapiserver.ui import export

# Seconds in which records gather for one chunk.
_GATHERING: Final = 0.05
# Lines of a chunk.
_MOST_LINES: Final = 2000
_JSON: Final = "application/json"


class Controlled(Protocol):
    """The part of an API server that is recorded."""

    @property
    def recorder(self) -> Recorder | None: ...


class Wanted(Body):
    """The states to show, by the revisions that wrote them (`of` of a record if that isn't 0, else `rev`)."""

    revisions: Annotated[list[int], Field(max_length=2000)]
    objects: bool = Field(default=True, description="With the objects")
    cells: bool = Field(default=True, description="With their cells, as `kubectl get -o wide` prints them")


Since = Annotated[int, Query(ge=0, description="The number of the last record that is known already")]


Revision = Annotated[int, Query(ge=0, description="The oldest revision whose states are in the page")]


def router(server: Controlled) -> APIRouter:
    """The paths below /fakeapiserver/timeline."""
    routes = APIRouter(prefix="/timeline")

    def recorder() -> Recorder:
        if server.recorder is None:
            raise HTTPException(404, "nothing is recorded: start the server with --ui, or Cluster(ui=True)")
        return server.recorder

    @routes.get("", response_class=Response)
    async def read_records(since: Since = 0, follow: bool = False) -> Response:
        """Returns the records after a number, a line of JSON each, and those that come if `follow` is true. The first line is always the
        record `start`. If records after `since` are forgotten, what they add up to comes next."""
        lines = _lines(recorder().recording, since, follow=follow)
        return StreamingResponse(lines, media_type="application/x-ndjson")

    @routes.post("/states", response_class=Response)
    async def read_states(wanted: Wanted) -> Response:
        """Returns the states of objects. Those that are forgotten are left out, and values of Secrets are replaced by their sizes."""
        shown = await views.states(recorder(), wanted.revisions, objects=wanted.objects, cells=wanted.cells)
        return Response(msgspec.json.encode(shown), media_type=_JSON)

    @routes.get("/requests/{number}", response_class=Response)
    async def read_request(number: Annotated[int, Path(ge=1)]) -> Response:
        """Returns the bodies of a request and its answer, the object before and after it, and what admission changed."""
        shown = views.request(recorder(), number)
        if shown is None:
            raise HTTPException(404, f"there is no request {number} in the recording")
        return Response(msgspec.json.encode(shown), media_type=_JSON)

    @routes.get("/page", response_class=Response)
    async def read_page(since_revision: Revision = 0) -> Response:
        """Returns the page with the recording in it as one HTML file, which needs no server. States of revisions before
        `since_revision` are left out."""
        document = await embedded.document(recorder(), since=since_revision)
        return Response(export.page(document), media_type="text/html")

    return routes


async def _lines(recording: Recording, since: int, *, follow: bool) -> AsyncGenerator[bytes, None]:
    """Yields the lines in chunks; with `follow` until the reader has gone, or is so slow that records are forgotten unread."""
    began = 0.0
    if since and recording.has(since):
        began = recording.began
        yield recording.start()
    while True:
        if recording.began != began:
            began, since = recording.began, recording.first - 1
            yield b"".join(recording.beginning())
        while recording.has(since) and (lines := recording.after(since, _MOST_LINES)):
            since += len(lines)
            yield b"".join(lines)
        if not follow or not recording.has(since):
            return
        await recording.wait()
        await asyncio.sleep(_GATHERING)
