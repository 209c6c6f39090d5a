"""`cluster.outage()`: the API server can't be reached for a while.

with cluster.outage():
    ...                      # connections are refused
cluster.outage("10s")        # ends by itself, on the cluster's clock
"""

from types import TracebackType
from typing import Self

from fakeapiserver.cluster.faces import Blocking, blocking
from fakeapiserver.server import outage
from fakeapiserver.server.local import LocalServer


class AsyncOutage:
    """An outage that has begun. As a context manager it ends with the block."""

    def __init__(self, begun: outage.Outage) -> None:
        self._outage = begun

    @property
    def over(self) -> bool:
        """Reports whether the cluster can be reached again."""
        return self._outage.over

    async def end(self) -> None:
        """Lets the cluster be reached again, at the same url. Raises OSError if another process has taken the port."""
        await self._outage.end()

    async def wait(self) -> None:
        """Returns when the outage is over."""
        await self._outage.wait()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.end()


class AsyncBadCertificate:
    """A serving certificate that clients refuse. As a context manager it is replaced by the cluster's own at the end."""

    def __init__(self, server: LocalServer) -> None:
        self._server = server

    async def end(self) -> None:
        """Serves the cluster's own certificate again."""
        await self._server.serve_own_certificate()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.end()


class BadCertificate(Blocking[AsyncBadCertificate]):
    """A serving certificate that clients refuse. As a context manager it is replaced by the cluster's own at the end."""

    end = blocking(AsyncBadCertificate.end)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.end()


class Outage(Blocking[AsyncOutage]):
    """An outage that has begun. As a context manager it ends with the block."""

    @property
    def over(self) -> bool:
        """Reports whether the cluster can be reached again."""
        return self._core.over

    end = blocking(AsyncOutage.end)
    wait = blocking(AsyncOutage.wait)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.end()
