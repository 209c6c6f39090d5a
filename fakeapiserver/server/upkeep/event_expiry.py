"""Events of a state in memory or in a file expire, as those in etcd do with their leases (--event-ttl).

Upstream: k8s.io/apiserver/pkg/storage/etcd3/lease_manager.go, whose leases last up to a minute, or a twentieth, longer than the ttl.
"""

import asyncio
import logging
from collections import deque
from contextlib import suppress
from typing import Final

from fakeapiserver.clock import Timers, sleep
from fakeapiserver.storage.interface import KeyNotFound, ResourceVersionConflict, Unwritable
from fakeapiserver.storage.memory import MemoryStorage

log = logging.getLogger(__name__)

_PREFIX: Final = "/registry/events/"
# Seconds between two looks at most, and the share of the ttl.
_INTERVAL: Final = 60.0
_SHARE: Final = 0.05


class EventExpiry:
    """Deletes Events `ttl` seconds of the clock after their last write, or up to an interval later. A ttl of 0 keeps them."""

    def __init__(self, storage: MemoryStorage, clock: Timers, ttl: float) -> None:
        self._storage = storage
        self._clock = clock
        self._ttl = ttl
        # The newest revision at each of the last looks, with the time: what was written since then is younger.
        self._looks: deque[tuple[float, int]] = deque()

    def restored(self) -> None:
        """Lets all Events of a state that was brought back begin their time again."""
        self._looks.clear()

    async def run(self) -> None:
        """Runs until cancelled."""
        while self._ttl > 0:
            self._looks.append((self._clock.monotonic(), self._storage.revision))
            await sleep(self._clock, min(_INTERVAL, self._ttl * _SHARE))
            try:
                await self._expire()
            except Unwritable as error:
                log.warning("expired Events are kept: %s", error)

    async def _expire(self) -> None:
        newest, now = 0, self._clock.monotonic()
        while self._looks and self._looks[0][0] <= now - self._ttl:
            _, newest = self._looks.popleft()
        if not newest:
            return
        for event in self._storage.list_now(_PREFIX).items:
            if event.mod_revision <= newest:
                with suppress(KeyNotFound, ResourceVersionConflict):  # it was deleted or written meanwhile
                    await self._storage.delete(event.key, expected_revision=event.mod_revision)
                await asyncio.sleep(0)  # requests have their turns
