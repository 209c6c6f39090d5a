"""The time line of a case: the operator's writes around the surprise."""

import pytest

from fakeapiserver.evidence.entry import RequestEntry
from fakeapiserver.evidence.requests import RequestList
from fakeapiserver.sweep.case import Run
from fakeapiserver.sweep.judging import Finding, Symptom
from fakeapiserver.sweep.reporting import details
from fakeapiserver.sweep.timeline import STARTED_AGAIN, timeline


def entry(
    time: float, verb: str = "create", name: str = "db", *, start: int = 1, status: int = 201, **fields: str
) -> RequestEntry:
    """A request for a secret in the namespace shop."""
    words = {"reason": "", "fault": "", "resource": "secrets", **fields}
    return RequestEntry(
        time=time,
        duration=0.0,
        method="POST",
        path="/",
        verb=verb,
        group="",
        version="v1",
        subresource="",
        namespace="shop",
        name=name,
        patch_type="",
        user=f"operator-under-test-{start}",
        user_agent="",
        status=status,
        **words,
    )


@pytest.mark.parametrize(
    ("entries", "lines"),
    [
        pytest.param([], [], id="nothing was written"),
        pytest.param([entry(5.0, "get"), entry(5.0, "list")], [], id="reads aren't shown"),
        pytest.param([entry(5.0, "update", resource="leases")], [], id="renewed leases aren't shown"),
        pytest.param(
            [entry(5.0), entry(6.5, start=2, status=409, reason="AlreadyExists")],
            ["-1.500 create secrets shop/db 201", STARTED_AGAIN, "+0.000 create secrets shop/db 409 AlreadyExists"],
            id="a crash: since the second start",
        ),
        pytest.param(
            [entry(5.0), entry(6.0, status=504, reason="Timeout", fault="fault 1"), entry(6.25, name="db-2")],
            [
                "-1.000 create secrets shop/db 201",
                "+0.000 create secrets shop/db 504 Timeout",
                "+0.250 create secrets shop/db-2 201",
            ],
            id="a refused write: since then",
        ),
        pytest.param(
            [entry(5.0), entry(6.0, status=0, fault="fault 1"), *[entry(7.0, "patch", status=200)] * 3],
            [
                "-1.000 create secrets shop/db 201",
                "+0.000 create secrets shop/db no answer",
                "+1.000 patch secrets shop/db 200 (3 times)",
            ],
            id="repetitions are one line",
        ),
        pytest.param(
            [entry(5.0, "watch", "", status=200, fault="fault 1"), entry(6.0)],
            ["+0.000 watch secrets shop 200", "+1.000 create secrets shop/db 201"],
            id="a watch that was struck",
        ),
    ],
)
def test_what_is_shown(entries: list[RequestEntry], lines: list[str]) -> None:
    assert timeline(Run(requests=RequestList(entries))) == lines


def test_a_long_run_is_shown_around_the_surprise() -> None:
    entries = [entry(float(number), name=f"s{number}", fault="fault 1" * (number == 20)) for number in range(60)]
    lines = timeline(Run(requests=RequestList(entries)))
    assert [lines[0], lines[5], lines[-1]] == [
        "-5.000 create secrets shop/s15 201",
        "+0.000 create secrets shop/s20 201",
        "+8.000 create secrets shop/s28 201",
    ]


def test_the_report_has_it() -> None:
    symptom = Symptom("missing", "secrets shop/db", "secrets shop/db is missing")
    finding = Finding([symptom], ["crash after create secrets shop/db"], timeline=["+0.000 create secrets shop/db 201"])
    assert details(finding, lambda _: "the command") == [
        "   by: crash after create secrets shop/db",
        "   - secrets shop/db is missing",
        "   what the operator did, in seconds since then:",
        "     +0.000 create secrets shop/db 201",
        "   again: the command",
    ]
