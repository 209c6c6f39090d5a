"""Tests the writes of admission plugins."""

import asyncio

from fakeapiserver.server.apiserver import APIServer
from fakeapiserver.server.options.config import Config
from fakeapiserver.server.upkeep.loopback_writer import LoopbackWriter


def test_a_namespace_is_made_with_all_that_belongs_to_one() -> None:
    async def made() -> object:
        server = APIServer(Config())
        await server.start()
        try:
            await LoopbackWriter(server.scopes).create("namespaces", {"metadata": {"name": "made"}})
            return server.objects.get("namespaces", "", "made")
        finally:
            await server.stop()

    found = asyncio.run(made())
    assert isinstance(found, dict)
    assert found["status"] == {"phase": "Active"}
    assert found["metadata"]["labels"] == {"kubernetes.io/metadata.name": "made"}
