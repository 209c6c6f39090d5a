"""A copy of everything below the prefix, kept up to date by one watch of etcd: reads and watches are served from it.

The copy is the same multi-version core as the memory backend's, but its revisions are etcd's, which have gaps: other keys are written, too.
Only the watch changes the copy, so each change is there once and in order, whichever API server made it.

After a lost connection the watch goes on where it was. If etcd has compacted that in the meantime, everything is listed again, and the
watches of clients end, since what happened in between isn't known.

Upstream: k8s.io/apiserver/pkg/storage/cacher (watch_cache.go, progress/); KEP-2340 about consistent reads from a cache.
"""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing, contextmanager, suppress
from contextvars import Context, copy_context
from typing import Final

from msgspec.structs import replace

from fakeapiserver.effort import without_collections
from fakeapiserver.storage.encryption.transformers import TransformError
from fakeapiserver.storage.etcd.client import Client, prefix_end
from fakeapiserver.storage.etcd.errors import EtcdError, Refused, RevisionCompacted
from fakeapiserver.storage.etcd.messages import (
    DELETE,
    KeyValue,
    RangeRequest,
    RangeResponse,
    WatchCreateRequest,
    WatchResponse,
)
from fakeapiserver.storage.etcd.messages import Event as EtcdEvent
from fakeapiserver.storage.etcd.values import Decoded, Values
from fakeapiserver.storage.etcd.watch_stream import WatchStream
from fakeapiserver.storage.interface import ResourceVersionTooLarge, StoredObject, Unreadable
from fakeapiserver.storage.keys import ROOT, below, rooted
from fakeapiserver.storage.mvcc import MVCC, Change, removal
from fakeapiserver.storage.versioner import stamp, unstamped
from fakeapiserver.storage.watch import Hub

# Seconds between two requests for progress while a read waits, and before the first one: an event may be on its way.
_PROGRESS_PERIOD: Final = 0.1
_FIRST_PROGRESS: Final = 0.005
# Seconds for which a read waits for its revision.
TIMEOUT: Final = 3.0
# Pauses between attempts to watch, in seconds.
_FIRST_PAUSE: Final = 0.1
_LONGEST_PAUSE: Final = 1.0
# Keys of a page, when everything is listed: other tasks run between two pages.
_PAGE: Final = 100
log = logging.getLogger(__name__)


class WatchCache:
    """`prefix` is where API servers keep their objects, e.g. `/registry`: keys begin with `/registry` here, whatever it is there."""

    def __init__(self, client: Client, values: Values, mvcc: MVCC, hub: Hub, prefix: str = ROOT) -> None:
        self._client = client
        self._values = values
        self._prefix = rooted(prefix)
        self.mvcc = mvcc
        self.hub = hub
        # The objects of writes on their way, by key and bytes: they needn't be decoded when the watch brings them.
        self._sent: dict[tuple[str, bytes], Decoded] = {}
        # The contexts of these writes, in which their changes are published, and of deletions, which have no bytes.
        self._contexts: dict[tuple[str, bytes], Context] = {}
        # The objects that can't be decrypted, by key: the reason, and when that was found (a monotonic time).
        self._unreadable: dict[str, tuple[str, float]] = {}
        # Whether etcd's notifications of progress come after all events before them. If not, the copy advances by events alone, and what
        # needs a newer one is read from etcd.
        self.trusts_progress = True
        # Whether a key was found whose value isn't an object of an API server.
        self._is_foreign = False
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []
        self._asked = 0.0  # when progress was requested last
        self._watch: WatchStream | None = None
        self._task: asyncio.Task[None] | None = None
        self._is_closed = False
        self.on_relisted: Callable[[], None] = lambda: None

    @property
    def revision(self) -> int:
        return self.mvcc.revision

    # ------------------------------------------------------------ keys

    def key_in_etcd(self, key: str) -> bytes:
        return below(self._prefix, key).encode()

    def key_here(self, key: bytes) -> str:
        return f"{ROOT}{key.decode(errors='backslashreplace')[len(self._prefix) :]}"

    # ------------------------------------------------------------ the copy

    async def open(self) -> None:
        """Lists everything, and keeps the copy up to date from then on. Raises EtcdError if etcd can't be read, or another program uses
        the prefix."""
        await self._relist()
        if self._is_foreign and not any(self.mvcc.snapshot().buckets.values()):
            where = f"etcd at {self._client.url} has keys below {self._prefix}"
            raise Refused(f"{where}, but no object of an API server: choose another --etcd-prefix")
        self._task = asyncio.ensure_future(self._follow())

    async def close(self) -> None:
        """Ends the watch, and those of clients."""
        self.hub.end_all()
        self._is_closed = True  # since gRPC may report the end of the stream instead of the cancellation
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        for _, waiter in self._waiting:
            waiter.cancel()
        self._waiting.clear()

    async def _relist(self) -> None:
        """Replaces the copy by what etcd has. The history and all watches end with it."""
        try:
            objects, left_out, revision = await self._everything(_PAGE)
        except RevisionCompacted:  # between two pages; upstream's pager goes on like this, too (client-go/tools/pager)
            objects, left_out, revision = await self._everything(0)
        # Not before: until then, the copy lacks what is readable now.
        self._unreadable = {key: reason for key, reason in self._unreadable.items() if key in left_out}
        self.mvcc.replace(objects, revision)
        self.hub.end_all()
        self._advanced()
        self.on_relisted()

    async def _everything(self, limit: int) -> tuple[list[StoredObject], set[str], int]:
        """All objects in etcd, the keys whose values can't be read, and the revision. `limit`: the keys of a page, 0 for a single page."""
        objects: list[StoredObject] = []
        left_out: set[str] = set()
        revision = 0
        async with aclosing(self._pages(limit)) as pages:
            async for page in pages:
                revision = revision or page.header.revision
                with without_collections():
                    for kv in page.kvs:
                        if (stored := self.stored(kv)) is None:
                            left_out.add(self.key_here(kv.key))
                        else:
                            objects.append(stored)
                await asyncio.sleep(0)
        return objects, left_out, revision

    async def _pages(self, limit: int) -> AsyncGenerator[RangeResponse]:
        """Yields everything that etcd has at one revision, page by page. The next page is on its way while one is decoded."""
        start = f"{self._prefix}/".encode()
        end = prefix_end(start)
        reading = asyncio.ensure_future(self._client.range(RangeRequest(start, end, limit)))
        revision = 0
        try:
            while True:
                page = await reading
                revision = revision or page.header.revision
                if not page.more:
                    yield page
                    return
                request = RangeRequest(page.kvs[-1].key + b"\0", end, limit, revision)
                reading = asyncio.ensure_future(self._client.range(request))
                yield page
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)

    def stored(self, kv: KeyValue) -> StoredObject | None:
        """The object in a key, or None if it holds none that can be read. It isn't decoded if the copy has it."""
        key = self.key_here(kv.key)
        try:
            stored = self.read(kv)
        except Unreadable as error:
            log.error("the object at %s in etcd can't be decrypted: %s", error.key, error)
            self._unreadable[key] = str(error), time.monotonic() - error.seconds
            return None
        if stored is None:
            self._unreadable.pop(key, None)
        return stored

    def read(self, kv: KeyValue) -> StoredObject | None:
        """The same, but raises Unreadable if the object can't be decrypted."""
        key = self.key_here(kv.key)
        known = self.mvcc.get(key)
        if known is not None and known.mod_revision == kv.mod_revision:
            return known
        decoded = self._sent.get((key, kv.value))
        if decoded is None:
            try:
                decoded = self._values.decode(key, kv.value)
            except TransformError as error:
                raise self._error(key, str(error)) from None
            except ValueError as error:
                self._is_foreign = True
                log.error("the object at %s in etcd is left out: it %s", self.key_in_etcd(key).decode(), error)
                return None
            if decoded is None:
                return None
        value = stamp(decoded.value, decoded.offset, kv.mod_revision)
        return StoredObject(key, value, kv.mod_revision, kv.create_revision, decoded.index, decoded.offset)

    def check_readable(self, beginning: str, start: str = "") -> None:
        """Raises Unreadable if an object whose key begins like that, and is not before `start`, can't be decrypted."""
        for key in sorted(self._unreadable):
            if key.startswith(beginning) and key >= start:
                raise self._error(key, self._unreadable[key][0])

    def _error(self, key: str, reason: str) -> Unreadable:
        now = time.monotonic()
        return Unreadable(self.key_in_etcd(key).decode(), reason, now - self._unreadable.get(key, (reason, now))[1])

    async def read_again(self) -> None:
        """Reads everything again if something couldn't be decrypted; watches end then. Raises EtcdError if etcd can't be read."""
        if not self._unreadable or self._task is None:
            return
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        try:
            await self._relist()
        finally:
            self._task = asyncio.ensure_future(self._follow())

    @contextmanager
    def expected(self, key: str, data: bytes, decoded: Decoded | None) -> Iterator[None]:
        """Announces a write of these bytes, which then aren't decoded when the watch brings them; or a deletion, without bytes."""
        if decoded is not None:
            self._sent[key, data] = decoded
        self._contexts[key, data] = copy_context()
        try:
            yield
        finally:
            self._sent.pop((key, data), None)
            self._contexts.pop((key, data), None)

    async def differences(self) -> list[str]:
        """The keys whose objects in the copy aren't those in etcd, at one revision. Raises EtcdError, ResourceVersionTooLarge."""
        start = f"{self._prefix}/".encode()
        revision = 0  # the newest, since that of the copy may be compacted if it advances by events alone
        if self.trusts_progress:
            await self.reached((await self._client.range(RangeRequest(start, prefix_end(start), 1))).header.revision)
            revision = self.revision
        buckets = self.mvcc.snapshot().buckets.values()
        here = {key: stored.mod_revision for objects in buckets for key, stored in objects.items()}
        response = await self._client.range(RangeRequest(start, prefix_end(start), revision=revision))
        there = {stored.key: stored.mod_revision for stored in map(self.stored, response.kvs) if stored is not None}
        return sorted(key for key in here.keys() | there.keys() if here.get(key) != there.get(key))

    def decode_again(self, prefix: str) -> None:
        """Decodes the objects below a prefix again. Their revisions stay."""
        for stored in self.mvcc.range(prefix).items:
            value = unstamped(stored.value, stored.offset)
            data = self._values.encode(stored.key, value, stored.index)
            with suppress(ValueError):
                decoded = self._values.decode(stored.key, data)
                if decoded is not None and decoded != Decoded(value, stored.offset, stored.index):
                    value = stamp(decoded.value, decoded.offset, stored.mod_revision)
                    form = replace(stored, value=value, offset=decoded.offset, index=decoded.index)
                    self.mvcc.put_form(form)

    # ------------------------------------------------------------ the watch

    async def _follow(self) -> None:
        """Watches, again and again, until it is cancelled."""
        pause = _FIRST_PAUSE
        while not self._is_closed:
            try:
                async with aclosing(self._events()) as batches:
                    async for _ in batches:
                        pause = _FIRST_PAUSE
            except RevisionCompacted as error:
                log.warning("everything in etcd is read again, since a part of its history is gone: %s", error)
                try:
                    await self._relist()
                    continue
                except EtcdError as failure:
                    log.warning("etcd can't be read: %s", failure)
            except EtcdError as error:
                if not self._is_closed:
                    log.warning("the watch of etcd is opened again: %s", error)
            except Exception:
                log.exception("the watch of etcd is opened again after an error of this server")
            await asyncio.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)

    async def _events(self) -> AsyncGenerator[None]:
        """Opens a watch behind the newest revision of the copy, and applies what it brings. Raises EtcdError when it ends."""
        start = f"{self._prefix}/".encode()
        request = WatchCreateRequest(start, prefix_end(start), self.revision + 1, progress_notify=True, fragment=True)
        self._watch = watch = await self._client.watch(request)
        try:
            while True:
                self._apply(await watch.next())
                yield
        finally:
            self._watch = None
            watch.cancel()

    def _apply(self, response: WatchResponse) -> None:
        for event in response.events:
            change = self._change(event)
            if change is not None:
                data = b"" if change.current is None else event.kv.value
                context = self._contexts.get((change.key, data))
                if context is None:  # another server has written it
                    self.hub.publish(self.mvcc.commit(change))
                else:
                    context.run(self.hub.publish, self.mvcc.commit(change))
        # etcd's revision runs ahead of the events, except where they are complete.
        newest = response.events[-1].kv.mod_revision if response.events else response.header.revision
        self.mvcc.revision = max(self.mvcc.revision, newest)
        self._advanced()

    def _change(self, event: EtcdEvent) -> Change | None:
        """The event as a change of the copy; None if it changes nothing there."""
        kv = event.kv
        self._unreadable.pop(self.key_here(kv.key), None)
        previous = self.mvcc.get(self.key_here(kv.key))
        current = None if event.type == DELETE else self.stored(kv)
        if current is not None:
            return Change(kv.mod_revision, current.key, previous, current)
        return removal(previous, kv.mod_revision) if previous is not None else None

    # ------------------------------------------------------------ waiting

    async def reached(self, revision: int, timeout: float = TIMEOUT) -> None:
        """Returns when the copy has everything up to the revision. Raises ResourceVersionTooLarge if it hasn't within `timeout` seconds."""
        if self.revision >= revision:
            return
        loop = asyncio.get_running_loop()
        deadline, wait = loop.time() + timeout, _FIRST_PROGRESS
        waiter: asyncio.Future[None] = loop.create_future()
        entry = revision, waiter
        self._waiting.append(entry)
        try:
            while not waiter.done() and loop.time() < deadline:
                await asyncio.wait((waiter,), timeout=min(wait, deadline - loop.time()))
                if not waiter.done():
                    await self._request_progress(loop.time())
                wait = _PROGRESS_PERIOD
        finally:
            if entry in self._waiting:
                self._waiting.remove(entry)
        if not waiter.done():
            raise ResourceVersionTooLarge(self.revision)

    async def _request_progress(self, now: float) -> None:
        """Asks etcd how far the watch has come, for all that wait."""
        if self._watch is None or not self.trusts_progress or now < self._asked + _PROGRESS_PERIOD:
            return
        self._asked = now
        try:
            await self._watch.request_progress()
        except EtcdError as error:
            log.debug("no progress was requested: %s", error)

    def _advanced(self) -> None:
        """Wakes those whose revision is reached."""
        if not self._waiting:
            return
        revision, waiting = self.revision, self._waiting
        self._waiting = [entry for entry in waiting if entry[0] > revision]
        for wanted, waiter in waiting:
            if wanted <= revision and not waiter.done():
                waiter.set_result(None)
