"""Event handlers: the requests that follow from an event (upstream: sigs.k8s.io/controller-runtime/pkg/handler)."""

import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Final, Protocol

from msgspec import Struct

from fakeapiserver.apimachinery.gvk import GroupVersionKind
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.client.rest_mapper import RESTMapper
from fakeapiserver.controller_runtime.event import CreateEvent, DeleteEvent, Event, GenericEvent, UpdateEvent
from fakeapiserver.controller_runtime.reconcile import Request

__all__ = [
    "LOW_PRIORITY",
    "EnqueueRequestForOwner",
    "EnqueueRequestsFromMapFunc",
    "EventHandler",
    "Funcs",
    "MapFunc",
    "Queue",
    "enqueue_request_for_object",
    "priority_of",
    "request_for",
]

log = logging.getLogger(__name__)

# What was there before, and what didn't change, waits for what did.
LOW_PRIORITY: Final = -100


class Queue(Protocol):
    """A controller's queue, as far as events go; higher priorities are first. See WorkQueue."""

    def add(self, item: Request, priority: int = ...) -> None: ...

    def add_after(self, item: Request, seconds: float, priority: int = ...) -> None: ...

    def add_rate_limited(self, item: Request, priority: int = ...) -> None: ...

    def forget(self, item: Request) -> None: ...

    def num_requeues(self, item: Request) -> int: ...


class EventHandler(Protocol):
    """Puts the requests of an event into a queue. What it raises is logged, and the event is lost."""

    def __call__(self, event: Event, queue: Queue) -> Awaitable[None] | None: ...


MapFunc = Callable[[Object], Iterable[Request] | Awaitable[Iterable[Request]]]


def priority_of(event: Event) -> int:
    """Returns LOW_PRIORITY for an object of the first list, and for a resync."""
    if isinstance(event, CreateEvent):
        return LOW_PRIORITY if event.is_in_initial_list else 0
    if isinstance(event, UpdateEvent) and event.object_old and event.object_new:
        old, new = event.object_old["metadata"], event.object_new["metadata"]
        return LOW_PRIORITY if old.get("resourceVersion") == new.get("resourceVersion") else 0
    return 0


def request_for(obj: Object) -> Request:
    """The object itself."""
    metadata = obj["metadata"]
    return Request(metadata.get("namespace", ""), metadata["name"])


def enqueue_request_for_object(event: Event, queue: Queue) -> None:
    """The object itself is to be looked at."""
    obj = (event.object_new or event.object_old) if isinstance(event, UpdateEvent) else event.object
    if obj:
        queue.add(request_for(obj), priority_of(event))
    else:
        log.error("%s received with no metadata", type(event).__name__)


class EnqueueRequestForOwner(Struct):
    """The owners of this kind are to be looked at; only the controller with `only_controller_owner`.

    namespaced: whether owners are in their objects' namespace, as opposed to cluster-scoped ones.
    mapper: knows that better."""

    owner: GroupVersionKind
    only_controller_owner: bool = True
    namespaced: bool = True
    mapper: RESTMapper | None = None

    def __call__(self, event: Event, queue: Queue) -> Awaitable[None] | None:
        if self.mapper is not None:
            return self._ask(self.mapper, event, queue)
        objects = (event.object_old, event.object_new) if isinstance(event, UpdateEvent) else (event.object,)
        priority = priority_of(event)
        for request in dict.fromkeys(request for obj in objects if obj for request in self._owners(obj)):
            queue.add(request, priority)
        return None

    async def _ask(self, mapper: RESTMapper, event: Event, queue: Queue) -> None:
        """Once."""
        self.namespaced = (await mapper.mapping_of(self.owner)).namespaced
        self.mapper = None
        self(event, queue)

    def _owners(self, obj: Object) -> Iterable[Request]:
        metadata = obj["metadata"]
        for reference in metadata.get("ownerReferences") or ():
            if self.only_controller_owner and not reference.get("controller"):
                continue
            group = reference["apiVersion"].rpartition("/")[0]
            if (group, reference["kind"]) == (self.owner.group, self.owner.kind):
                yield Request(metadata.get("namespace", "") if self.namespaced else "", reference["name"])


class EnqueueRequestsFromMapFunc(Struct, frozen=True):
    """The requests that a function makes of the object; of an update, of both states. It may be an `async def`."""

    map: MapFunc

    async def __call__(self, event: Event, queue: Queue) -> None:
        objects = (event.object_old, event.object_new) if isinstance(event, UpdateEvent) else (event.object,)
        priority = priority_of(event)
        seen: dict[Request, None] = {}
        for obj in objects:
            requests = self.map(obj)
            seen.update(dict.fromkeys(await requests if isinstance(requests, Awaitable) else requests))
        for request in seen:
            queue.add(request, priority)


class _Low(Struct, frozen=True):
    """A queue where LOW_PRIORITY is what isn't said otherwise."""

    queue: Queue

    def add(self, item: Request, priority: int = LOW_PRIORITY) -> None:
        self.queue.add(item, priority)

    def add_after(self, item: Request, seconds: float, priority: int = LOW_PRIORITY) -> None:
        self.queue.add_after(item, seconds, priority)

    def add_rate_limited(self, item: Request, priority: int = LOW_PRIORITY) -> None:
        self.queue.add_rate_limited(item, priority)

    def forget(self, item: Request) -> None:
        self.queue.forget(item)

    def num_requeues(self, item: Request) -> int:
        return self.queue.num_requeues(item)


class Funcs(Struct, frozen=True):
    """A function for each type of event; by default none.

    Requests without a priority get the event's (`priority_of`).
    """

    create: Callable[[CreateEvent, Queue], Awaitable[None] | None] | None = None
    update: Callable[[UpdateEvent, Queue], Awaitable[None] | None] | None = None
    delete: Callable[[DeleteEvent, Queue], Awaitable[None] | None] | None = None
    generic: Callable[[GenericEvent, Queue], Awaitable[None] | None] | None = None

    def __call__(self, event: Event, queue: Queue) -> Awaitable[None] | None:
        if priority_of(event) == LOW_PRIORITY:
            queue = _Low(queue)
        match event:
            case CreateEvent():
                return self.create(event, queue) if self.create else None
            case UpdateEvent():
                return self.update(event, queue) if self.update else None
            case DeleteEvent():
                return self.delete(event, queue) if self.delete else None
            case GenericEvent():
                return self.generic(event, queue) if self.generic else None
