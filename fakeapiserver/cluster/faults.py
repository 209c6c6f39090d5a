"""`cluster.faults`: lets requests and watches of clients go wrong.

with cluster.faults.add(verb="update", resource="leases", status=409, times=3) as fault:
    ...
assert fault.hits == 3

And faults of the whole server: `cluster.outage()`, during which it can't be reached, and `cluster.bad_certificate()`.

with cluster.outage():
    ...                      # connections are refused
cluster.outage("10s")        # ends by itself, on the cluster's clock
"""

from types import TracebackType
from typing import TYPE_CHECKING, Self, Unpack

from fakeapiserver.cluster.faces import AsyncEnding, Blocking, Ending, blocking
from fakeapiserver.faults import rule
from fakeapiserver.faults.fields import Fields
from fakeapiserver.server import outage
from fakeapiserver.server.filters.fault_injection import FaultInjection
from fakeapiserver.server.local import LocalServer

if TYPE_CHECKING:
    from fakeapiserver.faults.injector import ActiveFault


class AsyncFault:
    """A fault that was added. As a context manager it is removed at the end."""

    def __init__(self, injection: FaultInjection, active: "ActiveFault") -> None:
        self._injection = injection
        self._active = active

    @property
    def id(self) -> int:
        """The number that the header `Fakeapiserver-Fault` names in answers to struck requests."""
        return self._active.id

    @property
    def hits(self) -> int:
        """The number of requests that were struck."""
        return self._active.turns.hits

    @property
    def seen(self) -> int:
        """The number of requests that matched, struck or not."""
        return self._active.turns.seen

    @property
    def revision(self) -> int:
        """The revision of the cluster when the last request was struck, 0 before the first one."""
        return self._active.revision

    async def stay_at(self, revision: int) -> None:
        """Lets the API server of a fault with `stale=True` stay at an earlier revision than that at which the fault was added. For faults
        that have struck nothing yet."""
        if self._active.lag is not None:
            self._active.lag.stay_at(revision)

    async def wait(self, hits: int = 1, timeout: float = 10.0) -> None:
        """Returns when so many requests were struck. Raises TimeoutError after `timeout` real seconds."""
        await self._active.wait(hits, timeout)

    async def remove(self) -> None:
        """Removes the fault: requests that hang go on, and watches get what was held back. A second call does nothing."""
        self._injection.faults.remove(self._active)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.remove()

    def __repr__(self) -> str:
        return f"<{self._active}: {self.hits} hits>"


class Fault(Blocking[AsyncFault]):
    """A fault that was added. As a context manager it is removed at the end."""

    @property
    def id(self) -> int:
        """The number that the header `Fakeapiserver-Fault` names in answers to struck requests."""
        return self._core.id

    @property
    def hits(self) -> int:
        """The number of requests that were struck."""
        return self._core.hits

    @property
    def seen(self) -> int:
        """The number of requests that matched, struck or not."""
        return self._core.seen

    @property
    def revision(self) -> int:
        """The revision of the cluster when the last request was struck, 0 before the first one."""
        return self._core.revision

    wait = blocking(AsyncFault.wait)
    stay_at = blocking(AsyncFault.stay_at)
    remove = blocking(AsyncFault.remove)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.remove()

    def __repr__(self) -> str:
        return repr(self._core)


class AsyncFaults:
    """The faults of a cluster. A request goes through them in the order in which they were added; the first with an answer ends it."""

    def __init__(self, injection: FaultInjection) -> None:
        self._injection = injection

    async def add(self, **fields: Unpack[Fields]) -> AsyncFault:
        """Adds a fault: which requests, what happens to them, and how often. `Fault` in faults/rule.py describes the fields.

        Raises ValueError with one sentence that says what to do.
        """
        [active] = await self._injection.add([fields])
        return AsyncFault(self._injection, active)

    async def list(self) -> list[AsyncFault]:
        """The faults that exist, in their order."""
        return [AsyncFault(self._injection, active) for active in self._injection.active]

    async def clear(self) -> None:
        """Removes all faults."""
        self._injection.faults.clear()


class Faults(Blocking[AsyncFaults]):
    """The faults of a cluster. A request goes through them in the order in which they were added; the first with an answer ends it."""

    def add(self, **fields: Unpack[Fields]) -> Fault:
        """Adds a fault: which requests, what happens to them, and how often. `Fault` in faults/rule.py describes the fields.

        Raises ValueError with one sentence that says what to do.
        """
        rule.fault(fields)
        return Fault(self._call(lambda: self._core.add(**fields)), self._call)

    def list(self) -> list[Fault]:
        """The faults that exist, in their order."""
        return [Fault(fault, self._call) for fault in self._call(self._core.list)]

    clear = blocking(AsyncFaults.clear)


class AsyncOutage(AsyncEnding):
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


class AsyncBadCertificate(AsyncEnding):
    """A serving certificate that clients refuse. As a context manager it is replaced by the cluster's own at the end."""

    def __init__(self, server: LocalServer) -> None:
        self._server = server

    async def end(self) -> None:
        """Serves the cluster's own certificate again."""
        await self._server.serve_own_certificate()


class BadCertificate(Ending, Blocking[AsyncBadCertificate]):
    """A serving certificate that clients refuse. As a context manager it is replaced by the cluster's own at the end."""

    end = blocking(AsyncBadCertificate.end)


class Outage(Ending, Blocking[AsyncOutage]):
    """An outage that has begun. As a context manager it ends with the block."""

    @property
    def over(self) -> bool:
        """Reports whether the cluster can be reached again."""
        return self._core.over

    end = blocking(AsyncOutage.end)
    wait = blocking(AsyncOutage.wait)
