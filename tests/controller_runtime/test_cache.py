"""Tests the manager's cache: the kinds, namespaces and labels that it keeps, and how it is read."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest

from fakeapiserver import Cluster
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.client import kubeconfig
from fakeapiserver.client.discovery import DiscoveryClient, MemoryCache
from fakeapiserver.client.dynamic import DynamicClient
from fakeapiserver.client.errors import StatusError, is_not_found
from fakeapiserver.client.rest import RESTClient
from fakeapiserver.client.rest_mapper import NoMatchError, RESTMapper
from fakeapiserver.client.wait import poll_until
from fakeapiserver.controller_runtime import CacheOptions, gvk
from fakeapiserver.controller_runtime.cache import ByObject, Cache
from fakeapiserver.controller_runtime.client import Client

# reads and writes are counted: no controller writes
pytestmark = pytest.mark.fake_cluster(controllers=())

CONFIG_MAP, SECRET, NAMESPACE = (gvk("v1", kind) for kind in ("ConfigMap", "Secret", "Namespace"))
Scenario = Callable[[Cache, Client], Awaitable[None]]


def made(kind: str, name: str, namespace: str = "", **labels: str) -> Object:
    metadata: dict[str, Any] = {"name": name, "labels": labels}
    if namespace:
        metadata["namespace"] = namespace
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata}


@pytest.fixture
def run(fake_cluster: Cluster) -> Callable[..., None]:
    """Runs a scenario with a cache and a client that doesn't read from it, as `user` (default: an admin). The namespaces a, b
    and c have a config map and a secret each, of which those called `mine` are labelled so."""

    def running(scenario: Scenario, options: CacheOptions | None = None, user: str = "") -> None:
        async def work() -> None:
            config = kubeconfig.load(fake_cluster.kubeconfig)
            async with RESTClient(config) as admin, RESTClient(config.impersonating(user) if user else config) as rest:
                client = Client(DynamicClient(admin), mapper_of(admin), field_owner="tests")
                for namespace in "abc":
                    await client.create(made("Namespace", namespace))
                    for kind in ("ConfigMap", "Secret"):
                        await client.create(made(kind, "mine", namespace, mine="yes"))
                        await client.create(made(kind, "other", namespace, mine="no"))
                cache = Cache(DynamicClient(rest), mapper_of(rest), options)
                task = asyncio.ensure_future(cache.run())
                try:
                    await asyncio.sleep(0)
                    await scenario(cache, client)
                finally:
                    task.cancel()
                    with suppress(asyncio.CancelledError):
                        await task

        asyncio.run(work())

    return running


def mapper_of(rest: RESTClient) -> RESTMapper:
    return RESTMapper(MemoryCache(DiscoveryClient(rest)))


def names(objects: list[Object]) -> list[str]:
    """Returns the names of the objects that the tests created."""
    keys = ("{}/{}".format(obj["metadata"].get("namespace", ""), obj["metadata"]["name"]) for obj in objects)
    return sorted(key for key in keys if key[0] in "abc/" and not key.startswith("/kube-"))


ALL = [f"{namespace}/{name}" for namespace in "abc" for name in ("mine", "other")]
MINE = {CONFIG_MAP: ByObject(label_selector="mine=yes")}


@pytest.mark.parametrize(
    ("options", "config_maps", "secrets"),
    [
        (CacheOptions(), ALL, ALL),
        (CacheOptions(namespaces=["a", "c"]), [*ALL[:2], *ALL[4:]], [*ALL[:2], *ALL[4:]]),
        (CacheOptions(by_object=MINE), ALL[::2], ALL),
        (CacheOptions(namespaces=["b"], by_object=MINE), ["b/mine"], ALL[2:4]),
        (CacheOptions(by_object={CONFIG_MAP: ByObject(field_selector="metadata.name=other")}), ALL[1::2], ALL),
        (CacheOptions(namespaces=["a"], by_object={CONFIG_MAP: ByObject(namespaces=["b", "c"])}), ALL[2:], ALL[:2]),
        (CacheOptions(namespaces=["a"], by_object={SECRET: ByObject(namespaces=[])}), ALL[:2], ALL),
    ],
)
def test_what_is_kept_of_a_kind(
    run: Callable[..., None], options: CacheOptions, config_maps: list[str], secrets: list[str]
) -> None:
    async def scenario(cache: Cache, client: Client) -> None:
        assert names(await cache.list(CONFIG_MAP)) == config_maps
        assert names(await cache.list(SECRET)) == secrets
        # cluster-scoped kinds are in no namespace, whatever namespaces there are
        assert {"/a", "/b", "/c"} <= {*names(await cache.list(NAMESPACE))}
        assert (await cache.get(NAMESPACE, "b"))["kind"] == "Namespace"

    run(scenario, options)


def test_a_namespace_outside_of_the_cache_is_reported(run: Callable[..., None]) -> None:
    async def scenario(cache: Cache, client: Client) -> None:
        with pytest.raises(ValueError, match="unable to get: c because of unknown namespace for the cache"):
            await cache.get(CONFIG_MAP, "mine", "c")
        with pytest.raises(ValueError, match="unable to list: c because of unknown namespace for the cache"):
            await cache.list(CONFIG_MAP, namespace="c")
        with pytest.raises(StatusError) as caught:
            await cache.get(CONFIG_MAP, "nobody", "a")
        assert is_not_found(caught.value)
        assert caught.value.status["message"] == 'configmaps "nobody" not found'
        with pytest.raises(NoMatchError):
            await cache.get(gvk("example.com/v1", "Widget"), "a")

    run(scenario, CacheOptions(namespaces=["a", "b"]))


def test_reads_are_copies_of_the_callers_own(run: Callable[..., None]) -> None:
    async def scenario(cache: Cache, client: Client) -> None:
        for found in (await cache.get(CONFIG_MAP, "mine", "a"), (await cache.list(CONFIG_MAP, namespace="a"))[0]):
            assert (found["apiVersion"], found["kind"]) == ("v1", "ConfigMap")
            assert "managedFields" not in found["metadata"]
            found["metadata"]["labels"]["mine"] = "changed"
        assert (await cache.get(CONFIG_MAP, "mine", "a"))["metadata"]["labels"] == {"mine": "yes"}

    run(scenario)


def test_lists_by_labels_fields_and_number(run: Callable[..., None]) -> None:
    async def scenario(cache: Cache, client: Client) -> None:
        cache.index_field(CONFIG_MAP, "mine", lambda obj: (obj["metadata"]["labels"].get("mine", ""),))
        cache.index_field(CONFIG_MAP, "name", lambda obj: (obj["metadata"]["name"],))
        assert names(await cache.list(CONFIG_MAP, label_selector="mine in (yes)")) == ALL[::2]
        assert names(await cache.list(CONFIG_MAP, namespace="b", label_selector="mine!=yes")) == ["b/other"]
        assert names(await cache.list(CONFIG_MAP, fields={"mine": "yes"})) == ALL[::2]
        assert names(await cache.list(CONFIG_MAP, namespace="c", fields={"mine": "yes"})) == ["c/mine"]
        assert names(await cache.list(CONFIG_MAP, fields={"mine": "yes", "name": "other"})) == []
        assert names(await cache.list(CONFIG_MAP, fields={"mine": "no", "name": "other"})) == ALL[1::2]
        assert len(await cache.list(CONFIG_MAP, label_selector="mine", limit=4)) == 4
        with pytest.raises(ValueError, match="Index with name color does not exist"):
            await cache.list(CONFIG_MAP, fields={"color": "red"})
        with pytest.raises(ValueError, match="unable to parse requirement"):
            await cache.list(CONFIG_MAP, label_selector="a in b")
        with pytest.raises(ValueError, match="indexer conflict: mine"):
            cache.index_field(CONFIG_MAP, "mine", lambda obj: ())
        with pytest.raises(ValueError, match="is there already"):
            cache.index_field(CONFIG_MAP, "late", lambda obj: ())

    run(scenario, CacheOptions(namespaces=["a", "b", "c"]))


def test_metadata_alone_is_another_informer(run: Callable[..., None]) -> None:
    async def scenario(cache: Cache, client: Client) -> None:
        await client.create({**made("ConfigMap", "full", "a"), "data": {"k": "v"}})
        bare = await cache.get(CONFIG_MAP, "full", "a", metadata_only=True)
        assert {*bare} == {"apiVersion", "kind", "metadata"}
        assert (await client.patch(bare, {"metadata": {"labels": {"seen": "yes"}}}))["data"] == {"k": "v"}
        assert (await cache.get(CONFIG_MAP, "full", "a"))["data"] == {"k": "v"}

    run(scenario)


def test_a_transform_of_a_kind_takes_the_place_of_the_caches(run: Callable[..., None]) -> None:
    def bare(obj: Object) -> Object:
        obj["metadata"].pop("labels", None)
        return obj

    async def scenario(cache: Cache, client: Client) -> None:
        assert "labels" not in (await cache.get(CONFIG_MAP, "mine", "a"))["metadata"]
        secret = await cache.get(SECRET, "mine", "a")
        assert "labels" in secret["metadata"]
        assert "managedFields" in (await cache.get(CONFIG_MAP, "mine", "a"))["metadata"]
        assert "managedFields" not in secret["metadata"]

    run(scenario, CacheOptions(by_object={CONFIG_MAP: ByObject(transform=bare)}))


def test_an_informer_that_was_removed_ends_and_a_new_one_begins(run: Callable[..., None]) -> None:
    async def scenario(cache: Cache, client: Client) -> None:
        first = await cache.informer_for(CONFIG_MAP)
        await first.wait_for_sync()
        tasks = len(asyncio.all_tasks())
        await cache.remove_informer(CONFIG_MAP)
        await cache.remove_informer(SECRET)
        assert len(asyncio.all_tasks()) < tasks
        await client.create(made("ConfigMap", "late", "a"))
        assert names(await cache.list(CONFIG_MAP)) == sorted([*ALL, "a/late"])
        assert await cache.informer_for(CONFIG_MAP) is not first
        assert names(first.list("", "", {})) == ALL

    run(scenario)


def test_what_is_written_shows_a_moment_later(run: Callable[..., None]) -> None:
    async def scenario(cache: Cache, client: Client) -> None:
        await cache.list(CONFIG_MAP)
        await client.create(made("ConfigMap", "new", "a"))
        await client.delete(made("ConfigMap", "mine", "a"))

        async def is_so() -> bool:
            return names(await cache.list(CONFIG_MAP, namespace="a")) == ["a/new", "a/other"]

        await poll_until(is_so, interval=0.01, timeout=60)

    run(scenario)


def test_a_kind_that_may_not_be_listed_does_not_sync(run: Callable[..., None]) -> None:
    """The list is tried again and again; callers that wait use their own timeouts."""

    async def scenario(cache: Cache, client: Client) -> None:
        informers = await cache.informer_for(SECRET)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await cache.wait_for_sync()
        assert not informers.has_synced

    run(scenario, user="nobody")


def test_a_cache_that_does_not_run_is_not_read(fake_cluster: Cluster) -> None:
    async def scenario() -> None:
        async with RESTClient(kubeconfig.load(fake_cluster.kubeconfig)) as rest:
            cache = Cache(DynamicClient(rest), mapper_of(rest))
            with pytest.raises(RuntimeError, match="the cache is not started, can not read objects"):
                await cache.list(CONFIG_MAP)

    asyncio.run(scenario())
