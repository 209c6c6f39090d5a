"""A watch by itself: its initial events, its bookmarks, its encodings and its ends."""

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from fakeapiserver.apimachinery.errors import StatusError, new_resource_expired
from fakeapiserver.clock import AdjustableClock
from fakeapiserver.endpoints.request import PUSH, Piece, Response
from fakeapiserver.endpoints.scope import RequestScope
from fakeapiserver.endpoints.verbs.shared_frames import LARGE
from fakeapiserver.endpoints.verbs.watch import _lifetime, watch
from fakeapiserver.storage.interface import Event
from tests.endpoints.in_process import Server, frames, serving

MAPS = "/api/v1/namespaces/default/configmaps"


class Watching:
    """A server with the config maps a and b, and its watches."""

    def __init__(self, server: Server, clock: AdjustableClock) -> None:
        self.server = server
        self.clock = clock

    @property
    def scope(self) -> RequestScope:
        scope = self.server.api.scopes.lookup("", "v1", "configmaps")
        assert scope is not None
        return scope

    async def open(self, query: str, *headers: tuple[bytes, bytes]) -> Response:
        return await watch(self.server.request("GET", f"{MAPS}?watch=1&{query}", None, *headers), self.scope)

    async def create(self, name: str, **labels: str) -> None:
        assert (await self.server.ask("POST", MAPS, {"metadata": {"name": name, "labels": labels}})).status == 201


@asynccontextmanager
async def watching() -> AsyncIterator[Watching]:
    clock = AdjustableClock()
    async with serving(clock) as server:
        opened = Watching(server, clock)
        for name in ("a", "b"):
            await opened.create(name, app=name)
        yield opened


def run(scenario: Callable[[Watching], Awaitable[Any]]) -> Any:
    async def run_it() -> Any:
        async with watching() as opened:
            return await scenario(opened)

    return asyncio.run(run_it())


def named(events: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(event["type"], event["object"]["metadata"].get("name", "")) for event in events]


@pytest.mark.parametrize(
    ("query", "events"),
    [
        ("", [("ADDED", "a"), ("ADDED", "b")]),
        ("resourceVersion=0", [("ADDED", "a"), ("ADDED", "b")]),
        ("labelSelector=app%3Db", [("ADDED", "b")]),
        (
            "sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan",
            [("ADDED", "a"), ("ADDED", "b"), ("BOOKMARK", "")],
        ),
        ("sendInitialEvents=true&resourceVersionMatch=NotOlderThan", [("ADDED", "a"), ("ADDED", "b")]),
    ],
)
def test_initial_events(query: str, events: list[tuple[str, str]]) -> None:
    async def scenario(opened: Watching) -> None:
        assert named(await frames(await opened.open(query), len(events))) == events

    run(scenario)


def test_a_watch_from_a_revision_begins_after_it() -> None:
    async def scenario(opened: Watching) -> None:
        revision = opened.server.api.storage.revision
        await opened.create("c")
        response = await opened.open(f"resourceVersion={revision}")
        await opened.create("d")
        assert named(await frames(response, 2)) == [("ADDED", "c"), ("ADDED", "d")]

    run(scenario)


def test_a_revision_that_is_forgotten_is_an_event() -> None:
    async def scenario(opened: Watching) -> None:
        await opened.server.api.storage.compact(opened.server.api.storage.revision)
        [event] = await frames(await opened.open("resourceVersion=2"), 9)
        assert (event["type"], event["object"]["code"], event["object"]["reason"]) == ("ERROR", 410, "Expired")

    run(scenario)


def test_initial_events_of_a_revision_of_the_future_are_an_error_event() -> None:
    async def scenario(opened: Watching) -> None:
        response = await opened.open("resourceVersion=123456&sendInitialEvents=true&resourceVersionMatch=NotOlderThan")
        [event] = await frames(response, 2)
        now = opened.server.api.storage.revision
        assert (event["type"], event["object"]["code"]) == ("ERROR", 504)
        assert event["object"]["message"].endswith(f"Too large resource version: 123456, current: {now}")

    run(scenario)


def test_watches_of_one_form_share_an_encoding() -> None:
    async def scenario(opened: Watching) -> None:
        seen: list[Event] = []
        watcher = opened.server.api.storage.watch("/registry/configmaps/", revision=None, predicate=None)
        first, second = [await opened.open("resourceVersion=0") for _ in range(2)]
        for response in (first, second):
            await frames(response, 2)
        await opened.create("c")
        assert await frames(first, 1) == await frames(second, 1)
        seen += await watcher.next_batch(1.0) or ()
        assert [len(event.frames) for event in seen] == [1]
        watcher.close()

    run(scenario)


class Slow:
    """A connection that holds what it gets, and takes nothing at first."""

    def __init__(self, response: Response) -> None:
        assert response.attach is not None
        self.response = response
        self.held: list[Piece] = []
        self.is_full = True
        response.attach(self.push)

    def push(self, pieces: Sequence[Piece]) -> bool:
        if not self.is_full:
            self.held += pieces
        return not self.is_full

    async def read(self) -> Any:
        """Waits with an empty chunk, and gets a large frame by itself then."""
        assert self.response.stream is not None
        assert await anext(self.response.stream) == b""
        self.is_full = False
        reading = asyncio.ensure_future(anext(self.response.stream))
        for _ in range(5):
            await asyncio.sleep(0)
        self.is_full = True
        self.reading = reading
        [frame] = self.held
        assert isinstance(frame, memoryview)
        return frame.obj


@pytest.mark.parametrize("accept", [b"application/json", b"application/vnd.kubernetes.protobuf"])
@pytest.mark.parametrize("query", ["fieldSelector=metadata.name%3Dlarge", "resourceVersion={}"])
def test_slow_clients_share_large_frames(accept: bytes, query: str) -> None:
    """Initial objects as well as events that watchers read from the history one after the other."""

    async def scenario(opened: Watching) -> None:
        revision = opened.server.api.storage.revision
        body = {"metadata": {"name": "large"}, "data": {"text": "x" * LARGE}}
        assert (await opened.server.ask("POST", MAPS, body)).status == 201
        shared = opened.scope.frames
        responses = [await opened.open(query.format(revision), (b"accept", accept)) for _ in range(3)]
        clients = [Slow(response) for response in responses]
        assert len({id(await client.read()) for client in clients}) == len(shared) == 1
        for client in clients:
            client.held.clear()
        assert len(shared) == 0
        for client in clients:
            client.reading.cancel()

    run(scenario)


def test_a_bookmark_comes_once_a_minute_and_names_the_newest_revision() -> None:
    async def scenario(opened: Watching) -> None:
        opened.clock.stop()
        response = await opened.open("resourceVersion=0&allowWatchBookmarks=true&labelSelector=app%3Da")
        await frames(response, 1)
        await opened.create("c", app="other")
        waiting = asyncio.ensure_future(frames(response, 1))
        await _turn()
        await opened.clock.advance(61.0, _turn)
        for watcher in [*opened.scope.watchers]:
            watcher.wake()
        [bookmark] = await asyncio.wait_for(waiting, 5)
        assert bookmark["type"] == "BOOKMARK"
        assert bookmark["object"]["metadata"] == {"resourceVersion": str(opened.server.api.storage.revision)}

    run(scenario)


@pytest.mark.parametrize(("changes", "types"), [(True, ["ADDED", "BOOKMARK"]), (False, [])])
def test_the_last_bookmark_comes_if_anything_has_changed(changes: bool, types: list[str]) -> None:
    """This holds also if the last event had its revision."""

    async def scenario(opened: Watching) -> None:
        opened.clock.stop()
        revision = opened.server.api.storage.revision
        response = await opened.open(f"resourceVersion={revision}&allowWatchBookmarks=true&timeoutSeconds=10")
        if changes:
            await opened.create("c")
        waiting = asyncio.ensure_future(frames(response, 3))
        await _turn()
        for seconds in (8.5, 2.0):
            await opened.clock.advance(seconds, _turn)
            for watcher in [*opened.scope.watchers]:
                watcher.wake()
            await _turn()
        assert [frame["type"] for frame in await asyncio.wait_for(waiting, 5)] == types

    run(scenario)


@pytest.mark.parametrize("end", ["close", "restore"])
def test_a_watch_ends_without_an_error(end: str) -> None:
    async def scenario(opened: Watching) -> None:
        api = opened.server.api
        response = await opened.open("resourceVersion=0")
        await frames(response, 2)
        if end == "close":
            api.storage.lose_watches()
        else:
            await api.restore(api.snapshot())
        assert await frames(response, 1) == []
        assert not opened.scope.watchers

    run(scenario)


def test_an_error_of_the_storage_is_the_last_event(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(opened: Watching) -> None:
        response = await opened.open("resourceVersion=0")
        await frames(response, 2)
        [watcher] = opened.scope.watchers

        async def fail(self: object, timeout: float) -> None:
            raise new_resource_expired("too old resource version: 1 (2)")

        monkeypatch.setattr(type(watcher), "next_batch", fail)
        [event] = await frames(response, 2)
        assert (event["type"], event["object"]["message"]) == ("ERROR", "too old resource version: 1 (2)")

    run(scenario)


@pytest.mark.parametrize(
    ("query", "status"),
    [("resourceVersion=x", 400), ("labelSelector=%3D%3D", 400), ("sendInitialEvents=true", 422), ("limit=x", 400)],
)
def test_refusals_before_the_stream(query: str, status: int) -> None:
    async def scenario(opened: Watching) -> None:
        with pytest.raises(StatusError) as refused:
            await opened.open(query)
        assert refused.value.code == status

    run(scenario)


@pytest.mark.parametrize(
    ("timeout_seconds", "least", "most"),
    [(30, 30.0, 30.0), (None, 1800.0, 3600.0), (0, 1800.0, 3600.0), (-1, -1.0, -1.0), (2**62, -(2.0**34), 2.0**34)],
)
def test_how_long_a_watch_lives(timeout_seconds: int | None, least: float, most: float) -> None:
    assert least <= _lifetime(timeout_seconds, 1800) <= most


async def _turn() -> None:
    await asyncio.sleep(0)


@pytest.mark.parametrize("extensions", [{}, {PUSH: {}}])
@pytest.mark.parametrize("sent", [0, 1])
def test_a_client_that_is_gone_leaves_no_watcher(extensions: dict[str, Any], sent: int) -> None:
    """Whether it goes before the answer begins, or within it."""

    async def scenario(opened: Watching) -> None:
        storage = opened.server.api.storage
        before, messages = storage.watchers, []
        is_gone = asyncio.Event()

        async def send(message: Any) -> None:
            if len(messages) == sent:
                is_gone.set()
                raise ConnectionResetError("gone")
            messages.append(message)

        async def receive() -> Any:
            await is_gone.wait()
            return {"type": "http.disconnect"}

        scope = {
            "type": "http",
            "method": "GET",
            "path": "/api/v1/namespaces/default/configmaps",
            "raw_path": b"",
            "query_string": b"watch=true&resourceVersion=0",
            "headers": [(b"authorization", b"Bearer t")],
            "extensions": extensions,
        }
        with suppress(ConnectionError):
            await opened.server.api.application(scope, receive, send)
        await asyncio.sleep(0)
        assert storage.watchers == before

    run(scenario)


LIST_FIRST = "sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan"
GZIP = (b"accept-encoding", b"deflate, gzip")


def test_a_watch_that_begins_with_a_list_is_compressed() -> None:
    """Each chunk, and each event that goes straight to the connection, is a member of the gzip stream of its own."""

    async def scenario(opened: Watching) -> None:
        response = await opened.open(LIST_FIRST, GZIP)
        assert (b"content-encoding", b"gzip") in response.headers
        assert response.stream is not None
        assert response.attach is not None
        chunk = await anext(response.stream)
        first = gzip.decompress(chunk)
        assert b"\x00\x00\xff\xff" in chunk  # where it was flushed: Go's reader hands on the events there
        assert [json.loads(line)["type"] for line in first.splitlines()] == ["ADDED", "ADDED", "BOOKMARK"]
        pushed: list[Piece] = []

        def push(chunks: Sequence[Piece]) -> bool:
            pushed.extend(chunks)
            return True

        response.attach(push)
        waiting = asyncio.ensure_future(anext(response.stream))
        await asyncio.sleep(0)
        await opened.create("c")
        assert named([json.loads(gzip.decompress(chunk)) for chunk in pushed]) == [("ADDED", "c")]
        waiting.cancel()
        with suppress(asyncio.CancelledError):
            await waiting

    run(scenario)


@pytest.mark.parametrize(
    ("query", "headers"),
    [(LIST_FIRST, ()), ("", (GZIP,)), (LIST_FIRST, (GZIP, (b"upgrade", b"websocket")))],
)
def test_other_watches_are_not_compressed(query: str, headers: tuple[tuple[bytes, bytes], ...]) -> None:
    async def scenario(opened: Watching) -> None:
        response = await opened.open(query, *headers)
        assert response.headers == []
        assert named(await frames(response, 2))[:2] == [("ADDED", "a"), ("ADDED", "b")]

    run(scenario)
