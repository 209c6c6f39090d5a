"""Tests the cost of many definitions."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from fakeapiserver.apis.custom_schema import CustomSchema
from fakeapiserver.registry.generic import canonical
from fakeapiserver.server.apiserver import APIServer
from fakeapiserver.server.options.config import Config

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
SCHEMA = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}}}


def definition(kind: str, group: str, **names: Any) -> dict[str, Any]:
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": SCHEMA}}
    return {
        "metadata": {"name": f"{kind.lower()}s.{group}"},
        "spec": {
            "group": group,
            "scope": "Cluster",
            "names": {"plural": f"{kind.lower()}s", "kind": kind, **names},
            "versions": [version],
        },
    }


class Asking:
    """Asks a server in this event loop, without sockets."""

    def __init__(self, server: APIServer, token: str) -> None:
        self._server, self._token = server, token

    async def __call__(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        headers = [(b"authorization", f"Bearer {self._token}".encode()), (b"content-type", b"application/json")]
        scope = {"type": "http", "method": method, "path": path, "query_string": b"", "headers": headers}
        sent = {"type": "http.request", "body": b"" if body is None else json.dumps(body).encode(), "more_body": False}
        messages: list[Any] = []

        async def receive() -> Any:
            return sent

        async def send(message: Any) -> None:
            messages.append(message)

        await self._server.application({**scope, "extensions": {}}, receive, send)
        answer = b"".join(message.get("body", b"") for message in messages)
        return messages[0]["status"], json.loads(answer) if answer.startswith(b"{") else answer

    async def until(self, path: str, status: int) -> None:
        for _ in range(100):
            if (await self("GET", path))[0] == status:
                return
            await asyncio.sleep(0)
        raise AssertionError(f"{path} is never answered {status}")


def with_server(act: Callable[[APIServer, Asking], Awaitable[None]]) -> None:
    async def run() -> None:
        server = APIServer(Config(), admin_token="t")
        await server.start()
        try:
            await act(server, Asking(server, "t"))
        finally:
            await server.stop()

    asyncio.run(run())


@pytest.mark.parametrize("group", ["same.example.com", "group{}.example.com"])
def test_a_definition_costs_the_same_however_many_there_are(monkeypatch: pytest.MonkeyPatch, group: str) -> None:
    decoded: list[str] = []
    decode = canonical.decode
    monkeypatch.setattr(canonical, "decode", lambda value, gvk: decoded.append(gvk.kind) or decode(value, gvk))

    async def act(server: APIServer, ask: Asking) -> None:
        costs = []
        for i in range(24):
            decoded.clear()
            own = group.format(i)
            assert (await ask("POST", DEFINITIONS, definition(f"Kind{i}", own)))[0] == 201
            await ask.until(f"/apis/apiregistration.k8s.io/v1/apiservices/v1.{own}", 200)
            await ask.until(f"/apis/{own}/v1/kind{i}s", 200)
            costs.append(decoded.count("CustomResourceDefinition") + decoded.count("APIService"))
        assert len(set(costs[4:])) == 1, costs

    with_server(act)


def test_a_schema_is_compiled_when_an_object_first_needs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    unpacked: list[str] = []
    unpack = CustomSchema.unpacked
    monkeypatch.setattr(CustomSchema, "unpacked", lambda self: unpacked.append(self.digest) or unpack(self))

    async def act(server: APIServer, ask: Asking) -> None:
        await ask("POST", DEFINITIONS, definition("Gear", "q.example.com"))
        await ask.until("/apis/q.example.com/v1/gears", 200)
        await ask("GET", "/openapi/v3")
        assert unpacked == []
        kind = {"apiVersion": "q.example.com/v1", "kind": "Gear"}
        wrong = {**kind, "metadata": {"name": "g"}, "spec": {"size": "large"}}
        assert (await ask("POST", "/apis/q.example.com/v1/gears", wrong))[0] == 422
        assert len(unpacked) == 1, unpacked

    with_server(act)


def test_restoring_recreates_only_definitions_that_differ() -> None:
    async def act(server: APIServer, ask: Asking) -> None:
        for kind in ("Gear", "Bolt"):
            await ask("POST", DEFINITIONS, definition(kind, "q.example.com"))
        await ask.until("/apis/q.example.com/v1/bolts", 200)
        await ask.until("/apis/apiregistration.k8s.io/v1/apiservices/v1.q.example.com", 200)
        state = server.snapshot()
        gears, bolts = (server.table.lookup("q.example.com", "v1", plural) for plural in ("gears", "bolts"))
        await ask("DELETE", f"{DEFINITIONS}/bolts.q.example.com")
        await ask.until("/apis/q.example.com/v1/bolts", 404)
        await server.restore(state)
        assert server.table.lookup("q.example.com", "v1", "gears") is gears
        assert server.table.lookup("q.example.com", "v1", "bolts") is not bolts
        assert (await ask("GET", "/apis/q.example.com/v1/bolts"))[0] == 200

    with_server(act)


def test_a_name_that_becomes_free_goes_to_who_waits_for_it() -> None:
    async def act(server: APIServer, ask: Asking) -> None:
        for kind in ("Gear", "Cog", "Bolt"):
            names = {} if kind == "Bolt" else {"shortNames": ["g"]}
            await ask("POST", DEFINITIONS, definition(kind, "q.example.com", **names))
        await ask.until("/apis/q.example.com/v1/bolts", 200)
        assert (await ask("GET", "/apis/q.example.com/v1/cogs"))[0] == 404
        await ask("DELETE", f"{DEFINITIONS}/gears.q.example.com")
        await ask.until("/apis/q.example.com/v1/cogs", 200)

    with_server(act)
