"""The test control: what a test may do to a running server and no real one offers, for any language, over HTTP.

A FastAPI application below /fakeapiserver/, with its page of documentation at /fakeapiserver/docs. It stands behind the handler
chain, so a caller must be allowed the non-resource URL. Imported when first asked for: importing FastAPI takes longer than the
server's whole start.
"""

import itertools
from typing import Annotated, Protocol

from fastapi import FastAPI, HTTPException, Path
from pydantic import BaseModel, Field

from fakeapiserver.server.control import controllers as control_controllers
from fakeapiserver.server.control import faults as control_faults
from fakeapiserver.server.control import metrics as control_metrics
from fakeapiserver.server.control import state as control_state
from fakeapiserver.server.control.errors import PREFIX, Body, control_application
from fakeapiserver.storage.interface import ResourceVersionTooLarge
from fakeapiserver.storage.mvcc import Snapshot


class Controlled(
    control_controllers.Controlled,
    control_faults.Controlled,
    control_metrics.Controlled,
    control_state.Controlled,
    Protocol,
):
    """The part of an API server that is controlled."""


class State(BaseModel):
    """The revisions of the storage."""

    revision: int = Field(description="The resourceVersion of the newest write")
    compacted: int = Field(description="The oldest resourceVersion that a list can show and a watch can start from")
    watches: int = Field(description="How many watches are open")


class SnapshotTaken(BaseModel):
    """A state that can be brought back as often as wanted, until it is deleted or the server ends."""

    id: int
    revision: int = Field(description="The resourceVersion at which it was taken")


class Compaction(Body):
    """Drops the history up to `revision`, by default all of it."""

    revision: int | None = Field(default=None, ge=1)


class WatchesLost(BaseModel):
    """The number of watches that were ended."""

    watches: int


SnapshotId = Annotated[int, Path(ge=1)]


def control(server: Controlled) -> FastAPI:
    """The application for one server; snapshots live as long as it does."""
    app = control_application("fakeapiserver test control")
    snapshots: dict[int, tuple[SnapshotTaken, Snapshot]] = {}
    numbers = itertools.count(1)

    def found(number: int) -> tuple[SnapshotTaken, Snapshot]:
        if number not in snapshots:
            raise HTTPException(404, f"there is no snapshot {number}")
        return snapshots[number]

    def state_now() -> State:
        storage = server.storage
        return State(revision=storage.revision, compacted=storage.compacted, watches=storage.watchers)

    @app.get(f"{PREFIX}/state")
    async def state() -> State:
        """Returns the revisions of the storage."""
        return state_now()

    @app.post(f"{PREFIX}/snapshots", status_code=201)
    async def take_snapshot() -> SnapshotTaken:
        """Remembers everything that is stored now."""
        taken = SnapshotTaken(id=next(numbers), revision=server.storage.revision)
        snapshots[taken.id] = (taken, server.snapshot())
        return taken

    @app.get(f"{PREFIX}/snapshots")
    async def list_snapshots() -> list[SnapshotTaken]:
        """The snapshots there are, oldest first."""
        return [taken for taken, _ in snapshots.values()]

    @app.post(f"{PREFIX}/snapshots/{{number}}/restore")
    async def restore_snapshot(number: SnapshotId) -> State:
        """Restores the state of a snapshot.

        Revisions keep rising; all open watches end, so that their clients list again.
        """
        await server.restore(found(number)[1])
        return state_now()

    @app.delete(f"{PREFIX}/snapshots/{{number}}", status_code=204)
    async def delete_snapshot(number: SnapshotId) -> None:
        """Forgets a snapshot."""
        found(number)
        del snapshots[number]

    @app.post(f"{PREFIX}/compact")
    async def compact(compaction: Compaction) -> State:
        """Forgets history, so that older watches and pages get 410 Gone as they would after etcd's compaction."""
        try:
            server.storage.compact(compaction.revision or server.storage.revision)
        except ResourceVersionTooLarge as error:
            detail = f"revision {compaction.revision} is not there yet: the newest is {error.current}"
            raise HTTPException(400, detail) from error
        return state_now()

    @app.post(f"{PREFIX}/watches/lose")
    async def lose_watches() -> WatchesLost:
        """Ends every open watch, as a restarted server or a cut connection would."""
        return WatchesLost(watches=server.storage.lose_watches())

    app.include_router(control_controllers.router(server), prefix=PREFIX)
    app.include_router(control_faults.router(server), prefix=PREFIX)
    app.include_router(control_metrics.router(server), prefix=PREFIX)
    app.include_router(control_state.router(server, lambda number: found(number)[1]), prefix=PREFIX)
    return app
