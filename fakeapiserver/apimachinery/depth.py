"""Values of any depth: where a thread's stack ends, a fresh one goes on.

Python ends after a thousand calls within each other, but objects have up to 10,000 levels. That limit is of the whole process, which
dies where the stack of C ends before; so it stays as it is. Functions that call themselves for what a value holds catch RecursionError
and call themselves again with `continued`, in a new thread, whose stack is empty. That costs nothing as long as there is room.
"""

import ctypes
import sys
from collections.abc import Callable, Generator, Iterator
from contextvars import ContextVar, copy_context
from threading import Event, Thread
from typing import Any, Final, ParamSpec, TypeVar

from fakeapiserver.apimachinery.allowance import spend

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

# A function takes up to five calls for a level, and a stack holds some 900 of them.
_MOST_STACKS: Final = 128
# What it takes to start a thread and to wait for it.
_ROOM: Final = 40
# Seconds until a thread that waits sees that it was interrupted.
_TURN: Final = 0.05
_EXPENSIVE: Final = 10**9
_stacks: Final[ContextVar[int]] = ContextVar("stacks", default=1)


class TooDeep(Exception):
    """A value is deeper than any that can be sent. No RecursionError, since all calls within each other would try again."""


def continued(function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Calls a function on a fresh stack; the caller waits. It must bear being called again after a RecursionError in its midst.

    In the event loop, `computed` begins again in a thread, and so does all that is computed for this request from then on.
    Raises what the function raises, RecursionError if this stack has no room left to start another one, and TooDeep."""
    _make_sure_of_room(_ROOM)
    spend(_EXPENSIVE)
    count = _stacks.get()
    if count == _MOST_STACKS:
        raise TooDeep
    results: list[R] = []
    errors: list[BaseException] = []
    context = copy_context()
    context.run(_stacks.set, count + 1)

    def call() -> None:
        try:
            results.append(context.run(function, *args, **kwargs))
        except BaseException as error:
            errors.append(error)

    thread = Thread(target=call, name="deeper", daemon=True)
    try:
        thread.start()
        while thread.is_alive():
            thread.join(_TURN)
    except BaseException as error:
        if thread.ident:
            interrupt(thread, type(error))
            # Thread.join of Python 3.11 takes a thread for ended if an error has come to the caller while it waited.
            while not (results or errors) and thread.ident in sys._current_frames():
                Event().wait(_TURN)
        raise
    if errors:
        raise errors.pop()
    return results.pop()


def interrupt(thread: Thread, error: type[BaseException]) -> None:
    """Raises an error in another thread, at its next step in Python."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident or 0), ctypes.py_object(error))


def _make_sure_of_room(calls: int) -> None:
    if calls:
        _make_sure_of_room(calls - 1)


# A generator of values, and of generators of the values that these hold.
Walk = Generator[T | Generator[Any, None, None], None, None]


def flattened(walk: Walk[T]) -> Iterator[T]:
    """Yields what a generator yields, with what the generators that it yields yield in their place."""
    walks = [walk]
    while walks:
        for item in walks[-1]:
            if isinstance(item, Generator):
                walks.append(item)
                break
            yield item
        else:
            walks.pop()
