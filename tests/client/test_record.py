"""Events of operators: what is let through, what is combined, and what becomes of an event that can't be written."""

import asyncio
from typing import Any

import pytest

from fakeapiserver.client.errors import StatusError, TransportError
from fakeapiserver.client.record import NORMAL, WARNING, EventBroadcaster, EventRecorder

WIDGET: dict[str, Any] = {
    "apiVersion": "example.com/v1",
    "kind": "Widget",
    "metadata": {"name": "w", "namespace": "ns", "uid": "1", "resourceVersion": "7", "labels": {"a": "b"}},
}


class Clock:
    """Stands still until it is turned."""

    def __init__(self) -> None:
        self.time = 1000.0

    def now(self) -> float:
        return 1.8e9 + self.time

    def monotonic(self) -> float:
        return self.time


class Server:
    """Stores written events; its first requests fail with the given errors."""

    def __init__(self, *failures: Exception) -> None:
        self.failures = [*failures]
        self.written: list[dict[str, Any]] = []
        self.patches: list[tuple[str, dict[str, Any]]] = []

    def resource(self, gvr: object, namespace: str = "") -> "Server":
        return self

    async def create(self, event: dict[str, Any]) -> dict[str, Any]:
        if self.failures:
            raise self.failures.pop(0)
        self.written.append(event)
        return event

    async def patch(self, name: str, patch: dict[str, Any], **options: object) -> dict[str, Any]:
        self.patches.append((name, patch))
        return {}


def recorded(server: Server, tell: "Tell") -> list[float]:
    """Records and writes all events; returns how long the recorder waited in between."""
    clock, waits = Clock(), []

    async def sleep(seconds: float) -> None:
        if seconds > 60:  # until series are looked at
            await asyncio.Event().wait()
        waits.append(seconds)

    async def scenario() -> None:
        broadcaster = EventBroadcaster(server, clock=clock, sleep=sleep)  # type: ignore[arg-type]
        running = asyncio.ensure_future(broadcaster.run())
        await tell(broadcaster.new_recorder("example.com/operator", "operator-1"), clock)
        await broadcaster.flush()
        running.cancel()

    asyncio.run(scenario())
    return waits


class Tell:
    """Records a number of events, with some seconds between them."""

    def __init__(self, count: int = 1, note: str = "all is well", seconds: float = 0.0, **options: Any) -> None:
        self.count, self.note, self.seconds = count, note, seconds
        self.options = options

    async def __call__(self, recorder: EventRecorder, clock: Clock) -> None:
        for number in range(self.count):
            recorder.event(WIDGET, WARNING, "Failed", "Sync", self.note.format(number), **self.options)
            clock.time += self.seconds
            await asyncio.sleep(0)


def test_an_event_names_its_reporter_and_its_object() -> None:
    server = Server()
    recorded(server, Tell(related={**WIDGET, "metadata": {"name": "x"}}, annotations={"by": "me"}))
    reference = {"kind": "Widget", "namespace": "ns", "name": "w", "uid": "1", "apiVersion": "example.com/v1"}
    (event,) = server.written
    assert event["metadata"].pop("name").startswith("w.18f")
    assert event == {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"namespace": "ns", "annotations": {"by": "me"}},
        "eventTime": "2027-01-15T08:16:40.000000Z",
        "reportingController": "example.com/operator",
        "reportingInstance": "operator-1",
        "action": "Sync",
        "reason": "Failed",
        "regarding": {**reference, "resourceVersion": "7"},
        "related": {"kind": "Widget", "name": "x", "apiVersion": "example.com/v1"},
        "note": "all is well",
        "type": "Warning",
    }


def test_what_happens_again_is_a_series() -> None:
    server = Server()
    recorded(server, Tell(3))
    (event,) = server.written
    assert server.patches == [
        (event["metadata"]["name"], {"series": {"count": 2, "lastObservedTime": "2027-01-15T08:16:40.000000Z"}})
    ]


@pytest.mark.parametrize(("seconds", "allowed"), [(0.0, 25), (300.0, 40)])
def test_an_object_has_so_many_events_and_no_more(seconds: float, allowed: int) -> None:
    server = Server()
    told: list[object] = []

    class Counting(EventBroadcaster):
        def _combined(self, event: dict[str, Any]) -> dict[str, Any]:
            told.append(event)
            return super()._combined(event)

    async def scenario() -> None:
        clock = Clock()
        broadcaster = Counting(server, clock=clock)  # type: ignore[arg-type]
        await Tell(40, seconds=seconds)(broadcaster.new_recorder("c"), clock)

    asyncio.run(scenario())
    assert len(told) == allowed


def test_many_that_differ_in_their_text_only_are_combined() -> None:
    notes: list[str] = []

    class Noting(EventBroadcaster):
        def _combined(self, event: dict[str, Any]) -> dict[str, Any]:
            found = super()._combined(event)
            notes.append(found["note"])
            return found

    async def scenario() -> None:
        clock = Clock()
        broadcaster = Noting(Server(), clock=clock)  # type: ignore[arg-type]
        await Tell(11, note="try {}")(broadcaster.new_recorder("c"), clock)

    asyncio.run(scenario())
    assert notes[8:] == ["try 8", "(combined from similar events): try 9", "(combined from similar events): try 10"]


@pytest.mark.parametrize(
    ("failures", "written", "tries"),
    [
        ([TransportError("refused")] * 3, 1, 3),  # tried again
        ([TransportError("refused")] * 12, 0, 12),  # given up
        ([StatusError({"code": 403, "reason": "Forbidden", "message": "no"})], 0, 0),  # the server has spoken
        ([StatusError({"code": 409, "reason": "AlreadyExists", "message": "it is there"})], 0, 0),
        ([KeyError("a mistake")], 0, 0),
    ],
)
def test_who_can_not_be_reached_is_asked_again(failures: list[Exception], written: int, tries: int) -> None:
    server = Server(*failures)
    waits = recorded(server, Tell())
    assert len(server.written) == written
    assert len(waits) == tries
    assert all(10 <= wait <= 12.5 for wait in waits)


def test_long_names_and_notes_fit() -> None:
    server = Server()
    named = {**WIDGET, "metadata": {"name": "n" * 250}}

    async def tell(recorder: EventRecorder, clock: Clock) -> None:
        recorder.event(named, NORMAL, "Synced", "Sync", "x" * 2000)

    recorded(server, tell)  # type: ignore[arg-type]
    (event,) = server.written
    assert len(event["metadata"]["name"]) <= 253
    assert event["metadata"]["namespace"] == "default"
    assert event["note"] == "x" * 1024


@pytest.mark.parametrize(
    ("regarding", "event_type", "message"),
    [
        (WIDGET, "Info", "unsupported event type 'Info': use Normal or Warning"),
        ({"metadata": {"name": "w"}}, NORMAL, "can't make a reference: the object has no kind, apiVersion"),
    ],
)
def test_events_that_can_not_be_recorded(regarding: dict[str, Any], event_type: str, message: str) -> None:
    recorder = EventBroadcaster(Server()).new_recorder("c")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=f"^{message}$"):
        recorder.event(regarding, event_type, "Synced", "Sync", "all is well")
