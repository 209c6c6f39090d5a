"""A case: a scenario is run with an operator, unperturbed or with one perturbation."""

import threading
import time
from collections.abc import Iterator, Sequence, Set
from contextlib import contextmanager, suppress
from math import inf
from typing import Final, Literal

from msgspec import Struct, field

from fakeapiserver.cluster.cluster import Cluster
from fakeapiserver.controller_manager.manager import NotSettled
from fakeapiserver.evidence import election
from fakeapiserver.evidence.entry import RequestEntry
from fakeapiserver.evidence.requests import RequestList
from fakeapiserver.nodes.behaviour import Output
from fakeapiserver.state.changes import ObjectChange
from fakeapiserver.storage.interface import Compacted
from fakeapiserver.sweep import clusters, lines, rights, states
from fakeapiserver.sweep.clusters import Base
from fakeapiserver.sweep.conductor import Conductor
from fakeapiserver.sweep.launcher import Launcher, OperatorUnderTest
from fakeapiserver.sweep.perturbation import Perturbation
from fakeapiserver.sweep.scenario import Scenario
from fakeapiserver.sweep.start_up import Activity, StartUp, has_webhooks, last_lines, watched
from fakeapiserver.sweep.states import Names, State
from fakeapiserver.sweep.timing import LONGEST_COMPUTATION, Timing

USER: Final = "operator-under-test"
USERS: Final = f"{USER}-*"
_MAX_RESTARTS: Final = 5
_PAUSE: Final = 0.05
_VIRTUAL_PAUSE: Final = 2.0
# Seconds without a request after which the operator is at rest if the learnt state is there. What comes later is seen in the end.
_SHORT_QUIET: Final = 0.1
# The longest pause of an undisturbed operator, times this, is the time for which a disturbed one is waited for.
LONGER: Final = 1.25


class Target(Struct, frozen=True):
    """The operator and the scenario that are swept, and how long things may take."""

    operator: Launcher
    scenario: Scenario
    timing: Timing = Timing()


class Expected(Struct, frozen=True):
    """The state after each step without a perturbation, None where it isn't known, the fields that differ by chance, and the resources that
    the operator watches once it has started. `pause`: seconds for which the operator slept between two writes at most; `step_seconds`:
    those that each step took; `patience`: those for which a state is waited for at most; `replaced`: as in `states.replaced`."""

    states: Sequence[State | None]
    noise: frozenset[str] = frozenset()
    watched: Set[str] = frozenset()
    pause: float = 0.0
    step_seconds: Sequence[float] = ()
    patience: float = inf
    replaced: Sequence[Set[str]] = ()

    def is_reached(self, wanted: State, state: State, ignore: Sequence[str]) -> bool:
        """Reports whether the state needs no more time to become the wanted one."""
        return not states.differences(wanted, state, self.noise, ignore)


class Note(Struct, frozen=True):
    """The time by the cluster's clock when a step began or ended, or the operator was started or killed. `text`: the step's title."""

    time: float
    kind: Literal["step", "rest", "started", "killed"]
    text: str = ""


class Run(Struct):
    """The record of a run. `writes` are the operator's, `states` those after each step, `problems` what no run should have, `restless` what
    didn't come to rest after each step, or "", `titles` those of the steps.

    - `changes`: all writes of the run, kept if there are invariants or the run is unperturbed. `change_marks`: how many there were
      before the first step and after each step.
    - `known`: whether the operator could know the state after each step. `reached`: whether the perturbation took place.
    - `marks`: the number of requests at the end of each step. `uids`: of the objects, before and after what a perturbation does then.
    - `watched`: the resources that the operator watches; `watched_first`: those before the first step.
    - `webhooks`: the names of webhooks, and the resources that each is for. `notes`: what happened when.
    - `exits`: the statuses with which the operator has ended by itself. `has_limited_rights`: it may not do everything.
    - `pause`, `step_seconds`: as in Expected. `disturbed`: the first step that the perturbation may have changed, -1 without one."""

    writes: list[RequestEntry] = field(default_factory=list)
    requests: RequestList = RequestList(())
    changes: list[ObjectChange] = field(default_factory=list)
    states: list[State] = field(default_factory=list)
    known: list[bool] = field(default_factory=list)
    marks: list[int] = field(default_factory=list)
    uids: list[dict[str, str]] = field(default_factory=list)
    names: Names = field(default_factory=lambda: Names({}))
    problems: list[str] = field(default_factory=list)
    restless: list[str] = field(default_factory=list)
    output: str = ""
    reached: bool = True
    seconds: float = 0.0
    watched: Sequence[str] = ()
    notes: list[Note] = field(default_factory=list)
    watched_first: Set[str] = frozenset()
    titles: list[str] = field(default_factory=list)
    change_marks: list[int] = field(default_factory=list)
    webhooks: dict[str, list[str]] = field(default_factory=dict)
    exits: list[int] = field(default_factory=list)
    has_limited_rights: bool = False
    pause: float = 0.0
    disturbed: int = -1
    step_seconds: list[float] = field(default_factory=list)


class DoesNotStart(OSError):
    """The operator ends, or sends nothing, when it is started."""


class StepFailed(ValueError):
    """A step fails in a run without perturbation. Its cause is the error."""


@contextmanager
def prepared(target: Target) -> Iterator[Base]:
    """The cluster in which the scenario begins, before the operator is started. Raises what the cluster raises."""
    scenario = target.scenario
    with clusters.new(target.operator.options, target.scenario.options) as cluster:
        fresh = {each[1].key for each in states.objects_of(cluster.snapshot())}
        if scenario.options.get("nodes"):
            # no simulated container knows the programs that operators execute in them
            cluster.nodes.script(exec={"": Output("")})
        scenario.surroundings.prepare(cluster)
        if scenario.objects:
            cluster.apply(scenario.objects, namespace=scenario.namespace)
            cluster.settle()
        if scenario.service_account:
            rights.grant(cluster, scenario.service_account)
        yield Base(cluster, fresh)


def run(
    target: Target,
    perturbation: Perturbation | None = None,
    expected: Expected | None = None,
    base: Base | None = None,
) -> Run:
    """Runs the scenario once, in a new cluster or in a fork of `base`. Raises what the cluster raises if it can't be started, OSError if
    there is no such program, and StepFailed."""
    with _played(target, perturbation, expected, base) as (case, began):
        case.end_operator()
        return case.result(time.monotonic() - began)


def run_with_restart(target: Target) -> tuple[Run, State]:
    """Runs the scenario once, undisturbed and in a new cluster. Returns the state after the operator was started again, too. Raises as
    `run` does."""
    with _played(target, None, None, None) as (case, began):
        return case.result(time.monotonic() - began), case.restarted()


@contextmanager
def at_rest(target: Target) -> Iterator[tuple[Run, Base]]:
    """Runs the scenario, starts the operator again, and keeps the cluster for forks. Raises as `run` does."""
    with _played(target, None, None, None) as (case, began):
        run = case.result(time.monotonic() - began)
        run.states[-1:] = [case.restarted()] if run.states else []
        case.end_operator()
        yield run, Base(case.cluster, case.fresh)


@contextmanager
def _played(
    target: Target, perturbation: Perturbation | None, expected: Expected | None, base: Base | None
) -> Iterator[tuple["_Case", float]]:
    """The case after its scenario, and when it began."""
    began = time.monotonic()
    operator = target.operator.new(target.timing.quiet, target.scenario.surroundings)
    try:
        with prepared(target) if base is None else clusters.fork(base) as place:
            case = _Case(target, place.cluster, operator, perturbation, expected, place.fresh)
            try:
                case.play()
                yield case, began
            finally:
                case.end_operator()
    finally:
        operator.close()


class _Case:
    """The state of a run."""

    def __init__(
        self,
        target: Target,
        cluster: Cluster,
        operator: OperatorUnderTest,
        perturbation: Perturbation | None,
        expected: Expected | None,
        fresh: Set[str],
    ) -> None:
        self._target = target
        self._timing = target.timing
        self.cluster = cluster
        self._operator = operator
        self._expected = expected
        self._run = Run()
        self._incarnations = 0
        self._names = Names({})
        self._lock = threading.Lock()
        self.fresh = fresh
        self._step = -1
        self._title = ""
        self._restless = ""
        self._started: set[int] = set()
        self._groups = rights.groups_of(target.scenario.service_account)
        self._run.has_limited_rights = bool(target.scenario.service_account)
        self._calm_seconds = self._step_began = 0.0
        self._start_up = StartUp(has_webhooks(target.operator, target.scenario.surroundings))
        self._healing = target.timing.healing
        self.conductor = Conductor(cluster, perturbation, self._stop, self._start, USERS)

    def play(self) -> None:
        scenario = self._target.scenario
        self.conductor.begin()
        self._start()
        self._rest()
        self._run.watched_first = self._watched()
        self._keep_changes()
        try:
            scenario.play(self)
        except _GivesUp:
            pass
        except DoesNotStart:
            raise
        except Exception as error:
            failure = f"step {self._step + 1} ({self._title}) fails: {lines.first(error)}"
            if self._expected is None:
                raise StepFailed(failure) from error
            self._run.problems.append(failure)
        with suppress(_GivesUp):
            self.end()
        if self._restless:
            self._run.problems.append(self._restless)
        self._finish()

    def begin(self, title: str) -> None:
        """A step begins."""
        self.end()
        self._step, self._title = self._step + 1, title
        self._note("step", title)
        self._run.titles.append(title)
        self._step_began = time.monotonic()
        self.conductor.before_step(self._step)

    def end(self) -> None:
        """A step has ended: returns when the operator has come to rest. Does nothing outside of a step."""
        run, conductor, number = self._run, self.conductor, self._step
        if len(run.states) > number:
            return
        conductor.acted(number)
        self._rest()
        run.uids.append(states.uids_of(self.cluster.snapshot(), self.fresh))
        if conductor.after_step(number):
            self._rest()
        if conductor.catch_up():
            self._rest()
        if conductor.reached and run.disturbed < 0:
            run.disturbed = number
        run.states.append(self._state())
        run.restless.append(self._restless)
        run.known.append(not conductor.holds)
        run.uids.append(states.uids_of(self.cluster.snapshot(), self.fresh))
        run.marks.append(self.cluster.requests.mark())
        self._keep_changes()
        self._note("rest")
        run.step_seconds.append(max(0.0, time.monotonic() - self._step_began - self._timing.calm))
        if not self._operator_is_well():
            raise _GivesUp

    def end_operator(self) -> None:
        self.conductor.stop()
        self._stop()

    def result(self, seconds: float) -> Run:
        run = self._run
        run.seconds = seconds - self._calm_seconds
        run.reached = self.conductor.reached
        run.output = self._operator.output()
        return run

    def restarted(self) -> State:
        """The state after the operator was started again. It may fail to start."""
        self._stop()
        self._start()
        with suppress(DoesNotStart, _GivesUp):
            self._rest()
        return self._state()

    @property
    def record(self) -> Run:
        """The record of the steps so far."""
        self._run.output = self._operator.output()
        return self._run

    def _finish(self) -> None:
        run, cluster = self._run, self.cluster
        run.requests = cluster.requests.all().by(user=USERS)
        run.writes = list(run.requests.writes)
        run.names = self._names
        run.watched = sorted(watched(run.requests))
        run.webhooks = states.webhooks_of(cluster.snapshot())

    @property
    def is_blinded(self) -> bool:
        """Reports whether the operator can't know what the user does until a later step ends, so that waiting for it makes no sense."""
        return self.conductor.is_blinding

    def _watched(self) -> Set[str]:
        return watched(self.cluster.requests.all().by(user=f"{USER}-{self._incarnations}"))

    def _keep_changes(self) -> None:
        """Keeps the writes since the last call. A restart of the API server forgets some."""
        run = self._run
        if self._target.scenario.invariants or self._expected is None:
            since = run.changes[-1].revision if run.changes else 0
            with suppress(Compacted):
                run.changes += self.cluster.changes(after=since)
        run.change_marks.append(len(run.changes))

    def _note(self, kind: Literal["step", "rest", "started", "killed"], text: str = "") -> None:
        self._run.notes.append(Note(self.cluster.clock.now(), kind, text))

    # ------------------------------------------------------------ the operator

    def _start(self) -> None:
        """Starts the operator as another user than before, so that faults can be bound to one start."""
        with self._lock:
            self._incarnations += 1
            self._note("started")
            self._operator.start(self.cluster, f"{USER}-{self._incarnations}", self._groups)

    def _stop(self) -> None:
        """Kills the operator. Its leases run out, as they would in time."""
        with self._lock:
            self._operator.kill()
            self._note("killed")
        for resource, namespace, name in election.records_of(self.cluster.requests.all().by(user=USERS)):
            self.cluster.delete(f"{resource}/{name}", namespace=namespace, ignore_not_found=True)

    def _wait_until_started(self) -> None:
        """Returns when the operator has come up, and watches what an undisturbed one watches, or is given up for that."""
        began = time.monotonic()
        while missing := self._start_up.missing(self.cluster, f"{USER}-{self._incarnations}"):
            if self._operator.ended is not None and self._incarnations > 1:
                return
            if self._operator.ended is not None or time.monotonic() > began + self._timing.start:
                ended = f"it ended with status {self._operator.ended}" if self._operator.ended is not None else missing
                raise DoesNotStart(
                    f"the operator doesn't start: {ended}; its last lines:\n{last_lines(self._operator.output())}"
                )
            time.sleep(_PAUSE)
        if self._incarnations in self._started or self._expected is None or self._is_virtual:
            return
        while self._operator.ended is None and not self._watched() >= self._expected.watched:
            if time.monotonic() > began + self._timing.patience:
                break
            time.sleep(_PAUSE)
        self._started.add(self._incarnations)

    def _operator_is_well(self) -> bool:
        """Starts an operator again that has ended by itself, as a kubelet does, a few times."""
        status = self._operator.ended
        if status is None:
            return True
        self._run.exits.append(status)
        if self._operator.starts > _MAX_RESTARTS:
            problem = f"the operator exits again and again: {self._operator.starts} times, with status {status}"
            if problem not in self._run.problems:
                self._run.problems.append(problem)
            return False
        if self._expected is None:
            raise DoesNotStart(
                f"the operator ended with status {status} unperturbed; its last lines:\n{last_lines(self._operator.output())}"
            )
        self._stop()
        self._start()
        return True

    # ------------------------------------------------------------ rest

    def _rest(self) -> None:
        """Returns when nothing moves, and, where it is known, the learnt state of this step is there or the patience is over."""
        expected, ignore = self._expected or Expected(()), self._target.scenario.ignore
        is_known = 0 <= self._step < len(expected.states) and not self.conductor.holds
        wanted = expected.states[self._step] if is_known else None
        is_last = self._step == len(expected.states) - 1
        # no later step shows what an operator does after the pauses that it makes, if its right state isn't known or no step follows
        pause = expected.pause * LONGER if wanted is None or is_last else 0.0
        if wanted is None and self._incarnations > 1:
            pause = max(pause, 0.0 if self._is_virtual else self._timing.first_quiet)
        is_brief = wanted is not None and self.conductor.is_idle and not is_last
        deadline = self._now() + self._patience
        longest = time.monotonic() + LONGEST_COMPUTATION
        activity = Activity(self.cluster.requests, USERS, self._timing.activity)
        while True:
            if not self._operator_is_well():
                break
            quiet = min(_SHORT_QUIET, self._operator.quiet) if is_brief else max(self._operator.quiet, pause)
            problem = self._restless = self._settle(quiet + self.conductor.delay)
            if self.conductor.finish() or self._operator.ended is not None:
                is_brief = False
                continue
            self._learn_names()
            is_there = wanted is None or expected.is_reached(wanted, self._state(), ignore)
            is_there = is_there and not (is_last and self._is_old(expected))
            is_waited_for = not problem and not (is_there and wanted is not None) and time.monotonic() < longest
            if is_waited_for and (self._operator.computes or (wanted is not None and activity.goes_on())):
                deadline = self._now() + self._patience
                continue
            if not problem and self._now() <= deadline and self._writes_again():
                continue
            if (problem and not is_brief) or is_there:
                break
            if self._now() > deadline:
                self._healing = 0.0
                break
            if not is_brief:
                self._pause()
            is_brief = False

    def _is_old(self, expected: Expected) -> bool:
        """Reports whether an object is still there that should have been replaced."""
        if not any(expected.replaced):
            return False
        now = states.uids_of(self.cluster.snapshot(), self.fresh)
        return bool(states.unreplaced(self._run.uids, now, expected.replaced)) and all(self._run.known)

    @property
    def _patience(self) -> float:
        """Seconds for which the learnt state is waited for: twice as long as an undisturbed operator needs that has pauses of its own."""
        expected, step = self._expected or Expected(()), self._step
        needed = 2 * expected.step_seconds[step] if step in range(len(expected.step_seconds)) else 0.0
        return min(max(self._timing.patience, self._healing, 0.0 if self._is_virtual else needed), expected.patience)

    def _writes_again(self) -> bool:
        """Reports whether an operator that seemed to be at rest changes something within the time of `calm`. False in perturbed runs, which
        wait for the learnt state."""
        if self._expected is not None or self._is_virtual or self._step < 0:
            return False
        mark, began, has_written = self.cluster.requests.mark(), time.monotonic(), False
        while not has_written and time.monotonic() - began < self._timing.calm:
            time.sleep(_PAUSE)
            has_written = any(map(election.is_other_write, self.cluster.requests.since(mark).by(user=USERS)))
        self._calm_seconds += (seconds := time.monotonic() - began)
        self._run.pause = max(self._run.pause, self._operator.quiet + seconds if has_written else 0.0)
        return has_written

    def _settle(self, quiet: float) -> str:
        """Waits until nothing moves; returns what doesn't come to rest. `quiet`: seconds without a request of the operator, which an
        operator that writes at intervals never has if they are as long: then those of a rest are enough."""
        self._wait_until_started()
        try:
            self.cluster.settle(timeout=self._timing.patience, with_=USERS, quiet=quiet)
            if self._is_virtual and self.conductor.delay:
                clusters.await_late_events(self.cluster, USERS, self.conductor.delay, self._timing.patience)
        except NotSettled as error:
            if self._operator.ended is not None:
                return ""
            if quiet > (rest := self._operator.quiet + self.conductor.delay):
                return self._settle(rest)
            return f"the operator doesn't come to rest: {lines.first(error)}"
        except Exception:
            if self._operator.ended is None:  # else it is the error that has ended it
                raise
        return ""

    @property
    def _is_virtual(self) -> bool:
        """Whether time stands still until a wait lets it pass."""
        return "stopped_at" in self._target.operator.options

    def _now(self) -> float:
        return self.cluster.clock.now() if self._is_virtual else time.monotonic()

    def _pause(self) -> None:
        if self._is_virtual:
            self.cluster.clock.advance(_VIRTUAL_PAUSE)
        else:
            time.sleep(_PAUSE)

    def _state(self) -> State:
        return states.state_of(self.cluster.snapshot(), self._names, self.fresh)

    def _learn_names(self) -> None:
        self._names.by_text.update(states.names_of(states.objects_of(self.cluster.snapshot(), self.fresh)).by_text)


class _GivesUp(Exception):
    """The operator ends again and again."""
