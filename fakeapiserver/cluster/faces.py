"""The two faces of a cluster. `AsyncCluster` and its parts are coroutine functions over the server; `Cluster` and its parts run the
same coroutines in the event loop of a thread and wait for them.

class Nodes(Blocking[AsyncNodes]):
    stop = blocking(AsyncNodes.stop)
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine
from functools import wraps
from types import TracebackType
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, Self, TypeVar

C_co = TypeVar("C_co", covariant=True)
P = ParamSpec("P")
T = TypeVar("T")


class Call(Protocol):
    """Runs a coroutine function in the cluster's event loop, waits for its end and returns its result."""

    def __call__(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T: ...


class Blocking(Generic[C_co]):
    """The synchronous face of `core`, whose coroutines `call` runs."""

    def __init__(self, core: C_co, call: Call) -> None:
        self._core = core
        self._call = call


def blocking(
    method: Callable[Concatenate[C_co, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[Blocking[C_co], P], T]:
    """The same method, with the same parameters and documentation, for callers without an event loop."""

    @wraps(method)
    def run(self: Blocking[C_co], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._call(lambda: method(self._core, *args, **kwargs))

    return run


class AsyncEnding(ABC):
    """Something that has begun. As a context manager it ends with the block."""

    @abstractmethod
    async def end(self) -> None:
        """Ends it."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.end()


class Ending(ABC):
    """The synchronous face of something that has begun."""

    @abstractmethod
    def end(self) -> None:
        """Ends it."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.end()
