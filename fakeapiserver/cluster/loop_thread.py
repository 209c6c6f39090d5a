"""An event loop in a thread of its own, and calls into it from other threads."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

T = TypeVar("T")
START_TIMEOUT: Final = 120.0  # against what hangs: on a busy machine a start takes many times its second


class LoopThread:
    """A daemon thread that runs an event loop of its own."""

    def __init__(self) -> None:
        self._loop = _new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="fakeapiserver", daemon=True)
        self._thread.start()

    def call(self, work: Callable[[], Coroutine[Any, Any, T]], timeout: float | None = None) -> T:
        """Runs `work` in the loop and returns its result. TimeoutError after `timeout` seconds; without one, `work` has to limit its
        own time. RuntimeError in the loop's own thread, which would wait for itself."""
        if threading.current_thread() is self._thread:
            raise RuntimeError(
                "a function that the cluster calls can't wait for the cluster: call this from the test's own thread"
            )
        done = asyncio.run_coroutine_threadsafe(work(), self._loop)
        try:
            return done.result(timeout)
        except TimeoutError:
            if done.done():  # it is the work's own
                raise
            done.cancel()
            raise TimeoutError(
                f"not done within {timeout:g} seconds: the machine is very busy, or something hangs"
            ) from None
        except KeyboardInterrupt:
            done.cancel()
            raise

    def stop(self) -> None:
        # Within the thread: the caller's own thread may have a running loop, as with Playwright's synchronous API.
        self.call(self._loop.shutdown_asyncgens)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


def _new_event_loop() -> asyncio.AbstractEventLoop:
    """uvloop's event loop where uvloop is installed, which is a third faster, and else asyncio's."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()
