"""The part of the test control that forks the server."""

from typing import Annotated, Final, Protocol

from fastapi import APIRouter, HTTPException, Path
from pydantic import BaseModel, Field

from fakeapiserver.server.control.page import Link
from fakeapiserver.server.forks import Fork, Forks

_NO_PORT: Final = "this server has no port of its own, and so no forks: use Cluster.fork()"


class Controlled(Protocol):
    """The part of an API server that is forked."""

    @property
    def forks(self) -> Forks | None: ...


class RunningFork(BaseModel):
    """A server of its own in this process, from the state of this one. It runs until it is ended, or this server ends."""

    id: int
    revision: int = Field(description="The resourceVersion from which it started")
    url: str = Field(description="Its address, where the credentials of this server are valid")
    has_page: bool = Field(description="Whether it has a page, as this server has")


ForkId = Annotated[int, Path(ge=1)]


def router(server: Controlled) -> APIRouter:
    """The paths below /fakeapiserver/forks."""
    routes = APIRouter(prefix="/forks")

    def forks() -> Forks:
        if server.forks is None:
            raise HTTPException(404, _NO_PORT)
        return server.forks

    def find(number: int) -> Fork:
        try:
            return forks().find(number)
        except KeyError:
            raise HTTPException(404, f"there is no fork {number}") from None

    @routes.post("", status_code=201)
    async def fork() -> RunningFork:
        """Starts another server in this process from the present state, with its history, clock, controllers' modes and nodes."""
        try:
            return _shown(await forks().add())
        except (OSError, ValueError) as error:
            raise HTTPException(409, str(error)) from error

    @routes.get("")
    async def list_forks() -> list[RunningFork]:
        """The forks that run, oldest first."""
        return [_shown(fork) for fork in forks().list()]

    @routes.post("/{number}/links", status_code=201)
    async def new_link_to_fork(number: ForkId) -> Link:
        """Makes a link that logs a browser in to the page of a fork."""
        page = find(number).server.page
        if page is None:
            raise HTTPException(404, "this fork has no page: start the server with --ui (ui=True of a Cluster)")
        return Link(url=page.new_link())

    @routes.delete("/{number}", status_code=204)
    async def end_fork(number: ForkId) -> None:
        """Ends a fork. Nothing of it is kept."""
        find(number)
        await forks().end(number)

    return routes


def _shown(fork: Fork) -> RunningFork:
    return RunningFork(id=fork.id, revision=fork.revision, url=fork.server.url, has_page=fork.server.page is not None)
