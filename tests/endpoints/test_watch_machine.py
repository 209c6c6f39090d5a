"""Random writes, lists, pages and watches through the whole server, in process, compared with a log of the writes."""

import asyncio
import itertools
import json
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from fakeapiserver.server.apiserver import APIServer
from fakeapiserver.server.options.config import Config
from fakeapiserver.testing.watch_history import Watch, Write, split_initial, state_at, violations

_NAMES = st.sampled_from(["a", "b", "c", "d"])
_NOTES = st.sampled_from(["in", "out"])


def selected(obj: dict[str, Any]) -> bool:
    return bool(obj["metadata"].get("labels", {}).get("note") == "in")


class InProcess:
    """A server without sockets, and its event loop."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.api = APIServer(Config(), admin_token="t")
        self.run(self.api.start())

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.loop.run_until_complete(work)

    async def ask(self, method: str, path: str, query: str = "", body: Any = None, kind: str = "") -> tuple[int, Any]:
        call = Call(method, path, query, b"" if body is None else json.dumps(body).encode(), kind)
        call.gone.set()
        await self.api.application(call.scope, call.receive, call.send)
        return call.status, json.loads(call.body or b"null")

    async def quiet(self) -> None:
        """Lets everything that is due happen."""
        for _ in range(20):
            await asyncio.sleep(0)


@dataclass
class Call:
    """An ASGI exchange. A watch's exchange lasts until `gone` is set."""

    method: str
    path: str
    query: str
    data: bytes
    kind: str = ""
    status: int = 0
    body: bytes = b""
    sent: bool = False
    gone: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def scope(self) -> dict[str, Any]:
        headers = [(b"authorization", b"Bearer t"), (b"content-type", (self.kind or "application/json").encode())]
        return {
            "type": "http",
            "method": self.method,
            "path": self.path,
            "raw_path": self.path.encode(),
            "query_string": self.query.encode(),
            "headers": headers,
            "http_version": "1.1",
        }

    async def receive(self) -> dict[str, Any]:
        if not self.sent:
            self.sent = True
            return {"type": "http.request", "body": self.data}
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        self.status = message.get("status", self.status)
        self.body += message.get("body", b"")

    @property
    def events(self) -> list[Any]:
        return [json.loads(line) for line in self.body.splitlines()]


@dataclass
class Watcher:
    """An open watch: `start` is None where it began with what there was."""

    call: Call
    task: "asyncio.Task[None]"
    start: int | None
    selects: bool

    def check(self, log: list[Write]) -> None:
        selects = selected if self.selects else lambda obj: True
        start, events = self.start, self.call.events
        if start is None:
            initial, start, events = split_initial(events)
            wanted = [obj for _, obj in sorted(state_at(log, start).items()) if selects(obj)]
            assert [event["object"] for event in initial] == wanted
            assert all(event["type"] == "ADDED" for event in initial)
        assert violations(log, Watch(start, events, selects)) == []

    @property
    def told(self) -> int:
        events = self.call.events
        return int(events[-1]["object"]["metadata"]["resourceVersion"]) if events else self.start or 0


class Machine(RuleBasedStateMachine):
    """Every run has a namespace of its own in one server."""

    server: InProcess
    numbers = itertools.count()

    def __init__(self) -> None:
        super().__init__()
        namespace = f"m{next(self.numbers)}"
        self.path = f"/api/v1/namespaces/{namespace}/configmaps"
        assert self.ask("POST", "/api/v1/namespaces", body={"metadata": {"name": namespace}})[0] == 201
        self.log: list[Write] = []
        self.known_from = self.server.api.storage.revision
        self.watchers: list[Watcher] = []
        self.page: tuple[str, int, list[str]] | None = None  # token, revision, the name shown last and those to come

    def ask(self, method: str, path: str, query: str = "", body: Any = None, kind: str = "") -> tuple[int, Any]:
        return self.server.run(self.server.ask(method, path, query, body, kind))

    @property
    def now(self) -> dict[str, Any]:
        return state_at(self.log, self.server.api.storage.revision)

    def wrote(self, status: int, obj: Any) -> None:
        assert status in (200, 201)
        full = {"kind": "ConfigMap", "apiVersion": "v1", **obj}
        revision = int(obj["metadata"]["resourceVersion"])
        # A write that changes nothing has no revision.
        if not self.log or revision > self.log[-1].revision:
            self.log.append(Write(revision, obj["metadata"]["name"], full))

    @rule(name=_NAMES, note=_NOTES)
    def create(self, name: str, note: str) -> None:
        status, obj = self.ask("POST", self.path, body={"metadata": {"name": name, "labels": {"note": note}}})
        if name in self.now:
            assert (status, obj["reason"]) == (409, "AlreadyExists")
        else:
            self.wrote(status, obj)

    @rule(name=_NAMES, note=_NOTES, value=st.sampled_from("xy"))
    def update(self, name: str, note: str, value: str) -> None:
        body = {"metadata": {"name": name, "labels": {"note": note}}, "data": {"k": value}}
        status, obj = self.ask("PUT", f"{self.path}/{name}", body=body)
        if name in self.now:
            self.wrote(status, obj)
        else:
            assert status == 404

    @rule(name=_NAMES, note=_NOTES)
    def patch(self, name: str, note: str) -> None:
        body = {"metadata": {"labels": {"note": note}}}
        status, obj = self.ask("PATCH", f"{self.path}/{name}", "", body, "application/merge-patch+json")
        if name in self.now:
            self.wrote(status, obj)
        else:
            assert status == 404

    @rule(name=_NAMES)
    def delete(self, name: str) -> None:
        existed = name in self.now
        status, _ = self.ask("DELETE", f"{self.path}/{name}")
        assert status == (200 if existed else 404)
        if existed:
            self.log.append(Write(self.server.api.storage.revision, name, None))

    @rule(back=st.integers(0, 6), selects=st.booleans())
    def list_in_the_past(self, back: int, selects: bool) -> None:
        revision = self.server.api.storage.revision - back
        query = f"resourceVersion={revision}&resourceVersionMatch=Exact" + (
            "&labelSelector=note%3Din" if selects else ""
        )
        status, found = self.ask("GET", self.path, query)
        if revision < self.server.api.storage.compacted:
            assert (status, found["reason"]) == (410, "Expired")
            return
        names = [name for name, obj in sorted(state_at(self.log, revision).items()) if not selects or selected(obj)]
        assert [item["metadata"]["name"] for item in found["items"]] == names
        assert found["metadata"]["resourceVersion"] == str(revision)

    @precondition(lambda self: self.page is None)
    @rule()
    def first_page(self) -> None:
        found = self.ask("GET", self.path, "limit=1")[1]
        meta = found["metadata"]
        assert ("continue" in meta) == (len(self.now) > 1)
        assert meta.get("remainingItemCount", 0) == max(len(self.now) - 1, 0)
        if "continue" in meta:
            revision = int(meta["resourceVersion"])
            self.page = (meta["continue"], revision, sorted(state_at(self.log, revision)))

    @precondition(lambda self: self.page is not None)
    @rule()
    def next_page(self) -> None:
        """Shows the state of the first page; once that is forgotten, a token leads on at the newest."""
        assert self.page is not None
        token, revision, (shown, *names) = self.page
        status, found = self.ask("GET", self.path, f"limit=1&continue={token}")
        if revision < self.server.api.storage.compacted:
            assert (status, found["reason"]) == (410, "Expired")
            rest = self.ask("GET", self.path, f"continue={found['metadata']['continue']}")[1]
            assert [item["metadata"]["name"] for item in rest["items"]] == [n for n in sorted(self.now) if n > shown]
            self.page = None
            return
        assert [item["metadata"]["name"] for item in found["items"]] == names[:1]
        assert found["metadata"]["resourceVersion"] == str(revision)
        token = found["metadata"].get("continue", "")
        assert bool(token) == (len(names) > 1)
        self.page = (token, revision, names) if token else None

    def open(self, query: str, start: int | None, selects: bool) -> None:
        query = f"watch=true&allowWatchBookmarks=true{query}" + ("&labelSelector=note%3Din" if selects else "")

        async def begin() -> Watcher:
            call = Call("GET", self.path, query, b"")
            task = asyncio.ensure_future(self.server.api.application(call.scope, call.receive, call.send))
            await self.server.quiet()
            return Watcher(call, task, start, selects)

        watcher = self.server.run(begin())
        if start is not None and start < self.server.api.storage.compacted:
            (event,) = watcher.call.events
            assert (watcher.call.status, event["type"], event["object"]["code"]) == (200, "ERROR", 410)
        else:
            self.watchers.append(watcher)

    @precondition(lambda self: len(self.watchers) < 6)
    @rule(back=st.integers(0, 6), selects=st.booleans())
    def watch(self, back: int, selects: bool) -> None:
        start = max(self.server.api.storage.revision - back, self.known_from)
        self.open(f"&resourceVersion={start}", start, selects)

    @precondition(lambda self: len(self.watchers) < 6)
    @rule(selects=st.booleans(), explicit=st.booleans())
    def watch_with_initial_events(self, selects: bool, explicit: bool) -> None:
        asked = "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
        self.open(asked if explicit else "&resourceVersion=0", None, selects)

    @precondition(lambda self: bool(self.watchers))
    @rule()
    def resume(self) -> None:
        """Ends a watch and starts another at the last revision that the first received."""
        watcher = self.watchers.pop(0)
        self.close(watcher)
        self.open(f"&resourceVersion={watcher.told}", watcher.told, watcher.selects)

    @rule(back=st.integers(0, 4))
    def compact(self, back: int) -> None:
        """Open watches have what was there already, and are not disturbed."""
        self.server.run(self.server.quiet())
        storage = self.server.api.storage
        self.server.run(storage.compact(max(storage.revision - back, self.known_from)))

    @invariant()
    def a_list_is_what_was_written(self) -> None:
        items = self.ask("GET", self.path)[1]["items"]
        assert [{"kind": "ConfigMap", "apiVersion": "v1", **item} for item in items] == [
            obj for _, obj in sorted(self.now.items())
        ]

    def close(self, watcher: Watcher) -> None:
        async def end() -> None:
            await self.server.quiet()
            watcher.call.gone.set()
            await watcher.task

        self.server.run(end())
        watcher.check(self.log)

    def teardown(self) -> None:
        for watcher in self.watchers:
            self.close(watcher)


@pytest.fixture(scope="module")
def server() -> InProcess:
    Machine.server = InProcess()
    return Machine.server


@pytest.mark.usefixtures("server")
def test_whatever_happens_every_reader_sees_one_history() -> None:
    run_state_machine_as_test(Machine, settings=settings(max_examples=25, stateful_step_count=30))
