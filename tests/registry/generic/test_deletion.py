"""The plan of a DELETE: the finalizers and the grace period that an object waits for."""

from typing import Any

import pytest

from fakeapiserver.apimachinery.gvk import GroupKind, GroupResource
from fakeapiserver.registry.core import RESOURCES
from fakeapiserver.registry.generic.deletion import Deletion, check_preconditions, ends_now, plan
from fakeapiserver.registry.generic.strategy import Strategy

NOW = 1_000_000_000.0
POD = RESOURCES["pods"]
PLAIN = Strategy()
ORPHANS = Strategy(default_propagation="Orphan")
NEVER = Strategy(default_propagation="Unsupported")


def _time(seconds: int) -> str:
    return f"2001-09-09T01:46:{40 + seconds:02}Z"


def _running(grace: int | None = None, **meta: Any) -> dict[str, Any]:
    """A scheduled pod; `grace` seconds were given to it already."""
    if grace is not None:
        meta |= {"deletionTimestamp": _time(grace), "deletionGracePeriodSeconds": grace}
    return {"metadata": meta, "spec": {"nodeName": "n", "terminationGracePeriodSeconds": 15}}


@pytest.mark.parametrize(
    ("strategy", "present", "options", "kept"),
    [
        (PLAIN, [], Deletion(), None),
        (PLAIN, [], Deletion(propagation_policy="Background"), None),
        (PLAIN, [], Deletion(propagation_policy="Foreground"), ["foregroundDeletion"]),
        (PLAIN, [], Deletion(propagation_policy="Orphan"), ["orphan"]),
        (PLAIN, [], Deletion(orphan_dependents=True), ["orphan"]),
        (PLAIN, [], Deletion(orphan_dependents=False), None),
        (PLAIN, ["orphan"], Deletion(), ["orphan"]),
        (PLAIN, ["orphan"], Deletion(propagation_policy="Background"), None),
        (PLAIN, ["foregroundDeletion", "a/b"], Deletion(), ["foregroundDeletion", "a/b"]),
        (PLAIN, ["foregroundDeletion", "a/b"], Deletion(propagation_policy="Orphan"), ["a/b", "orphan"]),
        (ORPHANS, [], Deletion(), ["orphan"]),
        (ORPHANS, [], Deletion(propagation_policy="Background"), None),
        (NEVER, ["orphan"], Deletion(propagation_policy="Foreground"), None),
        (NEVER, ["a/b"], Deletion(), ["a/b"]),
    ],
)
def test_finalizers_that_keep_an_object(
    strategy: Strategy, present: list[str], options: Deletion, kept: list[str] | None
) -> None:
    planned = plan({"metadata": {"finalizers": present}}, options, strategy, NOW)
    assert planned.ends == (kept is None)
    assert (planned.marked["metadata"].get("finalizers") if planned.marked else None) == kept


def test_the_first_deletion_raises_the_generation_once() -> None:
    first = plan({"metadata": {"generation": 3, "finalizers": ["a/b"]}}, Deletion(), PLAIN, NOW).marked
    assert first is not None
    assert first["metadata"] == {
        "generation": 4,
        "finalizers": ["a/b"],
        "deletionTimestamp": _time(0),
        "deletionGracePeriodSeconds": 0,
    }
    assert plan(first, Deletion(), PLAIN, NOW + 9).marked == first


@pytest.mark.parametrize(
    ("given", "wanted", "grace", "at", "ends"),
    [
        (None, None, 15, 15, False),
        (None, 5, 5, 5, False),
        (None, -7, 1, 1, False),
        (None, 0, 0, 0, True),
        (10, 4, 4, 4, False),
        (10, 0, 0, 0, True),
        (10, -1, 1, 1, False),
        (10, 10, None, None, False),  # only a shorter time is taken
        (10, None, None, None, False),
        (0, 5, None, None, True),
    ],
)
def test_time_that_pods_are_given(
    given: int | None, wanted: int | None, grace: int | None, at: int | None, ends: bool
) -> None:
    planned = plan(_running(given), Deletion(grace_period_seconds=wanted), POD, NOW)
    assert planned.ends == ends
    if grace is None or at is None:
        assert planned.marked is None
    else:
        assert planned.marked is not None
        assert planned.marked["metadata"] == {"deletionTimestamp": _time(at), "deletionGracePeriodSeconds": grace}


def test_time_that_has_run_out_is_shortened_to_a_second() -> None:
    marked = plan(_running(10), Deletion(grace_period_seconds=5), POD, NOW + 8).marked
    assert marked is not None
    assert marked["metadata"] == {"deletionTimestamp": _time(8), "deletionGracePeriodSeconds": 1}


@pytest.mark.parametrize(
    ("old", "new", "gone"),
    [
        ({}, {}, False),
        ({"deletionTimestamp": _time(0)}, {}, True),
        ({"deletionTimestamp": _time(0), "deletionGracePeriodSeconds": 0}, {}, True),
        ({"deletionTimestamp": _time(0), "deletionGracePeriodSeconds": 9}, {}, False),
        ({"deletionTimestamp": _time(0)}, {"finalizers": ["a/b"]}, False),
    ],
)
def test_updates_that_end_an_object(old: dict[str, Any], new: dict[str, Any], gone: bool) -> None:
    assert ends_now({"metadata": new}, {"metadata": old}) == gone


@pytest.mark.parametrize(
    ("strategy", "options", "message"),
    [
        (PLAIN, Deletion(), ""),
        (PLAIN, Deletion(uid="u", resource_version="7"), ""),
        (
            PLAIN,
            Deletion(uid="x"),
            'Operation cannot be fulfilled on Thing.g "n": the UID in the precondition (x) does not match the UID in record (u). '
            "The object might have been deleted and then recreated",
        ),
        (
            PLAIN,
            Deletion(resource_version="1"),
            'Operation cannot be fulfilled on Thing.g "n": the ResourceVersion in the precondition (1) does not match the '
            "ResourceVersion in record (7). The object might have been modified",
        ),
        (
            RESOURCES["namespaces"],
            Deletion(uid="x"),
            'Operation cannot be fulfilled on things.g "n": Precondition failed: UID in precondition: x, UID in object meta: u',
        ),
    ],
)
def test_preconditions(strategy: Strategy, options: Deletion, message: str) -> None:
    obj = {"metadata": {"uid": "u", "resourceVersion": "7"}}
    refused = check_preconditions(obj, options, strategy, GroupResource("g", "things"), GroupKind("g", "Thing"), "n")
    assert (refused.message if refused else "") == message
