"""A reconciler's interface: Request in, Result out (upstream: sigs.k8s.io/controller-runtime/pkg/reconcile)."""

from collections.abc import Awaitable, Callable
from typing import NamedTuple, Protocol, runtime_checkable

from msgspec import Struct

__all__ = [
    "Reconciler",
    "ReconcilerFunc",
    "Request",
    "Result",
    "TerminalError",
]


class Request(NamedTuple):
    """The object to reconcile. `namespace` is "" for cluster-scoped objects."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class Result(Struct, frozen=True):
    """The next step for a request.

    requeue_after: seconds until it is reconciled again; 0: when something changes.
    requeue: reconcile it again soon, with a delay that grows with each time in a row.
    priority: the priority of that; None: the same as before.
    """

    requeue_after: float = 0.0
    requeue: bool = False
    priority: int | None = None


@runtime_checkable
class Reconciler(Protocol):
    """Brings the world closer to what the object wants."""

    async def reconcile(self, request: Request) -> Result | None:
        """Brings the cluster to the wanted state. None means Result().

        An exception is logged, and the request is retried with a growing delay, except after TerminalError.
        The object may be gone. A
        request doesn't say what has changed: read the present state.
        """


class TerminalError(Exception):
    """Raised if a retry is useless until something changes. An exception that is raised `from` one is terminal, too."""

    def __str__(self) -> str:
        return f"terminal error: {super().__str__()}"


class ReconcilerFunc(Struct, frozen=True):
    """A function as a Reconciler."""

    function: Callable[[Request], Awaitable[Result | None]]

    async def reconcile(self, request: Request) -> Result | None:
        return await self.function(request)
