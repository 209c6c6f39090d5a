"""Conversion of custom resources by a webhook, and their storage as one of their versions sees it.

Each served version has a `ConvertedStorage` of its own over the storage that all share, so that whatever works with the objects
has them in that version and knows nothing of the webhook; the webhook is asked where objects are read and written. What was converted
is kept while the object stays as it is: that is what lists and watches show.

Two things want an object in yet another version: owners of fields who wrote in it, and admission webhooks. Owners are
worked out by code that can't wait. It runs with `Converter.settled`, which starts it over whenever it has asked for a
conversion that isn't there yet.

Upstream: k8s.io/apiextensions-apiserver/pkg/apiserver/{conversion,customresource_handler.go (crdConversionRESTOptionsGetter)},
k8s.io/apiserver/pkg/storage/{etcd3/store.go,cacher/cacher.go}.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from fakeapiserver.apimachinery.errors import StatusError, new_internal_error
from fakeapiserver.apimachinery.gvk import GroupResource, GroupVersionKind
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.apimachinery.serializer import json
from fakeapiserver.chance import UNSEEDED, Chance
from fakeapiserver.clock import Clock
from fakeapiserver.effort import computed
from fakeapiserver.registry.apiextensions import conversion_review
from fakeapiserver.registry.apiextensions.conversion_review import ConversionError
from fakeapiserver.registry.apiextensions.custom_kind import CustomKind
from fakeapiserver.registry.generic import canonical
from fakeapiserver.registry.generic.canonical import Encoded, encode_custom
from fakeapiserver.registry.generic.interfaces import (
    NotConverted,
    corrupt_list,
    corrupt_object,
    undecodable,
    unready_cache,
)
from fakeapiserver.storage.interface import (
    EVERYTHING,
    Event,
    Index,
    ListQuery,
    ListResult,
    Predicate,
    Storage,
    StoredObject,
    Watcher,
)
from fakeapiserver.storage.keys import ROOT
from fakeapiserver.storage.versioner import restamp, stamp
from fakeapiserver.storage.watch import selected_event
from fakeapiserver.transport.webhook import Endpoint, WebhookError

# The timeout of webhooks in seconds (upstream uses client-go's default).
_TIMEOUT: Final = 30
_AT_ONCE: Final = 16
# How many objects that can't be converted the error of a list names.
_CORRUPT_SHOWN: Final = 100
# How many converted events are kept for watchers that haven't read them yet.
_KEPT_EVENTS: Final = 256
# Seconds for which a cache tries again to take an event in, and stays as it is meanwhile.
_RETRIED: Final = 30.0
_KEPT_FAILURES: Final = 1000

_Items = list[StoredObject]
_Known = dict[tuple[bytes, str], Object | ConversionError]
# What the step that runs may ask for; None between steps.
_known: Final[ContextVar[_Known | None]] = ContextVar("conversions", default=None)
Post = Callable[[Endpoint, bytes, int], Awaitable[bytes]]


class _Missing(BaseException):
    """A conversion that a step needs. Not an error: `Converter.settled` catches it, and nothing in between may."""

    def __init__(self, key: tuple[bytes, str], obj: Object, gvk: GroupVersionKind) -> None:
        self.key, self.obj, self.gvk = key, obj, gvk


class Converter:
    """Calls one definition's webhook."""

    def __init__(
        self, endpoint: Endpoint, review_versions: Sequence[str], post: Post, chance: Chance = UNSEEDED
    ) -> None:
        self._chance = chance
        self._endpoint = endpoint
        self._review_versions = list(review_versions)
        self._post = post

    async def convert(self, obj: Object, gvk: GroupVersionKind) -> Object:
        """Returns a new object in the requested version. Raises ConversionError."""
        if obj["apiVersion"] == str(gvk.group_version):
            return obj
        version, uid = conversion_review.version_of(self._review_versions), self._chance.uid("conversion")
        question = conversion_review.review(uid, version, obj, gvk.group_version)
        try:
            answer = await self._post(self._endpoint, question, _TIMEOUT)
        except WebhookError as error:
            raise ConversionError(f"{conversion_review.shown(obj)} failed: {error}") from None
        return conversion_review.converted(answer, uid, version, obj, gvk.group_version)

    async def settled(self, step: Callable[[], Object], size: int) -> Object:
        """Returns the result of `step`, a pure function that converts objects of about `size` bytes with `at_once` and is run again
        after each conversion."""
        known: _Known = {}
        while True:
            token = _known.set(known)
            try:
                return await computed(step, size)
            except _Missing as missing:
                missing_conversions = missing
            finally:
                _known.reset(token)
            try:
                known[missing_conversions.key] = await self.convert(missing_conversions.obj, missing_conversions.gvk)
            except ConversionError as error:
                known[missing_conversions.key] = error

    def at_once(self, obj: Object, gvk: GroupVersionKind) -> Object:
        """Converts an object within a step of `settled`. Raises ValueError if the conversion fails."""
        conversions = _known.get()
        if conversions is None:
            raise new_internal_error(f"no conversion to {gvk} without waiting")
        key = (json.encode(obj), gvk.version)
        converted = conversions.get(key)
        if converted is None:
            raise _Missing(key, obj, gvk)
        if isinstance(converted, ConversionError):
            raise ValueError(str(converted))
        return converted


class ConvertedStorage(Struct, kw_only=True, eq=False):
    """The storage as the version `gvk` sees it, which may be the one that is written (`stored`).

    Objects say in their index which version they are stored in. `kinds` are all versions', `index` makes an object's index;
    what this version has stored before the revision `outdated_before` was stored under an earlier schema. `running` has the
    conversions that outlive the request that began them. Upstream fills its cache with what there is at the revision `since`, and
    follows the events from there on."""

    inner: Storage
    gvk: GroupVersionKind
    stored: GroupVersionKind
    kinds: Mapping[str, CustomKind]
    converter: Converter
    outdated_before: int
    running: set["asyncio.Future[StoredObject]"]
    clock: Clock
    since: int
    resource: GroupResource
    # Whether errors call unconverted objects corrupt, as where such objects may be deleted (AllowUnsafeMalformedObjectDeletion).
    calls_corrupt: bool = False
    # The kind of upstream's cache in errors; 1.37 doesn't know it.
    cached_kind: str = "<unspecified>"
    index: Callable[[Object], Index] = lambda obj: Index()
    siblings: Sequence["ConvertedStorage"] = ()
    # By key: the revision that was converted, and the conversion, done or on its way.
    _converted: dict[str, tuple[int, "asyncio.Future[StoredObject]"]] = field(default_factory=dict)
    _events: dict[int, Event] = field(default_factory=dict)
    # By revision: when an object couldn't be converted first.
    _failures: dict[int, float] = field(default_factory=dict)
    _unready_since: float | None = None

    # ------------------------------------------------------------------- writes

    async def create(self, key: str, value: bytes, offset: int, index: Index) -> StoredObject:
        encoded, index = await self._encoded(Encoded(value, offset), index)
        return await self._written(await self.inner.create(key, encoded.value, encoded.offset, index))

    async def update(
        self, key: str, value: bytes, offset: int, index: Index, *, expected_revision: int
    ) -> StoredObject:
        encoded, index = await self._encoded(Encoded(value, offset), index)
        current = self.inner.get_now(key)
        if current is not None and current.mod_revision == expected_revision and self._is_same(current, encoded.value):
            return await self._read(current)
        stored = await self.inner.update(key, encoded.value, encoded.offset, index, expected_revision=expected_revision)
        return await self._written(stored)

    async def delete(self, key: str, *, expected_revision: int | None = None) -> StoredObject:
        last = self.inner.get_now(key)
        converted = await self._shown(last) if last is not None else None
        removed = await self.inner.delete(key, expected_revision=expected_revision)
        for storage in (self, *self.siblings):
            storage._converted.pop(key, None)
        if converted is None or last is None or expected_revision not in (None, last.mod_revision):
            return await self._read(removed)
        return _at(converted, removed.mod_revision)

    async def rehearsed(self, encoded: Encoded) -> Encoded:
        """Returns the stored form that a write of these bytes would be answered with, for a dry run."""
        encoded, index = await self._encoded(encoded, Index(version=self.stored.version))
        unstored = StoredObject("", stamp(encoded.value, encoded.offset, 0), 0, 0, index, encoded.offset)
        read_back = canonical.decode((await self._read(unstored)).value, self.gvk)
        return encode_custom(read_back)

    async def _encoded(self, encoded: Encoded, index: Index) -> tuple[Encoded, Index]:
        """The bytes of this version as they are stored."""
        if self.gvk == self.stored:
            return encoded, index
        value = encoded.value
        obj = canonical.decode(value, self.gvk)
        metadata(obj).pop("resourceVersion", None)
        try:
            obj = await self._convert(obj, self.stored)
        except ConversionError as error:
            raise NotConverted(str(error), 0) from None
        # Upstream does so whenever it is read.
        self.kinds[self.stored.version].structural.default(obj)
        return encode_custom(obj), replace(self.index(obj), version=self.stored.version)

    def _is_same(self, current: StoredObject, value: bytes) -> bool:
        """Reports whether a write would change nothing, or only fields that the stored version lacks."""
        if self.gvk == self.stored or current.index.version != self.stored.version:
            return False
        stored = canonical.decode(current.value, self.stored)
        metadata(stored).pop("resourceVersion", None)
        return stored == canonical.decode(value, self.stored)

    async def _written(self, stored: StoredObject) -> StoredObject:
        """Converts a written object to the other versions as well, in advance."""
        for storage in self.siblings:
            if storage._is_foreign(stored):
                storage._conversion(stored)
        return await self._shown(stored)

    # -------------------------------------------------------------------- reads

    @property
    def revision(self) -> int:
        return self.inner.revision

    def generation(self, prefix: str) -> int:
        return self.inner.generation(prefix)

    async def get(self, key: str, *, minimum_revision: int | None = None) -> StoredObject | None:
        stored = await self.inner.get(key, minimum_revision=minimum_revision)
        try:
            return stored and await self._read(stored)
        except NotConverted as error:
            if not self.calls_corrupt:
                raise
            raise new_internal_error(corrupt_object(key.removeprefix(ROOT), error.message)) from None

    async def get_for_update(self, key: str, *, newest: bool = False) -> StoredObject | None:
        """Returns the object if it can be converted back as well, which upstream does to compare with the stored object."""
        stored = await self.inner.get_for_update(key, newest=newest)
        if stored is None or self._at_hand(stored) is stored:
            return stored and await self._read(stored)
        converted = await self._shown(stored)
        await self._encoded(Encoded(converted.value, converted.offset), converted.index)
        return converted

    async def is_newest(self, stored: StoredObject) -> bool:
        return await self.inner.is_newest(stored)

    async def list(self, prefix: str, query: ListQuery = EVERYTHING) -> ListResult:
        try:
            if query.predicate is None:
                stored = await self.inner.list(prefix, query)
                listed = replace(stored, items=await self._all(stored.items))
            else:
                listed = await self._selected(prefix, query, query.predicate)
        except NotConverted as error:
            shown = await self._corrupt_list(prefix, query, error) if self.calls_corrupt else error
            shown.unready = self._unready(shown)
            raise shown from None
        self._unready_since = None
        return listed

    async def _selected(self, prefix: str, query: ListQuery, predicate: Predicate) -> ListResult:
        """The objects that the predicate selects, which has to see them converted."""
        limit = query.limit
        stored = await self.inner.list(prefix, replace(query, limit=0, predicate=None))
        page: _Items = []
        for begin in range(0, len(stored.items), _AT_ONCE):
            for i, item in enumerate(await self._all(stored.items[begin : begin + _AT_ONCE]), begin + 1):
                if predicate(item):
                    page.append(item)
                    if len(page) == limit:
                        return ListResult(page, stored.revision, len(stored.items) - limit, i < len(stored.items))
        return ListResult(page, stored.revision)

    def _unready(self, error: NotConverted) -> StatusError | None:
        """Returns upstream's error while its cache isn't filled, or None while the cache still retries an event."""
        now = self.clock.monotonic()
        if error.revision > self.since and now - self._failures.get(error.revision, now) <= _RETRIED:
            return None
        if self._unready_since is None:
            self._unready_since = now
        return unready_cache(self.cached_kind, error.status["message"], now - self._unready_since)

    async def _all(self, items: Sequence[StoredObject]) -> _Items:
        out: _Items = []
        for begin in range(0, len(items), _AT_ONCE):
            chunk = items[begin : begin + _AT_ONCE]
            out += await asyncio.gather(*map(self._shown, chunk))
        return out

    async def _corrupt_list(self, prefix: str, query: ListQuery, first: NotConverted) -> NotConverted:
        """Returns the error of a list, which upstream then reads from the storage: there, all objects are converted again until as many
        as the limit are."""
        stored = await self.inner.list(prefix, replace(query, limit=0, predicate=None))
        corrupt: dict[str, str] = {}
        converted = 0
        for item in stored.items:
            try:
                await self._read(item)
                converted += 1
            except NotConverted as error:
                corrupt[item.key] = corrupt_object(item.key, error.message)
            if converted == query.limit > 0 or len(corrupt) == _CORRUPT_SHOWN:
                break
        return NotConverted("", first.revision, corrupt_list(self.resource, corrupt)) if corrupt else first

    def watch(self, prefix: str, *, revision: int | None = None, predicate: Predicate | None = None) -> Watcher:
        return _ConvertedWatcher(self, self.inner.watch(prefix, revision=revision, predicate=None), predicate)

    def get_now(self, key: str) -> StoredObject | None:
        """Returns the object, in its stored version if it isn't converted yet."""
        stored = self.inner.get_now(key)
        return stored and self._at_hand(stored)

    async def delivered(self, key: str) -> None:
        await self.inner.delivered(key)

    async def catch_up(self) -> None:
        await self.inner.catch_up()

    def list_now(self, prefix: str) -> ListResult:
        stored = self.inner.list_now(prefix)
        return replace(stored, items=[self._at_hand(item) for item in stored.items])

    def changes_now(self, revision: int) -> Iterable[tuple[StoredObject | None, StoredObject | None]]:
        return self.inner.changes_now(revision)

    def close(self) -> None:
        """Does nothing: the inner storage is closed by its owner."""

    async def event(self, event: Event, *, selects: bool) -> Event:
        """The event in this version, one for all watchers. `selects`: the state before is converted as well."""
        converted = self._events.get(event.revision)
        if converted is None:
            if event.type == "DELETED" and event.previous is not None:
                obj = _at(await self._shown(event.previous), event.revision)
            else:
                obj = await self._shown(event.object)
            converted = self._events.setdefault(event.revision, Event(event.type, obj, None, event.revision))
            if len(self._events) > _KEPT_EVENTS:
                del self._events[next(iter(self._events))]
        if selects and converted.previous is None and event.previous is not None:
            converted.previous = await self._shown(event.previous)
        return converted

    # ------------------------------------------------------------- conversions

    def _is_foreign(self, item: StoredObject) -> bool:
        return item.index.version != self.gvk.version

    def _at_hand(self, item: StoredObject) -> StoredObject:
        revision, conversion = self._converted.get(item.key, (0, None))
        if conversion is None or revision != item.mod_revision or not conversion.done():
            return item
        return conversion.result()

    async def _shown(self, item: StoredObject) -> StoredObject:
        """The object in this version, converted once until it changes. Raises NotConverted."""
        if not self._is_foreign(item):
            return await self._read(item)
        # Others may wait for it, too.
        return await asyncio.shield(self._conversion(item))

    def _conversion(self, item: StoredObject) -> "asyncio.Future[StoredObject]":
        revision, conversion = self._converted.get(item.key, (0, None))
        if conversion is not None and revision == item.mod_revision:
            return conversion
        conversion = asyncio.ensure_future(self._read(item))
        self.running.add(conversion)
        conversion.add_done_callback(self.running.discard)
        if revision > item.mod_revision:
            return conversion  # an older state, for a watch or a list of the past
        self._converted[item.key] = item.mod_revision, conversion

        def keep_success(done: "asyncio.Future[StoredObject]") -> None:
            failed = done.cancelled() or done.exception() is not None
            if failed and self._converted.get(item.key, (0, None))[1] is done:
                del self._converted[item.key]
            if failed and not done.cancelled():
                self._failures.setdefault(item.mod_revision, self.clock.monotonic())
                if len(self._failures) > _KEPT_FAILURES:
                    del self._failures[next(iter(self._failures))]

        conversion.add_done_callback(keep_success)
        return conversion

    async def _read(self, item: StoredObject) -> StoredObject:
        """Stored bytes as this version has them. NotConverted."""
        if not self._is_foreign(item) and item.mod_revision >= self.outdated_before:
            return item
        kind = self.kinds.get(item.index.version)
        if kind is None:
            api_version = f"{self.gvk.group}/{item.index.version}"
            raise self._unread(f"request to convert CR from an invalid group/version: {api_version}", item)
        obj = canonical.decode(item.value, kind.gvk)
        del obj["metadata"]["resourceVersion"]
        kind.structural.prune(obj)
        kind.structural.default(obj)
        if self._is_foreign(item):
            try:
                obj = await self._convert(obj, self.gvk)
            except ConversionError as error:
                raise self._unread(str(error), item) from None
        encoded = encode_custom(obj)
        value = stamp(encoded.value, encoded.offset, item.mod_revision)
        index = replace(self.index(obj), version=item.index.version)
        return replace(item, value=value, index=index, offset=encoded.offset)

    def _unread(self, why: str, item: StoredObject) -> NotConverted:
        revision = item.mod_revision
        return NotConverted(undecodable(why, revision) if self.calls_corrupt else why, revision)

    async def _convert(self, obj: Object, gvk: GroupVersionKind) -> Object:
        """Raises ConversionError."""
        converted = await self.converter.convert(obj, gvk)
        self.kinds[gvk.version].structural.prune(converted)
        return converted


def _at(item: StoredObject, revision: int) -> StoredObject:
    """The same state at a later revision: a deletion's."""
    return replace(item, value=restamp(item.value, item.offset, revision), mod_revision=revision)


class _ConvertedWatcher:
    """A watch that ends in front of the first event that can't be converted, as upstream's do when its cache starts over."""

    def __init__(self, storage: ConvertedStorage, inner: Watcher, predicate: Predicate | None) -> None:
        self._storage = storage
        self._inner = inner
        self._predicate = predicate
        self._ended = False

    @property
    def progress(self) -> int:
        return self._inner.progress

    async def next_batch(self, timeout: float) -> list[Event] | None:
        if self._ended:
            return None
        events = await self._inner.next_batch(timeout)
        if not events:
            return events
        batch: list[Event] = []
        for event in events:
            try:
                converted: Event | None = await self._storage.event(event, selects=self._predicate is not None)
            except NotConverted:
                self._ended = True
                self._inner.close()
                return batch or None
            if self._predicate is not None and converted is not None:
                converted = selected_event(converted, self._predicate)
            if converted is not None:
                batch.append(converted)
        return batch

    def wake(self) -> None:
        self._inner.wake()

    def end(self) -> None:
        self._inner.end()

    def close(self) -> None:
        self._inner.close()
