"""`cluster.eventually(check)`: until an assertion holds, on the cluster's clock."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final, TypeVar

from fakeapiserver.apimachinery.duration import parse_duration
from fakeapiserver.clock import AdjustableClock
from fakeapiserver.server.local import LocalServer
from fakeapiserver.storage.keys import ROOT

T = TypeVar("T")

# Seconds after which a check runs again without an event, since it may read something outside of the cluster.
_LOOK: Final = 0.5
_NOT_FOUND: Final = 404


def seconds_of(timeout: float | str) -> float:
    """Raises ValueError unless it is a number of seconds or a duration such as "30s"."""
    try:
        seconds = parse_duration(timeout) if isinstance(timeout, str) else float(timeout)
    except (TypeError, ValueError):
        raise ValueError(f'timeout must be seconds or a duration such as "30s", not {timeout!r}') from None
    if seconds < 0:
        raise ValueError(f"timeout must be at least 0 seconds, not {timeout!r}")
    return seconds


class Failed(Exception):
    """A check that doesn't hold yet; `error` is what the caller gets if it never holds."""

    def __init__(self, error: Exception) -> None:
        super().__init__(error)
        self.error = error

    def after(self, timeout: float, changes: "Changes") -> Exception:
        """Returns the error with a note about the time that has passed."""
        clock = "the cluster's time, which was moved on" if changes.has_moved else "time"
        self.error.add_note(f"This didn't hold within {timeout:g} seconds of {clock}.")
        return self.error


def run(check: Callable[[], T | Awaitable[T]]) -> T:
    """Returns what the check returns. Raises Failed if it isn't fulfilled yet, and what else it raises."""
    try:
        result = check()
    except Exception as error:
        raise _failed(error) from error
    if isinstance(result, Awaitable):
        if inspect.iscoroutine(result):
            result.close()
        raise ValueError(
            "the check is a coroutine function: use it with the `async with Cluster()` face, or a function"
        )
    return _checked(check, result)


async def run_async(check: Callable[[], T | Awaitable[T]]) -> T:
    """Like `run`, for functions and coroutine functions."""
    try:
        result = check()
        value = await result if isinstance(result, Awaitable) else result
    except Exception as error:
        raise _failed(error) from error
    return _checked(check, value)


def _checked(check: Callable[[], object], result: T) -> T:
    if result is None or result:
        return result
    name = getattr(check, "__name__", repr(check))
    raise Failed(AssertionError(f"{name} returned {result!r}"))


def _failed(error: Exception) -> Exception:
    """Failed if the check may hold later, else the error itself."""
    if isinstance(error, AssertionError | LookupError) or _is_not_found(error):
        return Failed(error)
    return error


def _is_not_found(error: Exception) -> bool:
    """Reports whether the error of any client means that an object doesn't exist."""
    status = getattr(error, "status", None)
    found = status.get("code") if isinstance(status, dict) else getattr(status, "code", status)
    return _NOT_FOUND in (found, getattr(getattr(error, "response", None), "status_code", None))


class Changes:
    """The moments at which a check may have another outcome.

    Call order, in the server's event loop: `await begin()`, `await wait()` after each failure, `await end()`."""

    def __init__(self, server: LocalServer, timeout: float, settle: Callable[[], Awaitable[None]]) -> None:
        self._server = server
        self._settle = settle
        assert server.api is not None
        self._api = server.api
        self._timeout = timeout
        self.has_moved = False

    async def begin(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._until = self._server.clock.monotonic() + self._timeout
        self._deadline = self._loop.time() + self._timeout
        self._watcher = self._api.storage.watch(f"{ROOT}/")
        self._answered = self._api.request_log.last if self._api.request_log is not None else 0

    async def end(self) -> None:
        self._watcher.close()

    async def wait(self) -> bool:
        """Returns True as soon as something was written, a client was answered, or time has moved; False if the time is up.

        Moves a clock that stands still to the next time at which something is due, unless a client outside of this process has a watch
        or a request open."""
        clock = self._server.clock
        if isinstance(clock, AdjustableClock) and clock.stopped and not self._has_clients:
            await self._settle()
            return await self._has_changed(0.0) or await self._move(clock)
        left = self._deadline - self._loop.time()
        if left <= 0:
            return False
        await self._has_changed(min(left, _LOOK))
        return True

    @property
    def _has_clients(self) -> bool:
        log = self._api.request_log
        return bool(self._api.scopes.watches_of_clients) or (log is not None and bool(log.in_flight))

    async def _move(self, clock: AdjustableClock) -> bool:
        left = self._until - clock.monotonic()
        if left <= 0:
            return False
        due = clock.next_due
        await self._api.advance(left if due is None else min(due, left))
        self.has_moved = True
        return True

    async def _has_changed(self, seconds: float) -> bool:
        """Waits so many seconds for a write or an answer."""
        log = self._api.request_log
        if log is None:
            return bool(await self._watcher.next_batch(seconds))
        written = asyncio.ensure_future(self._watcher.next_batch(seconds))
        answered = asyncio.ensure_future(log.wait())
        try:
            await asyncio.sleep(0)
            if log.last == self._answered:
                await asyncio.wait((written, answered), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            has_changed = log.last != self._answered or (written.done() and bool(written.result()))
            self._answered = log.last
            return has_changed
        finally:
            for task in (written, answered):
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task


async def until_it_holds(
    check: Callable[[], T | Awaitable[T]],
    server: LocalServer,
    timeout: float | str,
    settle: Callable[[], Awaitable[None]],
) -> T:
    """Calls the check in the server's event loop until it holds."""
    seconds = seconds_of(timeout)
    changes = Changes(server, seconds, settle)
    await changes.begin()
    try:
        while True:
            try:
                return await run_async(check)
            except Failed as failed:
                if not await changes.wait():
                    raise failed.after(seconds, changes) from None
    finally:
        await changes.end()
