"""Keys that wait to be looked at: each once however often it was added, later where it failed.

Upstream: k8s.io/client-go/util/workqueue.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from fakeapiserver.clock import Clock

log = logging.getLogger(__name__)

_LONG: Final = 3600.0


class Retry(Exception):
    """Raised by a sync to be called again; the delay grows with each failure."""


class WorkQueue:
    """`sync(key)` returns after how many seconds it wants to be called again (None: when the key is added again). A key is
    never synced twice at the same time. Failures are repeated after `base` seconds, doubled each time, `longest` at most."""

    def __init__(
        self, sync: Callable[[str], Awaitable[float | None]], clock: Clock, *, base: float, longest: float
    ) -> None:
        self._sync = sync
        self._clock = clock
        self._base = base
        self._longest = longest
        self._due: dict[str, float] = {}  # monotonic time
        self._failures: dict[str, int] = {}
        self._running: dict[str, asyncio.Task[None]] = {}
        self._changed = asyncio.Event()

    def add(self, key: str, after: float = 0.0) -> None:
        """To be synced `after` seconds from now, or earlier where that was said before."""
        due = self._clock.monotonic() + after
        if due < self._due.get(key, float("inf")):
            self._due[key] = due
            self._changed.set()

    def failing(self, key: str) -> bool:
        """Reports whether its last sync failed."""
        return key in self._failures

    def forget(self, key: str) -> None:
        """No longer to be synced."""
        self._due.pop(key, None)
        self._failures.pop(key, None)

    async def run(self) -> None:
        """Runs until cancelled."""
        try:
            while True:
                self._changed.clear()
                now = self._clock.monotonic()
                for key in [key for key, due in self._due.items() if due <= now and key not in self._running]:
                    del self._due[key]
                    self._running[key] = asyncio.create_task(self._run(key), name=f"sync {key}")
                waits = [due - now for key, due in self._due.items() if key not in self._running]
                try:
                    async with asyncio.timeout(min(waits, default=_LONG)):
                        await self._changed.wait()
                except TimeoutError:
                    pass
        finally:
            for task in self._running.values():
                task.cancel()
            await asyncio.gather(*self._running.values(), return_exceptions=True)

    async def _run(self, key: str) -> None:
        try:
            again = await self._sync(key)
        except Retry as error:
            log.info("%s failed: %s", key, error)
            again = self._next_attempt(key)
        except Exception:
            log.exception("%s failed", key)
            again = self._next_attempt(key)
        else:
            self._failures.pop(key, None)
        finally:
            del self._running[key]
            self._changed.set()
        if again is not None:
            self.add(key, again)

    def _next_attempt(self, key: str) -> float:
        failures = self._failures[key] = self._failures.get(key, -1) + 1
        return min(self._longest, self._base * 2.0 ** min(failures, 60))
