"""The part of the test control that lets browsers in to the page."""

from typing import Final, Protocol

from fastapi import APIRouter, HTTPException
from pydantic import BaseModel, Field

_OFF: Final = "this server has no page: start it with --ui (ui=True of a Cluster)"


class Page(Protocol):
    """The page of a server."""

    def new_link(self) -> str:
        """Returns an address that logs one browser in."""


class Controlled(Protocol):
    """The part of an API server that has a page."""

    @property
    def page(self) -> Page | None: ...


class Link(BaseModel):
    """A link to the page."""

    url: str = Field(description="Logs one browser in, once, within an hour")


def router(server: Controlled) -> APIRouter:
    """The paths below /fakeapiserver/ui."""
    routes = APIRouter()

    @routes.post("/ui/links", status_code=201)
    async def new_link() -> Link:
        """Makes a link that logs a browser in to the page."""
        if server.page is None:
            raise HTTPException(404, _OFF)
        return Link(url=server.page.new_link())

    return routes
