"""The seats of a priority level, and the queues of requests that wait for a seat.

Upstream: k8s.io/apiserver/pkg/util/flowcontrol/fairqueuing/queueset/queueset.go, pkg/util/shufflesharding.

Every request takes one seat (upstream estimates up to ten for large lists), and a level neither lends seats nor borrows any.
"""

import asyncio
import hashlib
import sys
from collections import deque
from collections.abc import Mapping
from typing import Final

from msgspec import Struct, field

from fakeapiserver.endpoints.request import Request

# The limit of an exempt level: no request waits there.
UNLIMITED: Final = sys.maxsize


class Queuing(Struct, frozen=True):
    """`spec.limited.limitResponse.queuing`."""

    queues: int
    hand_size: int
    queue_length_limit: int


def flow_hash(flow_schema: str, distinguisher: str) -> int:
    """Returns a hash of 64 bits, the same for all requests of a flow."""
    digest = hashlib.sha256(f"{flow_schema}\0{distinguisher}".encode()).digest()
    return int.from_bytes(digest[:8], "little")


def deal(entropy: int, deck_size: int, hand_size: int) -> list[int]:
    """The queues a flow may use: `hand_size` different ones out of `deck_size`, the same for the same entropy.

    >>> deal(0, 8, 3), deal(7, 8, 3)
    ([0, 1, 2], [7, 0, 1])
    """
    hand: list[int] = []
    remainders: list[int] = []
    for i in range(hand_size):
        entropy, remainder = divmod(entropy, deck_size - i)
        card = remainder
        for earlier in reversed(remainders):
            card += card >= earlier
        remainders.append(remainder)
        hand.append(card)
    return hand


class Ticket(Struct, eq=False):
    """A request at its priority level, which has a seat or waits for one. Leaving the context gives the seat back.

    `arrived` and `started` are seconds since the epoch; `started` is None while the request waits. `queue` is the index of the queue in
    which it waits or has waited; -1 if it found a free seat.
    """

    seats: "QueueSet"
    request: Request
    flow_schema: str
    distinguisher: str
    arrived: float
    started: float | None
    queue: int = -1

    def __enter__(self) -> None:
        """The request has its seat already."""

    def __exit__(self, *_: object) -> None:
        del self.seats.tickets[self]
        self.seats.leave()


class QueueSet(Struct):
    """`queuing` is None where what finds no seat is rejected at once. Belongs to one event loop.

    `tickets` are the requests that have a seat or wait for one, in the order of their arrival. `dispatched`, `rejected`, `timed_out` and
    `cancelled` count what became of all requests so far.
    """

    limit: int
    queuing: Queuing | None = None
    in_use: int = 0
    waiting: int = 0
    tickets: dict[Ticket, None] = field(default_factory=dict)
    dispatched: int = 0
    rejected: int = 0
    timed_out: int = 0
    cancelled: int = 0
    _queues: dict[int, deque[asyncio.Future[None]]] = field(default_factory=dict)
    _enqueued: int = 0

    def take(self) -> bool:
        """Takes a seat and returns true if a seat is free and no earlier request waits for it."""
        if self.in_use < self.limit and not self.waiting:
            self.in_use += 1
            return True
        return False

    def __enter__(self) -> None:
        """For a request that has a seat already: leaving the context gives it back."""

    def __exit__(self, *_: object) -> None:
        self.leave()

    def leave(self) -> None:
        """Gives a seat back; those who wait get it, queue after queue in turn, the eldest of a queue first."""
        self.in_use -= 1
        if self.waiting:
            self._dispatch()

    @property
    def lengths(self) -> Mapping[int, int]:
        """The number of requests in each queue in which some wait, by the queue's index."""
        return {index: len(queue) for index, queue in self._queues.items()}

    def resize(self, limit: int, queuing: Queuing | None) -> None:
        """New limits; who waits already goes on waiting."""
        self.limit, self.queuing = limit, queuing
        self._dispatch()

    async def wait(self, entropy: int, timeout: float, ticket: Ticket | None = None) -> bool:
        """A seat, after a while; False when the flow's queues are full or `timeout` seconds are over. Notes the queue in the ticket."""
        queuing = self.queuing
        if queuing is None:
            return False
        hand = deal(entropy, queuing.queues, queuing.hand_size)
        turn = self._enqueued % len(hand)  # so that flows that share a queue do not always prefer it
        self._enqueued += 1
        number = min(hand[turn:] + hand[:turn], key=lambda index: len(self._queues.get(index, ())))
        if len(self._queues.get(number, ())) >= queuing.queue_length_limit:
            return False
        if ticket is not None:
            ticket.queue = number
        queue = self._queues.setdefault(number, deque())
        seat: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        queue.append(seat)
        self.waiting += 1
        try:
            async with asyncio.timeout(timeout):
                await seat
        except TimeoutError:
            return self._withdraw(number, seat)
        except asyncio.CancelledError:
            if self._withdraw(number, seat):
                self.leave()
            raise
        return True

    def _withdraw(self, number: int, seat: asyncio.Future[None]) -> bool:
        """Stops waiting. True if the seat was given in this very moment."""
        if seat.done() and not seat.cancelled():
            return True
        queue = self._queues.get(number)
        if queue is not None and seat in queue:
            queue.remove(seat)
            self.waiting -= 1
            if not queue:
                del self._queues[number]
        return False

    def _dispatch(self) -> None:
        while self.waiting and self.in_use < self.limit:
            number = next(iter(self._queues))
            queue = self._queues.pop(number)
            seat = queue.popleft()
            self.waiting -= 1
            if queue:
                self._queues[number] = queue  # again, behind the others
            if not seat.done():  # else its request has just been cancelled
                self.in_use += 1
                seat.set_result(None)
