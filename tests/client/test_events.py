"""Tests how events are written: as series, counted, combined, or left out."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from fakeapiserver.apimachinery.gvk import GroupVersionResource
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.client.core_events import CoreEventBroadcaster
from fakeapiserver.client.dynamic import DynamicClient, ResourceClient, WriteOptions
from fakeapiserver.client.errors import StatusError
from fakeapiserver.client.record import EventBroadcaster, object_reference

POD: Object = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "shop", "uid": "u"}}


class Still:
    """A clock that a test moves."""

    seconds = 1_700_000_000.0

    def now(self) -> float:
        return self.seconds

    def monotonic(self) -> float:
        return self.seconds

    def call_later(self, delay: float, callback: Any) -> Any:
        raise AssertionError("no call waits")


class Written(DynamicClient):
    """Keeps what is written: the method, and the event or what is changed of it. An event in `gone` isn't there any more."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, Object]] = []
        self.gone = False

    def resource(
        self, gvr: GroupVersionResource, namespace: str = "", *, metadata_only: bool = False
    ) -> ResourceClient:
        return _Events(self)


class _Events(ResourceClient):
    def __init__(self, written: Written) -> None:
        self._written = written

    async def create(self, obj: Object, *subresources: str, **options: Any) -> Object:
        self._written.rows.append(("create", obj))
        return obj

    async def patch(
        self, name: str, patch: Any, *subresources: str, patch_type: str = "", **options: WriteOptions | Any
    ) -> Object:
        self._written.rows.append(("patch", patch))
        if self._written.gone:
            raise StatusError({"reason": "NotFound", "code": 404})
        return {}


def core_events(messages: Sequence[tuple[float, str]]) -> list[tuple[str, int, str]]:
    """Records these messages, each a number of seconds after the previous one, and returns method, count and message of each write."""
    return [(method, event["count"], event["message"]) for method, event in written_events(messages)]


def written_events(messages: Sequence[tuple[float, str]]) -> list[tuple[str, Object]]:
    """Records events as `core_events` does, and returns the whole written objects."""
    written, clock = Written(), Still()

    async def scenario() -> None:
        broadcaster = CoreEventBroadcaster(written, clock=clock)
        recorder = broadcaster.new_recorder("controller")
        running = asyncio.ensure_future(broadcaster.run())
        for seconds, message in messages:
            clock.seconds += seconds
            recorder.event(POD, "Normal", "Created", message)
            for _ in range(5):
                await asyncio.sleep(0)
            assert broadcaster.idle
        running.cancel()

    asyncio.run(scenario())
    return written.rows


def test_what_happens_again_is_counted() -> None:
    assert core_events([(0, "a"), (5, "a"), (5, "b"), (900, "a")]) == [
        ("create", 1, "a"),
        ("patch", 2, "a"),
        ("create", 1, "b"),
        ("patch", 3, "a"),
    ]


def test_from_the_tenth_text_on_events_are_combined() -> None:
    found = core_events([(1, f"m{i}") for i in range(12)] + [(1, "m0"), (601, "m20")])
    assert found[:9] == [("create", 1, f"m{i}") for i in range(9)]
    assert found[9:] == [
        ("create", 1, "(combined from similar events): m9"),
        ("patch", 2, "(combined from similar events): m10"),
        ("patch", 3, "(combined from similar events): m11"),
        ("patch", 2, "m0"),
        ("create", 1, "m20"),
    ]


def test_an_event_that_stands_for_many_is_nobodys() -> None:
    rows = written_events([(1, f"m{i}") for i in range(10)])
    assert [event["reportingComponent"] for _, event in rows] == ["controller"] * 9 + [""]


def test_what_is_left_out_is_counted() -> None:
    found = core_events([(0, "a")] * 40 + [(299, "a"), (1, "a")])
    assert found[:25] == [("create", 1, "a"), *(("patch", count, "a") for count in range(2, 26))]
    assert found[25:] == [("patch", 42, "a")]


def test_a_burst_of_dropped_events_is_two_lines_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    written = Written()

    async def scenario() -> None:
        broadcaster = CoreEventBroadcaster(written, clock=Still())
        recorder = broadcaster.new_recorder("controller")
        for number in range(1100):
            recorder.event({**POD, "metadata": {"name": f"p{number}", "uid": str(number)}}, "Normal", "Created", "m")
        running = asyncio.ensure_future(broadcaster.run())
        for _ in range(5000):
            await asyncio.sleep(0)
        assert broadcaster.idle
        running.cancel()

    asyncio.run(scenario())
    assert len(written.rows) == 1000
    assert caplog.messages == [
        "1000 events wait to be written: more are dropped, first Created",
        "all events that waited are written; 100 were dropped",
    ]


def events(*told: dict[str, Any], gone: bool = False) -> list[tuple[str, Object]]:
    """Records events of events.k8s.io and returns what is written."""
    written = Written()
    written.gone = gone

    async def scenario() -> None:
        broadcaster = EventBroadcaster(written, clock=Still())
        recorder = broadcaster.new_recorder("example.com/controller", "here")
        running = asyncio.ensure_future(broadcaster.run())
        for event in told:
            recorder.event(**{"regarding": POD, "type_": "Normal", "reason": "R", "action": "A", "note": "n", **event})
            await broadcaster.flush()
        running.cancel()

    asyncio.run(scenario())
    return written.rows


def test_an_event_that_comes_again_becomes_a_series() -> None:
    rows = events({}, {"note": "other"}, {}, {"reason": "Other"})
    series = {"count": 2, "lastObservedTime": "2023-11-14T22:13:20.000000Z"}
    assert [method for method, _ in rows] == ["create", "patch", "create"]
    assert rows[1][1]["series"] | {"count": 2} == series


def test_a_series_whose_event_has_gone_is_written_again() -> None:
    methods = [(method, event.get("series", {}).get("count")) for method, event in events({}, {}, gone=True)]
    assert methods == [("create", 2), ("patch", 2), ("create", 2)]  # it is one object, which has come to be a series


@pytest.mark.parametrize(
    ("name", "expected"),
    [("web", "web.17979cfe362a0000"), ("system:web", "event.17979cfe362a0000"), ("x" * 240, "event.17979cfe362a0000")],
)
def test_events_are_named_after_what_they_are_about(name: str, expected: str) -> None:
    regarding = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}}
    ((_, event),) = events({"regarding": regarding})
    assert event["metadata"] == {"name": expected, "namespace": "default"}


def test_notes_are_cut_to_what_a_server_takes() -> None:
    ((_, event),) = events({"note": "é" * 600})
    assert event["note"] == "é" * 512


def test_references_stay_what_they_are() -> None:
    reference = {"apiVersion": "v1", "kind": "Pod", "name": "web", "fieldPath": "spec.containers{app}"}
    assert object_reference(reference) == reference
    assert object_reference(POD) == {"apiVersion": "v1", "kind": "Pod", "name": "web", "namespace": "shop", "uid": "u"}
    with pytest.raises(ValueError, match="the object has no kind"):
        object_reference({"apiVersion": "v1", "metadata": {"name": "a"}})
