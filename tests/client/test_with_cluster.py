"""The client's parts against a server."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from fakeapiserver import Cluster
from fakeapiserver.apimachinery.gvk import GroupKind, GroupVersionResource
from fakeapiserver.client import kubeconfig, synchronous, wait
from fakeapiserver.client.cache.indexer import deletion_handling_key
from fakeapiserver.client.cache.shared_informer import (
    ResourceEventHandlerFuncs,
    SharedInformerFactory,
    strip_managed_fields,
)
from fakeapiserver.client.discovery import DiscoveryClient, MemoryCache
from fakeapiserver.client.disk_cache import DiskCache
from fakeapiserver.client.dynamic import JSON_PATCH, STRATEGIC_MERGE_PATCH, DynamicClient
from fakeapiserver.client.errors import StatusError, is_not_found
from fakeapiserver.client.leaderelection import LeaderElector, LeaseLock
from fakeapiserver.client.pager import each_item
from fakeapiserver.client.record import EVENTS, EventBroadcaster
from fakeapiserver.client.rest import RESTClient
from fakeapiserver.client.rest_mapper import NoMatchError, RESTMapper

# objects are counted: no controller writes
pytestmark = pytest.mark.fake_cluster(controllers=())

CONFIG_MAPS = GroupVersionResource("", "v1", "configmaps")
Work = Callable[[Cluster, DynamicClient], Awaitable[None]]


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


@pytest.fixture
def run(fake_cluster: Cluster) -> Callable[[Work], None]:
    """Runs the work with a client of a fresh cluster."""

    def running(work: Work) -> None:
        async def scenario() -> None:
            async with RESTClient(kubeconfig.load(fake_cluster.kubeconfig)) as rest:
                await work(fake_cluster, DynamicClient(rest))

        asyncio.run(scenario())

    return running


def test_every_kind_of_write(run: Callable[[Work], None]) -> None:
    async def work(cluster: Cluster, client: DynamicClient) -> None:
        maps = client.resource(CONFIG_MAPS, "default")
        created = await maps.create(config_map("a", x="1"))
        created["data"]["y"] = "2"
        updated = await maps.update(created)
        patched = await maps.patch("a", {"data": {"x": None}})
        assert patched["data"] == {"y": "2"}
        await maps.patch("a", [{"op": "add", "path": "/data/z", "value": "3"}], patch_type=JSON_PATCH)
        await maps.patch("a", {"data": {"w": "4"}}, patch_type=STRATEGIC_MERGE_PATCH)
        with pytest.raises(StatusError, match="the object has been modified"):
            await maps.update(updated)
        applied = await maps.apply(config_map("a", y="5"), field_manager="me", force=True)
        assert applied["data"] == {"y": "5", "z": "3", "w": "4"}
        tried = await maps.create(config_map("b"), dry_run=True)
        assert tried["metadata"]["uid"]
        for name in ("b", "c", "d"):
            await maps.create(config_map(name))
        assert [obj["metadata"]["name"] async for obj in each_item(maps, 2)] == ["a", "b", "c", "d"]
        await maps.delete("a", uid=created["metadata"]["uid"])
        with pytest.raises(StatusError) as caught:
            await maps.get("a")
        assert is_not_found(caught.value)
        await maps.delete_collection()
        assert (await maps.list())["items"] == []

    run(work)


@pytest.mark.parametrize("cache", ["memory", "disk"])
def test_kinds_are_found_by_every_name_and_new_ones_too(
    run: Callable[[Work], None], cache: str, tmp_path: Path
) -> None:
    async def work(cluster: Cluster, client: DynamicClient) -> None:
        asking = DiscoveryClient(client.rest)
        mapper = RESTMapper(MemoryCache(asking) if cache == "memory" else DiskCache(asking, cluster.url, tmp_path))
        for name in ("deployments", "deployment", "Deployment", "deploy", "deploy.apps", "deployments.v1.apps"):
            assert (await mapper.mapping_for(name)).gvr == GroupVersionResource("apps", "v1", "deployments")
        with pytest.raises(NoMatchError, match=r'no matches for kind "Widget" in group "example\.com"'):
            await mapper.mapping(GroupKind("example.com", "Widget"))
        definition = {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "widgets.example.com"},
            "spec": {
                "group": "example.com",
                "names": {"plural": "widgets", "kind": "Widget", "shortNames": ["wd"]},
                "scope": "Namespaced",
                "versions": [
                    {
                        "name": "v1",
                        "served": True,
                        "storage": True,
                        "schema": {"openAPIV3Schema": {"type": "object"}},
                    }
                ],
            },
        }
        definitions = client.resource(GroupVersionResource("apiextensions.k8s.io", "v1", "customresourcedefinitions"))
        await definitions.create(definition)
        await wait.until(definitions, wait.has_condition("Established"), name="widgets.example.com")
        assert (await mapper.mapping(GroupKind("example.com", "Widget"), "v2", "v1")).gvr.resource == "widgets"
        assert (await mapper.mapping_for("wd")).namespaced

    run(work)


@pytest.mark.parametrize("use_watch_list", [True, False], ids=["stream", "list"])
def test_an_informer_goes_on_after_lost_watches_and_restored_states(
    run: Callable[[Work], None], use_watch_list: bool
) -> None:
    async def work(cluster: Cluster, client: DynamicClient) -> None:
        maps = client.resource(CONFIG_MAPS, "default")
        factory = SharedInformerFactory(
            client, namespace="default", transform=strip_managed_fields, use_watch_list=use_watch_list
        )
        informer = factory.for_resource(CONFIG_MAPS)
        told: asyncio.Queue[tuple[str, str]] = asyncio.Queue()
        informer.add_event_handler(
            ResourceEventHandlerFuncs(
                lambda obj: told.put_nowait(("add", obj["metadata"]["name"])),
                # a list after a lost watch has those that didn't change, too
                lambda old, new: None if old == new else told.put_nowait(("update", new["metadata"]["name"])),
                lambda obj: told.put_nowait(("delete", deletion_handling_key(obj).rpartition("/")[2])),
            )
        )
        await maps.create(config_map("first"))
        before = await asyncio.to_thread(cluster.snapshot)
        factory.start()
        await factory.wait_for_sync()
        assert await told.get() == ("add", "first")
        assert await asyncio.to_thread(cluster.lose_watches) >= 1
        await maps.create(config_map("second"))
        assert await told.get() == ("add", "second")
        await maps.patch("second", {"data": {"a": "b"}})
        assert await told.get() == ("update", "second")
        await asyncio.to_thread(cluster.restore, before)
        assert await told.get() == ("delete", "second")
        found = informer.lister.namespaced("default").get("first")
        assert "managedFields" not in found["metadata"]
        assert found["kind"] == "ConfigMap"
        await factory.shutdown()

    run(work)


def test_of_two_candidates_one_leads_and_the_other_follows(run: Callable[[Work], None]) -> None:
    async def work(cluster: Cluster, client: DynamicClient) -> None:
        leading: list[str] = []
        terms: asyncio.Queue[str] = asyncio.Queue()

        async def lead(name: str) -> None:
            leading.append(name)
            terms.put_nowait(name)
            assert leading == [name]
            try:
                await asyncio.sleep(3600)
            finally:
                leading.remove(name)

        def candidate(name: str) -> "asyncio.Task[None]":
            elector = LeaderElector(
                LeaseLock(client, "default", "operator", name),
                on_started_leading=lambda: lead(name),
                retry_period=0.05,
                release_on_cancel=True,
            )
            return asyncio.ensure_future(elector.run())

        first = candidate("a")
        assert await terms.get() == "a"
        second = candidate("b")
        await asyncio.sleep(0.3)
        assert leading == ["a"]
        first.cancel()
        assert await terms.get() == "b"
        second.cancel()
        await asyncio.gather(first, second, return_exceptions=True)
        assert leading == []
        lease = await client.resource(GroupVersionResource("coordination.k8s.io", "v1", "leases"), "default").get(
            "operator"
        )
        assert lease["spec"]["leaseTransitions"] == 1

    run(work)


def test_events_that_happen_again_are_a_series(run: Callable[[Work], None]) -> None:
    async def work(cluster: Cluster, client: DynamicClient) -> None:
        made = await client.resource(CONFIG_MAPS, "default").create(config_map("a"))
        broadcaster = EventBroadcaster(client)
        running = asyncio.ensure_future(broadcaster.run())
        recorder = broadcaster.new_recorder("example.com/operator", "operator-1")
        for _ in range(3):
            recorder.event(made, "Normal", "Synced", "Sync", "all is well")
        recorder.event(made, "Warning", "Failed", "Sync", "all is lost")
        await broadcaster.flush()
        found = (await client.resource(EVENTS, "default").list())["items"]
        assert {(event["type"], event["note"], (event.get("series") or {}).get("count")) for event in found} == {
            ("Normal", "all is well", 2),
            ("Warning", "all is lost", None),
        }
        with pytest.raises(ValueError, match="unsupported event type"):
            recorder.event(made, "Info", "Synced", "Sync", "all is well")
        running.cancel()

    run(work)


def test_the_synchronous_face(fake_cluster: Cluster) -> None:
    with synchronous.connect(fake_cluster.kubeconfig) as client:
        maps = client.resource("cm", "default")
        client.apply(config_map("a", x="1"), field_manager="me")
        version = maps.list()["metadata"]["resourceVersion"]
        maps.patch("a", {"data": {"x": "2"}})
        maps.patch("a", [{"op": "add", "path": "/data/y", "value": "3"}], patch_type=JSON_PATCH)
        assert maps.get("a")["data"] == {"x": "2", "y": "3"}
        maps.delete("a")
        with closing(maps.watch(resource_version=version)) as events:
            assert [(next(events).type) for _ in range(3)] == ["MODIFIED", "MODIFIED", "DELETED"]
        assert maps.until(wait.is_deleted, name="a") is None
        for name in "bcd":
            maps.create(config_map(name))
        assert [obj["metadata"]["name"] for obj in maps.each(2)] == ["b", "c", "d"]
        maps.update({**maps.get("b"), "data": {"z": "1"}})
        with pytest.raises(StatusError) as caught:
            maps.get("a")
        assert is_not_found(caught.value)
        with pytest.raises(TimeoutError):
            maps.until(wait.is_deleted, name="b", timeout=0.01)
        maps.delete_collection()
        nodes = client.resource("nodes")
        nodes.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}})
        ready = {"type": "Ready", "status": "True"}
        nodes.apply_status(
            {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": {"conditions": [ready]}},
            field_manager="kubelet",
        )
        found = nodes.until(wait.has_condition("Ready"), name="n")
        assert found is not None
        assert client.request("GET", "/version")["major"] == "1"
