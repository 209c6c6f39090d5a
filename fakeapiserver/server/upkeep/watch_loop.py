"""Follows the objects of one resource, for the parts of the server that react to writes.

Upstream's parts have informers; this server's are in the same process as its storage, so that they need no cache.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from fakeapiserver.registry.generic.store import Store
from fakeapiserver.storage.interface import Event

# Seconds after which a quiet watch is asked again.
_LONG: Final = 3600.0


async def follow(
    store: Store, began: Callable[[], Awaitable[None]], changed: Callable[[Sequence[Event]], Awaitable[None]]
) -> None:
    """Runs until cancelled. Calls `began` whenever a watch begins: at the start, and again when a restored snapshot has ended
    the watch before. From then on, calls `changed` with the events of each batch, in order; none is missed."""
    while True:
        watcher = store.storage.watch(store.prefix)
        try:
            await began()
            while (events := await watcher.next_batch(_LONG)) is not None:
                await changed(events)
        finally:
            watcher.close()
        await asyncio.sleep(0)  # a closed storage ends each watch at once
