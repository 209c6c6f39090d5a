"""`@pytest.mark.sweep`: a test is the scenario of a sweep, and runs once for each surprise that a legal cluster may have for the operator.

@pytest.mark.sweep(operator=setup)
def test_a_database(fake_cluster):
    fake_cluster.apply(DATABASE)                       # a step begins
    fake_cluster.wait("statefulset", "db", "Available")  # has ended: the operator is at rest
    fake_cluster.delete("databases/db")
"""

import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Final, Protocol

from msgspec import Struct, structs

from fakeapiserver.apimachinery.duration import parse_duration
from fakeapiserver.cluster.options import ClusterOptions
from fakeapiserver.sweep import reporting, sweep
from fakeapiserver.sweep.case import StepFailed, Target, prepared
from fakeapiserver.sweep.in_process import InProcess
from fakeapiserver.sweep.invariants import Invariant, Moment
from fakeapiserver.sweep.launcher import Launcher
from fakeapiserver.sweep.page import page
from fakeapiserver.sweep.perturbation import KINDS, Kind
from fakeapiserver.sweep.process import Command
from fakeapiserver.sweep.report.document import Document, Swept
from fakeapiserver.sweep.scenario import Scenario, Stage
from fakeapiserver.sweep.timing import Timing
from fakeapiserver.testing.pages import file_name

# What a test does to the cluster, as a user. Everything else looks at it, and is a reason to wait until the operator is at rest.
ACTS: Final = frozenset(("apply", "patch", "delete", "clock", "nodes"))
_CALM: Final = 5.0
_FIELDS: Final = ("operator", "kinds", "budget", "ignore", "invariants", "quiet", "patience", "calm", "only", "env")


class Marker(Protocol):
    """pytest's mark."""

    @property
    def args(self) -> Sequence[object]: ...

    @property
    def kwargs(self) -> Mapping[str, Any]: ...


class Plan(Struct, frozen=True):
    """The marker's arguments. Durations are in seconds."""

    operator: Launcher
    kinds: Sequence[Kind] = KINDS
    budget: float = 300.0
    ignore: Sequence[str] = ()
    invariants: Sequence[Invariant] = ()
    timing: Timing = Timing()
    only: str = ""


class Common(Struct, frozen=True):
    """The arguments that the markers `sweep` and `explore` share."""

    operator: Launcher
    budget: float
    ignore: Sequence[str]
    invariants: Sequence[Invariant]
    timing: Timing


def read(arguments: Sequence[object], fields: Mapping[str, Any]) -> Plan:
    """The marker's arguments. Raises ValueError with a sentence about the first mistake."""
    require_known(arguments, fields, _FIELDS)
    kinds = [fields["kinds"]] if isinstance(fields.get("kinds"), str) else fields.get("kinds", KINDS)
    if bad := [kind for kind in kinds if kind not in KINDS]:
        raise ValueError(f"has no kind {bad[0]!r}: kinds are {', '.join(KINDS)}")
    shared = common(fields, Timing(calm=_CALM))
    return Plan(
        shared.operator,
        [kind for kind in KINDS if kind in kinds],
        shared.budget,
        shared.ignore,
        shared.invariants,
        shared.timing,
        fields.get("only", ""),
    )


def require_known(arguments: Sequence[object], fields: Mapping[str, Any], known: Sequence[str]) -> None:
    """Raises ValueError if there are other arguments than the known ones, by name, or if there is no operator."""
    unknown = [name for name in fields if name not in known]
    if arguments or unknown:
        raise ValueError(f"takes {', '.join(known)} by name, not {(arguments or unknown)[0]!r}")
    if "operator" not in fields:
        raise ValueError("needs operator=: a command, or a function that adds controllers to a Manager")


def common(fields: Mapping[str, Any], timing: Timing) -> Common:
    """The shared arguments; `timing` has what they don't name. Raises ValueError."""
    ignore = fields.get("ignore", ())
    invariants: Mapping[str, Callable[[Moment], object]] = fields.get("invariants", {})
    seconds = {name: _seconds(fields[name]) for name in ("budget", "quiet", "patience", "calm") if name in fields}
    return Common(
        _launcher(fields["operator"], _environment(fields)),
        seconds.pop("budget", 300.0),
        [ignore] if isinstance(ignore, str) else ignore,
        [Invariant(name, holds) for name, holds in invariants.items()],
        structs.replace(timing, **seconds),
    )


def _environment(fields: Mapping[str, Any]) -> Mapping[str, str]:
    env = fields.get("env", {})
    if not isinstance(env, Mapping) or not all(isinstance(text, str) for pair in env.items() for text in pair):
        raise ValueError(f"takes env as a dict of texts, such as {{'ENABLE_WEBHOOKS': 'true'}}, not {env!r}")
    return env


def _launcher(operator: object, env: Mapping[str, str]) -> Launcher:
    if isinstance(operator, str | Sequence):
        return Command(operator, env)
    if env:
        raise ValueError("takes env for a command: a function has the environment of the test")
    if callable(operator):
        return InProcess(operator)
    raise ValueError(f"needs a command or a function as operator, not {operator!r}")


def _seconds(value: object) -> float:
    if isinstance(value, str):
        return parse_duration(value)
    if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0:
        return float(value)
    raise ValueError(f"takes durations in seconds or such as '5m', not {value!r}")


class TestScenario(Scenario, frozen=True, kw_only=True):
    """A test as a scenario. `test` is called with the cluster; `pointed_at` points all clients at it meanwhile."""

    __test__ = False

    name: str
    test: Callable[[Any], object]
    pointed_at: Callable[[str], AbstractContextManager[None]]

    @property
    def words(self) -> Sequence[str]:
        """The test's name."""
        return (self.name,)

    @property
    def runs_alone(self) -> bool:
        """KUBECONFIG and other settings for clients are those of the process."""
        return True

    @property
    def looks_between_steps(self) -> bool:
        """A step ends when the test looks at the cluster."""
        return True

    def play(self, stage: Stage) -> None:
        """Calls the test. Its calls of the cluster begin and end the steps."""
        with self.pointed_at(stage.cluster.kubeconfig):
            self.test(SteppedCluster(stage))


class SteppedCluster:
    """A Cluster for a test: what the test does begins a step, and what it looks at ends one."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._is_acting = False

    def __getattr__(self, name: str) -> Any:
        stage = self._stage
        if name in ACTS and not self._is_acting:
            stage.begin(name)
            self._is_acting = True
        elif name not in ACTS and self._is_acting:
            stage.end()
            self._is_acting = False
        return getattr(stage.cluster, name)


def run(
    name: str,
    marker: Marker,
    options: ClusterOptions,
    test: Callable[[Any], object],
    pointed_at: Callable[[str], AbstractContextManager[None]],
    pages: Path | None = None,
) -> str:
    """Sweeps the test as the marker's arguments say. Returns a report of the findings, or the reason for which it can't be swept; "" if all
    is well. Raises what the test raises without a perturbation, and OSError if the page can't be written into the folder `pages`."""
    try:
        plan = read(marker.args, marker.kwargs)
    except ValueError as error:
        return f"the marker sweep {error}"
    scenario = TestScenario(
        options=options, ignore=plan.ignore, invariants=plan.invariants, name=name, test=test, pointed_at=pointed_at
    )
    target = Target(plan.operator, scenario, plan.timing)
    try:
        report = _sweep(target, plan)
    except StepFailed as failed:
        raise (failed.__cause__ or failed) from None
    except (OSError, ValueError) as error:
        return f"sweep: {error}"
    swept = swept_by("sweep", plan.operator, name)
    text = reporting.text_of(report, swept.again)
    publish(text, lambda: reporting.document_of(report, swept), pages, name)
    return text if report.findings else ""


def swept_by(marker: str, operator: Launcher, test: str) -> Swept:
    """The test with its operator, and how a finding of the marker is repeated."""
    return Swept(shlex.join(operator.words), test, lambda finding: f"pytest.mark.{marker}(only={finding.causes[0]!r})")


def publish(text: str, document: Callable[[], Document], pages: Path | None, test: str) -> None:
    """Prints the report about a test, and writes its page to the folder `pages`, if there is one. Raises OSError."""
    print(text)
    if pages is not None:
        pages.mkdir(parents=True, exist_ok=True)
        (pages / file_name(test)).write_text(page.html_of(document()), encoding="utf-8")


def _sweep(target: Target, plan: Plan) -> sweep.Report:
    with prepared(target) as base:
        learnt = sweep.learn(target, plan.kinds, base)
        chosen = sweep.named(learnt, plan.only) if plan.only else learnt.plan
        return sweep.sweep(target, learnt, chosen, jobs=1, budget=plan.budget)
