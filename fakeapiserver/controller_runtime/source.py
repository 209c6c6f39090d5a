"""Sources of a controller's events (upstream: sigs.k8s.io/controller-runtime/pkg/source)."""

import asyncio
import inspect
import logging
from collections.abc import AsyncIterable, Sequence
from typing import Final, Protocol

from msgspec import Struct

from fakeapiserver.apimachinery.gvk import GroupVersionKind
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.client.cache.indexer import DeletedFinalStateUnknown
from fakeapiserver.client.cache.shared_informer import Registration, SharedInformer, Tombstone
from fakeapiserver.client.rest_mapper import NoMatchError
from fakeapiserver.controller_runtime.cache import Cache, Informers
from fakeapiserver.controller_runtime.event import CreateEvent, DeleteEvent, Event, GenericEvent, UpdateEvent
from fakeapiserver.controller_runtime.handler import EventHandler, Queue
from fakeapiserver.controller_runtime.predicate import Predicate

__all__ = [
    "Channel",
    "Informer",
    "Kind",
    "Source",
]

log = logging.getLogger(__name__)

_RETRY_SECONDS: Final = 10.0


class Source(Protocol):
    """Events, from when it is started."""

    async def start(self, queue: Queue) -> None:
        """Begins to fill the queue; returns at once."""

    async def wait_for_sync(self) -> None:
        """Waits until the queue has every object that existed at the start."""

    def stop(self) -> None:
        """Fills it no more."""


class _Forwarding:
    """An informer's handler: events that the predicates want go to the event handler."""

    def __init__(self, handler: EventHandler, predicates: Sequence[Predicate], queue: Queue) -> None:
        self._handler = handler
        self._predicates = predicates
        self._queue = queue

    def on_add(self, obj: Object, is_in_initial_list: bool) -> object:
        return self._tell(CreateEvent(obj, is_in_initial_list))

    def on_update(self, old: Object, new: Object) -> object:
        return self._tell(UpdateEvent(old, new))

    def on_delete(self, obj: Tombstone) -> object:
        if isinstance(obj, DeletedFinalStateUnknown):
            return self._tell(DeleteEvent(obj.object, delete_state_unknown=True))
        return self._tell(DeleteEvent(obj))

    def _tell(self, event: Event) -> object:
        for predicate in self._predicates:
            if not predicate(event):
                return None
        return self._handler(event, self._queue)


class Kind:
    """The objects of a kind, from the manager's cache."""

    def __init__(
        self,
        cache: Cache,
        kind: GroupVersionKind,
        handler: EventHandler,
        *predicates: Predicate,
        metadata_only: bool = False,
    ) -> None:
        self._cache = cache
        self._kind = kind
        self._handler = handler
        self._predicates = predicates
        self._metadata_only = metadata_only
        self._starting: asyncio.Task[Sequence[Registration]] | None = None

    def __str__(self) -> str:
        return f"kind source: {self._kind}"

    async def start(self, queue: Queue) -> None:
        self._starting = asyncio.ensure_future(self._register(queue))

    async def _register(self, queue: Queue) -> Sequence[Registration]:
        informers = await self._informers()
        return informers.add_event_handler(_Forwarding(self._handler, self._predicates, queue))

    async def _informers(self) -> Informers:
        """Returns the kind's informers, after waiting for its definition."""
        while True:
            try:
                return await self._cache.informer_for(self._kind, metadata_only=self._metadata_only)
            except NoMatchError as error:
                log.error("if kind is a CRD, it should be installed before calling Start: %s", error)
                await asyncio.sleep(_RETRY_SECONDS)

    async def wait_for_sync(self) -> None:
        assert self._starting is not None
        for registration in await self._starting:
            await registration.wait_for_sync()

    def stop(self) -> None:
        if self._starting is None:
            return
        self._starting.cancel()
        if self._starting.done() and not self._starting.cancelled() and not self._starting.exception():
            for registration in self._starting.result():
                registration.remove()


class Informer(Struct):
    """A source from an informer that is run elsewhere. `optional`: the server may lack the resource."""

    informer: SharedInformer
    handler: EventHandler
    predicates: Sequence[Predicate] = ()
    optional: bool = False
    _registration: Registration | None = None

    async def start(self, queue: Queue) -> None:
        self._registration = self.informer.add_event_handler(_Forwarding(self.handler, self.predicates, queue))

    async def wait_for_sync(self) -> None:
        assert self._registration is not None
        if self.optional:
            await self.informer.wait_for_answer()
            if not self.informer.has_synced:
                return
        await self._registration.wait_for_sync()

    def stop(self) -> None:
        if self._registration is not None:
            self._registration.remove()


class Channel(Struct):
    """Objects that come from elsewhere: each makes a GenericEvent. What fails is logged; when the iterator does, no more come."""

    objects: AsyncIterable[Object]
    handler: EventHandler
    predicates: Sequence[Predicate] = ()
    _task: asyncio.Task[None] | None = None

    async def start(self, queue: Queue) -> None:
        self._task = asyncio.ensure_future(self._run(queue))

    async def wait_for_sync(self) -> None:
        """Returns at once: nothing exists in the beginning."""

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _run(self, queue: Queue) -> None:
        try:
            async for obj in self.objects:
                await self._tell(GenericEvent(obj), queue)
        except Exception:
            log.exception("channel source: the iterator failed, no more events come from it")

    async def _tell(self, event: GenericEvent, queue: Queue) -> None:
        try:
            if all(predicate(event) for predicate in self.predicates):
                told = self.handler(event, queue)
                if told is not None and inspect.isawaitable(told):
                    await told
        except Exception:
            log.exception("channel source: the handler failed")
