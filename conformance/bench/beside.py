"""Work of a thread while something is measured."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def beside(look: Callable[[], object], pause: float) -> Iterator[None]:
    """Calls `look` after each `pause` seconds, in a thread, as long as the block runs. An error ends the thread alone."""
    stop = threading.Event()

    def work() -> None:
        while not stop.wait(pause):
            look()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
