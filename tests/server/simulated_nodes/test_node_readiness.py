"""A server with simulated nodes says that it is ready when the nodes are."""

import asyncio
import json
import ssl
import urllib.request
from typing import Any

import httpx
import pytest

from fakeapiserver import Cluster
from fakeapiserver.server.local import LocalServer
from fakeapiserver.server.options.config import Config
from fakeapiserver.server.simulated_nodes import node_readiness


@pytest.mark.parametrize(
    ("stepped", "taints"), [((), set()), (("node-lifecycle-controller",), {"node.kubernetes.io/not-ready"})]
)
def test_the_nodes_are_there_and_ready(stepped: tuple[str, ...], taints: set[str]) -> None:
    with Cluster(nodes=3, step_controllers=stepped) as cluster:
        headers = {"Authorization": f"Bearer {cluster.token}"}
        context = ssl.create_default_context(cadata=cluster.ca.decode())
        request = urllib.request.Request(f"{cluster.url}/api/v1/nodes", headers=headers)
        with urllib.request.urlopen(request, context=context) as response:
            nodes: list[dict[str, Any]] = json.load(response)["items"]
    conditions = [{item["type"]: item["status"] for item in node["status"]["conditions"]} for node in nodes]
    assert [found["Ready"] for found in conditions] == ["True"] * 3
    assert {taint["key"] for node in nodes for taint in node["spec"].get("taints", ())} == taints


def test_readyz_fails_until_the_nodes_are_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    server = LocalServer(Config(nodes=1))
    wait = node_readiness.wait_for_nodes
    answers: list[tuple[int, bytes]] = []

    async def readyz(path: str = "/readyz") -> None:
        trusted = ssl.create_default_context(cadata=server.ca.decode())
        headers = {"Authorization": f"Bearer {server.admin_token}"}
        async with httpx.AsyncClient(base_url=server.url, verify=trusted, headers=headers) as client:
            answer = await client.get(path)
            answers.append((answer.status_code, answer.content))

    async def wait_for_nodes(*args: Any, **options: Any) -> None:
        await readyz()
        await readyz("/readyz/informer-sync")
        await wait(*args, **options)

    async def start() -> None:
        await server.start()
        try:
            await readyz()
        finally:
            await server.stop()

    monkeypatch.setattr(node_readiness, "wait_for_nodes", wait_for_nodes)
    asyncio.run(start())
    whole, single, ready = answers
    assert whole[0] == 500
    assert b"[-]informer-sync failed: reason withheld\n" in whole[1]
    reason = "the controllers or simulated nodes of this server aren't ready yet"
    assert single == (500, f"internal server error: {reason}\n".encode())
    assert ready == (200, b"ok")
