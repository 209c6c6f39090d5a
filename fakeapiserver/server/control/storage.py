"""The part of the test control that is about the storage: its revisions, its history and the open watches."""

from typing import Protocol

from fastapi import APIRouter, HTTPException
from pydantic import BaseModel, Field

from fakeapiserver.server.control.errors import Body
from fakeapiserver.server.http import freed_memory
from fakeapiserver.storage.interface import ResourceVersionTooLarge
from fakeapiserver.storage.memory import MemoryStorage


class Controlled(Protocol):
    """The part of an API server that has a storage."""

    storage: MemoryStorage


class State(BaseModel):
    """The revisions of the storage."""

    revision: int = Field(description="The resourceVersion of the newest write")
    compacted: int = Field(description="The oldest resourceVersion that a list can show and a watch can start from")
    watches: int = Field(description="How many watches are open")


class Compaction(Body):
    """Drops the history up to `revision`, by default all of it."""

    revision: int | None = Field(default=None, ge=1)


class WatchesLost(BaseModel):
    """The number of watches that were ended."""

    watches: int


def state_of(server: Controlled) -> State:
    """Returns the present revisions."""
    storage = server.storage
    return State(revision=storage.revision, compacted=storage.compacted, watches=storage.watchers)


def router(server: Controlled) -> APIRouter:
    """Returns the paths for a server, without the prefix."""
    routes = APIRouter()

    @routes.get("/state")
    async def state() -> State:
        """Returns the revisions of the storage."""
        return state_of(server)

    @routes.post("/compact")
    async def compact(compaction: Compaction) -> State:
        """Forgets history, so that older watches and pages get 410 Gone as they would after etcd's compaction."""
        try:
            await server.storage.compact(compaction.revision or server.storage.revision)
        except ResourceVersionTooLarge as error:
            detail = f"revision {compaction.revision} is not there yet: the newest is {error.current}"
            raise HTTPException(400, detail) from error
        freed_memory.trim()
        return state_of(server)

    @routes.post("/watches/lose")
    async def lose_watches() -> WatchesLost:
        """Ends every open watch, as a restarted server or a cut connection would."""
        return WatchesLost(watches=server.storage.lose_watches())

    return routes
