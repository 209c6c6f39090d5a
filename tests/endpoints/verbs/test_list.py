"""Lists by themselves: revisions that don't exist yet, and lists that are so large that others must be answered meanwhile."""

import asyncio
import gzip
import json

import pytest

from fakeapiserver.apimachinery.errors import StatusError
from fakeapiserver.endpoints import respond
from fakeapiserver.endpoints.verbs import list as lists
from fakeapiserver.endpoints.verbs.list import find, list_
from fakeapiserver.endpoints.verbs.options import list_options
from tests.endpoints.in_process import serving

MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.mark.parametrize(
    "query",
    [
        "resourceVersion=123456",
        "resourceVersion=123456&limit=1",
        "resourceVersion=123456&resourceVersionMatch=Exact",
        "resourceVersion=123456&resourceVersionMatch=NotOlderThan",
    ],
)
def test_the_refusal_of_a_revision_of_the_future_names_it(query: str) -> None:
    async def run() -> None:
        async with serving() as server:
            scope = server.api.scopes.lookup("", "v1", "configmaps")
            assert scope is not None
            request = server.request("GET", f"{MAPS}?{query}")
            now = server.api.storage.revision
            with pytest.raises(StatusError) as refused:
                await find(request, scope, list_options(request.query))
            message = f"Too large resource version: 123456, current: {now}"
            assert (refused.value.code, refused.value.message.endswith(message)) == (504, True), refused.value.message

    asyncio.run(run())


DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "maps.example.com"},
    "spec": {
        "group": "example.com",
        "names": {"kind": "Map", "plural": "maps"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}


@pytest.mark.parametrize(
    ("path", "resource"),
    [(MAPS, ("", "v1", "configmaps")), ("/apis/example.com/v1/namespaces/default/maps", ("example.com", "v1", "maps"))],
    ids=["built-in", "custom"],
)
def test_a_large_list_has_the_same_bytes_piece_by_piece(
    path: str, resource: tuple[str, str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        async with serving() as server:
            await server.ask("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", DEFINITION)
            scope = server.api.scopes.lookup(*resource)
            assert scope is not None
            api_version = str(scope.gvk.group_version)
            for name in "abcde":
                obj = {
                    "apiVersion": api_version,
                    "kind": scope.gvk.kind,
                    "metadata": {"name": name},
                    "data": {"k": "v" * 700},
                }
                assert (await server.ask("POST", path, obj)).status == 201
            whole = (await list_(server.request("GET", path), scope)).body
            assert len(json.loads(whole)["items"]) == 5
            monkeypatch.setattr(lists, "_LARGE", 1000)
            monkeypatch.setattr(lists, "_PIECE", 1000)
            monkeypatch.setattr(respond, "_GZIP_THRESHOLD", 1000)
            response = await list_(server.request("GET", path), scope)
            assert response.pieces is not None
            pieces = [*response.pieces]
            assert (len(pieces) > 3, b"".join(pieces)) == (True, whole)
            compressed = await list_(server.request("GET", path, None, (b"accept-encoding", b"gzip")), scope)
            assert compressed.pieces is not None
            assert gzip.decompress(b"".join(compressed.pieces)) == whole
            assert (await server.ask("GET", path)).text.encode() == whole

    asyncio.run(run())


def test_others_are_answered_while_a_collection_is_deleted() -> None:
    async def run() -> None:
        async with serving() as server:
            for number in range(20):
                await server.ask("POST", MAPS, {"metadata": {"name": f"m{number}"}})
            deletion = asyncio.ensure_future(server.ask("DELETE", MAPS))
            counts: list[int] = []
            while not deletion.done():
                counts.append(len((await server.ask("GET", MAPS)).body["items"]))
                await asyncio.sleep(0)
            assert len((await deletion).body["items"]) == 20
            assert any(0 < count < 20 for count in counts)
            assert (await server.ask("GET", MAPS)).body["items"] == []

    asyncio.run(run())
