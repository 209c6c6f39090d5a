"""A client that reads objects and lists, by each of the promises that a server makes."""

import random
import threading
import time
from collections.abc import Sequence
from typing import Final

from conformance.robustness.client import LOST, Client
from conformance.robustness.history import Promise, Scope, Stored
from conformance.robustness.kinds import COLORS, Kind
from conformance.robustness.reading import Reading, read_list, read_object

_GETS: Final = 0.3  # of reads
_PROMISES: Final[tuple[Promise, ...]] = ("newest", "any", "not older", "exact")
_PROMISE_WEIGHTS: Final = (50, 15, 20, 15)
_SELECTED: Final = 0.3
_PAGED: Final = 0.25
_PAGE: Final = 2
# An exact list asks for a revision that is at most so much older than the newest one.
_BACK: Final = 30
_PAUSE: Final = 0.01  # seconds after a lost connection, and between two reads


class Reader:
    """Works until it is stopped. `server` is the number of the client's server, `kinds` those of the objects that are read."""

    def __init__(self, client: Client, server: int, name: str, reading: Reading, kinds: Sequence[Kind]) -> None:
        self._client = client
        self._server = server
        self._name = name
        self._reading = reading
        self._kinds = kinds
        self._chance = random.Random(name)
        self._known: dict[str, Stored] = {}
        self._must_read = True

    def run(self, stopped: threading.Event) -> None:
        while not stopped.is_set():
            try:
                self._act()
            except LOST:
                self._known, self._must_read = {}, True
                stopped.wait(_PAUSE)
        self._client.close()

    def _act(self) -> None:
        """Does the next thing. Raises what LOST lists if the answer doesn't come."""
        self._read()
        time.sleep(_PAUSE)

    def _read(self) -> None:
        chance, reader = self._chance, (self._name, self._server)
        kind = chance.choice(self._kinds)
        [promise] = chance.choices(_PROMISES, _PROMISE_WEIGHTS)
        if self._known and chance.random() < _GETS:
            name, any_state = chance.choice(kind.names), promise == "any"
            got = read_object(
                self._reading, self._client, reader, kind.resource, name, "any" if any_state else "newest"
            )
            self._known |= got.objects if got is not None else {}
            return
        color = chance.choice(COLORS) if chance.random() < _SELECTED else ""
        asked = self._reading.newest
        if promise == "exact":
            asked = max(asked - chance.randrange(_BACK), 1)
        limit = _PAGE if promise in ("newest", "exact") and chance.random() < _PAGED else 0
        read = read_list(self._reading, self._client, reader, Scope(kind.resource, color), promise, asked, limit)
        if read is not None:
            others = {name: stored for name, stored in self._known.items() if not name.startswith(f"{kind.resource}/")}
            self._known = others | read.objects
            self._must_read = False
