"""The work of controllers in a recording: a WorkObserver."""

from time import perf_counter
from typing import Final

from fakeapiserver.client.causes import Causes, Load
from fakeapiserver.evidence.timeline.recording import Recording
from fakeapiserver.evidence.timeline.records import Controller, Queue, Reconcile

# Seconds between two records of a queue.
_PERIOD: Final = 0.25
_LONGEST_TEXT: Final = 500


class Work:
    """Records the reconciles and the queues of controllers that run in this process."""

    def __init__(self) -> None:
        self.recording: Recording
        self._count = 0
        # When each reconcile in progress began.
        self._running: dict[int, float] = {}
        self._loads: dict[str, tuple[float, tuple[int, int, int]]] = {}

    def is_running(self, number: int) -> bool:
        """Reports whether the reconcile with this number is in progress."""
        return number in self._running

    def skip_to(self, number: int) -> None:
        """Lets numbers up to this one be those of an earlier recording."""
        self._count = max(self._count, number)

    def began(self) -> int:
        """See WorkObserver."""
        self._count += 1
        self._running[self._count] = perf_counter()
        return self._count

    def ended(self, number: int, controller: str, key: str, causes: Causes, error: str, again: float | None) -> None:
        """See WorkObserver."""
        seconds = perf_counter() - self._running.pop(number)
        self.recording.add(
            Reconcile(
                id=number,
                controller=controller,
                key=key,
                at=round(self.recording.at() - seconds, 6),
                ms=round(1000 * seconds, 3),
                waited=round(1000 * causes.waited, 3),
                causes=causes.revisions,
                after=causes.after,
                error=error[:_LONGEST_TEXT],
                again=again,
            )
        )

    def loaded(self, controller: str, queue: Load) -> None:
        """See WorkObserver. Some changes are left out, but not the last one, after which the queue is at rest."""
        now = perf_counter()
        when, former = self._loads.get(controller, (0.0, (0, 0, 0)))
        load = ready, delayed, processing = len(queue), queue.waiting, queue.processing
        if load == former or (now - when < _PERIOD and (ready or processing)):
            return
        self._loads[controller] = now, load
        self.recording.add(
            Queue(at=self.recording.at(), controller=controller, ready=ready, delayed=delayed, processing=processing)
        )

    def mode_changed(self, controller: str, mode: str) -> None:
        """See WorkObserver."""
        self.recording.add(Controller(at=self.recording.at(), name=controller, mode=mode))
