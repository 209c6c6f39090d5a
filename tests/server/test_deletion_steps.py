"""A deletion in two steps, marking the object and removing it: a watcher sees the first step before the second is taken."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import pytest

from fakeapiserver.admission.interfaces import Attributes
from fakeapiserver.apimachinery.errors import new_forbidden
from fakeapiserver.apimachinery.gvk import GroupResource
from fakeapiserver.registry.generic.store import Store
from fakeapiserver.server.apiserver import APIServer
from fakeapiserver.server.options.config import Config

PODS = "/api/v1/namespaces/default/pods"
HEADERS = [(b"authorization", b"Bearer t"), (b"content-type", b"application/json")]
SPEC = {"containers": [{"name": "c", "image": "i"}], "automountServiceAccountToken": False}


class Server:
    """An API server in this event loop, asked without sockets."""

    def __init__(self, api: APIServer) -> None:
        self.api = api
        store = api.scopes.store_for(GroupResource("", "pods"))
        assert store is not None
        self.pods: Store = store

    async def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        sent: list[Any] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": b"" if body is None else json.dumps(body).encode()}

        async def send(message: Any) -> None:
            sent.append(message)

        await self.api.application(_scope(method, path), receive, send)
        return sent[0]["status"], json.loads(sent[-1]["body"])

    async def create_pods(self, *names: str, **spec: Any) -> None:
        for name in names:
            body = {"metadata": {"name": name}, "spec": {**SPEC, **spec}}
            status, _ = await self.ask("POST", PODS, body)
            assert status == 201

    @property
    def stored(self) -> list[str]:
        return [item.key.rpartition("/")[2] for item in self.pods.storage.list_now(self.pods.prefix).items]

    @contextmanager
    def watching(self, watches: int = 1) -> "Iterator[list[list[tuple[str, str, bool]]]]":
        """Yields the events of each watch, a row for each call of `send`: (type, name, whether the pod is stored at that moment)."""
        seen: list[list[tuple[str, str, bool]]] = [[] for _ in range(watches)]
        tasks = [asyncio.ensure_future(self._watch(rows)) for rows in seen]
        try:
            yield seen
        finally:
            for task in tasks:
                task.cancel()

    async def _watch(self, rows: list[tuple[str, str, bool]]) -> None:
        async def receive() -> dict[str, Any]:
            await asyncio.Event().wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            for line in message.get("body", b"").splitlines():
                event = json.loads(line)
                name = event["object"]["metadata"]["name"]
                rows.append((event["type"], name, name in self.stored))

        await self.api.application(_scope("GET", PODS, b"watch=true"), receive, send)


def _scope(method: str, path: str, query: bytes = b"") -> dict[str, Any]:
    return {
        "type": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": query,
        "headers": HEADERS,
        "http_version": "1.1",
    }


@asynccontextmanager
async def serving() -> AsyncIterator[Server]:
    api = APIServer(Config(disable_admission_plugins=("ServiceAccount",)), admin_token="t")
    await api.start()
    try:
        yield Server(api)
    finally:
        await api.stop()


async def until(rows: list[Any], count: int) -> None:
    async with asyncio.timeout(60):
        while len(rows) < count:  # noqa: ASYNC110 (several tasks add rows, and none knows of this one)
            await asyncio.sleep(0.001)


AT_ONCE = {"gracePeriodSeconds": 0}


@pytest.mark.parametrize(
    ("node", "deletions", "events"),
    [
        ("", [None], ["MODIFIED", "DELETED"]),
        ("n", [AT_ONCE], ["MODIFIED", "DELETED"]),
        ("n", [None, AT_ONCE], ["MODIFIED", "MODIFIED", "DELETED"]),
    ],
    ids=["without a node", "with a node, at once", "with a node, forced later"],
)
@pytest.mark.parametrize("watches", [1, 30])
def test_a_pod_is_still_there_when_its_watchers_are_sent_its_deletion_timestamp(
    node: str, deletions: list[Any], events: list[str], watches: int
) -> None:
    async def scenario() -> None:
        async with serving() as server:
            await server.create_pods("a", **({"nodeName": node} if node else {}))
            with server.watching(watches) as seen:
                await until(seen[-1], 1)
                for body in deletions:
                    status, _ = await server.ask("DELETE", f"{PODS}/a", body)
                    assert status == 200
                for rows in seen:
                    await until(rows, 1 + len(events))
                    assert rows == [("ADDED", "a", True), *((event, "a", event != "DELETED") for event in events)]

    asyncio.run(scenario())


def test_pods_of_a_collection_are_marked_together_and_removed_together() -> None:
    async def scenario() -> None:
        async with serving() as server:
            await server.create_pods("a", "b", "c")
            with server.watching() as [rows]:
                await until(rows, 3)
                status, _ = await server.ask("DELETE", PODS)
                assert status == 200
                assert server.stored == []
                await until(rows, 9)
            assert rows[3:6] == [("MODIFIED", name, True) for name in "abc"]
            assert rows[6:] == [("DELETED", name, False) for name in "abc"]

    asyncio.run(scenario())


class _Refusing:
    """An admission chain that refuses to delete one object."""

    def __init__(self, name: str) -> None:
        self._name = name

    async def admit(self, attributes: Attributes) -> None:
        if (attributes.old_object or {})["metadata"]["name"] == self._name:
            raise new_forbidden(GroupResource("", "pods"), self._name, "a test")

    async def validate(self, attributes: Attributes) -> None:
        pass


def test_a_refusal_ends_the_deletion_of_a_collection_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with serving() as server:
            await server.create_pods("a", "b", "c")
            monkeypatch.setattr(server.pods, "admission", _Refusing("b"))
            with server.watching() as [rows]:
                await until(rows, 3)
                status, answer = await server.ask("DELETE", PODS)
            assert (status, answer["reason"]) == (403, "Forbidden")
            assert server.stored == ["b", "c"]

    asyncio.run(scenario())


def test_a_deletion_that_is_cancelled_between_its_steps_is_ended() -> None:
    async def scenario() -> None:
        async with serving() as server:
            await server.create_pods("a")
            with server.watching() as [rows]:
                await until(rows, 1)
                deletion = asyncio.ensure_future(server.ask("DELETE", f"{PODS}/a"))
                await until(rows, 2)
                deletion.cancel()
                await until(rows, 3)
            assert server.stored == []

    asyncio.run(scenario())


def test_what_changes_between_the_steps_does_not_keep_the_object() -> None:
    async def scenario() -> None:
        async with serving() as server:
            await server.create_pods("a")
            with server.watching() as [rows]:
                await until(rows, 1)
                deletion = asyncio.ensure_future(server.ask("DELETE", f"{PODS}/a"))
                await until(rows, 2)
                await server.pods.amend("default", "a", lambda pod: {**pod, "status": {"message": "changed"}})
                status, answer = await deletion
                await until(rows, 4)
            assert (status, answer["status"]["message"]) == (200, "changed")
            assert [kind for kind, _, _ in rows] == ["ADDED", "MODIFIED", "MODIFIED", "DELETED"]

    asyncio.run(scenario())


def test_a_deletion_that_another_client_ends_first_succeeds() -> None:
    async def scenario() -> None:
        async with serving() as server:
            await server.create_pods("a")
            with server.watching() as [rows]:
                await until(rows, 1)
                deletion = asyncio.ensure_future(server.ask("DELETE", f"{PODS}/a"))
                await until(rows, 2)
                await server.pods.storage.delete(server.pods.key("default", "a"))
                await server.create_pods("a")
                status, answer = await deletion
            assert status == 200
            assert answer["metadata"]["deletionTimestamp"]
            assert server.stored == ["a"]

    asyncio.run(scenario())


def test_an_error_of_a_removal_comes_after_the_other_removals(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with serving() as server:
            await server.create_pods("a", "b", "c")
            with server.watching() as [rows]:
                await until(rows, 3)
                deletion = asyncio.ensure_future(server.ask("DELETE", PODS))
                await until(rows, 6)
                monkeypatch.setattr(server.pods, "admission", _Refusing("a"))
                for step in ("admit", "validate"):
                    monkeypatch.setattr(server.api.scopes.services.admission, step, getattr(_Refusing("a"), step))
                status, answer = await deletion
            assert (status, answer["reason"]) == (403, "Forbidden")
            assert server.stored == ["a"]

    asyncio.run(scenario())
