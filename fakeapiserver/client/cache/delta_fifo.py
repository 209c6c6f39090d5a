"""A queue of keys, each with the changes of its object that have not been processed yet, in order.

A reflector can fill the queue for a consumer that processes changes at its own pace. A SharedInformer does not need it: like upstream's
since 1.33, it passes changes on in the order in which they came, whatever their keys, and in an event loop it can do so at once.

Pure: nothing here waits. Upstream: k8s.io/client-go/tools/cache/delta_fifo.go.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from typing import NamedTuple, Protocol

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.client.cache.indexer import DeletedFinalStateUnknown, deletion_handling_key, meta_namespace_key

__all__ = [
    "Delta",
    "DeltaFIFO",
    "DeltaType",
    "Deltas",
    "KeyListerGetter",
    "TransformFunc",
]

# Returns what is to be kept of an object; may change and return the object it is given, which is not shared yet.
TransformFunc = Callable[[Object], Object]


class DeltaType(StrEnum):
    """The kind of a change."""

    ADDED = "Added"
    UPDATED = "Updated"
    DELETED = "Deleted"
    # it is in a list, and may or may not be new
    REPLACED = "Replaced"
    # nothing happened to it, it is only looked at again
    SYNC = "Sync"


class Delta(NamedTuple):
    """The type of a change and the object after it; for a deletion the last known state."""

    type: DeltaType
    object: Object | DeletedFinalStateUnknown


class KeyListerGetter(Protocol):
    """The consumer's store of the objects that were taken out of the queue before, e.g. an informer's indexer."""

    def list_keys(self) -> Sequence[str]:
        """All, in any order."""

    def get_by_key(self, key: str) -> Object | None:
        """Returns the object, or None if the store does not have it."""


class Deltas(NamedTuple):
    """The changes of one object, oldest first. `in_initial_list`: the first list hasn't been taken out whole yet."""

    key: str
    changes: Sequence[Delta]
    in_initial_list: bool


class DeltaFIFO:
    """`known` are the objects that were taken out already; deletions are found by comparing with them.

    transform: makes of each object that comes what is kept of it; what it raises, the method raises.
    """

    def __init__(self, known: KeyListerGetter, transform: TransformFunc | None = None) -> None:
        self._known = known
        self._transform = transform
        self._items: dict[str, list[Delta]] = {}
        self._queue: deque[str] = deque()
        self._populated = False
        self._initial = 0

    def __len__(self) -> int:
        """Keys that wait."""
        return len(self._queue)

    @property
    def has_synced(self) -> bool:
        """Everything that the first list held (or that came before it) was taken out."""
        return self._populated and self._initial == 0

    def add(self, obj: Object) -> None:
        """Queues the addition of a new object."""
        self._populated = True
        self._enqueue(DeltaType.ADDED, meta_namespace_key(obj), obj)

    def update(self, obj: Object) -> None:
        """Queues a change of an object."""
        self._populated = True
        self._enqueue(DeltaType.UPDATED, meta_namespace_key(obj), obj)

    def delete(self, obj: Object | DeletedFinalStateUnknown) -> None:
        """Queues the deletion of an object; ignores objects that are neither queued nor known."""
        self._populated = True
        key = deletion_handling_key(obj)
        if key in self._items or self._known.get_by_key(key) is not None:
            self._enqueue(DeltaType.DELETED, key, obj)

    def replace(self, objects: Iterable[Object]) -> None:
        """These are all there are: what is known or queued beside them was deleted."""
        keys = set()
        for obj in objects:
            key = meta_namespace_key(obj)
            keys.add(key)
            self._enqueue(DeltaType.REPLACED, key, obj)
        deletions = 0
        for key, deltas in [*self._items.items()]:
            if key not in keys and deltas[-1].type is not DeltaType.DELETED:
                self._enqueue(DeltaType.DELETED, key, _last_known(key, deltas))
                deletions += 1
        for key in self._known.list_keys():
            if key not in keys and key not in self._items and (last := self._known.get_by_key(key)) is not None:
                self._enqueue(DeltaType.DELETED, key, DeletedFinalStateUnknown(key, last))
                deletions += 1
        if not self._populated:
            self._populated = True
            self._initial = len(keys) + deletions

    def resync(self) -> None:
        """Everything known is to be looked at again, but for what waits anyway."""
        for key in self._known.list_keys():
            if key not in self._items and (obj := self._known.get_by_key(key)) is not None:
                self._enqueue(DeltaType.SYNC, key, obj)

    def pop(self) -> Deltas | None:
        """The changes of the key that waits longest, None when nothing does."""
        if not self._queue:
            return None
        in_initial_list = not self.has_synced
        key = self._queue.popleft()
        if self._initial:
            self._initial -= 1
        return Deltas(key, self._items.pop(key), in_initial_list)

    def _enqueue(self, change: DeltaType, key: str, obj: Object | DeletedFinalStateUnknown) -> None:
        if (
            self._transform is not None
            and change is not DeltaType.SYNC
            and not isinstance(obj, DeletedFinalStateUnknown)
        ):
            obj = self._transform(obj)
        deltas = self._items.get(key)
        if deltas is None:
            self._items[key] = [Delta(change, obj)]
            self._queue.append(key)
        elif change is DeltaType.DELETED and deltas[-1].type is DeltaType.DELETED:
            # two deletions in a row are one; one that was seen knows the last state
            if isinstance(deltas[-1].object, DeletedFinalStateUnknown):
                deltas[-1] = Delta(change, obj)
        else:
            deltas.append(Delta(change, obj))


def _last_known(key: str, deltas: Sequence[Delta]) -> DeletedFinalStateUnknown:
    last = deltas[-1].object
    return last if isinstance(last, DeletedFinalStateUnknown) else DeletedFinalStateUnknown(key, last)
