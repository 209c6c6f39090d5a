"""Informers by kind, started on first use, and reads from them.

Upstream: sigs.k8s.io/controller-runtime/pkg/cache.
"""

import asyncio
import random
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec
from msgspec import Struct, field

from fakeapiserver.apimachinery import labels
from fakeapiserver.apimachinery.errors import new_not_found
from fakeapiserver.apimachinery.gvk import GroupResource, GroupVersionKind
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.client.cache.delta_fifo import TransformFunc
from fakeapiserver.client.cache.indexer import NAMESPACE_INDEX
from fakeapiserver.client.cache.shared_informer import (
    Registration,
    ResourceEventHandler,
    SharedInformer,
    strip_managed_fields,
)
from fakeapiserver.client.dynamic import DynamicClient, ListOptions
from fakeapiserver.client.rest_mapper import RESTMapper

__all__ = [
    "ByObject",
    "Cache",
    "CacheOptions",
    "FieldIndexFunc",
    "Informers",
    "copied",
]

# Makes the values under which an object is found by a field index.
FieldIndexFunc = Callable[[Object], Iterable[str]]


class ByObject(Struct, frozen=True):
    """The options of the cache for one kind. `namespaces` None: those of the cache. `transform` None: the cache's."""

    label_selector: str = ""
    field_selector: str = ""
    namespaces: Sequence[str] | None = None
    transform: TransformFunc | None = None


class CacheOptions(Struct, frozen=True):
    """namespaces: only objects of these, and cluster-scoped ones; none: of all.

    transform: what is kept of objects; managed fields aren't by default.
    sync_period: seconds after which everything is looked at again (upstream: 10 h); 0: never.
    """

    namespaces: Sequence[str] = ()
    by_object: Mapping[GroupVersionKind, ByObject] = field(default_factory=dict)
    transform: TransformFunc | None = strip_managed_fields
    sync_period: float = 36_000.0


class Cache:
    """`run()` it; informers asked for before are started then, those asked for later at once."""

    def __init__(
        self,
        client: DynamicClient,
        mapper: RESTMapper,
        options: CacheOptions | None = None,
        *,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._client = client
        self._chance = chance
        self._mapper = mapper
        self._options = options or CacheOptions()
        self._informers: dict[tuple[GroupVersionKind, bool], Informers] = {}
        self._indexes: dict[GroupVersionKind, dict[str, FieldIndexFunc]] = {}
        self._tasks: dict[asyncio.Task[None], Informers] = {}
        self._failure: asyncio.Future[None] | None = None
        self._started = asyncio.Event()
        self._lock = asyncio.Lock()

    @property
    def informers(self) -> "Iterable[Informers]":
        """The informers of all kinds that are used."""
        return self._informers.values()

    async def run(self) -> None:
        """Runs until it is cancelled."""
        self._failure = asyncio.get_running_loop().create_future()
        self._started.set()
        for informers in self._informers.values():
            self._start(informers)
        try:
            await self._failure
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            self._started.clear()

    async def wait_for_sync(self) -> None:
        """Waits until all informers that were asked for have their first list."""
        await self._started.wait()
        await asyncio.gather(*(informers.wait_for_sync() for informers in [*self._informers.values()]))

    async def informer_for(self, kind: GroupVersionKind, *, metadata_only: bool = False) -> "Informers":
        """The kind's informer; `metadata_only` has nothing but metadata, apiVersion and kind. NoMatchError: the server has no
        such kind."""
        key = (kind, metadata_only)
        async with self._lock:
            if key not in self._informers:
                mapping = await self._mapper.mapping_of(kind)
                by_object = self._options.by_object.get(kind, ByObject())
                wanted = by_object.namespaces if by_object.namespaces is not None else self._options.namespaces
                selection = ListOptions(
                    label_selector=by_object.label_selector, field_selector=by_object.field_selector
                )
                transform = by_object.transform or self._options.transform
                made = {
                    namespace: SharedInformer(
                        self._client.resource(mapping.gvr, namespace, metadata_only=metadata_only),
                        name=str(mapping.gvr.group_resource),
                        selection=selection,
                        resync_period=self._options.sync_period,
                        transform=_as_kind(kind, transform) if metadata_only else transform,
                        indexers=self._indexes.get(kind),
                        chance=self._chance,
                    )
                    for namespace in (wanted if mapping.namespaced and wanted else ("",))
                }
                self._informers[key] = Informers(kind, mapping.gvr.group_resource, made, namespaced=mapping.namespaced)
                if self._started.is_set():
                    self._start(self._informers[key])
            return self._informers[key]

    async def remove_informer(self, kind: GroupVersionKind, *, metadata_only: bool = False) -> None:
        """Ends the kind's informer, if there is one, and forgets its objects; its handlers are not called any more.

        A later use of the kind starts a new informer.
        """
        async with self._lock:
            informers = self._informers.pop((kind, metadata_only), None)
            tasks = [task for task, of in self._tasks.items() if of is informers]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def index_field(self, kind: GroupVersionKind, name: str, function: FieldIndexFunc) -> None:
        """Lists of the kind may then ask for `fields={name: value}`. ValueError: the name is taken, or the kind's informer
        runs already."""
        indexes = self._indexes.setdefault(kind, {})
        if name in indexes:
            raise ValueError(f"indexer conflict: {name}")
        if any(known == kind for known, _ in self._informers):
            raise ValueError(
                f"the informer of {kind} is there already: index fields before anything is read or watched"
            )
        indexes[name] = function

    async def get(
        self, kind: GroupVersionKind, name: str, namespace: str = "", *, metadata_only: bool = False
    ) -> Object:
        """A copy of the caller's own. StatusError (404) when it isn't there, ValueError when the cache leaves the namespace out."""
        informers = await self._synced(kind, metadata_only)
        return copied(informers.get(name, namespace))

    async def list(
        self,
        kind: GroupVersionKind,
        *,
        namespace: str = "",
        label_selector: str = "",
        fields: Mapping[str, str] | None = None,
        limit: int = 0,
        metadata_only: bool = False,
    ) -> list[Object]:
        """Returns copies of the objects, which the caller may change.

        `fields` by indexes, all of which must match. `limit`: at most so many objects, 0 is all. Raises
        ValueError for an unknown index, an
        invalid selector, and a namespace that the cache leaves out.
        """
        informers = await self._synced(kind, metadata_only)
        objects = informers.list(namespace, label_selector, fields or {})
        return [copied(obj) for obj in (objects[:limit] if limit else objects)]

    async def _synced(self, kind: GroupVersionKind, metadata_only: bool) -> "Informers":
        if not self._started.is_set():
            raise RuntimeError("the cache is not started, can not read objects: start the manager first")
        informers = await self.informer_for(kind, metadata_only=metadata_only)
        await informers.wait_for_sync()
        return informers

    def _start(self, informers: "Informers") -> None:
        for informer in informers.by_namespace.values():
            task = asyncio.ensure_future(informer.run())
            self._tasks[task] = informers
            task.add_done_callback(self._ended)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._tasks.pop(task, None)
        error = None if task.cancelled() else task.exception()
        if error is not None and self._failure is not None and not self._failure.done():
            self._failure.set_exception(error)


class Informers:
    """A kind's informers: one for everything, or one for each of several namespaces."""

    def __init__(
        self,
        kind: GroupVersionKind,
        resource: GroupResource,
        by_namespace: Mapping[str, SharedInformer],
        *,
        namespaced: bool,
    ) -> None:
        self.kind = kind
        self.resource = resource
        self.by_namespace = by_namespace
        self.namespaced = namespaced

    def add_event_handler(self, handler: ResourceEventHandler) -> Sequence[Registration]:
        """Adds `handler` to the informers of all namespaces."""
        return [informer.add_event_handler(handler) for informer in self.by_namespace.values()]

    async def wait_for_sync(self) -> None:
        """Waits until all have their first list."""
        for informer in self.by_namespace.values():
            await informer.wait_for_sync()

    @property
    def idle(self) -> bool:
        """Reports whether all have their first list, and every handler was called for every change so far."""
        return all(informer.has_synced and informer.idle for informer in self.by_namespace.values())

    @property
    def has_synced(self) -> bool:
        """All have their first list."""
        return all(informer.has_synced for informer in self.by_namespace.values())

    def get(self, name: str, namespace: str) -> Object:
        """Shared: not to be changed. StatusError (404), ValueError for a namespace that the cache leaves out."""
        namespace = namespace if self.namespaced else ""
        key = f"{namespace}/{name}" if namespace else name
        for informer in self._of(namespace, "get"):
            obj = informer.indexer.get_by_key(key)
            if obj is not None:
                return obj
        raise new_not_found(self.resource, name)

    def list(self, namespace: str, label_selector: str, fields: Mapping[str, str]) -> list[Object]:
        """Shared: not to be changed. ValueError as Cache.list."""
        namespace = namespace if self.namespaced else ""
        listed: list[Object] = []
        for informer in self._of(namespace, "list"):
            indexer = informer.indexer
            for name in fields:
                if name not in indexer.indexers:
                    raise ValueError(f"Index with name {name} does not exist: index_field makes it")
            if fields:
                first, *rest = fields.items()
                keys = set(indexer.index_keys(*first))
                for row in rest:
                    keys &= set(indexer.index_keys(*row))
                objects = [obj for key in sorted(keys) if (obj := indexer.get_by_key(key)) is not None]
                listed += [obj for obj in objects if namespace in ("", obj["metadata"].get("namespace"))]
            else:
                listed += indexer.by_index(NAMESPACE_INDEX, namespace) if namespace else indexer.list()
        if label_selector:
            selector = labels.parse(label_selector)
            listed = [obj for obj in listed if selector.matches(obj["metadata"].get("labels") or {})]
        return listed

    def _of(self, namespace: str, verb: str) -> Iterable[SharedInformer]:
        if namespace and "" not in self.by_namespace:
            if namespace not in self.by_namespace:
                raise ValueError(f"unable to {verb}: {namespace} because of unknown namespace for the cache")
            return (self.by_namespace[namespace],)
        return self.by_namespace.values()


def _as_kind(kind: GroupVersionKind, transform: TransformFunc | None) -> TransformFunc:
    """A server calls them all PartialObjectMetadata."""
    names = {"apiVersion": str(kind.group_version), "kind": kind.kind}

    def named(obj: Object) -> Object:
        obj_of_kind = {**obj, **names}
        return transform(obj_of_kind) if transform is not None else obj_of_kind

    return named


def copied(obj: Object) -> Object:
    """Returns a deep copy of a JSON value."""
    copy: Object = msgspec.json.decode(msgspec.json.encode(obj))
    return copy
