"""Detectors of bad habits: each finds its habit from its limit on, and nothing in the requests of a good client."""

import json
from collections.abc import Callable, Iterator

import pytest

from fakeapiserver.evidence.entry import Content, RequestEntry
from fakeapiserver.evidence.findings import Limits, findings
from fakeapiserver.evidence.requests import RequestList
from fakeapiserver.storage.interface import StoredObject


class NoHistory:
    def changes_now(self, revision: int) -> Iterator[tuple[StoredObject | None, StoredObject | None]]:
        raise NotImplementedError


def entry(
    seq: int,
    verb: str,
    resource: str = "pods",
    status: int = 200,
    *,
    agent: str = "op/1",
    body: object = None,
    query: str = "",
    every: float = 0.1,
    changed: bool = True,
    size: int = 0,
) -> RequestEntry:
    text = json.dumps(body).encode() if body is not None else b""
    content = Content(text, "application/json", text, "application/json", NoHistory(), 0)
    return RequestEntry(
        seq * every, 0.001, "GET", f"/api/v1/namespaces/default/{resource}/a", verb, "", "v1", resource, "", "default",
        "a", "", "jane", agent, status, seq=seq, query=query, revision=seq, changed=changed, response_bytes=size,
        content=content,
    )  # fmt: skip


def lease(holder: str) -> object:
    return {"spec": {"holderIdentity": holder, "leaseDurationSeconds": 15}}


def sent(revision: str) -> object:
    return {"metadata": {"resourceVersion": revision}}


CASES: list[tuple[str, int, Callable[[int], list[RequestEntry]], str]] = [
    ("hot_loops", 20, lambda n: [entry(i, "update") for i in range(n)], "op/1 sent update pods default/a 20 times"),
    ("unchanged_writes", 3, lambda n: [entry(i + 1, "patch", changed=False) for i in range(n)], "3 times without changing"),
    ("repeated_reads", 10, lambda n: [entry(i, "get") for i in range(n)], "which a cache would answer"),
    ("reopened_watches", 5, lambda n: [entry(i, "watch") for i in range(n)], "opened watches of pods default/a 5 times"),
    ("unlimited_lists", 1, lambda n: [entry(i, "list", size=1_000_000) for i in range(n)], "without limit: 1000000 bytes"),
    (
        "blind_retries",
        1,
        lambda n: [entry(0, "update", status=409, body=sent("7")), *(entry(1 + i, "update", body=sent("7")) for i in range(n))],
        "after a conflict, with the same resourceVersion",
    ),
    (
        "lost_leases",
        1,
        lambda n: [
            entry(0, "update", "leases", body=lease("a")),
            entry(1, "update", "leases", body=lease("b"), agent="other/1"),
            *(entry(2 + i, "create") for i in range(n)),
        ],
        "wrote 1 times after it had lost the lease default/a",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("detector", "limit", "requests", "sentence"), CASES, ids=[case[0] for case in CASES])
def test_a_habit_is_found_from_its_limit_on(
    detector: str, limit: int, requests: Callable[[int], list[RequestEntry]], sentence: str
) -> None:
    assert findings(requests(limit - 1), (), {}) == []
    (found,) = findings(requests(limit), (), {})
    assert (found.detector, found.client) == (detector, "op/1")
    assert sentence in str(found)
    assert "/namespaces/default/pods/a 200 1.0 ms" in str(found)
    off: Limits = {detector: 0}  # type: ignore[misc]
    assert findings(requests(limit), (), off) == []
    assert findings(requests(limit), ["hot_loops" if detector != "hot_loops" else "blind_retries"], {}) == []
    if detector != "unlimited_lists":
        higher: Limits = {detector: limit + 1}  # type: ignore[misc]
        assert findings(requests(limit), (), higher) == []


@pytest.mark.parametrize(
    ("habit", "requests"),
    [
        ("slow updates", [entry(i, "update", every=10) for i in range(60)]),
        ("reads of different clients", [entry(i, "get", agent=f"op/{i}") for i in range(60)]),
        ("pages of a list", [entry(i, "list", query=f"limit=500&continue=x{i}", size=2_000_000) for i in range(60)]),
        ("retries with a new revision", [entry(i, "update", status=409, body=sent(str(i)), every=9) for i in range(9)]),
        ("dry retries of a patch without revision", [entry(i, "patch", status=409, body={}, every=9) for i in range(9)]),
        ("renewals", [entry(i, "update", "leases", body=lease("a")) for i in range(60)]),
        (
            "writes while the lease lasts",
            [entry(i, "create" if i % 2 else "update", "pods" if i % 2 else "leases", body=lease("a"), every=10) for i in range(9)],
        ),
    ],
)  # fmt: skip
def test_a_good_client_has_no_findings(habit: str, requests: list[RequestEntry]) -> None:
    assert findings(requests, (), {}) == []


@pytest.mark.parametrize(
    ("holder", "second"), [("a", 200), ("", 1)], ids=["a lease that expired", "a lease that was released"]
)
def test_writes_without_the_lease_are_found(holder: str, second: int) -> None:
    requests = [entry(0, "update", "leases", body=lease(holder)), entry(second, "create")]
    assert [found.detector for found in findings(requests, (), {})] == ["lost_leases"]


@pytest.mark.parametrize(
    ("only", "limits", "sentence"),
    [
        (("hot_loop",), {}, "there is no detector 'hot_loop': the detectors are hot_loops, unchanged_writes"),
        ((), {"hot_loops": -1}, "hot_loops must be a whole number, 0 to turn it off, not -1"),
    ],
)
def test_wrong_settings_are_refused(only: tuple[str, ...], limits: Limits, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        findings([], only, limits)


def test_a_list_asserts_health() -> None:
    bad = RequestList(entry(i, "update") for i in range(30))
    with pytest.raises(
        AssertionError, match=r"hot_loops: op/1 sent update pods default/a 30 times within 5 s\n(.*\n){5}… 25 more"
    ):
        bad.assert_healthy()
    bad.assert_healthy(hot_loops=31)
    bad.assert_healthy("blind_retries")
