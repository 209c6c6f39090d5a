"""The perturbations that a recording suggests, and those that can't differ and are left out."""

from collections.abc import Iterator
from typing import Any

import pytest
from msgspec import json, structs

from fakeapiserver.evidence.entry import Content, RequestEntry
from fakeapiserver.evidence.requests import RequestList
from fakeapiserver.state.changes import ObjectChange
from fakeapiserver.storage.interface import Compacted, StoredObject
from fakeapiserver.sweep.case import Run
from fakeapiserver.sweep.perturbation import Kind, Perturbation
from fakeapiserver.sweep.planning import plan as planning
from fakeapiserver.sweep.states import CONVERSION


def change(revision: int, resource: str, name: str, generation: int = 1, **metadata: Any) -> ObjectChange:
    after = {"metadata": {"namespace": "shop", "name": name, "generation": generation, **metadata}}
    before = {"metadata": {**after["metadata"], "generation": generation - 1}} if generation > 1 else None
    return ObjectChange(revision, resource, before, after)


def deletion(revision: int, resource: str, name: str) -> ObjectChange:
    return ObjectChange(revision, resource, {"metadata": {"namespace": "shop", "name": name}}, None)


def status(revision: int, resource: str, name: str, **metadata: Any) -> ObjectChange:
    """A change of the status alone, which leaves the generation as it is."""
    obj = {"metadata": {"namespace": "shop", "name": name, "generation": 1, **metadata}}
    return ObjectChange(revision, resource, obj, obj)


def write(seq: int, revision: int, verb: str, resource: str, name: str) -> RequestEntry:
    return RequestEntry(
        time=seq, duration=0, method="", path="", verb=verb, group="", version="v1", resource=resource, subresource="",
        namespace="shop", name=name, patch_type="", user="op", user_agent="op", status=200, seq=seq, revision=revision, changed=True,
    )  # fmt: skip


def run(*steps: tuple[str, list[ObjectChange]], writes: list[RequestEntry] | None = None, **fields: Any) -> Run:
    recorded = Run(
        writes=writes or [],
        requests=RequestList(writes or []),
        watched=["databases.example.com", "pods"],
        change_marks=[0],
        **fields,
    )
    for number, (title, changes) in enumerate(steps, 1):
        recorded.titles.append(title)
        recorded.states.append({})
        recorded.changes += changes
        recorded.change_marks.append(len(recorded.changes))
        recorded.marks.append(number * 10)
    return recorded


def letting_go(seq: int, revision: int, name: str) -> RequestEntry:
    """The update that removes the last finalizer of a Database."""
    answer = json.encode({"metadata": {"name": name, "deletionTimestamp": "2026-01-01T00:00:00Z"}})
    content = Content(b"", "", answer, "application/json", NO_HISTORY, revision - 1)
    entry = write(seq, revision, "update", "databases", name)
    return structs.replace(entry, group="example.com", content=content)


class NoHistory:
    """A storage that has forgotten everything."""

    def changes_now(self, revision: int) -> Iterator[tuple[StoredObject | None, StoredObject | None]]:
        raise Compacted(revision)


NO_HISTORY = NoHistory()
DB = "databases.example.com"
OWNED = {"ownerReferences": [{"controller": True}]}


@pytest.mark.parametrize(
    ("recorded", "kind", "expected"),
    [
        pytest.param(run(("apply", [change(1, DB, "db")])), "unobserved", [], id="one state can't be left out"),
        pytest.param(
            run(("apply", [change(1, DB, "db"), status(2, DB, "db")])),
            "unobserved",
            [f"state 1 of {DB} shop/db unseen in step 1"],
            id="all states but the last of a step",
        ),
        pytest.param(
            run(("apply", [change(1, "configmaps", "a"), status(2, "configmaps", "a")])), "unobserved", [], id="an unwatched resource"
        ),
        pytest.param(
            run(("apply", [each for name in ("web-0", "web-1", "web-2") for each in (change(1, "pods", name), status(2, "pods", name))])),
            "unobserved",
            ["state 1 of pods shop/web-0 unseen in step 1", "state 1 of pods shop/web-2 unseen in step 1"],
            id="the first and the last of several pods",
        ),
        pytest.param(
            run(("apply", [change(1, "pods", "web-abcde", generateName="web-"), status(2, "pods", "web-abcde", generateName="web-")])),
            "unobserved",
            ["state 1 of pods shop/web-* unseen in step 1"],
            id="a generated name",
        ),
        pytest.param(
            run(("patch", [change(1, DB, "db", 2)]), ("wait x", []), ("patch", [change(2, DB, "db", 3)])),
            "unobserved",
            [f"state 1 of {DB} shop/db unseen in steps 1 to 3"],
            id="two changes by users, with a step between that waits",
        ),
        pytest.param(
            run(("patch", [change(1, "pods", "a", **OWNED)]), ("patch", [change(2, "pods", "a", 2, **OWNED)])),
            "unobserved",
            [],
            id="not over two steps for what a controller changes",
        ),
        pytest.param(run(("apply", [change(1, DB, "db")])), "reordered", [], id="events of one resource have one order"),
        pytest.param(
            run(("apply", [change(1, DB, "db"), change(2, "pods", "a")])),
            "reordered",
            [f"events of {DB} after all others in step 1", "events of pods after all others in step 1"],
            id="two resources have two orders",
        ),
        pytest.param(
            run(("apply", [change(1, "pods", "a"), status(2, "pods", "a")])),
            "clock",
            ["pods that are ready after 15 minutes"],
            id="slow pods",
        ),
        pytest.param(run(("apply", [change(1, DB, "db")])), "clock", [], id="no pods"),
        pytest.param(
            run(
                ("apply", []),
                ("patch", []),
                writes=[write(1, 1, "create", "pods", "a")],
                webhooks={"pods.example.com": ["pods"], "others.example.com": ["secrets"], "all.example.com": ["*/*"]},
            ),
            "webhook",
            ["webhook pods.example.com down in step 1", "webhook all.example.com down in step 1"],
            id="webhooks that are called for the operator's writes",
        ),
        pytest.param(
            run(("patch", []), ("patch", []), writes=[write(1, 1, "create", "pods", "a"), write(11, 2, "create", "pods", "b")]),
            "away",
            ["killed after create pods shop/a, and away until step 2"],
            id="away while the user goes on, not after the last step",
        ),
        pytest.param(
            run(
                ("delete", [change(1, DB, "db", 2), change(2, DB, "db", 2), deletion(3, "pods", "a")]),
                ("delete", [deletion(4, DB, "other")]),
                writes=[letting_go(1, 2, "db"), letting_go(11, 4, "other")],
            ),
            "slow",
            [f"slow after changes of {DB} shop/db that is being deleted"],
            id="slow when an object is let go, if something follows from that",
        ),
        pytest.param(
            run(
                ("patch", [deletion(2, "pods", "a"), change(3, "pods", "b"), deletion(4, "pods", "c")]),
                ("patch", [deletion(5, "pods", "d"), change(6, "leases.coordination.k8s.io", "node-1")]),
                writes=[write(1, 2, "delete", "pods", "a"), write(2, 4, "delete", "pods", "c"), write(11, 5, "delete", "pods", "d")],
            ),
            "slow",
            ["slow after delete pods shop/a"],
            id="slow after a deletion that another writer reacts to",
        ),
        pytest.param(
            run(("patch", [change(2, "pods", "a"), change(3, "pods", "b")]), writes=[write(1, 2, "create", "pods", "a")]),
            "slow",
            [],
            id="nothing is let go by a creation",
        ),
        *(
            pytest.param(
                run(
                    ("patch", [change(1, DB, "db", 2)]),
                    ("patch", [change(2, DB, "db", 3)]),
                    ("patch", [change(3, "pods", "other")]),
                    writes=[write(1, 9, "create", "pods", "a"), write(11, 10, "create", "pods", "b")],
                    webhooks={name: ["databases"]},
                ),
                "away",
                ["killed after create pods shop/b, and away until step 3"],
                id=f"not away while users need {name}",
            )
            for name in ("databases.example.com", f"{CONVERSION}databases.example.com")
        ),
    ],
)  # fmt: skip
def test_plan(recorded: Run, kind: Kind, expected: list[str]) -> None:
    assert [each.id for each in planning.plan(recorded, recorded, [kind])] == expected


def test_a_test_looks_between_its_steps() -> None:
    """The operator must have seen, and done, everything at the end of each step of a test."""
    recorded = run(
        ("patch", [change(1, DB, "db", 2)]),
        ("patch", [change(2, DB, "db", 3)]),
        writes=[write(1, 9, "create", "pods", "a")],
    )
    assert planning.plan(recorded, recorded, ["unobserved", "away"], looks_between_steps=True) == []


@pytest.mark.parametrize(
    ("perturbation", "parts"),
    [
        pytest.param(Perturbation("crash"), [], id="nothing is smaller"),
        pytest.param(
            Perturbation("unobserved", step=0, until=0, resource="pods", object="shop/a", states=(1, 2)),
            ["state 1 of pods shop/a unseen in step 1", "state 2 of pods shop/a unseen in step 1"],
            id="single states",
        ),
        pytest.param(
            Perturbation("late", resource="pods"), ["late events of pods in step 2"], id="the steps in which there are events"
        ),
    ],
)  # fmt: skip
def test_parts_of_a_perturbation(perturbation: Perturbation, parts: list[str]) -> None:
    recorded = run(("apply", [change(1, DB, "db")]), ("patch", [change(2, "pods", "a")]))
    assert [each.id for each in planning.smaller(perturbation, recorded)] == parts
