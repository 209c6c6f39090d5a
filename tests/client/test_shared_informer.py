"""Tests the events of an informer's handlers, their order, and what is kept of objects."""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import Any, Unpack

import pytest

from fakeapiserver import Cluster
from fakeapiserver.apimachinery.errors import new_forbidden, status_error
from fakeapiserver.apimachinery.gvk import GroupResource, GroupVersionResource
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.client import kubeconfig
from fakeapiserver.client.cache.indexer import DeletedFinalStateUnknown, deletion_handling_key
from fakeapiserver.client.cache.shared_informer import (
    FilteringResourceEventHandler,
    ResourceEventHandlerFuncs,
    SharedInformer,
    SharedInformerFactory,
    Tombstone,
    strip_managed_fields,
)
from fakeapiserver.client.dynamic import DynamicClient, ListOptions, RawList
from fakeapiserver.client.errors import StatusError
from fakeapiserver.client.rest import RESTClient, WatchEvent
from fakeapiserver.client.wait import poll_until


def obj(name: str, version: int = 1, **labels: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Thing",
        "metadata": {"name": name, "namespace": "ns", "resourceVersion": str(version), "labels": labels},
    }


class Scripted:
    """A resource whose lists and watch events a test gives, one after another. A watch without a word ends."""

    def __init__(self) -> None:
        self.lists: asyncio.Queue[Sequence[Object] | Exception] = asyncio.Queue()
        self.events: asyncio.Queue[tuple[str, Object] | None] = asyncio.Queue()
        self.version = 1

    async def list_raw(self, **options: Unpack[ListOptions]) -> RawList:
        objects = await self.lists.get()
        if isinstance(objects, Exception):
            raise objects
        self.version = max([self.version, *(int(one["metadata"]["resourceVersion"]) for one in objects)])
        metadata = {"resourceVersion": str(self.version)}
        return RawList(json.dumps({"kind": "ThingList", "metadata": metadata, "items": objects}).encode())

    async def watch(self, **options: Unpack[ListOptions]) -> AsyncGenerator[WatchEvent, None]:
        while (event := await self.events.get()) is not None:
            yield WatchEvent(*event)


class Told:
    """A handler that records its events."""

    def __init__(self) -> None:
        self.rows: list[str] = []

    def on_add(self, obj: Object, is_in_initial_list: bool) -> None:
        self.rows.append(f"add {seen(obj)}{' initially' if is_in_initial_list else ''}")

    def on_update(self, old: Object, new: Object) -> None:
        self.rows.append(f"update {seen(old)} {seen(new)}")

    def on_delete(self, obj: Tombstone) -> None:
        unknown = isinstance(obj, DeletedFinalStateUnknown)
        last = obj.object if isinstance(obj, DeletedFinalStateUnknown) else obj
        self.rows.append(f"delete {seen(last)}{' unseen' if unknown else ''}")


def seen(obj: Object) -> str:
    return "{name}@{resourceVersion}".format(**obj["metadata"])


CONFIG_MAPS = GroupVersionResource("", "v1", "configmaps")
Scenario = Callable[[SharedInformer, Scripted], Awaitable[None]]


def run(scenario: Scenario, **options: Any) -> None:
    """With an informer that lists and watches what the scenario gives."""

    async def running() -> None:
        source = Scripted()
        informer = SharedInformer(source, use_watch_list=False, **{"sleep": asyncio.sleep, **options})
        task = asyncio.ensure_future(informer.run())
        try:
            await asyncio.wait_for(scenario(informer, source), 60)
        finally:
            task.cancel()
            await asyncio.wait([task])

    asyncio.run(running())


async def settled(informer: SharedInformer, source: Scripted) -> None:
    """Waits until all events were taken and delivered."""

    async def is_so() -> bool:
        return source.events.empty() and source.lists.empty() and informer.idle

    for _ in range(5):  # events are delivered some turns after they are taken
        await poll_until(is_so, interval=0, timeout=60)
        await asyncio.sleep(0)


async def at_once(seconds: float) -> None:
    await asyncio.sleep(0)


EXPIRED = status_error(410, "Expired", "too old resource version").status


def test_handlers_receive_events_in_the_order_of_the_changes() -> None:
    async def scenario(informer: SharedInformer, source: Scripted) -> None:
        told = Told()
        informer.add_event_handler(told)
        source.lists.put_nowait([obj("b", 1), obj("a", 2)])
        changes = [
            ("MODIFIED", obj("a", 3)),
            ("ADDED", obj("c", 4)),
            ("MODIFIED", obj("b", 5)),
            ("MODIFIED", obj("a", 6)),
        ]
        for event in [*changes, ("DELETED", obj("a", 7)), ("BOOKMARK", obj("", 9)), ("ADDED", obj("a", 10))]:
            source.events.put_nowait(event)
        await settled(informer, source)
        assert told.rows == [
            *("add b@1 initially", "add a@2 initially"),
            *("update a@2 a@3", "add c@4", "update b@1 b@5", "update a@3 a@6", "delete a@7", "add a@10"),
        ]
        assert informer.last_sync_resource_version == "10"

    run(scenario)


def test_a_second_list_reports_missed_changes() -> None:
    async def scenario(informer: SharedInformer, source: Scripted) -> None:
        told, calm = Told(), Told()
        informer.add_event_handler(told)
        informer.add_event_handler(calm, resyncs=False)
        source.lists.put_nowait([obj("same", 1), obj("changed", 2), obj("gone", 3)])
        source.events.put_nowait(("ERROR", EXPIRED))
        source.lists.put_nowait([obj("new", 6), obj("changed", 5), obj("same", 1)])
        await settled(informer, source)
        first = ["add same@1 initially", "add changed@2 initially", "add gone@3 initially"]
        changes = ["delete gone@3 unseen", "add new@6", "update changed@2 changed@5"]
        assert told.rows == [*first, *changes, "update same@1 same@1"]
        assert calm.rows == [*first, *changes]

    run(scenario, sleep=at_once)


def test_a_resync_delivers_everything_again_to_handlers_that_want_it() -> None:
    turns: asyncio.Queue[None] = asyncio.Queue()

    async def when_told(seconds: float) -> None:
        assert seconds == 30.0
        await turns.get()

    async def scenario(informer: SharedInformer, source: Scripted) -> None:
        wants, calm = Told(), Told()
        informer.add_event_handler(wants)
        informer.add_event_handler(calm, resyncs=False)
        turns.put_nowait(None)  # before the first list there are no events
        await asyncio.sleep(0)
        source.lists.put_nowait([obj("a"), obj("b")])
        await informer.wait_for_sync()
        turns.put_nowait(None)
        await settled(informer, source)
        first = ["add a@1 initially", "add b@1 initially"]
        assert wants.rows == [*first, "update a@1 a@1", "update b@1 b@1"]
        assert calm.rows == first

    run(scenario, resync_period=30.0, sleep=when_told)


def test_a_late_handler_receives_existing_objects_and_a_removed_one_nothing_more() -> None:
    async def scenario(informer: SharedInformer, source: Scripted) -> None:
        first, late = Told(), Told()
        registration = informer.add_event_handler(first)
        source.lists.put_nowait([obj("a")])
        await registration.wait_for_sync()
        source.events.put_nowait(("MODIFIED", obj("a", 2)))
        await settled(informer, source)
        registration.remove()
        latest = informer.add_event_handler(late)
        assert not latest.has_synced
        await latest.wait_for_sync()
        source.events.put_nowait(("MODIFIED", obj("a", 3)))
        await settled(informer, source)
        assert first.rows == ["add a@1 initially", "update a@1 a@2"]
        assert late.rows == ["add a@2 initially", "update a@2 a@3"]

    run(scenario)


def test_a_transform_changes_what_is_kept_and_delivered() -> None:
    def transform(found: Object) -> Object:
        if found["metadata"]["name"] == "bad":
            raise KeyError("spec")
        return {**found, "metadata": {**found["metadata"], "labels": {"seen": "yes"}}}

    async def scenario(informer: SharedInformer, source: Scripted) -> None:
        told = Told()
        informer.add_event_handler(told)
        source.lists.put_nowait([obj("a")])
        # the event that it fails on is left out, the watch goes on
        for event in (("ADDED", obj("bad", 2)), ("ADDED", obj("b", 3)), ("DELETED", obj("a", 4))):
            source.events.put_nowait(event)
        await settled(informer, source)
        assert told.rows == ["add a@1 initially", "add b@3", "delete a@4"]
        assert [found["metadata"]["labels"] for found in informer.indexer.list()] == [{"seen": "yes"}]
        # a list that it fails on is asked for again
        source.events.put_nowait(("ERROR", EXPIRED))
        source.lists.put_nowait([obj("bad", 5), obj("c", 5)])
        source.lists.put_nowait([obj("c", 5)])
        await settled(informer, source)
        assert told.rows[3:] == ["delete b@3 unseen", "add c@5"]

    run(scenario, transform=transform, sleep=at_once)


def test_managed_fields_are_not_kept() -> None:
    found = obj("a")
    found["metadata"]["managedFields"] = [{"manager": "m"}]
    assert strip_managed_fields(found) == obj("a")


def test_an_object_that_an_index_function_fails_on_is_left_out() -> None:
    async def scenario(informer: SharedInformer, source: Scripted) -> None:
        told = Told()
        informer.add_event_handler(told)
        source.lists.put_nowait([obj("a", app="x"), obj("b"), obj("c", app="y")])
        await settled(informer, source)
        assert informer.indexer.list_keys() == ["ns/a", "ns/c"]
        assert told.rows == ["add a@1 initially", "add c@1 initially"]

    run(scenario, indexers={"app": lambda found: (found["metadata"]["labels"]["app"],)})


@pytest.mark.parametrize(
    "error",
    [new_forbidden(GroupResource("", "things"), "", "no"), status_error(500, "InternalError", "no"), ValueError("no")],
    ids=lambda error: type(error).__name__,
)
def test_what_can_not_be_listed_is_asked_for_again(error: Exception) -> None:
    async def scenario(informer: SharedInformer, source: Scripted) -> None:
        source.lists.put_nowait(error)
        source.lists.put_nowait([obj("a")])
        await informer.wait_for_sync()
        assert informer.indexer.list_keys() == ["ns/a"]

    run(scenario, sleep=at_once)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("yes", "yes", ["add a@1 initially", "update a@1 a@2", "delete a@3"]),
        ("yes", "no", ["add a@1 initially", "delete a@1"]),
        ("no", "yes", ["add a@2", "delete a@3"]),
        ("no", "no", []),
    ],
)
def test_a_filter_makes_additions_and_deletions_of_changes(before: str, after: str, expected: list[str]) -> None:
    async def scenario(informer: SharedInformer, source: Scripted) -> None:
        told = Told()
        keeps = FilteringResourceEventHandler(lambda found: found["metadata"]["labels"]["mine"] == "yes", told)
        informer.add_event_handler(keeps)
        source.lists.put_nowait([obj("a", 1, mine=before)])
        source.events.put_nowait(("MODIFIED", obj("a", 2, mine=after)))
        source.events.put_nowait(("DELETED", obj("a", 3, mine=after)))
        await settled(informer, source)
        assert told.rows == expected

    run(scenario)


def test_functions_that_are_left_out_do_nothing() -> None:
    async def scenario(informer: SharedInformer, source: Scripted) -> None:
        deleted: list[str] = []
        informer.add_event_handler(
            ResourceEventHandlerFuncs(delete=lambda found: deleted.append(deletion_handling_key(found)))
        )
        source.lists.put_nowait([obj("a")])
        for event in (("MODIFIED", obj("a", 2)), ("DELETED", obj("a", 3))):
            source.events.put_nowait(event)
        await settled(informer, source)
        assert deleted == ["ns/a"]

    run(scenario)


def test_an_informer_runs_once() -> None:
    async def scenario(informer: SharedInformer, source: Scripted) -> None:
        await asyncio.sleep(0)
        with pytest.raises(RuntimeError, match="an informer runs once"):
            await informer.run()

    run(scenario)


@pytest.mark.parametrize("use_watch_list", [True, False], ids=["stream", "list"])
def test_a_factory_has_one_informer_for_everybody_who_asks(fake_cluster: Cluster, use_watch_list: bool) -> None:
    """Here of metadata, in one namespace, with some labels."""

    async def scenario() -> None:
        async with RESTClient(kubeconfig.load(fake_cluster.kubeconfig)) as rest:
            client = DynamicClient(rest)
            maps = client.resource(CONFIG_MAPS, "default")
            await maps.create(config_map("mine", "yes"))
            await maps.create(config_map("other", "no"))
            await client.resource(CONFIG_MAPS, "kube-system").create(config_map("mine", "yes"))
            factory = SharedInformerFactory(
                client,
                namespace="default",
                selection={"label_selector": "mine=yes"},
                metadata_only=True,
                use_watch_list=use_watch_list,
            )
            informer = factory.for_resource(CONFIG_MAPS)
            assert factory.for_resource(CONFIG_MAPS) is informer
            factory.start()
            factory.start()
            await factory.wait_for_sync()
            (found,) = informer.indexer.list()
            assert {*found} == {"kind", "apiVersion", "metadata"}
            lister = informer.lister.namespaced("default")
            assert lister.get("mine") is found
            assert (lister.list("mine=yes"), lister.list("mine!=yes")) == ([found], [])
            with pytest.raises(StatusError, match='configmaps "other" not found'):
                lister.get("other")
            # one that ceases to be selected is gone
            await maps.patch("mine", {"metadata": {"labels": {"mine": "no"}}})

            async def is_empty() -> bool:
                return len(informer.indexer) == 0

            await poll_until(is_empty, interval=0.01, timeout=60)
            await factory.shutdown()

    asyncio.run(scenario())


def config_map(name: str, mine: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "labels": {"mine": mine}},
        "data": {"k": "v"},
    }
