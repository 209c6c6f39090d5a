"""WATCH: a stream of events, one JSON document a line or one protobuf frame each.

Upstream: k8s.io/apiserver/pkg/endpoints/handlers/watch.go, storage/cacher/{cacher,cache_watcher}.go.
"""

import asyncio
import random
import zlib
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from functools import partial
from math import inf
from typing import Final, TypeVar

import msgspec
from msgspec.structs import replace

from fakeapiserver.apimachinery.errors import Status, StatusError, new_resource_expired
from fakeapiserver.apimachinery.instruments import Family, Histogram, Values, exponential
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.apimachinery.serializer import cbor, json, protobuf
from fakeapiserver.apis.feature_gates import FeatureGates
from fakeapiserver.effort import computed
from fakeapiserver.endpoints import respond
from fakeapiserver.endpoints.negotiation import protobuf as protobuf_forms
from fakeapiserver.endpoints.negotiation import table
from fakeapiserver.endpoints.negotiation.media_types import (
    CBOR,
    CBOR_SEQUENCE,
    JSON,
    PROTOBUF,
    PROTOBUF_STREAM,
    YAML,
    Accept,
    not_streamable,
)
from fakeapiserver.endpoints.request import IN_PROCESS_USER, Piece, Push, Request, Response, WatchProgress
from fakeapiserver.endpoints.scope import RequestScope
from fakeapiserver.endpoints.verbs import selection
from fakeapiserver.endpoints.verbs.get import parse_revision, too_large
from fakeapiserver.endpoints.verbs.list import unready
from fakeapiserver.endpoints.verbs.options import ListOptions, list_options
from fakeapiserver.endpoints.verbs.shared_frames import LARGE
from fakeapiserver.registry.generic.interfaces import NotConverted
from fakeapiserver.storage.interface import (
    Compacted,
    Event,
    ListQuery,
    Predicate,
    ResourceVersionTooLarge,
    StoredObject,
    Unreadable,
    Watcher,
)
from fakeapiserver.storage.watch import BufferedWatcher

_BOOKMARK_PERIOD: Final = 60.0
# The last bookmark is sent so many seconds before the end of a watch.
_LAST_BOOKMARK: Final = 2.0
# About as many bytes of objects are sent in a chunk.
_CHUNK: Final = 64 * 1024
_GZIP_WINDOW: Final = 16 + zlib.MAX_WBITS
_Item = TypeVar("_Item")
_INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"


async def watch(request: Request, scope: RequestScope) -> Response:
    """StatusErrors are raised before the stream starts; later errors are ERROR events."""
    store = scope.store
    assert store is not None
    accept = respond.accepted(request, scope)
    injection = request.injection
    watch_list = store.strategy.features.enabled("WatchList") and not (injection and injection.refuses_watch_list)
    read = partial(list_options, request.query, watch=True, watch_list=watch_list)
    options = await computed(read, request.query_size)
    predicate = await computed(partial(selection.predicate, options, request.info, scope), request.query_size)
    revision = parse_revision(options.resource_version, "")
    form = Form(request, scope, accept, compressed=_is_compressed(request, options, store.strategy.features))
    try:
        stream = await _opened(
            request, scope, store.collection(request.info.namespace), predicate, options, form, revision
        )
    except NotConverted as error:
        raise error.unready or error from None
    except Unreadable as error:
        raise unready(scope, error) from None
    except StatusError as error:
        # After this point upstream can answer only in the stream.
        form.progress.ended = "error"
        return _answer(form, _only(b"".join(form.packed([form.error(error.status)]))))
    return stream


def _is_compressed(request: Request, options: ListOptions, features: FeatureGates) -> bool:
    """Reports whether the stream is compressed: one that begins with a list, if the client accepts gzip (since 1.37)."""
    is_watch_list = bool(options.send_initial_events and options.allow_watch_bookmarks)
    is_on = is_watch_list and features.enabled("WatchListCompression")
    return is_on and respond.takes_gzip(request) and not request.header(b"upgrade")


def _answer(
    form: "Form", frames: AsyncGenerator[bytes, None], attach: Callable[[Push], None] | None = None
) -> Response:
    headers = [*respond.GZIP_HEADERS] if form.compressed else []
    return Response(200, content_type=form.content_type, headers=headers, stream=frames, attach=attach)


async def _only(frame: bytes) -> AsyncGenerator[bytes, None]:
    yield frame


async def _opened(
    request: Request,
    scope: RequestScope,
    prefix: str,
    predicate: Predicate | None,
    options: ListOptions,
    form: "Form",
    revision: int,
) -> Response:
    """Opens the watch. StatusError 410 and 504 for a revision from which one can't watch."""
    assert scope.store is not None
    injection = request.injection
    storage = scope.store.storage if injection is None else injection.storage(scope.store.storage)
    if injection is not None and injection.expires_watch:
        raise _too_old(revision, revision + 1)
    initial, items, start = options.send_initial_events, list[StoredObject](), revision
    if initial or (initial is None and not revision):
        try:
            minimum = revision if options.resource_version else None
            result = await storage.list(prefix, ListQuery(predicate=predicate, minimum_revision=minimum))
        except NotConverted as error:
            if error.unready is not None:
                raise
            # Upstream watches from a cache, which isn't newer than this.
            raise too_large(storage.revision, error.revision - 1, retry_after=1) from None
        except ResourceVersionTooLarge as error:
            raise too_large(revision, error.current, retry_after=1) from None
        if revision > result.revision:
            raise too_large(revision, result.revision, retry_after=1)
        items, start = result.items, result.revision
    elif 0 < revision < scope.watchable_since:
        raise _too_old(revision, scope.watchable_since)
    try:
        watcher = storage.watch(prefix, revision=start or None, predicate=predicate)
    except Compacted as error:
        raise _too_old(revision, error.oldest) from None
    if injection is not None:
        sent = injection.initial(len(items))
        if sent < len(items):
            items, options = items[:sent], replace(options, send_initial_events=False)
        watcher = injection.watcher(watcher, sent)
    stream = Stream(request, watcher, form, options, scope.watchers)
    (scope.watches_in_process if form.in_process else scope.watches_of_clients).add(stream)
    return _answer(form, stream.frames(items, start), stream.attach if form.is_shared else None)


def _too_old(revision: int, oldest: int) -> StatusError:
    return new_resource_expired(f"too old resource version: {revision} ({oldest})")


# Upstream: pkg/endpoints/metrics/metrics.go.
_LABELS: Final = ("group", "resource", "version")
EVENTS: Final = Family("apiserver_watch_events_total", "Events sent to watches", _LABELS)
EVENT_SIZES: Final = Family(
    "apiserver_watch_events_sizes", "Bytes of events sent to watches", _LABELS, exponential(1024, 2, 8)
)


def _gzip_member(data: Piece) -> bytes:
    """A member of a gzip stream, flushed before its end: Go's reader waits for the next member before it hands on the last block."""
    compressor = zlib.compressobj(1, zlib.DEFLATED, _GZIP_WINDOW)
    return compressor.compress(data) + compressor.flush(zlib.Z_SYNC_FLUSH) + compressor.flush()


class NoSuchForm(Exception):
    """A client may ask for events in the form of a list, which doesn't exist: the stream ends with the first event."""


class Form:
    """Writes events with the whole object, its Table or its metadata. All but Tables are encoded once for all watchers and kept with
    the event."""

    def __init__(self, request: Request, scope: RequestScope, accept: Accept, *, compressed: bool = False) -> None:
        self._scope = scope
        self.compressed = compressed
        self.clock = scope.clock
        self.min_request_timeout = scope.min_request_timeout
        self.in_process = IN_PROCESS_USER in request.scope
        self.progress = request.watch = WatchProgress()
        self._instruments = scope.instruments
        gvr = scope.resource.gvr
        self._labels = (gvr.group, gvr.resource, gvr.version)
        self._accept = accept
        self._protobuf, self._cbor = accept.media_type == PROTOBUF, accept.media_type == CBOR
        self._key = (
            f"{scope.gvk.group_version}/{scope.gvk.kind} {accept.media_type} {accept.as_kind}/{accept.as_version}"
        )
        self._columns_sent = False
        self._counted: tuple[Counter[Values], Histogram] | None = None
        self._include = table.include_object(request) if accept.as_kind == "Table" else ""
        if accept.media_type == YAML:
            raise not_streamable(request.supported)
        self.content_type = PROTOBUF_STREAM if self._protobuf else CBOR_SEQUENCE if self._cbor else JSON

    @property
    def is_shared(self) -> bool:
        """Reports whether each event has one frame for all watchers of this form."""
        return self._accept.as_kind != "Table"

    def packed(self, frames: Sequence[Piece]) -> Sequence[Piece]:
        """Frames as they are sent: compressed ones are a member of the gzip stream of their own, as upstream flushes them."""
        return [_gzip_member(b"".join(frames))] if self.compressed and frames else frames

    def packed_events(self, events: list[Event], frames: Sequence[Piece]) -> Sequence[Piece]:
        """The frames of events as they are sent. Each is compressed once for all watchers."""
        if not self.compressed:
            return frames
        key = f"{self._key} gzip"
        for event, frame in zip(events, frames, strict=True):
            if key not in event.frames:
                event.frames[key] = _gzip_member(frame)
        return [event.frames[key] for event in events]

    def count(self, frames: Sequence[Piece]) -> None:
        """Counts frames that are sent."""
        if not frames:
            return
        self.progress.events += len(frames)
        if self._counted is None:
            instruments = self._instruments
            self._counted = instruments.counter(EVENTS), instruments.histogram(EVENT_SIZES, *self._labels)
        numbers, sizes = self._counted
        numbers[self._labels] += len(frames)
        for frame in frames:
            sizes.observe(len(frame))

    def event(self, event: Event) -> Piece:
        if not self.is_shared:
            return self._object(event.type, event.object)
        frame = event.frames.get(self._key)
        if frame is None:
            frame = event.frames[self._key] = self._object(event.type, event.object)
        return frame

    def added(self, item: StoredObject) -> Piece:
        return self._object("ADDED", item)

    def _object(self, kind: str, stored: StoredObject) -> Piece:
        if not self.is_shared:
            return self._transformed(kind, self._scope.internal(stored.value))
        if len(stored.value) < LARGE:
            return self._frame(kind, self._served(stored.value))
        return self._scope.frames.frame(kind, self._key, stored, lambda: self._frame(kind, self._served(stored.value)))

    def bookmark(self, revision: int, annotations: dict[str, str] | None = None) -> bytes:
        scope = self._scope
        assert scope.store is not None
        strategy = scope.store.strategy
        obj = scope.dialect.bookmark(scope)
        if strategy.blank_spec:
            obj["spec"] |= strategy.blank_spec
        obj["metadata"] = {"resourceVersion": str(revision)}
        if annotations or strategy.converted_annotations:
            obj["metadata"]["annotations"] = {**strategy.converted_annotations, **(annotations or {})}
        if self._accept.as_kind:
            return self._transformed("BOOKMARK", obj)
        return self._frame("BOOKMARK", self._encoded(scope.kind.arrange(scope.served_version(obj))))

    def error(self, status: Status) -> bytes:
        return self._frame("ERROR", self._encoded(status))

    def _transformed(self, kind: str, obj: Object) -> bytes:
        shown: Object
        version = self._accept.as_version
        if self._accept.as_kind == "Table":
            include = self._include
            if include == "None" and _INITIAL_EVENTS_END in (metadata(obj).get("annotations") or {}):
                include = "Metadata"
            shown = {
                "kind": "Table",
                "apiVersion": f"meta.k8s.io/{version}",
                "metadata": {"resourceVersion": metadata(obj).get("resourceVersion", "")},
                "columnDefinitions": self._scope.columns if self._wants_columns() else None,
                "rows": [table.row(self._scope, obj, include, version)],
            }
            self._columns_sent = True
        else:
            shown = table.partial_object(self._scope, obj, version)
        return self._frame(kind, self._encoded(shown))

    def _wants_columns(self) -> bool:
        """Reports whether the next Table has its columns: in the first event, and for some kinds in each."""
        store = self._scope.store
        return not self._columns_sent or (store is not None and store.strategy.repeats_columns)

    def _served(self, value: bytes) -> bytes:
        if self._accept.as_kind:
            form = self._scope.partial(self._accept.as_version)
            if self._cbor:
                return self._encoded(msgspec.json.decode(form.object(value)))
            return form.protobuf.object(value) if self._protobuf else form.object(value)
        if self._cbor:
            return self._scope.cbor.object(value)
        return self._scope.protobuf.object(value) if self._protobuf else self._scope.served(value)

    def _encoded(self, obj: Object) -> bytes:
        if self._protobuf:
            return protobuf_forms.encode(obj)
        if self._cbor:
            return cbor.encode(obj)
        return json.encode(obj)

    def _frame(self, kind: str, obj: bytes) -> bytes:
        if self._accept.as_kind == "PartialObjectMetadataList" and kind != "ERROR":
            raise NoSuchForm
        if self._protobuf:
            return protobuf.watch_frame(kind, obj)
        if self._cbor:
            return cbor.watch_frame(kind, obj)
        return b'{"type":"' + kind.encode() + b'","object":' + obj + b"}\n"


def _lifetime(timeout_seconds: int | None, minimum: int) -> float:
    """Returns the seconds that a watch lasts; negative if it ends before it begins.

    Go counts nanoseconds in 64 bits.
    """
    nanoseconds = (timeout_seconds or 0) * 1_000_000_000
    nanoseconds = (nanoseconds + 2**63) % 2**64 - 2**63
    # Not a secret: the random spread only keeps clients from reconnecting all at once.
    return nanoseconds / 1e9 if nanoseconds else minimum * (1 + random.random())


def _groups(items: list[_Item], size_of: Callable[[_Item], int]) -> list[list[_Item]]:
    """Divides events or objects into groups that make chunks of some bytes: for a slow client only one is held."""
    groups: list[list[_Item]] = []
    size = _CHUNK
    for item in items:
        if size >= _CHUNK:
            groups.append([])
            size = 0
        groups[-1].append(item)
        size += size_of(item)
    return groups


def _object_size(item: StoredObject) -> int:
    return len(item.value)


def _event_size(event: Event) -> int:
    return len(event.object.value)


class Stream:
    """A running watch: initial events, then batches of events with bookmarks in between, until the time is up, the client is gone or
    the watcher has fallen behind the history."""

    def __init__(
        self, request: Request, watcher: Watcher, form: Form, options: ListOptions, running: set[Watcher]
    ) -> None:
        self.request = request
        self._watcher = watcher
        self._form = form
        self._options = options
        self._running = running
        self._clock = form.clock
        self._lifetime = _lifetime(options.timeout_seconds, form.min_request_timeout)
        # The revision that the watch began at: bookmarks name newer ones.
        self._since = 0
        self._push: Push | None = None

    def attach(self, push: Push) -> None:
        """Lets events go straight to the connection, as long as the client takes them."""
        self._push = push
        if isinstance(self._watcher, BufferedWatcher):
            self._watcher.sink = self._pushed

    def _pushed(self, events: list[Event]) -> bool:
        """See storage.watch.Sink."""
        assert self._push is not None
        try:
            frames = list(map(self._form.event, events))
        except Exception:  # raised again where the reader makes the frames: there it ends the watch
            return False
        if not self._push(self._form.packed_events(events, frames)):
            return False
        self._sent(events)
        self._form.count(frames)
        return True

    def _sent(self, events: list[Event]) -> None:
        if self._form.progress.on_delivery is not None:
            self._form.progress.on_delivery([event.revision for event in events])

    def change_watcher(self, change: Callable[[Watcher], Watcher]) -> None:
        """Takes the next events from the watcher that `change` returns for the present one."""
        former, self._watcher = self._watcher, change(self._watcher)
        if isinstance(former, BufferedWatcher):
            former.sink = None
        former.wake()

    def end(self) -> None:
        """Ends the watch after what it has buffered."""
        self._watcher.end()

    async def frames(self, items: list[StoredObject], revision: int) -> AsyncGenerator[bytes, None]:
        watcher, progress = self._watcher, self._form.progress
        self._running.add(watcher)
        try:
            if self._lifetime < 0:
                progress.ended = "time"
                return
            self._since = revision
            end = self._clock.monotonic() + self._lifetime
            initial = self._initial(items, revision)
            del items  # a watch that waits holds no objects
            for chunk in initial:
                yield chunk
            async for chunk in self._live(end):
                yield chunk
        except NoSuchForm:
            return
        except (GeneratorExit, asyncio.CancelledError):
            progress.ended = progress.ended or "client"
            raise
        finally:
            progress.ended = progress.ended or "cut"
            self._running.discard(watcher)
            self._watcher.close()

    def _initial(self, items: list[StoredObject], revision: int) -> Iterator[bytes]:
        # The headers must be sent now, even without events, because clients wait for them.
        groups = _groups(items, _object_size) or [[]]
        for number, group in enumerate(groups, 1):
            frames: list[Piece] = list(map(self._form.added, group))
            if number == len(groups) and self._options.send_initial_events and self._options.allow_watch_bookmarks:
                frames.append(self._form.bookmark(revision, {_INITIAL_EVENTS_END: "true"}))
            yield from self._chunks(frames)

    def _changes(self, events: list[Event]) -> Iterator[bytes]:
        for group in _groups(events, _event_size):
            self._sent(group)
            yield from self._chunks(list(map(self._form.event, group)))

    async def _live(self, end: float) -> AsyncGenerator[bytes, None]:
        bookmark_at = self._next_bookmark(end)
        while True:
            now = self._clock.monotonic()
            if now >= end:
                self._form.progress.ended = "time"
                return
            try:
                events = await self._watcher.next_batch(min(end, bookmark_at) - now)
            except StatusError as error:
                self._form.progress.ended = "error"
                for chunk in self._chunks([self._form.error(error.status)]):
                    yield chunk
                return
            if events is None:
                self._form.progress.ended = "server"
                return  # fallen behind or shut down: a clean end, the client resumes from its last revision
            changes = self._changes(events)
            del events
            for chunk in changes:
                yield chunk
            if self._clock.monotonic() >= bookmark_at:
                bookmark_at = self._next_bookmark(end)
                # Also one whose revision an event had (upstream: cacheWatcher.process).
                if (progress := self._watcher.progress) > self._since:
                    for chunk in self._chunks([self._form.bookmark(progress)]):
                        yield chunk

    def _chunks(self, frames: Sequence[Piece]) -> Iterator[bytes]:
        """The chunks that send the frames. They are empty where the frames go straight to the connection, without a copy: an empty chunk
        waits until the client takes something."""
        self._form.count(frames)
        frames = self._form.packed(frames)
        if self._push is None:
            yield b"".join(frames)
            return
        while not self._push(frames):
            yield b""

    def _next_bookmark(self, end: float) -> float:
        """The time of the next bookmark: they come once a minute, and a last time shortly before `end`."""
        now = self._clock.monotonic()
        at = min(now + _BOOKMARK_PERIOD, end - _LAST_BOOKMARK)
        return at if self._options.allow_watch_bookmarks and at > now else inf
