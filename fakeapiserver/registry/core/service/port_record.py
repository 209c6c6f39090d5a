"""The record of the node ports that are allocated, which is written by compare-and-swap.

Upstream: pkg/registry/core/rangeallocation/registry.go.
"""

from typing import Protocol

from msgspec import Struct


class Recorded(Struct, frozen=True):
    """A state of the record: bit `i` of `bits` is set if the port `i` of the range is allocated.

    `revision` counts the states, 0 if there is no record yet. `port_range`: the range as text, e.g. `30000-32767`.
    """

    bits: int = 0
    revision: int = 0
    port_range: str = ""


class PortRecord(Protocol):
    async def read(self) -> Recorded:
        """Returns the newest state."""

    async def replace(self, before: Recorded, bits: int, port_range: str) -> bool:
        """Writes the record if it is still `before`, and reports whether it was."""


class MemoryPortRecord:
    """The record of a server that shares its storage with no other."""

    def __init__(self) -> None:
        self._recorded = Recorded()

    async def read(self) -> Recorded:
        return self._recorded

    async def replace(self, before: Recorded, bits: int, port_range: str) -> bool:
        if before.revision != self._recorded.revision:
            return False
        self.put(bits, port_range)
        return True

    def put(self, bits: int, port_range: str) -> None:
        """Writes the record, whatever it is."""
        self._recorded = Recorded(bits, self._recorded.revision + 1, port_range)
