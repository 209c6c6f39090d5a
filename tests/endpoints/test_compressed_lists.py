"""Compressed lists: what is sent again, what is made again, and how much is kept."""

import asyncio
import gzip
import json
from collections.abc import Iterator
from typing import Any

import pytest

from fakeapiserver.endpoints import respond
from fakeapiserver.endpoints.compressed_lists import CompressedLists
from fakeapiserver.endpoints.verbs.list import list_
from tests.endpoints.in_process import serving

MAPS = "/api/v1/namespaces/default/configmaps"
GZIP = (b"accept-encoding", b"gzip")


def body(text: bytes, made: list[bytes]) -> Iterator[bytes]:
    made.append(text)
    yield text[:10]
    yield text[10:]


def test_equal_content_is_compressed_once() -> None:
    lists, made = CompressedLists(), list[bytes]()
    for content in ("a", "b", "a", "b"):
        pieces = lists.pieces(content, body(content.encode() * 100, made))
        assert gzip.decompress(b"".join(pieces)) == content.encode() * 100
    assert made == [b"a" * 100, b"b" * 100]


def test_a_body_that_was_not_sent_whole_is_not_kept() -> None:
    lists, made = CompressedLists(), list[bytes]()
    next(lists.pieces("a", body(b"a" * 100, made)))
    assert gzip.decompress(b"".join(lists.pieces("a", body(b"a" * 100, made)))) == b"a" * 100
    assert len(made) == 2


def test_the_least_used_is_dropped_beyond_the_bound() -> None:
    size = len(b"".join(CompressedLists().pieces("x", body(b"x" * 100, []))))
    lists, made = CompressedLists(3 * size), list[bytes]()
    for content in ("a", "b", "c", "a", "d", "a", "c", "b"):
        assert b"".join(lists.pieces(content, body(content.encode() * 100, made)))
        assert lists.bytes <= 3 * size
    assert [text[:1] for text in made] == [b"a", b"b", b"c", b"d", b"b"]
    tiny = CompressedLists(1)
    assert b"".join(tiny.pieces("a", body(b"a" * 100, [])))
    assert tiny.bytes == 0


def test_whatever_changes_a_list_changes_the_compressed_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each input of the kept bytes: the state, the namespace, the selector, the limit, the resource, and the version."""
    monkeypatch.setattr(respond, "_GZIP_THRESHOLD", 100)

    async def run() -> None:
        async with serving() as server:

            async def listed(path: str, group: str = "", version: str = "v1", resource: str = "configmaps") -> Any:
                scope = server.api.scopes.lookup(group, version, resource)
                assert scope is not None
                plain = (await list_(server.request("GET", path), scope)).body
                for _ in range(2):
                    response = await list_(server.request("GET", path, None, GZIP), scope)
                    assert response.pieces is not None
                    assert (b"content-encoding", b"gzip") in response.headers
                    assert gzip.decompress(b"".join(response.pieces)) == plain
                return json.loads(plain)

            async def write(method: str, path: str, body: Any = None) -> None:
                assert (await server.ask(method, path, body)).status in (200, 201)

            for name in "abc":
                await write(
                    "POST", MAPS, {"metadata": {"name": name, "labels": {"name": name}}, "data": {"k": "v" * 99}}
                )
                await write("POST", MAPS.replace("default", "kube-system"), {"metadata": {"name": name}})
            assert len((await listed(MAPS))["items"]) == 3
            await write("PUT", f"{MAPS}/a", {"metadata": {"name": "a"}, "data": {"k": "w" * 99}})
            assert (await listed(MAPS))["items"][0]["data"]["k"] == "w" * 99
            await write("DELETE", f"{MAPS}/a")
            assert len((await listed(MAPS))["items"]) == 2
            first = await listed(MAPS)
            await write("POST", "/api/v1/namespaces", {"metadata": {"name": "other"}})
            assert (await listed(MAPS))["metadata"] != first["metadata"]  # the revision
            assert len((await listed("/api/v1/configmaps"))["items"]) > 2
            assert [item["metadata"]["name"] for item in (await listed(f"{MAPS}?labelSelector=name%3Dc"))["items"]] == [
                "c"
            ]
            assert (await listed(f"{MAPS}?limit=1"))["metadata"]["continue"]
            lease = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
            spec = {"maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}}
            await write("POST", lease, {"metadata": {"name": "a", "annotations": {"x": "y" * 99}}, "spec": spec})
            for version in ("v1", "v2"):
                path = lease.replace("v2", version)
                items = await listed(path, "autoscaling", version, "horizontalpodautoscalers")
                assert items["apiVersion"] == f"autoscaling/{version}"

    asyncio.run(run())
