"""Many trials with two operators that go on running: in one cluster the custom resource is changed and changed back, in the other one it is
created and deleted. An operator is started for a trial of its own only to confirm what a chain shows."""

from collections.abc import Callable, Iterable
from typing import Final, Protocol, cast

from msgspec import structs

from fakeapiserver.apimachinery.errors import StatusError
from fakeapiserver.cluster.cluster import Cluster
from fakeapiserver.sweep import case, states
from fakeapiserver.sweep.case import Expected, Run, Target
from fakeapiserver.sweep.clusters import Base
from fakeapiserver.sweep.exploring import cases, subject, trial
from fakeapiserver.sweep.exploring.cases import Case
from fakeapiserver.sweep.exploring.oracles import Awaited
from fakeapiserver.sweep.exploring.subject import Subject
from fakeapiserver.sweep.exploring.trial import Seen, Trial
from fakeapiserver.sweep.process import panics
from fakeapiserver.sweep.scenario import Scenario, Stage
from fakeapiserver.sweep.states import State

_GONE_SECONDS: Final = 30.0
# The part of the patience for which a chain waits for a state. What isn't there then is confirmed by itself, with more patience.
_PATIENCE: Final = 0.3


class Broken(Exception):
    """The clusters of a chain are not as they were before a trial, so that another chain must go on."""


class Live(Stage, Protocol):
    """A stage whose record can be read while the scenario plays."""

    @property
    def record(self) -> Run: ...


class Playing(Scenario, frozen=True, kw_only=True):
    """A scenario that a function plays."""

    work: Callable[[Live], None]

    def play(self, stage: Stage) -> None:
        """Calls the function."""
        self.work(cast(Live, stage))


class Chain:
    """Two running operators. `learnt`: the state without changes. `known`: subjects of differences that aren't waited for."""

    def __init__(
        self, target: Target, chosen: Subject, learnt: Awaited, known: list[str], moved: "Actor", created: "Actor"
    ) -> None:
        self._target = target
        self._subject = chosen
        self._learnt = learnt
        self._known = known
        self._moved = moved
        self._created = created

    def try_case(self, tried: Case, known: Iterable[str]) -> Trial:
        """Tries a case, and doesn't wait for the differences with the subjects `known`. Raises Broken if it leaves something behind, and
        what the clusters raise."""
        self._known[:] = known
        created = self._create(tried)
        wanted = created.state if created is not None and not created.refused else None
        for number, move in enumerate(tried):
            patch = cases.patch_of(move)
            is_last = number == len(tried) - 1
            self._moved.act(f"change {cases.id_of((move,))}", self._patching(patch), wanted if is_last else None)
        there = self._moved.seen()
        try:
            [learnt] = self._learnt.states
            self._moved.act("go back", self._patching(self._subject.back()), learnt)
        except StatusError:
            return Trial(created, there, None)
        return Trial(created, there, self._moved.seen())

    def clear(self) -> None:
        """Deletes the created object and all that is left of it. Raises Broken if something stays."""
        self._created.act("delete", self._delete, None)
        if left := self._created.left():
            raise Broken(f"{left[0]} is left")

    def _create(self, tried: Case) -> Seen | None:
        manifest = self._subject.manifest_of(cases.changed(self._subject.current, tried))
        scenario = subject.with_manifest(self._target.scenario, self._subject.manifest, manifest)
        try:
            for step in scenario.steps:
                self._created.act(step.title, step.run, None)
        except StatusError:
            return None
        return self._created.seen()

    def _patching(self, patch: list[dict[str, object]]) -> Callable[[Cluster], object]:
        chosen = self._subject
        return lambda cluster: cluster.patch(chosen.reference, patch, namespace=chosen.namespace or None)

    def _delete(self, cluster: Cluster) -> None:
        """Deletes what the scenario applied, the custom resource first."""
        applied = [obj for step in self._target.scenario.steps for obj in step.applied]
        for obj in sorted(applied, key=lambda each: each is not self._subject.manifest):
            meta = obj["metadata"]
            group = obj["apiVersion"].rpartition("/")[0]
            reference = f"{obj['kind']}{f'.{group}' if group else ''}/{meta['name']}"
            namespace = meta.get("namespace") or self._target.scenario.namespace
            cluster.delete(reference, namespace=namespace, ignore_not_found=True)
            cluster.wait(reference, "delete", namespace=namespace, timeout=_GONE_SECONDS)


class Actor:
    """Acts for a chain in one of its clusters. `expected` are the states to which its steps lead, as the case knows them."""

    def __init__(self, live: Live, expected: list[State | None], target: Target) -> None:
        self._live = live
        self._expected = expected
        self._target = target
        self._mark = 0
        # those that the scenario and the operator need stay
        self._first = {stored.key for _, stored, _ in states.objects_of(live.cluster.snapshot())}

    def act(self, title: str, work: Callable[[Cluster], object], wanted: State | None) -> None:
        """A step: does the work, and returns when the operator is at rest. Raises what the work raises."""
        self._expected.append(wanted)
        self._mark = self._live.cluster.requests.mark()
        self._live.begin(title)
        work(self._live.cluster)
        self._live.end()

    def seen(self) -> Seen:
        """The cluster after the last step."""
        run = self._live.record
        requests = self._live.cluster.requests.since(self._mark).by(user=case.USERS)
        return Seen(
            run.states[-1],
            trial.restless(run.restless[-1], requests),
            panics(run.output),
            trial.refused_writes(requests),
            trial.broken_invariants(run, self._target),
        )

    def left(self) -> list[str]:
        """Deletes the objects that the cluster didn't have before the first step, and returns those that stay."""
        cluster = self._live.cluster
        for title in self._extra():
            resource, _, name = title.partition(" ")
            namespace, _, name = name.rpartition("/")
            cluster.delete(f"{resource}/{name}", namespace=namespace or None, ignore_not_found=True)
        self.act("remove what is left", lambda cluster: None, None)
        return self._extra()

    def _extra(self) -> list[str]:
        objects = states.objects_of(self._live.cluster.snapshot())
        return [
            f"{resource} {obj['metadata'].get('namespace', '')}/{obj['metadata']['name']}"
            for resource, stored, obj in objects
            if stored.key not in self._first
        ]


def play(target: Target, chosen: Subject, base: Base, learnt: Awaited, work: Callable[[Chain], None]) -> None:
    """Starts the operator in a fork of `base` and in a new cluster, and calls `work` with a chain for both. Raises what `work` raises, and
    as `case.run`."""
    moved_states, created_states, known = list[State | None](), list[State | None](), list[str]()
    waiting = structs.replace(learnt, known=known, patience=_PATIENCE * target.timing.patience)

    def with_moved(moved: Live) -> None:
        def with_created(created: Live) -> None:
            work(
                Chain(
                    target,
                    chosen,
                    learnt,
                    known,
                    Actor(moved, moved_states, target),
                    Actor(created, created_states, target),
                )
            )

        _run(target, with_created, structs.replace(waiting, states=created_states), None)

    _run(target, with_moved, structs.replace(waiting, states=moved_states, pause=0.0), base)


def with_operator(target: Target, base: Base, work: Callable[[Cluster], None]) -> None:
    """Starts the operator in a fork of `base`, and calls `work` with the fork. Raises what `work` raises, and as `case.run`."""
    _run(target, lambda live: work(live.cluster), Expected(()), base)


def _run(target: Target, work: Callable[[Live], None], expected: Expected, base: Base | None) -> None:
    raised = list[Exception]()

    def keeping(live: Live) -> None:
        """A case takes the error of a step for a problem of the operator."""
        try:
            work(live)
        except Exception as error:
            raised.append(error)

    options = {name: getattr(target.scenario, name) for name in Scenario.__struct_fields__}
    scenario = Playing(**{**options, "steps": ()}, work=keeping)
    case.run(structs.replace(target, scenario=scenario), expected=expected, base=base)
    if raised:
        raise raised[0]
