"""Tests discovery of a server's resources by all their names, and its cache, which is in kubectl's place."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from fakeapiserver.apimachinery.gvk import GroupKind, GroupVersionResource
from fakeapiserver.client.config import RESTConfig
from fakeapiserver.client.discovery import APIGroup, DiscoveryClient, Documents, groups_of
from fakeapiserver.client.disk_cache import DiskCache
from fakeapiserver.client.rest import RESTClient
from fakeapiserver.client.rest_mapper import NoMatchError, RESTMapper
from fakeapiserver.transport.key_pair import KeyPair

Names = tuple[str, str, str]


def table(group_version: str, *rows: tuple[str, str, Sequence[str]]) -> tuple[str, dict[str, Any]]:
    """Resources with their kinds and short names."""
    resources = [
        {
            "name": name,
            "singularName": kind.lower(),
            "namespaced": True,
            "kind": kind,
            "verbs": ["get"],
            "shortNames": short,
        }
        for name, kind, short in rows
    ]
    return group_version, {"kind": "APIResourceList", "groupVersion": group_version, "resources": resources}


def group(name: str, *versions: str) -> dict[str, Any]:
    """Returns a group whose first version is preferred. The versions are listed in reverse, as no server does, to test that the preference
    counts.
    """
    rows = [{"groupVersion": f"{name}/{version}" if name else version, "version": version} for version in versions]
    return {"name": name, "versions": rows[::-1], "preferredVersion": rows[0]}


SERVED = Documents(
    [group("", "v1"), group("apps", "v1"), group("storage.k8s.io", "v1", "v1beta1"), group("example.com", "v2", "v1")],
    dict(
        (
            table("v1", ("pods", "Pod", ["po"]), ("pods/log", "Pod", ()), ("events", "Event", ["ev"])),
            table("apps/v1", ("deployments", "Deployment", ["deploy"])),
            table("storage.k8s.io/v1", ("storageclasses", "StorageClass", ["sc"])),
            table("storage.k8s.io/v1beta1", ("storageclasses", "StorageClass", ["sc"]), ("olds", "Old", ())),
            table("example.com/v2", ("pods", "Pod", ["deploy"]), ("widgets", "Widget", ["po", "wd"])),
            table("example.com/v1", ("pods", "Pod", ["deploy"])),
        )
    ),
)


class Told:
    """Returns the same documents each time, and counts the requests."""

    def __init__(self, documents: Documents = SERVED) -> None:
        self.answer = documents
        self.asked = 0

    async def documents(self) -> Documents:
        self.asked += 1
        return self.answer

    async def groups(self) -> Sequence[APIGroup]:
        return groups_of(await self.documents())

    def invalidate(self) -> None:
        """Does nothing: this source has no cache."""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("pods", ("", "v1", "pods")),
        ("Pod", ("", "v1", "pods")),
        ("po", ("", "v1", "pods")),
        ("pods.v1.", ("", "v1", "pods")),
        ("pods.example.com", ("example.com", "v2", "pods")),
        ("pods.v1.example.com", ("example.com", "v1", "pods")),
        ("Pod.v1.example.com", ("example.com", "v1", "pods")),
        ("pods.exam", ("example.com", "v2", "pods")),
        ("deploy", ("apps", "v1", "deployments")),
        ("deploy.example.com", ("example.com", "v2", "pods")),
        ("po.exam", ("example.com", "v2", "widgets")),
        ("storageclass.storage", ("storage.k8s.io", "v1", "storageclasses")),
        ("olds", ("storage.k8s.io", "v1beta1", "olds")),
        ("DEPLOYMENTS", ("apps", "v1", "deployments")),
        ("pods/log", None),
        ("po.v9.example.com", ("example.com", "v2", "widgets")),
        ("pods.nope", None),
        ("", None),
    ],
)
def test_resources_as_people_type_them(text: str, expected: Names | None) -> None:
    mapper = RESTMapper(Told())
    if expected is None:
        with pytest.raises(NoMatchError, match="the server doesn't have a resource type"):
            asyncio.run(mapper.mapping_for(text))
    else:
        assert asyncio.run(mapper.mapping_for(text)).gvr == GroupVersionResource(*expected)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (("", "", "pods"), ("", "v1", "pods")),
        (("", "v2", "pods"), ("example.com", "v2", "pods")),
        (("exam", "v1", "pods"), None),
        (("exam", "", "pod"), ("example.com", "v2", "pods")),
        (("example.com", "v1", "PODS"), ("example.com", "v1", "pods")),
        (("", "v9", "pods"), None),
    ],
)
def test_partial_names_of_resources(asked: Names, expected: Names | None) -> None:
    mapper = RESTMapper(Told())
    if expected is None:
        with pytest.raises(NoMatchError, match=f"no matches for {asked[0]}/{asked[1]}, Resource=pods"):
            asyncio.run(mapper.resource_for(GroupVersionResource(*asked)))
    else:
        assert asyncio.run(mapper.resource_for(GroupVersionResource(*asked))) == GroupVersionResource(*expected)


@pytest.mark.parametrize(
    ("kind", "versions", "message"),
    [
        (("apps", "Pod"), (), 'no matches for kind "Pod" in group "apps"'),
        (("", "Pod"), ("v2",), 'no matches for kind "Pod" in version "v2"'),
        (("apps", "Deployment"), ("v2", "v3"), r'no matches for kind "Deployment" in versions \["apps/v2" "apps/v3"\]'),
    ],
)
def test_kinds_that_are_not_served(kind: tuple[str, str], versions: Sequence[str], message: str) -> None:
    with pytest.raises(NoMatchError, match=f"^{message}$"):
        asyncio.run(RESTMapper(Told()).mapping(GroupKind(*kind), *versions))


def test_kubectls_files_are_kept_and_read(tmp_path: Path) -> None:
    told = Told()

    async def scenario() -> None:
        groups = await DiskCache(told, "https://10.0.0.1:6443", tmp_path).groups()
        assert groups == await DiskCache(told, "https://10.0.0.1:6443", tmp_path).groups()

    asyncio.run(scenario())
    assert told.asked == 1
    folder = tmp_path / "10.0.0.1_6443"
    assert json.loads((folder / "servergroups.json").read_text())["kind"] == "APIGroupList"
    assert json.loads((folder / "apps/v1/serverresources.json").read_text())["resources"][0]["name"] == "deployments"
    assert (folder / "v1/serverresources.json").stat().st_mode & 0o777 == 0o660


@pytest.mark.parametrize("fault", ["broken", "another kind", "gone", "old", "invalidated"])
def test_invalid_files_are_written_again(tmp_path: Path, fault: str) -> None:
    told = Told()

    async def scenario() -> None:
        cache = DiskCache(told, "https://h", tmp_path)
        await cache.groups()
        file = tmp_path / "h/apps/v1/serverresources.json"
        match fault:
            case "broken":
                file.write_text("{")
            case "another kind":
                file.write_text('{"resources": 1}')
            case "gone":
                file.unlink()
            case "old":
                os.utime(file, (1, 1))
            case _:
                cache.invalidate()
        for _ in range(2):
            assert await cache.groups() == groups_of(SERVED)

    asyncio.run(scenario())
    assert told.asked == 2


def test_what_is_heard_while_a_server_does_not_answer_is_not_kept(tmp_path: Path) -> None:
    told = Told(Documents(SERVED.groups, SERVED.resources, ["metrics.k8s.io/v1"]))
    asyncio.run(DiskCache(told, "https://h", tmp_path).groups())
    assert not [*tmp_path.iterdir()]


class Answers:
    """A server with documents by path, all of them of one content type; there is nothing else. The default type is that of servers
    without aggregated discovery."""

    def __init__(self, found: dict[str, Any], content_type: str = "application/json") -> None:
        self._found = found
        self._content_type = content_type

    async def round_trip(
        self, method: str, target: str, headers: Sequence[tuple[str, str]], body: bytes, certificate: KeyPair | None
    ) -> "Answer":
        return Answer(self._found.get(target), self._content_type)

    def close(self) -> None:
        """Does nothing: no connection is open."""


class Answer:
    def __init__(self, found: Any, content_type: str) -> None:
        self.headers = [(b"content-type", content_type.encode())]
        self.status = 404 if found is None else 200
        self._body = json.dumps(found).encode()

    async def chunks(self) -> AsyncIterator[bytes]:
        yield self._body

    async def body(self) -> bytes:
        return self._body

    async def finish(self) -> None:
        """Does nothing: the response is complete."""


def test_servers_without_aggregated_discovery_are_asked_version_by_version() -> None:
    found: dict[str, Any] = {"/api": {"kind": "APIVersions", "versions": ["v1"]}}
    found["/apis"] = {"kind": "APIGroupList", "groups": SERVED.groups[1:]}
    for name, document in SERVED.resources.items():
        found[f"/apis/{name}" if "/" in name else f"/api/{name}"] = document
    del found["/apis/storage.k8s.io/v1beta1"]

    async def scenario() -> None:
        rest = RESTClient(RESTConfig("http://kubernetes"), Answers(found))
        groups = await DiscoveryClient(rest).groups()
        assert [row.name for row in groups] == ["", "apps", "storage.k8s.io", "example.com"]
        assert [*groups[3].versions] == ["v2", "v1"]
        assert (groups[2].stale, groups[2].versions["v1beta1"]) == (("v1beta1",), ())
        assert groups[0].versions["v1"][0].subresources == ("log",)

    asyncio.run(scenario())


_AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


def aggregated(group_name: str, *kinds: str, freshness: str = "Current") -> dict[str, Any]:
    """An APIGroupDiscoveryList of one group with the version v1."""
    rows = [
        {"resource": f"{kind.lower()}s", "scope": "Namespaced", "responseKind": {"version": "v1", "kind": kind}}
        for kind in kinds
    ]
    versions = [{"version": "v1", "resources": rows, "freshness": freshness}]
    return {"kind": "APIGroupDiscoveryList", "items": [{"metadata": {"name": group_name}, "versions": versions}]}


@pytest.mark.parametrize(
    ("path", "document"),
    [
        ("/api", aggregated("", "Pod", "Secret")),
        ("/apis", aggregated("apps", "Deployment", "DaemonSet")),
        ("/apis", aggregated("batch", "Deployment")),
        ("/apis", aggregated("apps", "Deployment", freshness="Stale")),
    ],
)
def test_clients_see_each_servers_own_groups_and_what_changes_in_them(path: str, document: dict[str, Any]) -> None:
    """A server's documents, which are kept, are never returned for another server."""
    found = {"/api": aggregated("", "Pod"), "/apis": aggregated("apps", "Deployment")}
    client = DiscoveryClient(RESTClient(RESTConfig("http://kubernetes"), Answers(found, _AGGREGATED)))

    async def agrees() -> Sequence[APIGroup]:
        groups = await client.groups()
        assert groups == groups_of(await client.documents())
        return groups

    async def scenario() -> None:
        before = await agrees()
        assert await agrees() == before
        first, found[path] = found[path], document
        assert await agrees() != before
        found[path] = first
        assert await agrees() == before

    asyncio.run(scenario())
