"""The part of the test control that takes and restores snapshots."""

from typing import Annotated, Protocol

from fastapi import APIRouter, HTTPException, Path
from pydantic import BaseModel, Field

from fakeapiserver.server.control import storage
from fakeapiserver.server.control.storage import State, state_of
from fakeapiserver.storage.mvcc import Snapshot


class Controlled(storage.Controlled, Protocol):
    """The part of an API server that takes snapshots."""

    def snapshot(self) -> Snapshot: ...

    async def restore(self, snapshot: Snapshot, least: int = 0) -> None: ...


class SnapshotTaken(BaseModel):
    """A state that can be brought back as often as wanted, until it is deleted or the server ends."""

    id: int
    revision: int = Field(description="The resourceVersion at which it was taken")


class Snapshots:
    """The snapshots of a server, by their numbers. They live as long as it does."""

    def __init__(self) -> None:
        self._taken: dict[int, tuple[SnapshotTaken, Snapshot]] = {}
        self._last = 0

    def add(self, snapshot: Snapshot, revision: int) -> SnapshotTaken:
        """Keeps a snapshot under the next number."""
        self._last += 1
        taken = SnapshotTaken(id=self._last, revision=revision)
        self._taken[self._last] = (taken, snapshot)
        return taken

    def list(self) -> list[SnapshotTaken]:
        """Returns what is kept, oldest first."""
        return [taken for taken, _ in self._taken.values()]

    def find(self, number: int) -> Snapshot:
        """Returns a snapshot. HTTPException 404."""
        if number not in self._taken:
            raise HTTPException(404, f"there is no snapshot {number}")
        return self._taken[number][1]

    def delete(self, number: int) -> None:
        """Forgets a snapshot. HTTPException 404."""
        self.find(number)
        del self._taken[number]


SnapshotId = Annotated[int, Path(ge=1)]


def router(server: Controlled, snapshots: Snapshots) -> APIRouter:
    """Returns the paths for a server, without the prefix."""
    routes = APIRouter()

    @routes.post("/snapshots", status_code=201)
    async def take_snapshot() -> SnapshotTaken:
        """Remembers everything that is stored now."""
        return snapshots.add(server.snapshot(), server.storage.revision)

    @routes.get("/snapshots")
    async def list_snapshots() -> list[SnapshotTaken]:
        """The snapshots there are, oldest first."""
        return snapshots.list()

    @routes.post("/snapshots/{number}/restore")
    async def restore_snapshot(number: SnapshotId) -> State:
        """Restores the state of a snapshot.

        Revisions keep rising; all open watches end, so that their clients list again.
        """
        await server.restore(snapshots.find(number))
        return state_of(server)

    @routes.delete("/snapshots/{number}", status_code=204)
    async def delete_snapshot(number: SnapshotId) -> None:
        """Forgets a snapshot."""
        snapshots.delete(number)

    return routes
