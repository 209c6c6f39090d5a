"""The periodic look at what waits."""

from collections.abc import Callable

from fakeapiserver.clock import Clock
from fakeapiserver.component_helpers.controller_context import EVERYTHING
from fakeapiserver.controller_runtime.event import DeleteEvent, Event, object_of
from fakeapiserver.controller_runtime.handler import Queue
from fakeapiserver.controller_runtime.reconcile import Request, Result
from fakeapiserver.controllers.persistentvolume_binder.binder import (
    waits,
)


class Resync:
    """Looks at everything now and then while something waits, as what is waited for may have come; upstream always does, at the
    same times."""

    def __init__(self, look: Callable[[], bool], clock: Clock, period: float) -> None:
        self._look = look
        self._clock = clock
        self._start = clock.monotonic()
        self._period = period

    def changed(self, event: Event, queue: Queue) -> None:
        """A claim or a volume."""
        if not isinstance(event, DeleteEvent) and waits(object_of(event)):
            queue.add_after(EVERYTHING, self._until_next())

    async def reconcile(self, request: Request) -> Result | None:
        assert request == EVERYTHING
        return Result(requeue_after=self._until_next()) if self._look() else None

    def _until_next(self) -> float:
        return self._period - (self._clock.monotonic() - self._start) % self._period
