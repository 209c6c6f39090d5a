"""The probes of a container: their times and results. Pure.

A probe runs at each multiple of its period after the container's start, from initialDelaySeconds on (upstream's
workers begin with the
pod, a moment before its containers, which comes to the same). An unscripted probe succeeds before its first run.

Upstream: pkg/kubelet/prober/{worker,prober}.go; texts of pkg/probe/{http,tcp,grpc,exec}.
"""

import math
from collections.abc import Iterator
from typing import Final, NamedTuple

from msgspec import Struct

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.nodes.behaviour import ContainerBehaviour

STARTUP: Final = "startup"
READINESS: Final = "readiness"
LIVENESS: Final = "liveness"
_HARDLY: Final = 1e-6


class Failure(NamedTuple):
    """The failure of a probe: its time (seconds since the epoch), type and message."""

    at: float
    kind: str
    message: str


class Killed(NamedTuple):
    """When a probe has failed so often that its container is stopped."""

    at: float
    kind: str


class _No(NamedTuple):
    """A time in which a probe fails. `exact`: success at its end counts at that moment, without another run."""

    begins: float
    ends: float
    message: str
    exact: bool = False


class _Probe(Struct, frozen=True):
    """Times in seconds after the container's start; `first`: when it is asked first."""

    period: float
    first: float
    failures: int
    successes: int
    noes: tuple[_No, ...] = ()

    def asked(self, at: float) -> float:
        """The first time from then on."""
        return max(self.first, math.ceil(at / self.period - _HARDLY) * self.period) if at < math.inf else math.inf

    def counts(self, no: _No) -> float:
        """When it has failed often enough; never where it says yes before."""
        last = self.asked(no.begins) + (self.failures - 1) * self.period
        return last if last < no.ends else math.inf

    def passes(self, no: _No) -> float:
        """When it has said yes often enough after that."""
        return no.ends if no.exact else self.asked(no.ends) + (self.successes - 1) * self.period

    def is_initial(self, no: _No) -> bool:
        """Reports whether the probe has never succeeded before."""
        return no.begins <= self.first

    def failing(self, after: float, until: float) -> Iterator[tuple[float, str]]:
        """Yields the probe's failures after `after` and until `until`: time and message."""
        for no in self.noes:
            at = self.asked(max(no.begins, after))
            while at <= until and at < no.ends:
                if at > after + _HARDLY:
                    yield at, no.message
                at += self.period

    def next_failure(self, after: float) -> float:
        """Infinity: it says yes from then on."""
        times = (self.asked(max(no.begins, after + 2 * _HARDLY * self.period)) for no in self.noes)
        return min((at for at, no in zip(times, self.noes, strict=True) if at < no.ends), default=math.inf)


class Probes:
    """The probes of a run of a container, which began at `since` (seconds since the epoch, as all times here)."""

    def __init__(self, spec: Object, behaviour: ContainerBehaviour, since: float, address: str = "") -> None:
        self._spec = spec
        self._since = since
        self._address = address
        self._ready_after = math.inf if behaviour.ready_after is None else behaviour.ready_after
        started_after = math.inf if behaviour.started_after is None else behaviour.started_after
        self._startup = self._probe(STARTUP, behaviour, 0.0, (0.0, started_after))
        self._started = self._starts(self._startup) if self._startup else 0.0
        self._readiness = self._probe(READINESS, behaviour, self._started, (0.0, self._ready_after))
        unhealthy = math.inf if behaviour.unhealthy_after is None else behaviour.unhealthy_after
        self._liveness = self._probe(LIVENESS, behaviour, self._started, (unhealthy, math.inf))

    @property
    def started_at(self) -> float:
        """The time when the startup probe succeeds: the start without one, infinity for never."""
        return self._since + self._started

    def is_ready(self, now: float) -> bool:
        """Reports whether its readiness probe says so; a container without one is ready when its script wants that, which is at once if the
        script doesn't say."""
        at, probe = now - self._since, self._readiness
        if at < self._started:
            return False
        if probe is None:
            return at >= self._ready_after
        return not any(
            (0.0 if probe.is_initial(no) else probe.counts(no)) <= at < probe.passes(no) for no in probe.noes
        )

    def changes_after(self, now: float) -> Iterator[float]:
        """When it starts, becomes ready, or isn't any more."""
        times = [self._started]
        if (probe := self._readiness) is not None:
            times += [at for no in probe.noes for at in (probe.counts(no), probe.passes(no))]
        else:
            times.append(self._ready_after)
        return (self._since + at for at in times if now - self._since < at < math.inf)

    @property
    def killed(self) -> Killed | None:
        """Returns the failure that kills the container, or None."""
        for kind, probe, end in ((STARTUP, self._startup, self._started), (LIVENESS, self._liveness, math.inf)):
            at = min((probe.counts(no) for no in probe.noes), default=math.inf) if probe is not None else math.inf
            if at < end:
                return Killed(self._since + at, kind)
        return None

    def failures(self, after: float, until: float) -> Iterator[Failure]:
        """After `after`, and no later than `until`."""
        for kind, probe, end in self._asked():
            for at, message in probe.failing(after - self._since, min(until - self._since, end)):
                yield Failure(self._since + at, kind, message)

    def next_failure(self, now: float) -> float | None:
        """When one says no next."""
        times = ((probe.next_failure(now - self._since), end) for _, probe, end in self._asked())
        return min((self._since + at for at, end in times if at <= end and at < math.inf), default=None)

    def _asked(self) -> Iterator[tuple[str, _Probe, float]]:
        """Each, and until when."""
        killed = self.killed
        end = math.inf if killed is None else killed.at - self._since
        for kind, probe, last in (
            (STARTUP, self._startup, min(end, self._started)),
            (READINESS, self._readiness, end),
            (LIVENESS, self._liveness, end),
        ):
            if probe is not None:
                yield kind, probe, last

    @staticmethod
    def _starts(probe: _Probe) -> float:
        waits = [no for no in probe.noes if probe.is_initial(no)]
        started = max((probe.passes(no) for no in waits), default=0.0)
        return math.inf if any(probe.counts(no) < started for no in waits) else started

    def _probe(
        self, kind: str, behaviour: ContainerBehaviour, started: float, silent: tuple[float, float]
    ) -> _Probe | None:
        """`silent`: when it says no by the container's own fields."""
        spec = self._spec.get(f"{kind}Probe")
        if spec is None:
            return None
        period = float(spec.get("periodSeconds") or 10)
        delay = max(float(spec.get("initialDelaySeconds") or 0), period, started)
        first = math.ceil(delay / period - _HARDLY) * period if delay < math.inf else math.inf
        probe = _Probe(period, first, spec.get("failureThreshold") or 3, spec.get("successThreshold") or 1)
        said = _said(spec, self._spec, self._address)
        noes = [_No(*silent, said, exact=True)] if silent[0] < silent[1] else []
        if (script := behaviour.probes.get(kind)) is not None:
            ends = math.inf if script.until is None else script.until
            if script.times is not None:
                ends = min(ends, probe.asked(script.after) + (script.times - 0.5) * period)
            noes.append(_No(script.after, ends, script.message or said))
        return _Probe(period, first, probe.failures, probe.successes, tuple(noes))


def _said(probe: Object, spec: Object, address: str) -> str:
    """Returns the default message of a failure."""
    if "httpGet" in probe:
        return "HTTP probe failed with statuscode: 500"
    if (socket := probe.get("tcpSocket")) is not None:
        host = socket.get("host") or address
        shown = f"[{host}]" if ":" in host else host
        return f"dial tcp {shown}:{_number(socket['port'], spec)}: connect: connection refused"
    if "grpc" in probe:
        return 'service unhealthy (responded with "NOT_SERVING")'
    return ""


def _number(port: int | str, spec: Object) -> int | str:
    """Returns the number of a port that may be given by name."""
    named = (known["containerPort"] for known in spec.get("ports") or () if known.get("name") == port)
    return next(named, port)
