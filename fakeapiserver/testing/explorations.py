"""`@pytest.mark.explore`: the custom resource that a test applies gets each spec that users might write.

@pytest.mark.explore(operator=setup)
def test_a_database(fake_cluster):
    fake_cluster.apply(DATABASE)
    fake_cluster.wait("statefulset", "db", "Available")
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.cluster.options import ClusterOptions
from fakeapiserver.server.projects import manifests
from fakeapiserver.sweep import case
from fakeapiserver.sweep.case import StepFailed, Target
from fakeapiserver.sweep.exploring import explore, reporting, subject
from fakeapiserver.sweep.exploring.explore import Exploration
from fakeapiserver.sweep.invariants import Invariant
from fakeapiserver.sweep.launcher import Launcher
from fakeapiserver.sweep.scenario import Scenario, Stage, Step, applying
from fakeapiserver.sweep.timing import Timing
from fakeapiserver.testing import sweeps
from fakeapiserver.testing.sweeps import Marker

_FIELDS: Final = (
    "operator", "cases", "depth", "object", "budget", "ignore", "invariants", "quiet", "patience", "only", "env",
)  # fmt: skip
_CASES: Final = 100


class Plan(Struct, frozen=True):
    """The marker's arguments. Durations are in seconds."""

    operator: Launcher
    cases: int = _CASES
    depth: int = 2
    object: str = ""
    budget: float = 300.0
    ignore: Sequence[str] = ()
    invariants: Sequence[Invariant] = ()
    timing: Timing = Timing()
    only: str = ""


class Recording(Scenario, frozen=True, kw_only=True):
    """A test that is played once. `applied` gets the objects of each call of `apply` before the test does anything else to the cluster,
    with their namespace, and `definitions` the CustomResourceDefinitions in the end."""

    test: Callable[[Any], object]
    pointed_at: Callable[[str], AbstractContextManager[None]]
    applied: list[tuple[Sequence[Object], str]]
    definitions: list[Object]

    def play(self, stage: Stage) -> None:
        """Calls the test."""
        with self.pointed_at(stage.cluster.kubeconfig):
            self.test(RecordedCluster(stage, self.applied))
        self.definitions.extend(stage.cluster.list("customresourcedefinitions"))


class RecordedCluster(sweeps.SteppedCluster):
    """A Cluster for a test, which keeps what the test applies."""

    def __init__(self, stage: Stage, applied: list[tuple[Sequence[Object], str]]) -> None:
        super().__init__(stage)
        self._applied = applied
        self._is_over = False

    def __getattr__(self, name: str) -> Any:
        method = super().__getattr__(name)
        if name not in sweeps.ACTS or self._is_over:
            return method
        if name != "apply":
            self._is_over = True
            return method

        def apply(objects: Any, **options: Any) -> Any:
            read = [*manifests.read_all(objects)]
            self._applied.append((read, options.get("namespace") or "default"))
            return method(read, **options)

        return apply


def read(arguments: Sequence[object], fields: Mapping[str, Any]) -> Plan:
    """The marker's arguments. Raises ValueError with a sentence about the first mistake."""
    sweeps.require_known(arguments, fields, _FIELDS)
    for name in ("cases", "depth"):
        number = fields.get(name, 1)
        if not isinstance(number, int) or number < 1:
            raise ValueError(f"takes a positive number of {name}, not {number!r}")
    common = sweeps.common(fields, Timing())
    return Plan(
        common.operator,
        fields.get("cases", _CASES),
        fields.get("depth", 2),
        fields.get("object", ""),
        common.budget,
        common.ignore,
        common.invariants,
        common.timing,
        fields.get("only", ""),
    )


def run(
    name: str,
    marker: Marker,
    options: ClusterOptions,
    test: Callable[[Any], object],
    pointed_at: Callable[[str], AbstractContextManager[None]],
    pages: Path | None = None,
) -> str:
    """Explores the custom resource of the test as the marker's arguments say. Returns a report of the findings, or the reason for which
    it can't be explored; "" if all is well. Raises what the test raises, and OSError if the page can't be written to the folder."""
    try:
        plan = read(marker.args, marker.kwargs)
    except ValueError as error:
        return f"the marker explore {error}"
    try:
        report = _explore(plan, options, test, pointed_at)
    except StepFailed as failed:
        raise (failed.__cause__ or failed) from None
    except (OSError, ValueError) as error:
        return f"explore: {error}"
    swept = sweeps.swept_by("explore", plan.operator, name)
    text = reporting.text_of(report, swept.again)
    sweeps.publish(text, lambda: reporting.document_of(report, swept), pages, name)
    return text if report.findings else ""


def _explore(
    plan: Plan,
    options: ClusterOptions,
    test: Callable[[Any], object],
    pointed_at: Callable[[str], AbstractContextManager[None]],
) -> Exploration:
    recording = Recording(options=options, test=test, pointed_at=pointed_at, applied=[], definitions=[])
    case.run(Target(plan.operator, recording, plan.timing))
    objects, steps = _steps(recording)
    scenario = Scenario(steps, objects, options, ignore=plan.ignore, invariants=plan.invariants)
    with explore.learn(Target(plan.operator, scenario, plan.timing), plan.object) as learnt:
        planned = explore.named(learnt, plan.only) if plan.only else explore.plan(learnt, plan.cases, plan.depth)
        return explore.explore(learnt, planned, jobs=1, budget=plan.budget)


def _steps(recording: Recording) -> tuple[list[Object], list[Step]]:
    """The objects that a test applies before its first custom resource, which stay, and the steps that apply the rest."""
    before: list[Object] = []
    steps: list[Step] = []
    for objects, namespace in recording.applied:
        is_custom = [any(subject.defines(each, obj) for each in recording.definitions) for obj in objects]
        first = 0 if steps else is_custom.index(True) if any(is_custom) else len(objects)
        before += objects[:first]
        if objects[first:]:
            steps.append(applying(objects[first:], namespace))
    return before, steps
