"""The differences of two trials of a command, without what differs by chance."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from fakeapiserver.cli.upgrade.comparison import Added, Counted, compare
from fakeapiserver.cli.upgrade.trial import Kind, Trial
from fakeapiserver.sweep.states import State

GONE = Kind(
    "create",
    "workloads.scheduling.k8s.io v1alpha1",
    404,
    "NotFound",
    "the server could not find the requested resource",
)
RACE = Kind("update", "leases.coordination.k8s.io v1", 409, "Conflict", "…")
DEPRECATED = Kind("create", "endpoints v1", 0, "", "v1 Endpoints is deprecated in v1.33+")


def trial(
    *refusals: Kind,
    status: int = 0,
    warnings: tuple[Kind, ...] = (),
    added: Mapping[str, Any] = MappingProxyType({}),
    state: State = MappingProxyType({}),
) -> Trial:
    return Trial(status, 10, dict.fromkeys(refusals, 2), dict.fromkeys(warnings, 3), state, {"pods v1": dict(added)})


def test_equal_trials_do_not_differ() -> None:
    first = trial(
        GONE, warnings=(DEPRECATED,), added={"spec.x": 1}, state={"pods a": {"kind": "Pod", "spec": {"x": 1}}}
    )
    assert compare(first, first).is_empty
    assert compare(first, first, first).is_empty


def test_each_part_that_differs() -> None:
    old = trial(RACE, added={"spec.old": 1}, state={"pods a": {"kind": "Pod", "spec": {"x": 1}}})
    new = trial(
        GONE,
        status=1,
        warnings=(DEPRECATED,),
        added={"spec.new": 2},
        state={"pods a": {"kind": "Pod", "spec": {"x": 2}}, "pods b": {"kind": "Pod"}},
    )
    found = compare(old, new)
    assert found.statuses == (0, 1)
    assert found.refusals == ([Counted(RACE, 2)], [Counted(GONE, 2)])
    assert found.warnings == ([], [Counted(DEPRECATED, 3)])
    assert found.added == ([Added("pods v1", "spec.old", 1)], [Added("pods v1", "spec.new", 2)])
    assert [(each.title, each.path, each.wanted, each.actual) for each in found.objects] == [
        ("pods a", "spec.x", "1", "2"),
        ("pods b", "", "", '{"kind": "Pod"}'),
    ]


def test_what_another_trial_of_the_old_version_shows_is_chance() -> None:
    pod = {"kind": "Pod", "spec": {"x": 1}}
    old, new = trial(RACE, state={"pods a": pod}), trial(state={"pods a": {"kind": "Pod", "spec": {"x": 2}}})
    assert compare(old, new, trial(state={"pods a": {"kind": "Pod", "spec": {"x": 3}}})).is_empty
    assert not compare(old, new, trial(RACE, state={"pods a": pod})).is_empty
    assert compare(new, old, trial(RACE, state={"pods a": pod})).is_empty


def test_fields_of_resources_that_one_version_has_not_are_left_out() -> None:
    old = Trial(0, 1, {}, {}, {}, {})
    assert compare(old, trial(added={"spec.new": 2})).is_empty
