"""`cluster.page`: the page in a browser that shows what happened in the cluster, and why."""

import asyncio
import os
from pathlib import Path

from fakeapiserver.cluster.faces import Blocking, blocking
from fakeapiserver.evidence.timeline import embedded
from fakeapiserver.server.local import LocalServer
from fakeapiserver.ui import export


class AsyncPage:
    """The page of a cluster that was created with `ui=True`."""

    def __init__(self, server: LocalServer) -> None:
        self._server = server

    def link(self) -> str:
        """An address that opens the page in one browser, once, within an hour. ValueError: the cluster was created without `ui=True`."""
        if self._server.page is None:
            raise ValueError("this cluster has no page: create it with ui=True")
        return self._server.page.new_link()

    async def save(self, path: str | os.PathLike[str], *, title: str = "", failure: str = "") -> None:
        """Writes the page with everything that was recorded to an HTML file, which opens without a server. Values of Secrets aren't in it.

        An existing file is replaced. Raises OSError, and ValueError if the cluster was created without `ui=True`.

        - `title`, `failure`: texts that the page shows, e.g. the name of a test and the text of its failure."""
        recorder = self._server.api.recorder if self._server.api is not None else None
        if recorder is None:
            raise ValueError("this cluster has no page: create it with ui=True")
        document = await embedded.document(recorder, title=title, failure=failure)
        await asyncio.to_thread(lambda: Path(path).write_bytes(export.page(document)))


class Page(Blocking[AsyncPage]):
    """The page of a cluster that was created with `ui=True`."""

    def link(self) -> str:
        """An address that opens the page in one browser, once, within an hour. ValueError: the cluster was created without `ui=True`."""
        return self._core.link()

    save = blocking(AsyncPage.save)
