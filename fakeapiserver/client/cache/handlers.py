"""The handlers of an informer, and the calls of them.

All calls that wait are made by one callback of the event loop: a task for each handler would be woken for each change, which costs more
than most handlers do.

Upstream: k8s.io/client-go/tools/cache/{shared_informer,controller}.go (processorListener, ResourceEventHandler).
"""

import asyncio
import inspect
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from contextvars import Context, copy_context
from typing import Final, Literal, Protocol

from msgspec import Struct

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.client import causes
from fakeapiserver.client.cache.indexer import DeletedFinalStateUnknown

log = logging.getLogger(__name__)

_TURN: Final = 256  # so many calls are made before others of the event loop have their turn
Tombstone = Object | DeletedFinalStateUnknown


class ResourceEventHandler(Protocol):
    """The receiver of every change, in order.

    Plain methods are called in the event loop and should be short. The next change waits for an `async def`. Other return values are
    ignored.
    An exception is logged, and the next change delivered. Objects are shared: copy an object before you change it.
    """

    def on_add(self, obj: Object, is_in_initial_list: bool) -> object:
        """Handles a new object; `is_in_initial_list` if it existed when the informer began."""

    def on_update(self, old: Object, new: Object) -> object:
        """Handles a change, or a resync: both objects have the same resourceVersion then."""

    def on_delete(self, obj: Tombstone) -> object:
        """Handles a deletion."""


class ResourceEventHandlerFuncs(Struct, frozen=True):
    """A handler of functions; those left out do nothing."""

    add: Callable[[Object], object] | None = None
    update: Callable[[Object, Object], object] | None = None
    delete: Callable[[Tombstone], object] | None = None

    def on_add(self, obj: Object, is_in_initial_list: bool) -> object:
        return self.add(obj) if self.add else None

    def on_update(self, old: Object, new: Object) -> object:
        return self.update(old, new) if self.update else None

    def on_delete(self, obj: Tombstone) -> object:
        return self.delete(obj) if self.delete else None


class FilteringResourceEventHandler(Struct, frozen=True):
    """Calls `handler` for objects that `keeps` accepts; an object that begins or ceases to be accepted is added or
    deleted for it.
    """

    keeps: Callable[[Object], bool]
    handler: ResourceEventHandler

    def on_add(self, obj: Object, is_in_initial_list: bool) -> object:
        return self.handler.on_add(obj, is_in_initial_list) if self.keeps(obj) else None

    def on_update(self, old: Object, new: Object) -> object:
        was, is_now = self.keeps(old), self.keeps(new)
        if was and is_now:
            return self.handler.on_update(old, new)
        if is_now:
            return self.handler.on_add(new, False)
        return self.handler.on_delete(old) if was else None

    def on_delete(self, obj: Tombstone) -> object:
        last = obj.object if isinstance(obj, DeletedFinalStateUnknown) else obj
        return self.handler.on_delete(obj) if self.keeps(last) else None


# What waits for a handler: an object and whether it was in the first list, the old and the new one, or what is gone.
_Added = tuple[Literal["add"], Object, bool]
_Updated = tuple[Literal["update"], Object, Object]
_Deleted = tuple[Literal["delete"], Tombstone, None]
_Notification = _Added | _Updated | _Deleted


class Registration:
    """A handler's place at an informer."""

    def __init__(
        self, informer: "Registrar", handler: ResourceEventHandler, delivery: "Delivery", *, resyncs: bool
    ) -> None:
        self._informer = informer
        self._handler = handler
        self._delivery = delivery
        self.resyncs = resyncs
        self._waiting: deque[_Notification] = deque()
        self._initial = 0
        self._telling = False
        self._told = asyncio.Event()
        # Awaits what the handler has returned; further calls wait for it.
        self.task: asyncio.Task[None] | None = None

    @property
    def has_synced(self) -> bool:
        """Reports whether the handler was called for every object of the informer's first list."""
        return self._informer.has_synced and self._initial == 0

    async def wait_for_sync(self) -> None:
        """Waits until `has_synced`."""
        await self._informer.wait_for_sync()
        while self._initial:
            self._told.clear()
            await self._told.wait()

    @property
    def idle(self) -> bool:
        """Reports whether the handler was called for every change so far."""
        return not self._waiting and not self._telling

    def remove(self) -> None:
        """Removes the handler; changes that still wait are dropped."""
        self._informer.remove_event_handler(self)

    def added(self, obj: Object, initial: bool) -> None:
        """Queues an added object for the handler; called by the informer. `initial`: `has_synced` waits for it."""
        self._initial += initial
        self._tell(("add", obj, initial))

    def updated(self, old: Object, new: Object) -> None:
        self._tell(("update", old, new))

    def deleted(self, obj: Tombstone) -> None:
        self._tell(("delete", obj, None))

    def _tell(self, notification: _Notification) -> None:
        self._waiting.append(notification)
        self._delivery.schedule(self)

    def drop(self) -> None:
        """Drops the changes that wait."""
        self._waiting.clear()
        if self.task is not None:
            self.task.cancel()

    def call(self, most: int) -> int:
        """Calls the handler for the changes that wait, at most `most` times; returns how often it was called."""
        waiting, calls = self._waiting, 0
        while waiting and calls < most and self.task is None:
            calls += 1
            notification = waiting.popleft()
            self._telling = True
            try:
                result = self._call(notification)
                if result is not None and inspect.isawaitable(result):
                    self.task = asyncio.ensure_future(self._complete(result, notification))
                    break
            except Exception:
                self._delivery.log_failure()
            self._called(notification)
        return calls

    @property
    def waits(self) -> bool:
        """Reports whether the handler could be called now."""
        return bool(self._waiting) and self.task is None

    def _call(self, notification: _Notification) -> object:
        if notification[0] == "update":
            causes.event.set(notification[2])
            return self._handler.on_update(notification[1], notification[2])
        causes.event.set(notification[1])
        if notification[0] == "add":
            return self._handler.on_add(notification[1], notification[2])
        return self._handler.on_delete(notification[1])

    def _called(self, notification: _Notification) -> None:
        self._telling = False
        if notification[0] == "add" and notification[2]:
            self._initial -= 1
            if not self._initial:
                self._told.set()

    async def _complete(self, result: Awaitable[object], notification: _Notification) -> None:
        try:
            await result
        except Exception:
            self._delivery.log_failure()
        finally:
            self.task = None
            self._called(notification)
        if self._waiting:
            self._delivery.schedule(self)


class Registrar(Protocol):
    """The part of an informer that a registration needs."""

    @property
    def has_synced(self) -> bool:
        """Reports whether everything of the first list has come."""

    async def wait_for_sync(self) -> None:
        """Waits until `has_synced`."""

    def remove_event_handler(self, registration: Registration) -> None:
        """Removes the handler."""


class Delivery:
    """Calls the handlers of one informer while it runs, in a context of its own. `name` is the informer's, for logs."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._due: dict[Registration, None] = {}
        self._context: Context | None = None
        self._handle: asyncio.Handle | None = None

    def start(self) -> None:
        """Begins to call the handlers, in the running event loop."""
        self._context = copy_context()
        self._context.run(causes.reconcile.set, 0)  # an informer may be started by a reconcile
        self._call_soon()

    def stop(self) -> None:
        """Calls no handler any more."""
        self._context = None
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def schedule(self, registration: Registration) -> None:
        """Calls the registration's handler for all that waits, in the next turn of the event loop."""
        self._due[registration] = None
        if self._handle is None:
            self._call_soon()

    def log_failure(self) -> None:
        """Logs the exception of a handler that is being handled."""
        log.exception("a handler of %s failed", self._name)

    def _call_soon(self) -> None:
        if self._due and self._context is not None:
            self._handle = asyncio.get_running_loop().call_soon(self._call, context=self._context)

    def _call(self) -> None:
        self._handle = None
        due, self._due = self._due, {}
        left = _TURN
        for registration in due:
            if left:
                left -= registration.call(left)
            if registration.waits:
                self._due[registration] = None
        if self._handle is None:
            self._call_soon()
