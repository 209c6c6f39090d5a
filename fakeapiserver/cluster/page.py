"""`cluster.page`: the page in a browser that shows what happened in the cluster, and why."""

from fakeapiserver.cluster.faces import Blocking
from fakeapiserver.server.local import LocalServer


class AsyncPage:
    """The page of a cluster that was created with `ui=True`."""

    def __init__(self, server: LocalServer) -> None:
        self._server = server

    def link(self) -> str:
        """An address that opens the page in one browser, once, within an hour. ValueError: the cluster was created without `ui=True`."""
        page = self._server.api.page if self._server.api is not None else None
        if page is None:
            raise ValueError("this cluster has no page: create it with ui=True")
        return page.new_link()


class Page(Blocking[AsyncPage]):
    """The page of a cluster that was created with `ui=True`."""

    def link(self) -> str:
        """An address that opens the page in one browser, once, within an hour. ValueError: the cluster was created without `ui=True`."""
        return self._core.link()
