"""Logs of containers, by their scripts (upstream: pkg/kubelet/kuberuntime/logs/logs.go). Pure."""

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Final

from msgspec import Struct

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.timestamp import rfc3339_micro, seconds_of
from fakeapiserver.component_helpers.streaming import KubeletError, LogOptions
from fakeapiserver.nodes.behaviour import Lines, Log
from fakeapiserver.nodes.commands import Process, restarted
from fakeapiserver.nodes.pod_lifecycle.context import Span

# The end in a status is rounded down to a second, and what was printed in that second belongs to the run.
_SECOND: Final = 0.999
_KINDS: Final = ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")


class Run(Struct, frozen=True):
    """A run of a container: the first has no restarts. Seconds since the epoch; `ended` is None while it runs."""

    restarts: int
    started: float
    ended: float | None


def run_of(pod: Object, container: str, spans: Mapping[tuple[str, int], Span], *, previous: bool) -> Run:
    """Returns the run whose log is requested, with its exact times. Raises KubeletError if there is no such run.

    Upstream: validateContainerLogStatus.
    """
    run = _run_of(pod, container, previous=previous)
    span = spans.get((container, run.restarts))
    if span is not None and 0 <= span.started - run.started < 1:
        return Run(run.restarts, span.started, None if run.ended is None else span.ended or run.ended + _SECOND)
    return run if run.ended is None else Run(run.restarts, run.started, run.ended + _SECOND)


def _run_of(pod: Object, container: str, *, previous: bool) -> Run:
    """Returns the run by the pod's status, in whole seconds."""
    name = pod["metadata"]["name"]
    status = status_of(pod, container)
    if status is None:
        raise KubeletError(400, f'container "{container}" in pod "{name}" is not available')
    state, restarts = status["state"], status["restartCount"]
    last = (status.get("lastState") or {}).get("terminated")
    if previous:
        if last is None:
            raise KubeletError(400, f'previous terminated container "{container}" in pod "{name}" not found')
        return _ended(restarts if "waiting" in state else restarts - 1, last)
    if (running := state.get("running")) is not None:
        return Run(restarts, seconds_of(running["startedAt"]) or 0.0, None)
    if (terminated := state.get("terminated")) is not None:
        return _ended(restarts, terminated)
    if last is not None:
        return _ended(restarts, last)
    reason = (state.get("waiting") or {}).get("reason", "")
    why = {
        "ErrImagePull": "image can't be pulled",
        "ImagePullBackOff": "trying and failing to pull image",
    }.get(reason, reason)
    raise KubeletError(400, f'container "{container}" in pod "{name}" is waiting to start: {why}')


def status_of(pod: Object, container: str) -> Object | None:
    """Returns a container's status, or None if the kubelet hasn't reported it yet."""
    status = pod.get("status") or {}
    statuses = (known for kind in _KINDS for known in status.get(kind) or () if known["name"] == container)
    return next(statuses, None)


def _ended(restarts: int, terminated: Object) -> Run:
    started = seconds_of(terminated["startedAt"]) or 0.0
    return Run(restarts, started, seconds_of(terminated["finishedAt"]) or started)


class Reader:
    """Reads a run's log once, from its beginning on."""

    def __init__(self, log: Log, run: Run, options: LogOptions) -> None:
        self._run = run
        self._options = options
        self._left = options.limit_bytes
        if isinstance(log, Process):
            lines: str | Lines = restarted(log, run.restarts).lines(run.started)
        else:
            lines = log(run.restarts) if callable(log) else log
        self._lines = _split(lines)
        self._next = next(self._lines, None)

    @property
    def next_at(self) -> float | None:
        """When the next line is printed; None: never."""
        return None if self._next is None else self._run.started + self._next[0]

    @property
    def is_full(self) -> bool:
        """No more bytes are wanted."""
        return self._left == 0

    def first(self, now: float) -> bytes:
        """Returns the log so far (or to its end), at most the requested number of last lines."""
        lines = deque(self._until(now), self._options.tail_lines)
        return self._limited(b"".join(lines))

    def further(self, now: float) -> bytes:
        """Returns the log since the last call."""
        return self._limited(b"".join(self._until(now)))

    def _until(self, now: float) -> Iterator[bytes]:
        since = self._options.since
        now = now if self._run.ended is None else self._run.ended
        while (at := self.next_at) is not None and at <= now:
            assert self._next is not None
            text = self._next[1]
            self._next = next(self._lines, None)
            if since is None or at >= since:
                stamp = f"{rfc3339_micro(at)[:-1]}000Z " if self._options.timestamps else ""
                yield f"{stamp}{text}\n".encode()

    def _limited(self, data: bytes) -> bytes:
        if self._left is None:
            return data
        data = data[: self._left]
        self._left -= len(data)
        return data


def _split(log: str | Lines) -> Iterator[tuple[float, str]]:
    """Yields the lines without their ends."""
    for after, text in [(0.0, log)] if isinstance(log, str) else log:
        lines = text.split("\n")
        if not lines[-1]:
            lines.pop()
        for line in lines:
            yield after, line
