"""A store of objects by key, with indexes by the values of index functions.

Objects are shared by all readers: copy an object before you change it.
Upstream: k8s.io/client-go/tools/cache/{store,index,thread_safe_store}.go.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from fakeapiserver.apimachinery.meta import Object

__all__ = [
    "NAMESPACE_INDEX",
    "DeletedFinalStateUnknown",
    "IndexFunc",
    "Indexer",
    "Object",
    "deletion_handling_key",
    "meta_namespace_key",
    "namespace_index",
    "split_meta_namespace_key",
]

# The values under which an object is found.
IndexFunc = Callable[[Object], Iterable[str]]
NAMESPACE_INDEX: Final = "namespace"


class DeletedFinalStateUnknown(Struct, frozen=True):
    """A deletion that the watch missed; `object` is the last known state."""

    key: str
    object: Object


def meta_namespace_key(obj: Object) -> str:
    """Returns `namespace/name`, or `name` for objects without a namespace."""
    metadata = obj["metadata"]
    namespace = metadata.get("namespace")
    name: str = metadata["name"]
    return f"{namespace}/{name}" if namespace else name


def deletion_handling_key(obj: Object | DeletedFinalStateUnknown) -> str:
    """The key, also of an object whose deletion was missed."""
    return obj.key if isinstance(obj, DeletedFinalStateUnknown) else meta_namespace_key(obj)


def split_meta_namespace_key(key: str) -> tuple[str, str]:
    """Splits a key into (namespace, name). Raises ValueError for a text with more than one slash."""
    parts = key.split("/")
    if len(parts) > 2:
        raise ValueError(f'unexpected key format: "{key}"')
    return (parts[0], parts[1]) if len(parts) == 2 else ("", key)


def namespace_index(obj: Object) -> Iterable[str]:
    """The index function of NAMESPACE_INDEX."""
    return (obj["metadata"].get("namespace", ""),)


class Indexer:
    """Objects by `key`, and an index for each of `indexers`. An object that an index function fails on is not stored."""

    def __init__(
        self, indexers: Mapping[str, IndexFunc] | None = None, key: Callable[[Object], str] = meta_namespace_key
    ) -> None:
        self._key = key
        self._items: dict[str, Object] = {}
        self._indexers: dict[str, IndexFunc] = dict(indexers or {})
        # index -> value -> keys; a dict keeps the keys' order, which makes lists repeatable
        self._indices: dict[str, dict[str, dict[str, None]]] = {name: {} for name in self._indexers}

    def __len__(self) -> int:
        return len(self._items)

    def add(self, obj: Object) -> None:
        """Stores it, in place of the one with its key."""
        key = self._key(obj)
        # all before any, as an index function may fail
        values = [(name, tuple(function(obj))) for name, function in self._indexers.items()]
        known = self._items.get(key)
        for name, after in values:
            before = tuple(self._indexers[name](known)) if known is not None else ()
            if before != after:
                self._unindex(name, key, before)
                index = self._indices[name]
                for value in after:
                    index.setdefault(value, {})[key] = None
        self._items[key] = obj

    update = add

    def delete(self, obj: Object | DeletedFinalStateUnknown) -> None:
        """Forgets it, if it is there."""
        key = obj.key if isinstance(obj, DeletedFinalStateUnknown) else self._key(obj)
        known = self._items.pop(key, None)
        if known is not None:
            for name, function in self._indexers.items():
                self._unindex(name, key, function(known))

    def get(self, obj: Object) -> Object | None:
        """The stored object with the same key."""
        return self._items.get(self._key(obj))

    def get_by_key(self, key: str) -> Object | None:
        """Returns the object with this key, or None."""
        return self._items.get(key)

    def list(self) -> Sequence[Object]:
        """All, in a list of the caller's own."""
        return [*self._items.values()]

    def list_keys(self) -> Sequence[str]:
        """All keys, in a list of the caller's own."""
        return [*self._items]

    def replace(self, objects: Iterable[Object]) -> None:
        """These, and nothing else."""
        self._items.clear()
        self._indices = {name: {} for name in self._indexers}
        for obj in objects:
            self.add(obj)

    def add_indexers(self, indexers: Mapping[str, IndexFunc]) -> None:
        """Adds indexes, and fills them with the objects that are stored already.

        Raises ValueError if a name is taken.
        """
        taken = self._indexers.keys() & indexers.keys()
        if taken:
            raise ValueError(f"indexer conflict: {', '.join(sorted(taken))}")
        for name, function in indexers.items():
            index: dict[str, dict[str, None]] = {}
            for key, obj in self._items.items():
                for value in function(obj):
                    index.setdefault(value, {})[key] = None
            self._indexers[name] = function
            self._indices[name] = index

    @property
    def indexers(self) -> Mapping[str, IndexFunc]:
        """The index functions by name."""
        return self._indexers

    def by_index(self, name: str, value: str) -> Sequence[Object]:
        """The objects of which the index function makes `value`. KeyError: there is no such index."""
        return [self._items[key] for key in self.index_keys(name, value)]

    def index_keys(self, name: str, value: str) -> Sequence[str]:
        """Their keys. KeyError."""
        return [*self._index(name).get(value, ())]

    def index_values(self, name: str) -> Sequence[str]:
        """Every value that some object has. KeyError."""
        return [*self._index(name)]

    def index(self, name: str, obj: Object) -> Sequence[Object]:
        """The objects that share a value with `obj`. KeyError."""
        index = self._index(name)
        keys = dict.fromkeys(key for value in self._indexers[name](obj) for key in index.get(value, ()))
        return [self._items[key] for key in keys]

    def _index(self, name: str) -> dict[str, dict[str, None]]:
        if name not in self._indices:
            raise KeyError(f"Index with name {name} does not exist")
        return self._indices[name]

    def _unindex(self, name: str, key: str, values: Iterable[str]) -> None:
        index = self._indices[name]
        for value in values:
            keys = index.get(value)
            if keys is not None:
                keys.pop(key, None)
                if not keys:
                    del index[value]
