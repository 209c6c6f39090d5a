"""Shares a watch and a cache of a resource among all its handlers.

Objects from the reflector are stored, and queued for each handler, in the same turn of the event loop: no reader sees half of a list,
and when a handler is called for a change, the indexer has that change or a later one.

Upstream: k8s.io/client-go/tools/cache/{shared_informer,controller,the_real_fifo}.go,
k8s.io/client-go/{informers,dynamic/dynamicinformer,metadata/metadatainformer}.
"""

import asyncio
import logging
import random
from collections.abc import Callable, Iterable, Mapping

from fakeapiserver.apimachinery.gvk import GroupVersionResource
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.client.cache.delta_fifo import TransformFunc
from fakeapiserver.client.cache.handlers import (
    Delivery,
    FilteringResourceEventHandler,
    Registration,
    ResourceEventHandler,
    ResourceEventHandlerFuncs,
    Tombstone,
)
from fakeapiserver.client.cache.indexer import (
    NAMESPACE_INDEX,
    DeletedFinalStateUnknown,
    Indexer,
    IndexFunc,
    meta_namespace_key,
    namespace_index,
)
from fakeapiserver.client.cache.lister import Lister
from fakeapiserver.client.cache.reflector import ListerWatcher, Reflector, Since, Sleep, newest
from fakeapiserver.client.dynamic import DynamicClient, ListOptions
from fakeapiserver.client.pager import PAGE_SIZE
from fakeapiserver.clock import Clock

__all__ = [
    "FilteringResourceEventHandler",
    "Registration",
    "ResourceEventHandler",
    "ResourceEventHandlerFuncs",
    "SharedInformer",
    "SharedInformerFactory",
    "Tombstone",
    "strip_managed_fields",
]

log = logging.getLogger(__name__)


class SharedInformer:
    """Keeps `indexer` equal to the server's objects and calls handlers for changes. Run it once, e.g. in an `asyncio.TaskGroup`.

    resync_period: seconds after which handlers that ask for it get every object again, as updates; 0: never.
    transform: returns what is kept of an object; `strip_managed_fields` saves about half of it.
    page_size, use_watch_list, since: see Reflector.
    """

    def __init__(
        self,
        source: ListerWatcher,
        *,
        name: str = "informer",
        selection: ListOptions | None = None,
        resync_period: float = 0.0,
        indexers: Mapping[str, IndexFunc] | None = None,
        transform: TransformFunc | None = None,
        page_size: int = PAGE_SIZE,
        use_watch_list: bool = True,
        since: Since = newest,
        clock: Clock | None = None,
        sleep: Sleep = asyncio.sleep,
        sleep_unserved: Sleep | None = None,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self.name = name
        self.indexer = Indexer({NAMESPACE_INDEX: namespace_index, **(indexers or {})})
        self._reflector = Reflector(
            source,
            self,
            name=name,
            selection=selection,
            transform=transform,
            resync_period=resync_period,
            page_size=page_size,
            use_watch_list=use_watch_list,
            since=since,
            clock=clock,
            sleep=sleep,
            sleep_unserved=sleep_unserved,
            chance=chance,
        )
        self._registrations: dict[Registration, None] = {}
        self._delivery = Delivery(name)
        self._synced = asyncio.Event()
        self._running = False

    @property
    def lister(self) -> Lister:
        """Reads from the cache."""
        return Lister(self.indexer, self.name)

    @property
    def has_synced(self) -> bool:
        """The indexer holds everything of the first list."""
        return self._synced.is_set()

    async def wait_for_sync(self) -> None:
        """Waits until `has_synced`."""
        await self._synced.wait()

    async def wait_for_answer(self) -> None:
        """Waits until `has_synced`, or the server was found not to have the resource."""
        waits = [asyncio.ensure_future(event.wait()) for event in (self._synced, self._reflector.absent)]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()

    @property
    def last_sync_resource_version(self) -> str:
        """The revision up to which everything has come; "" before the first list."""
        return self._reflector.last_sync_resource_version

    @property
    def idle(self) -> bool:
        """Reports whether the indexer has every change so far, every handler was called, and the server is being watched."""
        return not self._reflector.failure and self.told

    @property
    def told(self) -> bool:
        """Reports whether every handler was called for every change so far."""
        return all(registration.idle for registration in self._registrations)

    @property
    def failure(self) -> str:
        """The last error while the reflector waits before its next try; "" otherwise."""
        return self._reflector.failure

    @property
    def unserved(self) -> bool:
        """The server has no such resource; it is asked again later, and at once by `retry`."""
        return self._reflector.unserved

    def retry(self) -> None:
        """The server may have the resource by now."""
        self._reflector.retry()

    @property
    def has_handlers(self) -> bool:
        """Reports whether there is any handler."""
        return bool(self._registrations)

    def add_event_handler(self, handler: ResourceEventHandler, *, resyncs: bool = True) -> Registration:
        """Calls `handler` for everything that is stored now and for all changes from now on.

        `resyncs`: also every resync_period.
        """
        registration = Registration(self, handler, self._delivery, resyncs=resyncs)
        self._registrations[registration] = None
        for obj in self.indexer.list():
            registration.added(obj, True)
        return registration

    def remove_event_handler(self, registration: Registration) -> None:
        """Removes a handler; changes that still wait for it are dropped."""
        self._registrations.pop(registration, None)
        registration.drop()

    async def run(self) -> None:
        """Runs until it is cancelled. RuntimeError when it runs already."""
        if self._running:
            raise RuntimeError("the informer runs already: an informer runs once")
        self._running = True
        self._delivery.start()
        try:
            await self._reflector.run()
        finally:
            self._delivery.stop()
            tasks = [task for registration in self._registrations if (task := registration.task) is not None]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._running = False

    # ------------------------------------------------ called by the reflector (ReflectorStore)

    def add(self, obj: Object) -> None:
        """Stores an object and queues it for the handlers, as an update if it is stored already."""
        self._store(meta_namespace_key(obj), obj, False)

    update = add

    def delete(self, obj: Tombstone) -> None:
        """Removes an object and queues its deletion for the handlers, also if it was never stored."""
        self.indexer.delete(obj)
        for registration in self._registrations:
            registration.deleted(obj)

    def replace(self, objects: Iterable[Object]) -> None:
        """Replaces all objects in one turn, so that no reader sees half of them."""
        by_key = {meta_namespace_key(obj): obj for obj in objects}
        for key in self.indexer.list_keys():
            if key not in by_key and (last := self.indexer.get_by_key(key)) is not None:
                self.delete(DeletedFinalStateUnknown(key, last))
        in_initial_list = not self.has_synced
        for key, obj in by_key.items():
            self._store(key, obj, in_initial_list)
        self._synced.set()

    def resync(self) -> None:
        """Queues every object for the handlers again, as an update without a change."""
        for obj in self.indexer.list():
            self._updated(obj, obj)

    def _store(self, key: str, obj: Object, in_initial_list: bool) -> None:
        old = self.indexer.get_by_key(key)
        try:
            self.indexer.add(obj)
        except Exception:
            log.exception("an index function of %s failed on %s, which is left out", self.name, key)
            return
        if old is not None:
            self._updated(old, obj)
            return
        for registration in self._registrations:
            registration.added(obj, in_initial_list)

    def _updated(self, old: Object, new: Object) -> None:
        is_sync = _version(old) == _version(new)
        for registration in self._registrations:
            if registration.resyncs or not is_sync:
                registration.updated(old, new)


def _version(obj: Object) -> str:
    version: str = obj["metadata"].get("resourceVersion", "")
    return version


def strip_managed_fields(obj: Object) -> Object:
    """A transform that drops managedFields, which few readers need."""
    metadata = obj["metadata"]
    if "managedFields" in metadata:
        # a new dict, as one that something is taken out of stays as large as it was
        obj["metadata"] = {key: value for key, value in metadata.items() if key != "managedFields"}
    return obj


class SharedInformerFactory:
    """Creates one informer per resource, which all callers share.

    namespace: only objects of this one; "" is all. metadata_only: PartialObjectMetadata. Others as SharedInformer.
    """

    def __init__(
        self,
        client: DynamicClient,
        *,
        namespace: str = "",
        selection: ListOptions | None = None,
        resync_period: float = 0.0,
        transform: TransformFunc | None = None,
        metadata_only: bool = False,
        use_watch_list: bool = True,
        since: Since = newest,
        sleep_unserved: Sleep | None = None,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._client = client
        self._namespace = namespace
        self._selection = selection
        self._resync_period = resync_period
        self._transform = transform
        self._metadata_only = metadata_only
        self._use_watch_list = use_watch_list
        self._since = since
        self._sleep_unserved = sleep_unserved
        self._chance = chance
        # By resource, and by the name of its objects where an informer has no others.
        self._informers: dict[tuple[GroupVersionResource, str], SharedInformer] = {}
        self._tasks: dict[tuple[GroupVersionResource, str], asyncio.Task[None]] = {}
        self._kept: set[GroupVersionResource] = set()

    def for_resource(self, gvr: GroupVersionResource, *, keep: bool = True, object_name: str = "") -> SharedInformer:
        """Returns the resource's informer, created on the first call; `start` starts it.

        `keep`: it stays whatever the server serves; `stop_unused` ignores it. `object_name`: an informer for objects with this name alone.
        """
        if keep:
            self._kept.add(gvr)
        key = (gvr, object_name)
        if key not in self._informers:
            named = ListOptions(field_selector=f"metadata.name={object_name}")
            self._informers[key] = SharedInformer(
                self._client.resource(gvr, self._namespace, metadata_only=self._metadata_only),
                name=str(gvr.group_resource),
                selection=named if object_name else self._selection,
                resync_period=self._resync_period,
                transform=self._transform,
                use_watch_list=self._use_watch_list,
                since=self._since,
                sleep_unserved=self._sleep_unserved,
                chance=self._chance,
            )
        return self._informers[key]

    def start(self) -> None:
        """Starts those that don't run yet, in the running event loop; more than once does no harm."""
        for key, informer in self._informers.items():
            if key not in self._tasks:
                self._tasks[key] = asyncio.ensure_future(informer.run())

    @property
    def informers(self) -> Iterable[SharedInformer]:
        """All that were asked for."""
        return self._informers.values()

    def __contains__(self, gvr: GroupVersionResource) -> bool:
        """Reports whether the resource's informer, with all objects, was created."""
        return (gvr, "") in self._informers

    def stop_unused(self, gvr: GroupVersionResource) -> None:
        """Ends the resource's informer unless it is kept or has handlers left: the resource is gone, and may come back as another."""
        informer = self._informers.get((gvr, ""))
        if informer is None or informer.has_handlers or gvr in self._kept:
            return
        del self._informers[gvr, ""]
        task = self._tasks.pop((gvr, ""), None)
        if task is not None:
            task.cancel()

    async def wait_for_sync(self) -> None:
        """Waits until all that were started have their first list."""
        await asyncio.gather(*(self._informers[key].wait_for_sync() for key in self._tasks))

    async def shutdown(self) -> None:
        """Ends them; they can't be started again."""
        tasks = [*self._tasks.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
