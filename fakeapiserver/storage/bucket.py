"""The stored objects of one resource, with their keys in order and indexes of their labels: pure, as mvcc.py is."""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator, Mapping
from typing import Final

from msgspec import Struct, field

from fakeapiserver.storage.interface import StoredObject

# Names of labels by which the objects of a resource are indexed, and objects that are put into an index at once.
_INDEXED_LABELS: Final = 4
_INDEXED_AT_ONCE: Final = 5000
_NO_KEYS: Final[set[str]] = set()


class Bucket(Struct):
    """The objects of one resource. Keys are sorted when a list needs them, so that many creates in a row cost little.

    `labelled` has the keys by name and value of a label, for names that lists have selected by; whole for those in `indexed`.
    """

    objects: dict[str, StoredObject] = field(default_factory=dict)
    keys: list[str] = field(default_factory=list)
    unsorted: list[str] = field(default_factory=list)
    generation: int = 0
    labelled: dict[str, dict[str, set[str]]] = field(default_factory=dict)
    indexed: set[str] = field(default_factory=set)

    def put(self, obj: StoredObject) -> None:
        if obj.key not in self.objects:
            self.unsorted.append(obj.key)
        elif self.labelled:
            self._unlabel(self.objects[obj.key])
        self.objects[obj.key] = obj
        for name in self.labelled:
            self._label(name, obj)

    def _label(self, name: str, obj: StoredObject) -> None:
        value = obj.index.labels.get(name)
        if value is not None:
            self.labelled[name].setdefault(value, set()).add(obj.key)

    def _unlabel(self, obj: StoredObject) -> None:
        for name, values in self.labelled.items():
            value = obj.index.labels.get(name, "")
            if value in values:
                values[value].discard(obj.key)
                if not values[value]:
                    del values[value]

    def index(self, name: str) -> Iterator[None]:
        """Begins to index the label, unless there are enough indexes. Yields in between, when others may write."""
        if name in self.labelled or len(self.labelled) >= _INDEXED_LABELS:
            return
        self.labelled[name] = {}
        try:
            for number, key in enumerate([*self.objects], 1):
                if key in self.objects:
                    self._label(name, self.objects[key])
                if number % _INDEXED_AT_ONCE == 0:
                    yield
            self.indexed.add(name)
        finally:
            if name not in self.indexed:
                del self.labelled[name]

    def with_labels(self, labels: Mapping[str, str]) -> set[str] | None:
        """The keys of objects among which are all with these labels; None without an index, and if these aren't much fewer than all."""
        found = [self.labelled[name].get(value, _NO_KEYS) for name, value in labels.items() if name in self.indexed]
        fewest = min(found, key=len, default=None)
        return fewest if fewest is not None and len(fewest) * 4 <= len(self.objects) else None

    def remove(self, key: str) -> None:
        self._unlabel(self.objects.pop(key))
        self.sort()
        del self.keys[bisect_right(self.keys, key) - 1]

    def sort(self) -> None:
        if len(self.unsorted) == 1:
            insort(self.keys, self.unsorted[0])
        elif self.unsorted:
            self.keys += self.unsorted
            self.keys.sort()
        self.unsorted.clear()

    def places(self, prefix: str, start: str) -> range:
        """The places in `keys` of the keys that begin with `prefix` and are not before `start`."""
        self.sort()
        return range(bisect_left(self.keys, max(start, prefix)), bisect_right(self.keys, prefix + "\U0010ffff"))

    def below(self, prefix: str, start: str) -> list[str]:
        """The keys that begin with `prefix` and are not before `start`, in order."""
        places = self.places(prefix, start)
        return self.keys[places.start : places.stop]
