"""The checker of recorded watches finds each kind of broken promise."""

from typing import Any

import pytest

from fakeapiserver.testing.watch_history import Event, Watch, Write, split_initial, state_at, violations


def obj(name: str, revision: int, note: str = "in") -> dict[str, Any]:
    return {"metadata": {"name": name, "resourceVersion": str(revision), "labels": {"note": note}}}


def event(kind: str, name: str, revision: int, note: str = "in") -> Event:
    return {"type": kind, "object": obj(name, revision, note)}


def bookmark(revision: int, **annotations: str) -> Event:
    return {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": str(revision), "annotations": annotations}}}


LOG = [
    Write(2, "a", obj("a", 2)),
    Write(3, "b", obj("b", 3, "out")),
    Write(5, "a", obj("a", 5)),
    Write(6, "b", obj("b", 6)),
    Write(7, "a", obj("a", 7, "out")),
    Write(8, "b", None),
]
ALL = [
    event("ADDED", "a", 2),
    event("ADDED", "b", 3, "out"),
    event("MODIFIED", "a", 5),
    event("MODIFIED", "b", 6),
    event("MODIFIED", "a", 7, "out"),
    event("DELETED", "b", 8),
]
SELECTED = [
    event("ADDED", "a", 2),
    event("MODIFIED", "a", 5),
    event("ADDED", "b", 6),
    event("DELETED", "a", 7),
    event("DELETED", "b", 8),
]


def selects(found: dict[str, Any]) -> bool:
    return bool(found["metadata"]["labels"]["note"] == "in")


@pytest.mark.parametrize(
    "watch",
    [
        Watch(0, ALL),
        Watch(3, ALL[2:]),
        Watch(0, SELECTED, selects),
        Watch(0, [*ALL[:3], bookmark(5), *ALL[3:], bookmark(9)]),
        Watch(0, ALL[:2], complete=False),
    ],
)
def test_a_true_history_passes(watch: Watch) -> None:
    assert violations(LOG, watch) == []


@pytest.mark.parametrize(
    ("watch", "complaint"),
    [
        (Watch(0, ALL[1:]), "ADDED b at 3 where ADDED a at 2 was due"),
        (Watch(0, ALL[:-1]), "DELETED b at 8 never came"),
        (Watch(0, [*ALL[:2], ALL[1], *ALL[2:]]), "ADDED b at 3 after 3 was told"),
        (Watch(0, [ALL[1], ALL[0], *ALL[2:]]), "ADDED a at 2 after 3 was told"),
        (Watch(0, [*ALL[:2], bookmark(6), *ALL[2:]]), "a bookmark of 6 ahead of MODIFIED a at 5"),
        (Watch(0, [*ALL[:4], bookmark(5), *ALL[4:]]), "a bookmark of 5 behind an event of 6"),
        (Watch(0, ALL, selects), "ADDED b at 3 where MODIFIED a at 5 was due"),
        (Watch(0, [event("MODIFIED", "a", 2), *ALL[1:]]), "MODIFIED a at 2 where ADDED a at 2 was due"),
        (Watch(0, [event("ADDED", "a", 2, "out"), *ALL[1:]]), "ADDED a at 2 where ADDED a at 2 was due"),
    ],
)
def test_a_broken_promise_is_reported(watch: Watch, complaint: str) -> None:
    assert complaint in violations(LOG, watch)


def test_initial_events_end_with_their_bookmark() -> None:
    end = bookmark(5, **{"k8s.io/initial-events-end": "true"})
    assert split_initial([*ALL[:2], end, *ALL[3:]]) == (ALL[:2], 5, ALL[3:])
    with pytest.raises(ValueError, match="no bookmark"):
        split_initial(ALL)


def test_the_state_at_a_revision() -> None:
    assert state_at(LOG, 6) == {"a": obj("a", 5), "b": obj("b", 6)}
    assert state_at(LOG, 8) == {"a": obj("a", 7, "out")}
