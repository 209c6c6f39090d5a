"""The effort of a request: its deadline, and long computations, which run in threads so that no other request waits for them.

Python's threads take turns of 5 ms, so that the event loop goes on while a thread decodes, merges or validates a large object. Such a
computation must be pure: it works on objects of its own request alone. `computed` starts small ones in the event loop; one that turns out
to be expensive, since it `spend`s more than its allowance, is begun again in a thread. Where texts are only stored, keys and items count
instead of bytes (`weight`).

Upstream: goroutines, and the deadline of Go's request context.
"""

import asyncio
import gc
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import Context, copy_context
from functools import partial
from threading import Lock, Thread
from typing import Final, Generic, TypeVar
from weakref import WeakKeyDictionary

from fakeapiserver.apimachinery.allowance import LARGE, Limits, TooExpensive, limits
from fakeapiserver.apimachinery.depth import interrupt
from fakeapiserver.apimachinery.errors import status_error

T = TypeVar("T")

# What a request may `spend` in the event loop, about ten milliseconds: the unit is that of the cost of rules, some 0.06 us.
_ALLOWANCE: Final = 160_000
# Threads of one event loop that compute at the same time: each may keep the event loop waiting for one turn.
_THREADS: Final = 2
_TIMED_OUT: Final = "Timeout: request did not complete within requested timeout - context deadline exceeded"


class EndsAfter:
    """Limits the calls and the computations within the block to so many seconds. A class, since every write comes through here."""

    __slots__ = ("_seconds", "_token")

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def __enter__(self) -> None:
        self._token = limits.set(Limits(asyncio.get_running_loop().time() + self._seconds, _ALLOWANCE))

    def __exit__(self, *_: object) -> None:
        limits.reset(self._token)


@contextmanager
def kept_in_loop(below: int) -> Iterator[None]:
    """Keeps computations of the server's own within the block in the event loop, with objects of less than so many bytes."""
    token = limits.set(Limits(math.inf, math.inf, below))
    try:
        yield
    finally:
        limits.reset(token)


def weight(value: bytes) -> int:
    """Returns as how many bytes JSON counts whose texts are stored and not parsed: keys and items count, long texts next to nothing.

    The shortest items are `0,`, `{},` and `"a":"",`."""
    size = len(value)
    if size < LARGE:
        return size
    # To leave out a few bytes is faster than to count them.
    items, quotes = (size - len(value.replace(mark, b"", LARGE)) for mark in (b",", b'"'))
    return min(size, 4 * items + 2 * quotes)


def told_timeout(seconds: float) -> float:
    """`seconds`, or what is left of the request's time if that is less: a whole number then, rounded up."""
    left = limits.get().end - asyncio.get_running_loop().time()
    return seconds if left >= seconds else float(max(math.ceil(left), 1))


async def computed(step: Callable[[], T], size: int = 0) -> T:
    """Returns the result of `step`, a pure function that may be called twice, with objects of about `size` bytes.

    Raises StatusError 504 after the request's deadline, and what `step` raises."""
    mine = limits.get()
    if mine.keep(size):
        mine.counts = True
        try:
            return step()
        except TooExpensive:
            pass
        finally:
            mine.counts = False
    return await _in_thread(step)


async def offloaded(step: Callable[[], T], size: int) -> T:
    """Does what `computed` does, with a function that may be called only once, since it changes the object."""
    return step() if limits.get().keep(size) else await _in_thread(step)


async def _in_thread(step: Callable[[], T]) -> T:
    end = limits.get().end
    try:
        async with asyncio.timeout_at(None if math.isinf(end) else end), _slots():
            return await _Computation(step, end).result()
    except TimeoutError:
        raise status_error(504, "Timeout", _TIMED_OUT) from None


_semaphores: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore]] = WeakKeyDictionary()


def _slots() -> asyncio.Semaphore:
    loop = asyncio.get_running_loop()
    semaphore = _semaphores.get(loop)
    if semaphore is None:
        semaphore = _semaphores[loop] = asyncio.Semaphore(_THREADS)
    return semaphore


@contextmanager
def without_collections() -> Iterator[None]:
    """Garbage isn't collected meanwhile: where very many objects are made, everything would wait for that again and again."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class _Interrupted(BaseException):
    """Raised in a thread whose result isn't needed any more."""


class _Computation(Generic[T]):
    """A call in a thread of its own."""

    def __init__(self, step: Callable[[], T], end: float) -> None:
        self._step = step
        self._end = end
        self._loop = asyncio.get_running_loop()
        self._outcome: asyncio.Future[T] = self._loop.create_future()
        self._lock = Lock()
        self._has_ended = False
        self._thread = Thread(target=self._run, args=(copy_context(),), name="computation", daemon=True)

    async def result(self) -> T:
        """Returns what the call returns. When the caller is cancelled, the call is interrupted, and has ended before this raises
        CancelledError: until then the request keeps its seat."""
        self._thread.start()
        try:
            return await asyncio.shield(self._outcome)
        except asyncio.CancelledError:
            self._interrupt()
            while not self._outcome.done():
                with suppress(asyncio.CancelledError):
                    await asyncio.wait((self._outcome,))
            raise
        finally:
            # An error holds these frames. If they held it, all that the call has made would be garbage that only a collection frees.
            del self._outcome

    def _run(self, context: Context) -> None:
        try:
            context.run(limits.set, Limits(self._end, math.inf))
            settle = self._called(context)
            with self._lock:
                self._has_ended = True
            _nothing()
        except _Interrupted:  # there is only one
            settle = self._cancel
        with suppress(RuntimeError):  # the event loop is closed
            self._loop.call_soon_threadsafe(settle)
        del settle  # as in `result`

    def _called(self, context: Context) -> Callable[[], None]:
        try:
            with without_collections():
                return partial(self._outcome.set_result, context.run(self._step))
        except _Interrupted:
            raise
        except BaseException as error:
            return partial(self._outcome.set_exception, error)

    def _cancel(self) -> None:
        self._outcome.cancel()

    def _interrupt(self) -> None:
        with self._lock:
            if not self._has_ended:
                interrupt(self._thread, _Interrupted)


def _nothing() -> None:
    """Python raises what another thread has set at the next call, at the latest here."""
