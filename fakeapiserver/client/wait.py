"""Until something is so (upstream: k8s.io/apimachinery/pkg/util/wait, k8s.io/client-go/util/retry, k8s.io/kubectl wait)."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Any, Final, TypeVar, Unpack

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.client.cache.reflector import ListerWatcher
from fakeapiserver.client.dynamic import ListOptions
from fakeapiserver.client.errors import StatusError, TransportError, is_conflict
from fakeapiserver.client.flowcontrol import Backoff
from fakeapiserver.client.pager import decode_items, whole
from fakeapiserver.clock import SystemClock

__all__ = [
    "Object",
    "Sleep",
    "has_condition",
    "is_deleted",
    "poll_until",
    "retry_on_conflict",
    "until",
]

T = TypeVar("T")
Sleep = Callable[[float], Awaitable[None]]
_TRIES: Final = 5
# Between a watch that ended and the next one.
_PAUSE_SECONDS: Final = 0.1


@asynccontextmanager
async def _told(why: str) -> AsyncGenerator[None, None]:
    """Gives a TimeoutError a message."""
    try:
        yield
    except TimeoutError as error:
        raise TimeoutError(why) from error


async def poll_until(
    condition: Callable[[], Awaitable[bool]], *, interval: float, timeout: float, sleep: Sleep = asyncio.sleep
) -> None:
    """Asks at once and then every `interval` seconds. TimeoutError after `timeout` seconds; what `condition` raises."""
    async with _told(f"the condition didn't hold within {timeout:g} seconds"), asyncio.timeout(timeout):
        while not await condition():
            await sleep(interval)


async def retry_on_conflict(
    work: Callable[[], Awaitable[T]], *, tries: int = _TRIES, sleep: Sleep = asyncio.sleep
) -> T:
    """Runs `work`, which reads an object and writes it, again after each conflict. After `tries` runs it raises the last
    StatusError (409)."""
    backoff = Backoff(0.01, 1.0, 1.0, 0.1)
    for left in reversed(range(tries)):
        try:
            return await work()
        except StatusError as error:
            if not left or not is_conflict(error):
                raise
        await sleep(backoff.step(SystemClock().monotonic()))
    raise ValueError("tries must be at least 1")


async def until(
    source: ListerWatcher,
    condition: Callable[[Object | None], bool],
    *,
    name: str,
    timeout: float = 30.0,
    sleep: Sleep = asyncio.sleep,
    **selection: Unpack[ListOptions],
) -> Object | None:
    """Watches the object called `name` until `condition` holds for it (None: it doesn't exist), and returns it.

    No event is missed and nothing is polled; a watch that breaks off is started again. TimeoutError after `timeout` seconds,
    StatusError and TransportError if the object can't be read, and whatever `condition` raises."""
    selection["field_selector"] = f"metadata.name={name}"
    async with _told(f"the condition didn't hold for {name} within {timeout:g} seconds"), asyncio.timeout(timeout):
        while True:
            page = await whole(source, 0, **selection)
            obj = next(iter(decode_items(page)), None)
            if condition(obj):
                return obj
            options = ListOptions(**selection, resource_version=page.metadata.resource_version)
            with suppress(TransportError):
                async with aclosing(source.watch(**options)) as events:
                    async for event in events:
                        if event.type == "ERROR":
                            break
                        obj = None if event.type == "DELETED" else event.object
                        if condition(obj):
                            return obj
            await sleep(_PAUSE_SECONDS)


def has_condition(kind: str, status: str = "True") -> Callable[[Object | None], bool]:
    """For `until`: status.conditions has one of this type and status, in any case of letters, that was observed at the object's
    generation (if it says at which), as `kubectl wait --for=condition=Ready`. Upstream: k8s.io/kubectl/pkg/cmd/wait/condition.go."""

    def holds(obj: Object | None) -> bool:
        state = (obj or {}).get("status") or {}
        generation = (obj or {}).get("metadata", {}).get("generation", 0)
        conditions: list[Mapping[str, Any]] = state.get("conditions") or []
        for row in conditions:
            if str(row.get("type")).lower() == kind.lower():
                observed = row.get("observedGeneration") or state.get("observedGeneration") or generation
                return bool(observed >= generation) and str(row.get("status")).lower() == status.lower()
        return False

    return holds


def is_deleted(obj: Object | None) -> bool:
    """For `until`: it isn't there."""
    return obj is None
