"""Gathers changes of many objects, so that a controller looks at them once.

A sync looks at all objects of its owner. If each of n pods caused one, n pods would cost n² looks. Upstream, changes that come while the
request before waits for the server are gathered in the same way; here requests are answered in the same process, sooner than that.
"""

import asyncio
from typing import Final

_OBJECTS_PER_TURN: Final = 4


async def gather_changes(objects: int) -> None:
    """Gives other work a turn of the event loop for every four objects that the caller is about to look at.

    Takes no time if there is no other work. Changes in between are part of the caller's look, and their requests are one.
    """
    for _ in range(objects // _OBJECTS_PER_TURN):
        await asyncio.sleep(0)
