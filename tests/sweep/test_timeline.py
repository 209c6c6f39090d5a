"""The time line of a case: the operator's writes around the surprise."""

import pytest

from fakeapiserver.evidence.entry import RequestEntry
from fakeapiserver.evidence.requests import RequestList
from fakeapiserver.sweep.case import Note, Run
from fakeapiserver.sweep.judging import Finding, Symptom
from fakeapiserver.sweep.perturbation import Perturbation
from fakeapiserver.sweep.reporting import details
from fakeapiserver.sweep.timeline import Event, shown_lines, timeline


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


def test_events_are_shown_if_they_are_what_is_wrong() -> None:
    run = Run(
        requests=RequestList([entry(5.0, resource="events")]), notes=[Note(4.0, "started"), Note(4.5, "step", "apply")]
    )
    assert [
        [each.text for each in timeline(run, shows_events=shows) if each.lane == "request"] for shows in (False, True)
    ] == [[], ["create events shop/db 201"]]


@pytest.mark.parametrize(
    ("entries", "lines"),
    [
        pytest.param([], [], id="nothing was written"),
        pytest.param([entry(5.0, "get"), entry(5.0, "list")], [], id="reads aren't shown"),
        pytest.param([entry(5.0, "update", resource="leases")], [], id="renewed leases aren't shown"),
        pytest.param(
            [
                entry(5.0, resource="events"),
                entry(6.0, resource="events", status=504, reason="Timeout", fault="fault 1"),
            ],
            ["+0.000 create events shop/db 504 Timeout"],
            id="Events aren't shown, unless a fault strikes them",
        ),
        pytest.param(
            [entry(5.0), entry(6.5, start=2, status=409, reason="AlreadyExists")],
            [
                "-0.250 create secrets shop/db 201",
                "-0.200 the operator is killed",
                "+0.000 the operator is started again",
                "+1.250 create secrets shop/db 409 AlreadyExists",
            ],
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
    notes = [Note(3.0, "started"), Note(5.05, "killed"), Note(5.25, "started")] * any(
        each.user.endswith("2") for each in entries
    )
    events = timeline(Run(requests=RequestList(entries), notes=notes), Perturbation("crash"))
    assert [each.line for each in events if each.lane != "surprise"] == lines
    assert [line.strip() for line in shown_lines(events)[1:]] == lines


def test_a_long_run_is_shown_around_the_surprise() -> None:
    entries = [entry(float(number), name=f"s{number}", fault="fault 1" * (number == 20)) for number in range(60)]
    events = timeline(Run(requests=RequestList(entries)))
    assert [events[0].time, events[-1].time] == [-15.0, 39.0]
    assert [events[15].is_struck, sum(each.is_struck for each in events)] == [True, 1]
    lines = shown_lines(events)[1:]
    assert [lines[0], lines[5], lines[-1]] == [
        "     -5.000 create secrets shop/s15 201",
        "     +0.000 create secrets shop/s20 201",
        "     +8.000 create secrets shop/s28 201",
    ]


def test_an_old_view_begins_at_the_restart() -> None:
    """The write before which the view was frozen is long past, and the reads from that view say nothing."""
    entries = [
        entry(4.0, "delete", status=200, fault="fault 1"),
        entry(9.5, "list", "", start=2, status=200, fault="fault 2"),
        entry(10.0, "delete", "db-2", start=2, status=200),
    ]
    notes = [Note(2.0, "started"), Note(8.9, "killed"), Note(9.0, "started")]
    events = timeline(Run(requests=RequestList(entries), notes=notes), Perturbation("stale", until=1))
    assert [line.strip() for line in shown_lines(events)[1:]] == [
        "-5.000 delete secrets shop/db 200",
        "-0.100 the operator is killed",
        "+0.000 the operator is started again",
        "+1.000 delete secrets shop/db-2 200",
    ]


NOTES = [
    Note(0.0, "started"),
    Note(1.0, "step", "apply Database db"),
    Note(2.0, "rest"),
    Note(2.0, "step", "patch databases/db"),
    Note(5.0, "rest"),
]


@pytest.mark.parametrize(
    ("notes", "perturbation", "expected"),
    [
        pytest.param(
            NOTES,
            Perturbation("reordered", step=1, until=1, resource="secrets"),
            [
                Event(-1.0, "step", "step 1: apply Database db", 0.0),
                Event(0.0, "step", "step 2: patch databases/db", 3.0),
                Event(0.0, "surprise", "events of secrets after all others in step 2", 3.0),
                Event(0.5, "request", "create secrets shop/db 201"),
            ],
            id="a surprise that lasts for a step",
        ),
        pytest.param(
            [*NOTES, Note(5.5, "killed"), Note(5.75, "started")],
            Perturbation("stale", step=0, until=1),
            [
                Event(-4.75, "step", "step 1: apply Database db", -3.75),
                Event(-3.75, "step", "step 2: patch databases/db", -0.75),
                Event(-3.25, "request", "create secrets shop/db 201"),
                Event(-0.25, "operator", "the operator is killed"),
                Event(0.0, "surprise", "restart after step 2 with the state after step 1"),
                Event(0.0, "operator", "the operator is started again"),
            ],
            id="a start with an old view",
        ),
        pytest.param(
            NOTES,
            None,
            [
                Event(-1.0, "operator", "the operator is started"),
                Event(0.0, "step", "step 1: apply Database db", 1.0),
                Event(1.0, "step", "step 2: patch databases/db", 4.0),
                Event(1.5, "request", "create secrets shop/db 201"),
            ],
            id="another spec",
        ),
    ],
)
def test_steps_and_starts(notes: list[Note], perturbation: Perturbation | None, expected: list[Event]) -> None:
    assert timeline(Run(requests=RequestList([entry(2.5)]), notes=notes), perturbation) == expected


def test_the_report_has_it() -> None:
    symptom = Symptom("missing", "secrets shop/db", "the Secret shop/db is missing")
    events = [Event(0.0, "surprise", "crash"), Event(0.0, "request", "create secrets shop/db 201")]
    finding = Finding([symptom], ["crash after create secrets shop/db"], timeline=events)
    assert details(finding, lambda _: "the command") == [
        "   by: crash after create secrets shop/db",
        "   what happened, in seconds since then:",
        "     +0.000 create secrets shop/db 201",
        "   again: the command",
    ]
