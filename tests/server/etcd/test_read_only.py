"""A server with --read-only: everything can be read, and nothing is written, neither for clients nor by the server itself."""

import asyncio
import hashlib
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import httpx
import pytest

from fakeapiserver import Cluster
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.cluster.processes.etcd_process import EtcdProcess
from fakeapiserver.server.local import LocalServer
from fakeapiserver.server.options.config import Config, EtcdOptions
from fakeapiserver.storage.etcd.client import Client
from tests.server.etcd.test_servers import (
    CONFIG_MAPS,
    DEFINITION,
    WIDGETS,
    ask,
    config_map,
    deployment,
    discovered,
    eventually,
    listed,
    server,
    service,
)

DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
REVIEWS: Final = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
REVIEW: Final[Object] = {
    "apiVersion": "authorization.k8s.io/v1",
    "kind": "SelfSubjectAccessReview",
    "spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}},
}
POD: Final[Object] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p"},
    "spec": {"containers": [{"name": "c", "image": "i"}]},
}
ACCOUNT: Final[Object] = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
BINDING: Final[Object] = {"target": {"name": "n"}, "metadata": {"name": "p"}}
WIDGET: Final[Object] = {"apiVersion": "apps.example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {}}
SERVICES: Final = "/api/v1/namespaces/default/services"
PODS: Final = "/api/v1/namespaces/default/pods"
# Method, path, body, and the subject of the refusal.
WRITES: Final[list[tuple[str, str, Object | None, str]]] = [
    ("POST", CONFIG_MAPS, config_map("b"), 'configmaps "b"'),
    ("PUT", f"{CONFIG_MAPS}/a", config_map("a", x="2"), 'configmaps "a"'),
    ("PATCH", f"{CONFIG_MAPS}/a", {"data": {"x": "2"}}, 'configmaps "a"'),
    ("DELETE", f"{CONFIG_MAPS}/a", None, 'configmaps "a"'),
    ("DELETE", CONFIG_MAPS, None, "configmaps"),
    ("POST", SERVICES, service("s"), 'services "s"'),
    ("POST", "/api/v1/namespaces", {"metadata": {"name": "n"}}, 'namespaces "n"'),
    ("DELETE", "/api/v1/namespaces/default", None, 'namespaces "default"'),
    ("POST", "/apis/apps/v1/namespaces/default/deployments", deployment("d", 1), 'deployments.apps "d"'),
    ("POST", f"{PODS}/p/binding", BINDING, 'pods "p"'),
    ("POST", f"{PODS}/p/eviction", {"metadata": {"name": "p"}}, 'pods "p"'),
    ("PATCH", f"{PODS}/p/status", {"status": {"phase": "Running"}}, 'pods "p"'),
    ("POST", WIDGETS, {**WIDGET, "metadata": {"name": "x"}}, 'widgets.apps.example.com "x"'),
    ("DELETE", f"{WIDGETS}/w", None, 'widgets.apps.example.com "w"'),
    (
        "DELETE",
        f"{DEFINITIONS}/widgets.apps.example.com",
        None,
        'customresourcedefinitions.apiextensions.k8s.io "widgets.apps.example.com"',
    ),
]


async def fill(client: httpx.AsyncClient) -> dict[str, str]:
    """Stores some objects, and returns all that are there."""
    await ask(client, "POST", "/api/v1/namespaces/default/serviceaccounts", ACCOUNT)
    await ask(client, "POST", CONFIG_MAPS, config_map("a", x="1"))
    await ask(client, "POST", PODS, POD)
    await ask(client, "POST", DEFINITIONS, DEFINITION)
    await eventually(lambda: ask(client, "POST", WIDGETS, WIDGET))
    return dict(await eventually(lambda: discovered(client)))


async def refused(client: httpx.AsyncClient, method: str, path: str, body: Object | None, subject: str) -> None:
    kind = "merge-patch+json" if method == "PATCH" else "json"
    response = await client.request(method, path, json=body, headers={"Content-Type": f"application/{kind}"})
    status = response.json()
    assert (status["code"], status["reason"]) == (403, "Forbidden"), status
    assert status["message"] == f"{subject} is forbidden: this server is read-only"


async def check_reads(client: httpx.AsyncClient, everything: dict[str, str]) -> None:
    """Reads, reviews, tokens and dry runs work as ever."""
    assert await listed(client) == everything
    assert (await ask(client, "POST", REVIEWS, REVIEW))["status"]["allowed"]
    rehearsed = await ask(client, "POST", f"{SERVICES}?dryRun=All", service("s"))
    assert rehearsed["spec"]["clusterIP"]
    token = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"audiences": []}}
    made = await ask(client, "POST", "/api/v1/namespaces/default/serviceaccounts/default/token", token)
    assert made["status"]["token"]
    assert (await client.delete(f"{CONFIG_MAPS}/no-such")).status_code == 404
    assert (await ask(client, "GET", "/openapi/v3"))["paths"]["apis/apps.example.com/v1"]


@asynccontextmanager
async def running(config: Config) -> AsyncIterator[httpx.AsyncClient]:
    """A client of a server with this configuration, as its administrator."""
    local = LocalServer(config, listens=False)
    await local.start()
    try:
        assert local.api is not None
        transport = httpx.ASGITransport(local.api.application)
        headers = {"Authorization": f"Bearer {local.admin_token}"}
        async with httpx.AsyncClient(transport=transport, base_url="http://ours", headers=headers) as client:
            yield client
    finally:
        await local.stop()


async def position(url: str) -> tuple[int, int]:
    """The revision of an etcd, and the number of its proposals: grants of leases count as well."""
    client = Client.of([url])
    try:
        status = await client.status()
        return status.header.revision, status.raft_applied_index
    finally:
        await client.close()


def test_an_etcd_is_read_without_a_write(etcd: EtcdProcess) -> None:
    async def scenario() -> None:
        async with server(etcd.url) as writer:
            everything = await fill(writer)
        before = await position(etcd.url)
        config = Config(etcd=EtcdOptions(servers=(etcd.url,)), read_only=True, etcd_compaction_interval=0.05)
        config.given = frozenset(("etcd-compaction-interval",))
        async with running(config) as client:
            await check_reads(client, everything)
            for write in WRITES:
                await refused(client, *write)
            await ask(client, "POST", "/fakeapiserver/snapshots")
            for path in ("snapshots/1/restore", "compact"):
                response = await client.post(f"/fakeapiserver/{path}", json={})
                assert (response.status_code, response.json()["message"]) == (
                    403,
                    "forbidden: this server is read-only",
                )
        assert await position(etcd.url) == before

    asyncio.run(scenario())


def test_what_others_write_is_followed(etcd: EtcdProcess) -> None:
    async def scenario() -> None:
        options = EtcdOptions(servers=(etcd.url,))
        async with server(etcd.url) as writer, running(Config(etcd=options, read_only=True)) as reader:
            everything = await fill(writer)
            await eventually(lambda: ask(reader, "GET", WIDGETS))
            assert await listed(reader) == everything
            await ask(writer, "DELETE", f"{DEFINITIONS}/widgets.apps.example.com")
            await eventually(lambda: withdrawn(reader))

    asyncio.run(scenario())


async def withdrawn(client: httpx.AsyncClient) -> None:
    assert (await client.get(WIDGETS)).status_code == 404


def contents(folder: Path) -> dict[str, tuple[str, int]]:
    """The digest and the time of each file."""
    return {
        path.name: (hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns) for path in folder.iterdir()
    }


@pytest.mark.parametrize("is_killed", [False, True])
def test_a_data_directory_is_read_without_a_write(is_killed: bool, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    subprocess.run([sys.executable, "-c", WRITER, folder, str(is_killed)], check=not is_killed)
    before = contents(folder)
    assert ("state.db-wal" in before) is is_killed

    async def scenario() -> None:
        async with running(Config(data_dir=folder, read_only=True)) as client:
            assert (await ask(client, "GET", f"{CONFIG_MAPS}/a"))["data"] == {"x": "1"}
            everything = await listed(client)
            await refused(client, "POST", CONFIG_MAPS, config_map("b"), 'configmaps "b"')
            await refused(client, "DELETE", CONFIG_MAPS, None, "configmaps")
            assert await listed(client) == everything

    asyncio.run(scenario())
    assert contents(folder) == before


WRITER: Final = """
import os, sys
from fakeapiserver import Cluster
with Cluster(data_dir=sys.argv[1], controllers=()) as cluster:
    cluster.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"x": "1"}})
    if sys.argv[2] == "True":
        os._exit(1)
"""


def test_a_data_directory_in_use_is_not_read(tmp_path: Path) -> None:
    with Cluster(data_dir=tmp_path, controllers=()), pytest.raises(OSError, match="is in use: stop the other server"):
        LocalServer(Config(data_dir=tmp_path, read_only=True))


@pytest.mark.parametrize(
    ("config", "complaint"),
    [
        (Config(), "--read-only is for a state that exists already: name it by --etcd-servers or --data-dir"),
        (Config(data_dir=Path("d"), nodes=2), "leave --nodes out, with which the server writes objects of its own"),
        (Config(data_dir=Path("d"), metrics=("resource",)), "leave --metrics out"),
        (Config(data_dir=Path("d"), given=frozenset(("controllers",))), "leave --controllers out, since controllers"),
        (Config(data_dir=Path("d"), load=Path("f")), "leave --load out"),
    ],
)
def test_what_contradicts_it(config: Config, complaint: str) -> None:
    config.read_only = True
    with pytest.raises(ValueError, match=complaint):
        LocalServer(config)


@pytest.mark.parametrize("is_file", [False, True])
def test_what_is_no_data_directory(is_file: bool, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    if is_file:
        folder.write_text("")
    with pytest.raises(OSError, match=r"is no data directory: it has no file state\.db"):
        LocalServer(Config(data_dir=folder, read_only=True))
    assert folder.exists() is is_file
