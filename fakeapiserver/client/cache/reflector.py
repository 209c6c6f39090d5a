"""Brings what a server has into a store, and keeps it so: list, then watch; again when the watch can't go on.

Upstream: k8s.io/client-go/tools/cache/reflector.go. One thing differs: a server of a test may come back with another state. So when
it was gone, it is listed before it is watched again; and when a watch is answered by another cluster than the last one, too.
"""

import asyncio
import logging
import random
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from contextlib import aclosing
from sys import intern
from typing import Final, NoReturn, Protocol, Unpack

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.client.cache.delta_fifo import TransformFunc
from fakeapiserver.client.cache.indexer import meta_namespace_key
from fakeapiserver.client.dynamic import ListOptions, ListShape, RawList
from fakeapiserver.client.errors import (
    StatusError,
    TransportError,
    is_expired,
    is_gone,
    is_not_found,
    is_too_many_requests,
)
from fakeapiserver.client.flowcontrol import Backoff
from fakeapiserver.client.pager import PAGE_SIZE, items, whole
from fakeapiserver.client.rest import WatchEvent
from fakeapiserver.clock import Clock, SystemClock

__all__ = [
    "ListerWatcher",
    "Reflector",
    "ReflectorStore",
    "Since",
    "Sleep",
    "newest",
]

log = logging.getLogger(__name__)

Sleep = Callable[[float], Awaitable[None]]
Since = Callable[[], str]
_INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"
_MIN_WATCH_SECONDS: Final = 300
# A watch that lasts this much longer than the server was asked for counts as hung.
_GRACE_SECONDS: Final = 30
_TURN: Final = 256  # so many objects are decoded before others of the event loop have their turn
_SHORT_SECONDS: Final = 1.0
# Names an object of the cluster's own state (priority and fairness), whose uid no other cluster has.
_FLOW_SCHEMA: Final = "x-kubernetes-pf-flowschema-uid"


def newest() -> str:
    """The default of `since`: no revision in particular."""
    return ""


class ListerWatcher(Protocol):
    """A resource that can be listed and watched: a ResourceClient."""

    async def list_raw(self, **options: Unpack[ListOptions]) -> RawList:
        """StatusError, TransportError, TimeoutError."""

    def watch(self, **options: Unpack[ListOptions]) -> AsyncGenerator[WatchEvent, None]:
        """Yields events until the server ends the watch.

        Raises what a list raises, and ValueError for a line that is no event.
        """


class ReflectorStore(Protocol):
    """The receiver of everything that a reflector reads, in order."""

    def add(self, obj: Object) -> None:
        """Stores an object that is new to the reflector."""

    def update(self, obj: Object) -> None:
        """Stores a changed object."""

    def delete(self, obj: Object) -> None:
        """Removes an object; `obj` is its last state."""

    def replace(self, objects: Iterable[Object]) -> None:
        """These are all there are."""

    def resync(self) -> None:
        """Everything is to be looked at again."""


class _Relist(Exception):
    """The watch can't go on from where it is. `at_once`: no failure, only too old."""

    def __init__(self, reason: str, *, at_once: bool = False) -> None:
        super().__init__(reason)
        self.at_once = at_once


class Reflector:
    """Lists and watches a resource and keeps a store up to date. `run()` returns when it is cancelled.

    selection: label and field selectors.
    transform: makes of each object that comes what the store is given; one that fails ends the list or leaves the event out.
    resync_period: seconds between calls of the store's `resync`; 0: never.
    page_size: of lists that aren't served from the server's cache; 0: everything at once.
    use_watch_list: the first state is streamed as a watch's events (KEP-3157), where the server can.
    since: returns the revision whose state is listed first, so that everything after it arrives as an event; "" is the newest.
    The newest is listed as well if the server no longer has that revision.
    sleep: how it waits after a failure; sleep_unserved: while the server has no such resource, by default the same.
    """

    def __init__(
        self,
        source: ListerWatcher,
        store: ReflectorStore,
        *,
        name: str = "reflector",
        selection: ListOptions | None = None,
        transform: TransformFunc | None = None,
        resync_period: float = 0.0,
        page_size: int = PAGE_SIZE,
        use_watch_list: bool = True,
        since: Since = newest,
        clock: Clock | None = None,
        sleep: Sleep = asyncio.sleep,
        sleep_unserved: Sleep | None = None,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self.name = name
        # The revision up to which the store has everything; "" before the first list.
        self.last_sync_resource_version = ""
        # What went wrong, while it waits before it asks the server again.
        self.failure = ""
        # The server has no such resource, and is asked again later.
        self.unserved = False
        # Set once the server was found not to have the resource.
        self.absent = asyncio.Event()
        self._source = source
        self._store = store
        self._selection: ListOptions = {**(selection or {})}
        self._transform = transform
        self._resync_period = resync_period
        self._page_size = page_size
        self._use_watch_list = use_watch_list
        self._since = since
        self._first_version = ""
        self._clock = clock or SystemClock()
        self._sleep = sleep
        self._sleep_unserved = sleep_unserved or sleep
        self._chance = chance
        self._pausing: asyncio.Future[None] | None = None
        self._backoff = _new_backoff()
        self._unavailable = False
        self._cluster = ""
        self._listed_at = float("-inf")

    async def run(self) -> None:
        """Never returns by itself; what goes wrong is logged and tried again, later each time."""
        self._first_version = self._since()
        resync = asyncio.ensure_future(self._resync()) if self._resync_period else None
        try:
            while True:
                failure = await self._list_and_watch()
                if failure:
                    await self._pause(failure)
        finally:
            if resync is not None:
                resync.cancel()

    def retry(self) -> None:
        """The server may have the resource by now: if that was what it waits for, it asks at once."""
        if self.unserved and self._pausing is not None:
            self._backoff = _new_backoff()
            self._pausing.cancel()

    async def _pause(self, failure: str) -> None:
        """Longer with each."""
        self.failure = failure
        sleep = self._sleep_unserved if self.unserved else self._sleep
        pausing = self._pausing = asyncio.ensure_future(sleep(self._backoff.step(self._clock.monotonic())))
        try:
            await asyncio.wait((pausing,))
        finally:
            pausing.cancel()
            self._pausing, self.failure, self.unserved = None, "", False

    async def _list_and_watch(self) -> str:
        """Lists and watches until the watch ends; returns the reason to wait before the next attempt, or ""."""
        try:
            listed = await self._list_since() or (self._use_watch_list and await self._watch_list())
            if not listed:
                await self._list()
            await self._watch_on()
        except _Relist as reason:
            log.debug("%s: listing again: %s", self.name, reason)
            is_early = self._clock.monotonic() - self._listed_at < self._backoff.initial
            return str(reason) if is_early or not reason.at_once else ""
        except (StatusError, TransportError, TimeoutError, OSError, ValueError) as error:
            self.unserved = isinstance(error, StatusError) and is_not_found(error)
            if self.unserved:
                self.absent.set()
            level = logging.INFO if self.unserved else logging.WARNING
            log.log(level, "%s: list or watch failed: %s", self.name, error)
            return str(error) or type(error).__name__
        except Exception as error:
            log.exception("%s: list or watch failed", self.name)
            return str(error) or type(error).__name__

    # --------------------------------------------------------------- the first state

    async def _list_since(self) -> bool:
        """Lists the state of the revision that `since` named. Returns False if it named none, or the server has forgotten it."""
        if not self._first_version or self.last_sync_resource_version:
            return False
        exactly = ListOptions(**self._selection, resource_version=self._first_version, resource_version_match="Exact")
        try:
            page = (await self._source.list_raw(**exactly)).split()
        except StatusError as error:
            if not (_too_old(error) or _too_new(error)):
                raise
            return False
        await self._replace_with(page)
        return True

    async def _list(self) -> None:
        try:
            page = await self._listed(self._relist_version())
        except StatusError as error:
            if not (_too_old(error) or _too_new(error)):
                raise
            self._unavailable = True
            page = await self._listed("")
        await self._replace_with(page)

    async def _replace_with(self, page: ListShape) -> None:
        objects = []
        for obj in items(page):
            objects.append(self._kept(obj))
            if len(objects) % _TURN == 0:
                await asyncio.sleep(0)
        self._replaced(objects, page.metadata.resource_version)

    async def _listed(self, version: str) -> ListShape:
        # a revision lets the server answer from its cache, which has no pages; "0" takes whatever it has
        size = self._page_size if version in ("", "0") else 0
        return await whole(self._source, size, **ListOptions(**self._selection, resource_version=version))

    def _replaced(self, objects: Iterable[Object], version: str) -> None:
        self._unavailable = False
        self._store.replace(objects)
        self.last_sync_resource_version = version
        self._listed_at = self._clock.monotonic()

    def _relist_version(self) -> str:
        return "" if self._unavailable else self.last_sync_resource_version or "0"

    async def _watch_list(self) -> bool:
        """Streams the first state, and what follows until that watch ends. False: the server has no such thing."""
        version = "" if self._unavailable else self.last_sync_resource_version
        options = ListOptions(
            **self._selection,
            resource_version=version,
            resource_version_match="NotOlderThan",
            send_initial_events=True,
            on_answer=self._note_cluster,
        )
        known: dict[str, Object] = {}
        begun = False
        try:
            async with asyncio.timeout(None) as deadline, aclosing(self._started(options, deadline)) as events:
                async for event in events:
                    begun = True
                    obj = _checked(event)
                    if event.type == "DELETED":
                        known.pop(meta_namespace_key(obj), None)
                    elif event.type != "BOOKMARK":
                        known[meta_namespace_key(obj)] = self._kept(obj)
                    elif (obj["metadata"].get("annotations") or {}).get(_INITIAL_EVENTS_END) == "true":
                        objects = [*known.values()]
                        known.clear()
                        self._replaced(objects, obj["metadata"]["resourceVersion"])
                        del objects
                        # the next watch has a time of its own
                        await self._follow(events)
                        return True
        except StatusError as error:
            if _too_old(error) or _too_new(error):
                self._unavailable = True
                raise _Relist(str(error), at_once=True) from None
            if begun or error.code not in (400, 422):
                raise
            self._use_watch_list = False
            return False
        raise _Relist("the stream of the first state ended early")

    # --------------------------------------------------------------------- the watch

    async def _watch_on(self) -> NoReturn:
        """Watches from where the store is, and again whenever a watch ends. _Relist when that can't go on."""
        while True:
            options = ListOptions(
                **self._selection,
                resource_version=self.last_sync_resource_version,
                on_answer=self._check_cluster,
            )
            start, before = self._clock.monotonic(), self.last_sync_resource_version
            try:
                async with asyncio.timeout(None) as deadline, aclosing(self._started(options, deadline)) as events:
                    seen = await self._follow(events)
            except StatusError as error:
                if is_too_many_requests(error):
                    await self._pause(str(error))
                    continue
                if _too_old(error):
                    raise _Relist(str(error), at_once=True) from None
                raise
            except TimeoutError:
                log.debug("%s: the watch didn't end in time", self.name)
                continue
            except TransportError as error:
                # broken off after events or a while: go on from the last one
                if not error.reset and self.last_sync_resource_version == before:
                    raise
                log.debug("%s: the watch broke off: %s", self.name, error)
                seen = self.last_sync_resource_version != before
            if not seen and self._clock.monotonic() - start < _SHORT_SECONDS:
                raise _Relist("very short watch: it ended within a second, without an event")

    def _check_cluster(self, headers: Mapping[str, str]) -> None:
        """Another one's revisions mean nothing, even where it takes them. Clusters that don't say who they are, are the same."""
        before = self._cluster
        self._note_cluster(headers)
        if before and before != self._cluster:
            self._unavailable = True
            raise _Relist("the watch was answered by another cluster", at_once=True)

    def _note_cluster(self, headers: Mapping[str, str]) -> None:
        self._cluster = headers.get(_FLOW_SCHEMA, self._cluster)

    def _started(self, options: ListOptions, deadline: asyncio.Timeout) -> AsyncGenerator[WatchEvent, None]:
        seconds = int(_MIN_WATCH_SECONDS * (1 + self._chance()))
        deadline.reschedule(asyncio.get_running_loop().time() + seconds + _GRACE_SECONDS)
        return self._source.watch(**ListOptions(**options, timeout_seconds=seconds, allow_watch_bookmarks=True))

    async def _follow(self, events: AsyncGenerator[WatchEvent, None]) -> bool:
        """Passes each event on to the store; returns whether there was any."""
        store, seen = self._store, False
        tell = {"ADDED": store.add, "MODIFIED": store.update, "DELETED": store.delete}
        async for event in events:
            obj = _checked(event)
            version: str = obj["metadata"]["resourceVersion"]
            if event.type in tell:
                try:
                    kept = self._kept(obj)
                except Exception:
                    log.exception("%s: an event is left out, the transform failed on it", self.name)
                else:
                    tell[event.type](kept)
            self.last_sync_resource_version = version
            seen = True
        return seen

    def _kept(self, obj: Object) -> Object:
        """Returns the object as the store keeps it:

        transformed, and with shared strings for values that many objects have in common.
        """
        if self._transform is not None:
            obj = self._transform(obj)
        for holder, key in ((obj, "apiVersion"), (obj, "kind"), (obj["metadata"], "namespace")):
            if type(value := holder.get(key)) is str:
                holder[key] = intern(value)
        return obj

    async def _resync(self) -> None:
        while True:
            await self._sleep(self._resync_period)
            self._store.resync()


def _new_backoff() -> Backoff:
    return Backoff(0.8, 30.0, 2.0, 1.0, reset=120.0)


def _checked(event: WatchEvent) -> Object:
    """Returns the event's object. Raises StatusError for an ERROR event, ValueError for an event without an object."""
    obj = event.object
    if event.type == "ERROR":
        raise StatusError(obj)
    if not (obj.get("metadata") or {}).get("resourceVersion"):
        raise ValueError(f"unable to understand watch event {event.type}: it has no metadata.resourceVersion")
    return obj


def _too_old(error: StatusError) -> bool:
    return is_expired(error) or is_gone(error)


def _too_new(error: StatusError) -> bool:
    """The server hasn't come so far yet, or never was there: it is another one."""
    causes = (error.status.get("details") or {}).get("causes") or ()
    return any(cause.get("reason") == "ResourceVersionTooLarge" for cause in causes)
