"""A case: a scenario is run with an operator, unperturbed or with one perturbation."""

import threading
import time
from collections.abc import Sequence
from typing import Final

from msgspec import Struct, field

from fakeapiserver.cluster.cluster import Cluster
from fakeapiserver.controller_manager.manager import NotSettled
from fakeapiserver.evidence.entry import RequestEntry
from fakeapiserver.evidence.requests import RequestList
from fakeapiserver.sweep import states
from fakeapiserver.sweep.conductor import Conductor
from fakeapiserver.sweep.perturbation import Perturbation
from fakeapiserver.sweep.process import PANICS, Command, OperatorProcess
from fakeapiserver.sweep.scenario import Scenario
from fakeapiserver.sweep.states import Names, State

USER: Final = "operator-under-test"
USERS: Final = f"{USER}-*"
_KEPT_REQUESTS: Final = 20_000
_MAX_RESTARTS: Final = 5
_PAUSE: Final = 0.05


class Timing(Struct, frozen=True):
    """Real seconds. `quiet`: for which an operator at rest sends nothing. `start`: until it has sent its first request. `patience`: until
    the learnt state must be reached after a step."""

    quiet: float = 0.3
    start: float = 30.0
    patience: float = 10.0


class Target(Struct, frozen=True):
    """The operator and the scenario that are swept, and how long things may take."""

    command: Command
    scenario: Scenario
    timing: Timing = Timing()


class Expected(Struct, frozen=True):
    """The state after each step without a perturbation, and the fields that differ by chance."""

    states: Sequence[State]
    noise: frozenset[str] = frozenset()


class Run(Struct):
    """The record of a run. `writes` are the operator's, `states` those after each step, `problems` what no run should have.

    - `known`: whether the operator could know the state after each step. `reached`: whether the perturbation took place.
    - `marks`: the number of requests at the end of each step. `uids`: of the objects, before and after what a perturbation does then.
    - `watched`: the resources that the operator watches."""

    writes: list[RequestEntry] = field(default_factory=list)
    requests: RequestList = RequestList(())
    states: list[State] = field(default_factory=list)
    known: list[bool] = field(default_factory=list)
    marks: list[int] = field(default_factory=list)
    uids: list[dict[str, str]] = field(default_factory=list)
    names: Names = field(default_factory=lambda: Names({}))
    problems: list[str] = field(default_factory=list)
    output: str = ""
    reached: bool = True
    seconds: float = 0.0
    watched: Sequence[str] = ()


def run(target: Target, perturbation: Perturbation | None = None, expected: Expected | None = None) -> Run:
    """Runs the scenario once. Raises what the cluster raises if it can't be started, and OSError if there is no such program."""
    began = time.monotonic()
    process = OperatorProcess(target.command)
    try:
        with Cluster(
            nodes=target.scenario.nodes, crds=[*target.scenario.crds], kept_requests=_KEPT_REQUESTS
        ) as cluster:
            case = _Case(target, cluster, process, perturbation, expected)
            try:
                case.play()
            finally:
                case.conductor.stop()
                process.kill()
            return case.result(time.monotonic() - began)
    finally:
        process.close()


class _Case:
    """The state of a run."""

    def __init__(
        self,
        target: Target,
        cluster: Cluster,
        process: OperatorProcess,
        perturbation: Perturbation | None,
        expected: Expected | None,
    ) -> None:
        self._target = target
        self._timing = target.timing
        self._cluster = cluster
        self._process = process
        self._expected = expected
        self._run = Run()
        self._incarnations = 0
        self._names = Names({})
        self._lock = threading.Lock()
        # The keys of the objects in a fresh cluster.
        self._fresh = {stored.key for _, stored, _ in states.objects_of(cluster.snapshot())}
        self.conductor = Conductor(cluster, perturbation, self._stop, self._start, USERS)

    def play(self) -> None:
        scenario = self._target.scenario
        if scenario.objects:
            self._cluster.apply(scenario.objects, namespace=scenario.namespace)
        self.conductor.begin()
        self._start()
        self._rest(-1)
        for number, step in enumerate(scenario.steps):
            self.conductor.before_step(number)
            try:
                step.run(self._cluster)
            except Exception as error:
                self._run.problems.append(f"step {number + 1} ({step.title}) fails: {_line(error)}")
            self._rest(number)
            self._run.uids.append(states.uids_of(self._cluster.snapshot(), self._fresh))
            if self.conductor.after_step(number):
                self._rest(number)
            if self.conductor.catch_up():
                self._rest(number)
            self._run.states.append(self._state())
            self._run.known.append(not self.conductor.holds)
            self._run.uids.append(states.uids_of(self._cluster.snapshot(), self._fresh))
            self._run.marks.append(self._cluster.requests.mark())
            if not self._process_is_well():
                break
        self._finish()

    def result(self, seconds: float) -> Run:
        run = self._run
        run.seconds = seconds
        run.reached = self.conductor.reached
        run.output = self._process.output()
        return run

    def _finish(self) -> None:
        run, cluster = self._run, self._cluster
        run.requests = cluster.requests.all().by(user=USERS)
        run.writes = list(run.requests.writes)
        run.names = self._names
        run.watched = sorted({_resource(entry) for entry in run.requests.watches if entry.resource != "leases"})

    # ------------------------------------------------------------ the operator

    def _start(self) -> None:
        """Starts the operator as another user than before, so that faults can be bound to one start."""
        with self._lock:
            self._incarnations += 1
            self._process.start(self._cluster.user(f"{USER}-{self._incarnations}", groups=["system:masters"]))

    def _stop(self) -> None:
        """Kills the operator. Its leases run out, as they would in time."""
        with self._lock:
            self._process.kill()
        for entry in self._cluster.requests.all().by(user=USERS).where(resource="leases"):
            if entry.verb in ("create", "update", "patch") and entry.status < 300:
                self._cluster.delete(f"leases/{entry.name}", namespace=entry.namespace, ignore_not_found=True)

    def _wait_for_first_request(self) -> None:
        deadline = time.monotonic() + self._timing.start
        while not len(self._cluster.requests.all().by(user=f"{USER}-{self._incarnations}")):
            if self._process.ended is not None and self._incarnations > 1:
                return
            if self._process.ended is not None or time.monotonic() > deadline:
                ended = (
                    f"it ended with status {self._process.ended}"
                    if self._process.ended is not None
                    else "it sends no requests"
                )
                raise OSError(f"the operator doesn't start: {ended}; its last lines:\n{_tail(self._process.output())}")
            time.sleep(_PAUSE)

    def _process_is_well(self) -> bool:
        """Starts an operator again that has ended by itself, as a kubelet does, a few times."""
        status = self._process.ended
        if status is None:
            return True
        if self._process.starts > _MAX_RESTARTS:
            self._run.problems.append("the operator ends again and again")
            return False
        if self._expected is None:
            raise OSError(
                f"the operator ended with status {status} unperturbed; its last lines:\n{_tail(self._process.output())}"
            )
        self._stop()
        self._start()
        return True

    # ------------------------------------------------------------ rest

    def _rest(self, number: int) -> None:
        """Returns when nothing moves, and, where it is known, the learnt state of this step is there or the patience is over."""
        scenario = self._target.scenario
        is_last = number == len(scenario.steps) - 1
        is_known = self._expected is not None and number >= 0 and not self.conductor.holds
        wanted = self._expected.states[number] if self._expected is not None and is_known else None
        deadline = time.monotonic() + self._timing.patience
        problem = ""
        while True:
            self._process_is_well()
            problem = self._settle()
            if self.conductor.finish() or self._process.ended is not None:
                continue
            self._learn_names()
            is_there = wanted is None or not states.differences(wanted, self._state(), self._noise, scenario.ignore)
            if (is_there and not problem) or time.monotonic() > deadline:
                break
            time.sleep(_PAUSE)
        if problem and is_last:
            self._run.problems.append(problem)

    def _settle(self) -> str:
        """Waits until nothing moves; returns what doesn't come to rest."""
        self._wait_for_first_request()
        try:
            quiet = self._timing.quiet + self.conductor.delay
            self._cluster.settle(timeout=self._timing.patience, with_=USERS, quiet=quiet)
        except NotSettled as error:
            return "" if self._process.ended is not None else f"the operator doesn't come to rest: {_line(error)}"
        return ""

    @property
    def _noise(self) -> frozenset[str]:
        return self._expected.noise if self._expected is not None else frozenset()

    def _state(self) -> State:
        return states.state_of(self._cluster.snapshot(), self._names, self._fresh)

    def _learn_names(self) -> None:
        self._names.by_text.update(states.names_of(states.objects_of(self._cluster.snapshot())).by_text)


def panics(output: str) -> list[str]:
    """The first lines of the crashes that an operator has written."""
    return [found[0].strip()[:300] for found in PANICS.finditer(output)]


def _resource(entry: RequestEntry) -> str:
    return f"{entry.resource}.{entry.group}" if entry.group else entry.resource


def _line(error: BaseException) -> str:
    return " ".join((str(error).splitlines() or [type(error).__name__])[0].split())[:300]


def _tail(output: str) -> str:
    return "\n".join(output.splitlines()[-8:])
