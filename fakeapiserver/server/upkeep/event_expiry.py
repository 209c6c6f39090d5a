"""Events of a state in memory or in a file expire, as those in etcd do with their leases (--event-ttl).

Upstream: k8s.io/apiserver/pkg/storage/etcd3/lease_manager.go. Events share leases, which last up to a minute, or a twentieth, longer
than the ttl; so do they here.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from msgspec import Struct

from fakeapiserver.apimachinery.gvk import GroupResource
from fakeapiserver.clock import Timers, sleep
from fakeapiserver.endpoints.scopes import RequestScopes
from fakeapiserver.registry.generic.store import Store
from fakeapiserver.server.upkeep.watch_loop import follow
from fakeapiserver.storage.interface import Event, KeyNotFound, ResourceVersionConflict, Unwritable

log = logging.getLogger(__name__)

_EVENTS: Final = GroupResource("", "events")
# Seconds at most in which Events share a lease, and as a share of the ttl.
_SHARED: Final = 60.0
_SHARE: Final = 0.05


class _Lease(Struct):
    """The lease of Events whose last write has a revision up to `revision`, and above that of the lease before.

    end: seconds of the monotonic clock."""

    end: float
    revision: int


class EventExpiry:
    """Deletes Events `ttl` seconds of the clock after their last write. A ttl of 0 keeps them."""

    def __init__(self, scopes: RequestScopes, clock: Timers, ttl: float) -> None:
        self._scopes = scopes
        self._clock = clock
        self._ttl = ttl
        self._shared = min(_SHARED, ttl * _SHARE)
        self._leases: deque[_Lease] = deque()  # the next to end is the first
        self._granted = asyncio.Event()

    async def run(self) -> None:
        """Runs until cancelled."""
        store = self._scopes.store_for(_EVENTS)
        if store is None or self._ttl <= 0:
            return

        async def began() -> None:
            """The Events of a state that was there before, or was brought back, have all their time again."""
            self._leases.clear()
            if store.storage.list_now(store.prefix).items:
                self._grant(store.storage.revision)

        async def changed(events: Sequence[Event]) -> None:
            if written := [event.revision for event in events if event.type != "DELETED"]:
                self._grant(written[-1])

        async with asyncio.TaskGroup() as tasks:  # if one fails, the other ends as well
            tasks.create_task(follow(store, began, changed))
            tasks.create_task(self._revoke(store))

    def _grant(self, revision: int) -> None:
        end = (self._clock.monotonic() // self._shared + 1) * self._shared + self._ttl
        if self._leases and self._leases[-1].end >= end:
            self._leases[-1].revision = revision
        else:
            self._leases.append(_Lease(end, revision))
        self._granted.set()

    async def _revoke(self, store: Store) -> None:
        """Waits for the end of each lease."""
        while True:
            await self._granted.wait()
            if not self._leases:
                self._granted.clear()
            elif (left := self._leases[0].end - self._clock.monotonic()) > 0:
                await sleep(self._clock, left)
            else:
                await self._expire(store, self._leases.popleft().revision)

    async def _expire(self, store: Store, newest: int) -> None:
        for event in store.storage.list_now(store.prefix).items:
            if event.mod_revision <= newest:
                try:
                    with suppress(KeyNotFound, ResourceVersionConflict):  # it was deleted or written meanwhile
                        await store.storage.delete(event.key, expected_revision=event.mod_revision)
                except Unwritable as error:
                    log.warning("Events that have expired are kept for now: %s", error)
                    self._leases.appendleft(_Lease(self._clock.monotonic() + self._shared, newest))
                    return
                await asyncio.sleep(0)  # requests have their turns
