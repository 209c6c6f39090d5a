"""The bounded list of records, with a cursor, for readers in the server's event loop.

When it is full, the oldest eighth is forgotten at once. The last states of objects that still exist stay, as the base of later records.
"""

import asyncio
from collections.abc import Callable, Iterator
from time import perf_counter, time
from typing import Final

import msgspec

from fakeapiserver.clock import Clock
from fakeapiserver.evidence.timeline.records import Gap, Kinds, Record, Request, Start, State

KEPT: Final = 500_000
KEPT_BYTES: Final = 256 << 20
# Bytes that a record takes beside its line.
_ROW: Final = 150
_FORGOTTEN_PART: Final = 8
_encode: Final = msgspec.json.Encoder().encode
# A line, its record if that still matters when it is forgotten, and the bytes that belong to it.
_Row = tuple[bytes, State | Request | Kinds | None, int]


class Recording:
    """Keeps the last records: at most `most`, which take at most about `most_bytes` with what belongs to them.

    `forgotten` is called with each record of a state or a request that can't be shown any more."""

    def __init__(
        self,
        clock: Clock,
        start: Callable[[], Start],
        forgotten: Callable[[State | Request], None],
        most: int = KEPT,
        most_bytes: int = KEPT_BYTES,
    ) -> None:
        self.clock = clock
        self._begin()
        self._start = start
        self._forgotten = forgotten
        self._most = most
        self._most_bytes = most_bytes
        self._rows: list[_Row] = []
        self._first = 1
        self._size = 0
        # The oldest revision that can be shown.
        self.oldest = 0
        # The states of the objects at that revision, and the kinds of that time.
        self._base: dict[tuple[str, str, str], State] = {}
        self._kinds: Kinds | None = None
        self._changed: asyncio.Future[None] | None = None

    def _begin(self) -> None:
        # The time when the recording began: of the machine, and of the cluster.
        self.began, self.began_time = time(), self.clock.now()
        self._zero = perf_counter()

    def restart(self) -> None:
        """Forgets everything, and begins again; numbers go on. Streams that read it begin again, too."""
        for record in self.kept:
            if not isinstance(record, Kinds):
                self._forgotten(record)
        self._first = self.last + 1
        self._rows.clear()
        self._base.clear()
        self._size, self._kinds = 0, None
        self._begin()

    def resume(self, began: float, time: float, at: float) -> None:
        """Goes on with a recording that began at these times, of the machine and of the cluster, and whose last record is of `at`."""
        self.began, self.began_time = began, time
        self._zero = perf_counter() - at

    @property
    def last(self) -> int:
        """The number of the newest record; 0 before the first."""
        return self._first + len(self._rows) - 1

    @property
    def size(self) -> int:
        """About how many bytes the records take, with what belongs to them."""
        return self._size

    def at(self) -> float:
        """Seconds since the recording began."""
        return round(perf_counter() - self._zero, 6)

    def add(self, record: Record, size: int = 0) -> None:
        """Adds a record. `size`: the bytes that belong to it and are kept elsewhere."""
        self._append(record, size)
        if len(self._rows) > self._most or self._size > self._most_bytes:
            self._forget()
            self._append(Gap(before=self.oldest))
        if self._changed is not None:
            self._changed.set_result(None)
            self._changed = None

    def _append(self, record: Record, size: int = 0) -> None:
        record.n = self._first + len(self._rows)
        line = _encode(record) + b"\n"
        self._rows.append((line, record if isinstance(record, State | Request | Kinds) else None, size))
        self._size += len(line) + _ROW + size

    @property
    def first(self) -> int:
        """The number of the oldest record that is kept."""
        return self._first

    def after(self, number: int, most: int) -> list[bytes]:
        """The lines of the first records after that number. Those that are forgotten are left out."""
        start = max(0, number + 1 - self._first)
        return [line for line, *_ in self._rows[start : start + most]]

    @property
    def kept(self) -> list[State | Request | Kinds]:
        """The records of states, requests and kinds in their order, with those on which the oldest kept record builds."""
        records = [record for _, record, _ in self._rows if record is not None]
        return [*self._base_states(), *records]

    def has(self, number: int) -> bool:
        """Reports whether every record after that number is kept."""
        return number >= self._first - 1

    def beginning(self) -> Iterator[bytes]:
        """The lines before the oldest kept record: the start, and what the records build on, with the numbers that they had."""
        yield self.start()
        if self._kinds is not None:
            yield _encode(self._kinds) + b"\n"
        for state in self._base_states():
            yield _encode(state) + b"\n"

    def _base_states(self) -> list[State]:
        return sorted(self._base.values(), key=lambda state: state.n)

    def start(self) -> bytes:
        """The first line of each stream."""
        return _encode(self._start()) + b"\n"

    async def wait(self) -> None:
        """Returns at the next record."""
        if self._changed is None:
            self._changed = asyncio.get_running_loop().create_future()
        await asyncio.shield(self._changed)

    def _forget(self) -> None:
        count = max(1, len(self._rows) // _FORGOTTEN_PART)
        for line, record, size in self._rows[:count]:
            self._size -= len(line) + _ROW + size
            if isinstance(record, State):
                self._settle(record)
            elif isinstance(record, Request):
                self._forgotten(record)
            elif record is not None:
                self._kinds = record
        del self._rows[:count]
        self._first += count

    def _settle(self, state: State) -> None:
        """Makes the state a part of the base; what was the base before can't be shown any more."""
        key = (state.r, state.ns, state.name)
        former = self._base.pop(key, None)
        if former is not None:
            self._forgotten(former)
        self.oldest = max(self.oldest, int(state.rev))
        if state.op == "delete":
            self._forgotten(state)
        else:
            state.op = "base"
            self._base[key] = state
