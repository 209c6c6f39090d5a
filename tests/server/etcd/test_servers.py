"""Servers on an etcd: several of ours, and a real one beside ours."""

import asyncio
import json
import os
from pathlib import Path
from typing import Final

import httpx
import pytest

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.client import kubeconfig
from fakeapiserver.cluster.processes.etcd_process import EtcdProcess
from fakeapiserver.storage.etcd.client import Client
from fakeapiserver.storage.etcd.messages import PutRequest, RequestOp, TxnRequest
from tests.server.etcd.ours import ask, eventually, server

# The folder of a running real API server, whose etcd is used: it has `kubeconfig` and `etcd.log`.
REFERENCE: Final = os.environ.get("FAKEAPISERVER_REFERENCE_STATE", "")
CONFIG_MAPS: Final = "/api/v1/namespaces/default/configmaps"
DEFINITION: Final[Object] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.apps.example.com"},
    "spec": {
        "group": "apps.example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "singular": "widget", "kind": "Widget"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "selectableFields": [{"jsonPath": ".spec.color"}],
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {"type": "object", "properties": {"color": {"type": "string", "default": "red"}}}
                        },
                    }
                },
            }
        ],
    },
}
WIDGET: Final[Object] = {
    "apiVersion": "apps.example.com/v1",
    "kind": "Widget",
    "metadata": {"name": "w", "namespace": "default", "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z"},
}
WIDGETS: Final = "/apis/apps.example.com/v1/namespaces/default/widgets"


def config_map(name: str, **data: str) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def test_a_server_goes_on_with_what_another_one_stored(etcd: EtcdProcess) -> None:
    async def scenario() -> None:
        async with server(etcd.url) as first:
            created = await ask(first, "POST", CONFIG_MAPS, config_map("a", x="1"))
            await ask(first, "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", DEFINITION)
            widget = {"apiVersion": "apps.example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {}}
            await eventually(lambda: ask(first, "POST", WIDGETS, widget))
            everything = await eventually(lambda: discovered(first))
        async with server(etcd.url, media_type="application/json") as second:
            assert await ask(second, "GET", f"{CONFIG_MAPS}/a") == created
            red = await ask(second, "GET", f"{WIDGETS}?fieldSelector=spec.color%3Dred")
            assert [item["metadata"]["name"] for item in red["items"]] == ["w"]
            assert await listed(second) == everything

    asyncio.run(scenario())


def test_custom_resources_that_are_read_before_their_definition_are_selected_later(etcd: EtcdProcess) -> None:
    async def scenario() -> None:
        async with server(etcd.url) as first:
            await put(etcd.url, "/registry/apps.example.com/widgets/default/w", {**WIDGET, "spec": {"color": "blue"}})
            await ask(first, "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", DEFINITION)
            assert await eventually(lambda: selected(first, "blue")) == ["w"]

    asyncio.run(scenario())


@pytest.mark.parametrize("is_defined", [False, True])
def test_custom_resources_of_others_are_pruned_and_get_defaults(etcd: EtcdProcess, is_defined: bool) -> None:
    """kube-apiserver adds defaults whenever it reads, so what it stores may lack those of its version."""

    async def scenario() -> None:
        definitions, key = (
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
            "/registry/apps.example.com/widgets/default/w",
        )
        async with server(etcd.url) as first:
            if is_defined:
                await ask(first, "POST", definitions, DEFINITION)
                await eventually(lambda: ask(first, "GET", WIDGETS))
            meta = {**WIDGET["metadata"], "annotations": {}, "finalizers": []}
            await put(etcd.url, key, {**WIDGET, "metadata": meta, "spec": {"shape": "round"}})
            if not is_defined:
                await ask(first, "POST", definitions, DEFINITION)
            widget = await eventually(lambda: ask(first, "GET", f"{WIDGETS}/w"))
            assert widget["spec"] == {"color": "red"}
            assert not widget["metadata"].keys() & {"annotations", "finalizers"}
            assert await eventually(lambda: selected(first, "red")) == ["w"]

    asyncio.run(scenario())


def test_documents_that_another_server_has_addressed_are_not_redirected(shared_etcd: EtcdProcess, prefix: str) -> None:
    """A real server and ours have other hashes: behind a load balancer each would send a client to the other's address."""

    async def scenario() -> None:
        async with server(shared_etcd.url, prefix=prefix) as client:
            path = "/openapi/v3/apis/apps/v1"
            redirected = await client.get(path, params={"hash": "ABC"})
            assert redirected.status_code == 301
            own = await client.get(redirected.headers["location"])
            assert own.headers["cache-control"] == "public, immutable"
            others = await client.get(path, params={"hash": "0123456789ABCDEF" * 8})
            assert (others.status_code, others.content) == (200, own.content)
            assert "immutable" not in others.headers["cache-control"]

    asyncio.run(scenario())


async def selected(client: httpx.AsyncClient, color: str) -> list[str]:
    """The names of the widgets of a color, of which there must be one."""
    listed = await ask(client, "GET", f"{WIDGETS}?fieldSelector=spec.color%3D{color}")
    assert listed["items"]
    return [item["metadata"]["name"] for item in listed["items"]]


async def put(url: str, key: str, obj: Object) -> None:
    """Writes a key as another program does."""
    client = Client.of([url])
    put = RequestOp(request_put=PutRequest(key.encode(), json.dumps(obj).encode()))
    await client.txn(TxnRequest(success=(put,)))
    await client.close()


def test_one_of_two_servers_runs_the_controllers_and_the_other_takes_over(etcd: EtcdProcess) -> None:
    deployments, controllers = (
        "/apis/apps/v1/namespaces/default/deployments",
        ("deployment", "replicaset", "serviceaccount"),
    )

    async def scenario() -> None:
        leading, following = server(etcd.url, controllers), server(etcd.url, controllers)
        first, second = await leading.__aenter__(), await following.__aenter__()
        try:
            holder = await lease_holder(second)
            await ask(second, "POST", deployments, deployment("a", replicas=3))
            assert await eventually(lambda: pods(first, "a", 3))
            assert await lease_holder(first) == holder
            await leading.__aexit__(None, None, None)
            await ask(second, "POST", deployments, deployment("b", replicas=3))
            assert await eventually(lambda: pods(second, "b", 3))
            assert await lease_holder(second) not in ("", holder)
        finally:
            await following.__aexit__(None, None, None)

    asyncio.run(scenario())


async def lease_holder(client: httpx.AsyncClient) -> str:
    """The server that runs the controllers."""
    path = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-controller-manager"
    return str((await ask(client, "GET", path))["spec"]["holderIdentity"])


def deployment(name: str, replicas: int) -> Object:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}


async def pods(client: httpx.AsyncClient, name: str, number: int) -> bool:
    """Returns True when so many pods are there; there are never more."""
    items = (await ask(client, "GET", f"/api/v1/namespaces/default/pods?labelSelector=app%3D{name}"))["items"]
    if len(items) > number:
        raise ValueError(f"there are {len(items)} pods")
    assert len(items) == number
    return True


def test_two_servers_write_to_the_same_objects(etcd: EtcdProcess) -> None:
    async def scenario() -> None:
        async with server(etcd.url) as first, server(etcd.url) as second:
            await ask(first, "POST", CONFIG_MAPS, config_map("a"))
            stale = await ask(second, "GET", f"{CONFIG_MAPS}/a")
            for i in range(5):
                writer = (first, second)[i % 2]
                body = {"data": {f"k{i}": "v"}}
                response = await writer.patch(
                    f"{CONFIG_MAPS}/a", json=body, headers={"Content-Type": "application/merge-patch+json"}
                )
                assert response.status_code == 200
            conflict = await first.put(f"{CONFIG_MAPS}/a", json=stale)
            assert conflict.status_code == 409
            now = await ask(first, "GET", f"{CONFIG_MAPS}/a")
            assert sorted(now["data"]) == [f"k{i}" for i in range(5)]
            again = await second.post(CONFIG_MAPS, json=config_map("a"))
            assert again.json()["reason"] == "AlreadyExists"
            await ask(second, "DELETE", f"{CONFIG_MAPS}/a")
            assert (await first.get(f"{CONFIG_MAPS}/a")).status_code == 404

    asyncio.run(scenario())


def test_servers_give_no_address_and_no_node_port_twice(etcd: EtcdProcess) -> None:
    services = "/api/v1/namespaces/default/services"

    async def scenario() -> None:
        async with server(etcd.url) as first, server(etcd.url) as second:
            given = await ask(first, "POST", services, service("a"))
            address, port = given["spec"]["clusterIP"], given["spec"]["ports"][0]["nodePort"]
            for taken, reason in (({"address": address}, "provided IP"), ({"port": port}, "provided port")):
                response = await second.post(services, json=service("b", **taken))
                assert f"{reason} is already allocated" in response.json()["message"]
            await ask(first, "DELETE", f"{services}/a")
            again = await eventually(lambda: ask(second, "POST", services, service("b", address, port)))
            assert (again["spec"]["clusterIP"], again["spec"]["ports"][0]["nodePort"]) == (address, port)
            for name, client in zip("cdefgh", (first, second) * 3, strict=True):
                await ask(client, "POST", services, service(name))
            items = (await ask(first, "GET", services))["items"]
            ports = [each["spec"]["ports"][0]["nodePort"] for each in items if each["spec"]["type"] == "NodePort"]
            assert len(ports) == len(set(ports)) == 7

    asyncio.run(scenario())


def service(name: str, address: str = "", port: int = 0) -> Object:
    ports = [{"port": 80, **({"nodePort": port} if port else {})}]
    spec = {"type": "NodePort", "ports": ports, **({"clusterIP": address} if address else {})}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


async def listed(client: httpx.AsyncClient) -> dict[str, str]:
    """Everything that a server lists but what it renews by itself: path and uid -> the object as JSON, whose order counts."""
    groups = (await ask(client, "GET", "/apis"))["groups"]
    roots = ["/api/v1", *(f"/apis/{version['groupVersion']}" for group in groups for version in group["versions"])]
    objects = {}
    for root in roots:
        for resource in (await ask(client, "GET", root))["resources"]:
            if "/" in resource["name"] or "list" not in resource["verbs"] or resource["name"] in _MOVING:
                continue
            path = f"{root}/{resource['name']}"
            for item in (await ask(client, "GET", path))["items"]:
                objects[f"{path} {item['metadata'].get('uid')}"] = json.dumps(item)
    return objects


async def discovered(client: httpx.AsyncClient) -> dict[str, str]:
    """Everything, once discovery shows the custom resource."""
    objects = await listed(client)
    assert any("/widgets " in path for path in objects)
    return objects


_MOVING: Final = ("componentstatuses", "events", "leases")


def reference_etcd() -> str:
    """The URL of the real API server's etcd."""
    return next(
        part.split('"')[1]
        for line in (Path(REFERENCE) / "etcd.log").read_text().splitlines()
        for part in [line.partition('"advertise-client-urls":[')[2]]
        if part
    )


@pytest.mark.skipif(
    not REFERENCE, reason="FAKEAPISERVER_REFERENCE_STATE names no folder of a real API server and its etcd"
)
def test_a_real_server_and_ours_show_the_same(request: pytest.FixtureRequest) -> None:
    """Objects that either has written; each in the same words, in the same order."""
    pytest.importorskip("grpc")
    config = kubeconfig.load(Path(REFERENCE) / "kubeconfig")
    url = reference_etcd()

    async def scenario() -> None:
        headers = {"Authorization": f"Bearer {config.token}"}
        async with (
            httpx.AsyncClient(base_url=config.host, verify=False, headers=headers, timeout=30) as real,
            server(url) as ours,
        ):
            for writer, reader, name in ((real, ours, "from-real"), (ours, real, "from-ours")):
                await ask(writer, "POST", CONFIG_MAPS, config_map(name, x="1"))
                stored = await ask(reader, "GET", f"{CONFIG_MAPS}/{name}")
                assert stored == await ask(writer, "GET", f"{CONFIG_MAPS}/{name}")
                await ask(reader, "PUT", f"{CONFIG_MAPS}/{name}", {**stored, "data": {"x": "2"}})
            assert await listed(ours) == await listed(real)
            for name in ("from-real", "from-ours"):
                await ask(ours, "DELETE", f"{CONFIG_MAPS}/{name}")
                assert (await real.get(f"{CONFIG_MAPS}/{name}")).status_code == 404

    asyncio.run(scenario())
