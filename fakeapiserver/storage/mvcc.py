"""The multi-version core of every backend: pure, without asyncio, clock or locks.

Every write takes the next revision and is kept as a `Change` in the history. Lists at an older revision start from what is
stored now and undo the younger changes; watches that come late read the history. Compaction forgets changes from the front.

A worked example, history behind three writes and one compaction:

    revision  write                 objects             history
    2         create a              a@2                 [2: - -> a@2]
    3         update a              a@3                 [2: - -> a@2, 3: a@2 -> a@3]
    4         delete a              (none)              [2: ..., 3: ..., 4: a@3 -> -]
    list at 3: now is (none); undoing 4 brings a@3 back: [a@3]
    compact(3): history [4: a@3 -> -]; a list at 3 still works, a list at 2 is Compacted(3), a watch from 2 is Compacted(3)

Upstream: go.etcd.io/etcd/server/v3/storage/mvcc, k8s.io/apiserver/pkg/storage/cacher/watch_cache.go.
"""

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import islice
from operator import attrgetter
from typing import Final

from msgspec import Struct, structs

from fakeapiserver.storage.bucket import Bucket
from fakeapiserver.storage.interface import (
    EVERYTHING,
    Compacted,
    Index,
    KeyExists,
    KeyNotFound,
    ListQuery,
    ListResult,
    ResourceVersionConflict,
    ResourceVersionTooLarge,
    StoredObject,
)
from fakeapiserver.storage.keys import resource_of
from fakeapiserver.storage.versioner import restamp, stamp

# Bounds of the history; upstream's ring holds up to 102,400 events of each resource.
MAX_HISTORY_EVENTS: Final = 100_000
MAX_HISTORY_BYTES: Final = 64 * 1024 * 1024
# Objects of a list that are gathered at once, and keys that are sorted at once: some milliseconds.
_GATHERED_AT_ONCE: Final = 20_000
_SORTED_AT_ONCE: Final = 5_000
# In the place of an object that was deleted meanwhile.
_GONE: Final = StoredObject("", b"", 0, 0, Index(), 0)
# The prefixes of resources are few, unlike keys, and their generations are asked for dozens of times in each write.
_revision_of: Final = attrgetter("revision")
_resource_of_prefix: Final = lru_cache(maxsize=4096)(resource_of)


class Change(Struct, frozen=True, gc=False):
    """A write. `current` is None for a deletion; `tombstone` is then the last state stamped with the deletion's revision."""

    revision: int
    key: str
    previous: StoredObject | None
    current: StoredObject | None
    tombstone: StoredObject | None = None

    @property
    def size(self) -> int:
        """Bytes that only the history keeps alive."""
        previous = 0 if self.previous is None else len(self.previous.value)
        return previous if self.tombstone is None else previous + len(self.tombstone.value)


def creation(key: str, value: bytes, offset: int, index: Index, revision: int) -> Change:
    """The change that stores a new object."""
    stored = StoredObject(key, stamp(value, offset, revision), revision, revision, index, offset)
    return Change(revision, key, None, stored)


def replacement(previous: StoredObject, value: bytes, offset: int, index: Index, revision: int) -> Change:
    """The change that stores another state of an object."""
    created = previous.create_revision
    stored = StoredObject(previous.key, stamp(value, offset, revision), revision, created, index, offset)
    return Change(revision, previous.key, previous, stored)


def removal(last: StoredObject, revision: int) -> Change:
    """The change that deletes an object."""
    value = restamp(last.value, last.offset, revision)
    tombstone = StoredObject(last.key, value, revision, last.create_revision, last.index, last.offset)
    return Change(revision, last.key, last, None, tombstone)


def expected(stored: StoredObject | None, key: str, revision: int | None) -> StoredObject:
    """The object that a compare-and-swap starts from. Raises KeyNotFound, and ResourceVersionConflict unless it is at `revision`."""
    if stored is None:
        raise KeyNotFound(key)
    if revision is not None and stored.mod_revision != revision:
        raise ResourceVersionConflict(stored)
    return stored


class Snapshot(Struct, frozen=True):
    """Everything that is stored at one moment; cheap, since stored objects never change."""

    buckets: dict[str, dict[str, StoredObject]]

    def __repr__(self) -> str:
        """The number of objects without their values, since some are Secrets."""
        return f"<Snapshot of {sum(map(len, self.buckets.values()))} objects>"


def page(keys: list[str], objects: Mapping[str, StoredObject], revision: int, query: ListQuery) -> ListResult:
    """The objects of these keys that the query selects, up to its limit."""
    limit, predicate = query.limit, query.predicate
    if not limit:
        selected = [objects[key] for key in keys]
        return ListResult([item for item in selected if predicate(item)] if predicate else selected, revision)
    if predicate is None:
        first = [objects[key] for key in keys[:limit]]
        return ListResult(first, revision, len(keys) - len(first), len(keys) > limit)
    first = []
    for i, key in enumerate(keys, 1):
        if predicate(objects[key]):
            first.append(objects[key])
            if len(first) == limit:
                # Whether what follows is selected is not looked at: the next page may be empty, as upstream's.
                return ListResult(first, revision, len(keys) - limit, i < len(keys))
    return ListResult(first, revision)


class MVCC:
    """`max_events` and `max_bytes` bound the history."""

    def __init__(self, max_events: int = MAX_HISTORY_EVENTS, max_bytes: int = MAX_HISTORY_BYTES) -> None:
        self.revision = 1
        # The oldest revision a list can show and a watch can start behind.
        self.compacted = 1
        self._buckets: dict[str, Bucket] = {}
        self._history: deque[Change] = deque()
        self._bytes = 0
        self._max_events = max_events
        self._max_bytes = max_bytes

    # ----------------------------------------------------------------- writes

    def create(self, key: str, value: bytes, offset: int, index: Index) -> Change:
        if self.get(key) is not None:
            raise KeyExists(key)
        return self.commit(creation(key, value, offset, index, self.revision + 1))

    def update(self, key: str, value: bytes, offset: int, index: Index, expected_revision: int) -> Change:
        previous = expected(self.get(key), key, expected_revision)
        return self.commit(replacement(previous, value, offset, index, self.revision + 1))

    def delete(self, key: str, expected_revision: int | None) -> Change:
        return self.commit(removal(expected(self.get(key), key, expected_revision), self.revision + 1))

    def commit(self, change: Change) -> Change:
        """Takes a change that was decided before, with a revision above the newest."""
        bucket = self._bucket(change.key)
        if change.current is not None:
            bucket.put(change.current)
        else:
            bucket.remove(change.key)
        self.revision = bucket.generation = change.revision
        self._history.append(change)
        self._bytes += change.size
        while len(self._history) > self._max_events or self._bytes > self._max_bytes:
            self._forget()
        return change

    def compact(self, revision: int) -> None:
        """Forgets the history up to `revision`. Raises ResourceVersionTooLarge if `revision` doesn't exist yet."""
        if revision > self.revision:
            raise ResourceVersionTooLarge(self.revision)
        while self._history and self._history[0].revision <= revision:
            self._forget()
        self.compacted = max(self.compacted, revision)

    def _forget(self) -> None:
        change = self._history.popleft()
        self._bytes -= change.size
        self.compacted = change.revision

    # ------------------------------------------------------------------ reads

    def get(self, key: str) -> StoredObject | None:
        bucket = self._buckets.get(resource_of(key))
        return bucket.objects.get(key) if bucket is not None else None

    def generation(self, prefix: str) -> int:
        bucket = self._buckets.get(_resource_of_prefix(prefix))
        return bucket.generation if bucket is not None else 0

    def range(self, prefix: str, query: ListQuery = EVERYTHING) -> ListResult:
        revision, start = query.revision, query.start
        if query.limit and query.predicate is None:
            return self._page(prefix, query)
        if revision and revision != self.revision:
            keys, objects = self._at(prefix, revision, start)
        else:
            bucket = self._bucket(prefix)
            keys, objects, revision = bucket.below(prefix, start), bucket.objects, self.revision
        return page(keys, objects, revision, query)

    def gather(self, query: ListQuery, prefix: str, items: list[StoredObject]) -> Iterator[None]:
        """Fills `items` with the objects that `range` returns for the present, or if the query selects by labels that are indexed, with
        those among them that the index has. Yields in between, when others may write. Raises Compacted if the history has forgotten
        what they have written."""
        revision, bucket, labels = self.revision, self._bucket(prefix), query.labels
        objects, keys, gathered = bucket.objects, bucket.below(prefix, query.start), list[str]()
        labelled = bucket.with_labels(labels) if labels else None
        among = None if labelled is None else {*labelled}
        for at in range(0, len(keys), _GATHERED_AT_ONCE):
            if at:
                yield
            some = keys[at : at + _GATHERED_AT_ONCE]
            if among is not None:
                some = [key for key in some if key in among]
            gathered += some
            is_unchanged = self.revision == revision
            items += [objects[key] for key in some] if is_unchanged else [objects.get(key, _GONE) for key in some]
        if self.revision != revision:
            for key, state in self._undone(prefix, revision).items():
                place = bisect_left(gathered, key)
                if state is not None and place < len(gathered) and gathered[place] == key:
                    items[place] = state

    def index_labels(self, prefix: str, labels: Mapping[str, str]) -> Iterator[None]:
        """Indexes the resource's objects by these labels. Yields in between, when others may write."""
        bucket = self._bucket(prefix)
        for name in labels:
            yield from bucket.index(name)

    def with_labels(self, prefix: str, labels: Mapping[str, str]) -> list[StoredObject] | None:
        """Objects below the prefix, in the order of their keys, among which are all with these labels; None if an index doesn't help,
        and if it finds more than may be sorted at once."""
        bucket = self._bucket(prefix)
        keys = bucket.with_labels(labels)
        if keys is None or len(keys) > _SORTED_AT_ONCE:
            return None
        return [bucket.objects[key] for key in sorted(keys) if key.startswith(prefix)]

    def _page(self, prefix: str, query: ListQuery) -> ListResult:
        """A page without a predicate. Only as many keys are looked at as it has, so that all pages of a list are linear together."""
        revision, bucket, limit = query.revision or self.revision, self._bucket(prefix), query.limit
        places = bucket.places(prefix, query.start)
        undone = self._undone(prefix, revision)
        if not undone:
            items = [bucket.objects[key] for key in bucket.keys[places.start : min(places.stop, places.start + limit)]]
            return ListResult(items, revision, len(places) - len(items), len(places) > limit)
        then = {key: state for key, state in undone.items() if key >= query.start}
        gone = [key for key, state in then.items() if state is not None and key not in bucket.objects]
        later = {key for key, state in then.items() if state is None and key in bucket.objects}
        # Among so many of the present keys are enough that were there then.
        present = bucket.keys[places.start : min(places.stop, places.start + limit + len(later))]
        keys = sorted([*(key for key in present if key not in later), *gone])[:limit]
        items = [then.get(key) or bucket.objects[key] for key in keys]
        remaining = len(places) - len(later) + len(gone) - len(items)
        return ListResult(items, revision, remaining, remaining > 0)

    def _at(self, prefix: str, revision: int, start: str) -> tuple[list[str], dict[str, StoredObject]]:
        """The state at an older revision: the present with the younger changes undone."""
        objects = {key: stored for key, stored in self._bucket(prefix).objects.items() if key.startswith(prefix)}
        for key, before in self._undone(prefix, revision).items():
            if before is None:
                objects.pop(key, None)
            else:
                objects[key] = before
        return sorted(key for key in objects if key >= start), objects

    def _undone(self, prefix: str, revision: int) -> dict[str, StoredObject | None]:
        """The states at `revision` of the objects below the prefix that have changed since; None: an object wasn't there yet."""
        self.check_known(revision)
        states: dict[str, StoredObject | None] = {}
        for change in reversed(self._history):
            if change.revision <= revision:
                break
            if change.key.startswith(prefix):
                states[change.key] = change.previous
        return states

    def check_known(self, revision: int) -> None:
        """Raises Compacted or ResourceVersionTooLarge for a revision whose state isn't known."""
        if revision < self.compacted:
            raise Compacted(self.compacted)
        if revision > self.revision:
            raise ResourceVersionTooLarge(self.revision)

    def check_watchable(self, revision: int) -> None:
        """Raises Compacted if the history after `revision` is forgotten."""
        if revision < self.compacted:
            raise Compacted(self.compacted)

    def changes_after(self, revision: int) -> Iterator[Change]:
        """The history after `revision`, in order. Raises Compacted if its beginning is forgotten."""
        self.check_watchable(revision)
        known = bisect_right(self._history, revision, key=_revision_of)
        return reversed(list(islice(reversed(self._history), len(self._history) - known)))

    # -------------------------------------------------------------- snapshots

    def snapshot(self) -> Snapshot:
        return Snapshot({name: dict(bucket.objects) for name, bucket in self._buckets.items()})

    def restore(self, snapshot: Snapshot, least: int = 0) -> None:
        """Brings that state back. The revision rises, to more than `least`, and the history is forgotten, so watches must start again."""
        self.revision = max(self.revision, least) + 1
        self._history.clear()
        self._bytes = 0
        self.compacted = self.revision
        # Resources that the snapshot doesn't know stay as empty buckets: generations never go back.
        known = {name: dict[str, StoredObject]() for name in self._buckets} | snapshot.buckets
        self._buckets = {
            name: Bucket(dict(stored), sorted(stored), [], self.revision) for name, stored in known.items()
        }

    def adopt(self, objects: Iterable[StoredObject], revision: int) -> None:
        """Stores objects of another storage with their revisions, of which `revision` is the newest. Where several objects have one
        revision, the first of these keeps it, and the others, like the objects that are here already, get new ones. The revision rises
        above all and the history is forgotten, so watches must start again."""
        self.revision = max(self.revision, revision)
        adopted = {stored.key: stored for stored in objects}
        here = [stored for bucket in self._buckets.values() for stored in bucket.objects.values()]
        taken: set[int] = set()
        for stored in (*adopted.values(), *(stored for stored in here if stored.key not in adopted)):
            self._bucket(stored.key).put(self._moved(stored) if stored.mod_revision in taken else stored)
            taken.add(stored.mod_revision)
        self.revision += 1
        self._history.clear()
        self._bytes = 0
        self.compacted = self.revision
        for bucket in self._buckets.values():
            bucket.generation = self.revision

    def _moved(self, stored: StoredObject) -> StoredObject:
        """The object at a new revision."""
        self.revision += 1
        value = restamp(stored.value, stored.offset, self.revision)
        return structs.replace(stored, value=value, mod_revision=self.revision)

    def replace(self, objects: Iterable[StoredObject], revision: int) -> None:
        """Takes what another storage has at `revision`, in place of everything. The history is forgotten, so watches must start again."""
        self.revision = self.compacted = revision
        self._history.clear()
        self._bytes = 0
        self._buckets = {name: Bucket() for name in self._buckets}
        for stored in objects:
            self._bucket(stored.key).put(stored)
        for bucket in self._buckets.values():
            bucket.generation = revision

    def put_form(self, stored: StoredObject) -> None:
        """Gives a stored object another value and index, of the same revision."""
        self._bucket(stored.key).put(stored)

    def revert(self, snapshot: Snapshot) -> Iterator[Change]:
        """Brings that state back by writes, one for each object that differs, so that a watch sees how it comes about."""
        for name in [*self._buckets.keys() | snapshot.buckets.keys()]:
            then = snapshot.buckets.get(name, {})
            now = self._buckets[name].objects if name in self._buckets else {}
            for key in [key for key in now if key not in then]:
                yield self.delete(key, None)
            for key, stored in then.items():
                previous = self.get(key)
                if previous is None or restamp(stored.value, stored.offset, previous.mod_revision) != previous.value:
                    revision = self.revision + 1
                    value = restamp(stored.value, stored.offset, revision)
                    current = StoredObject(key, value, revision, stored.create_revision, stored.index, stored.offset)
                    yield self.commit(Change(revision, key, previous, current))

    def base(self) -> list[StoredObject]:
        """The objects from which the history starts: those of the oldest known revision."""
        objects = {key: stored for bucket in self._buckets.values() for key, stored in bucket.objects.items()}
        for change in reversed(self._history):
            if change.previous is None:
                objects.pop(change.key, None)
            else:
                objects[change.key] = change.previous
        return [*objects.values()]

    def load(
        self, base: list[StoredObject], compacted: int, changes: Iterator[tuple[StoredObject, bool]], revision: int
    ) -> None:
        """Fills an empty storage with the objects of the revision `compacted`, and then with each later change: the object's state, and
        whether the change deletes it. Raises ValueError if the revisions of changes don't rise to `revision`, KeyNotFound."""
        self.revision = self.compacted = compacted
        for stored in base:
            bucket = self._bucket(stored.key)
            bucket.put(stored)
            bucket.generation = compacted
        for state, deletes in changes:
            if not self.revision < state.mod_revision <= revision:
                raise ValueError(f"revision {state.mod_revision} follows {self.revision}, and {revision} is the newest")
            previous = self.get(state.key)
            if deletes and previous is None:
                raise KeyNotFound(state.key)
            current, tombstone = (None, state) if deletes else (state, None)
            self.commit(Change(state.mod_revision, state.key, previous, current, tombstone))
        self.revision = max(self.revision, revision)

    def fork(self) -> "MVCC":
        """A copy with the same revision and history, which goes its own way. Stored objects and changes are shared, since they never
        change."""
        copy = MVCC(self._max_events, self._max_bytes)
        copy.revision, copy.compacted, copy._bytes = self.revision, self.compacted, self._bytes
        copy._history = self._history.copy()
        copy._buckets = {
            name: Bucket({**bucket.objects}, [*bucket.keys], [*bucket.unsorted], bucket.generation)
            for name, bucket in self._buckets.items()
        }
        return copy

    def _bucket(self, key: str) -> Bucket:
        name = resource_of(key)
        bucket = self._buckets.get(name)
        if bucket is None:
            bucket = self._buckets[name] = Bucket()
        return bucket
