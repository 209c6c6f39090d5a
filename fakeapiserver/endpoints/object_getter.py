"""Reads stored objects for admission, authorizers and authenticators."""

from collections.abc import Iterator
from typing import Final

from fakeapiserver.apimachinery.gvk import GroupResource
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.endpoints.scopes import RequestScopes
from fakeapiserver.registry.generic.store import Store
from fakeapiserver.storage.interface import Compacted

# How many decoded objects are kept; beyond this they are dropped and decoded again.
_MOST_DECODED: Final = 50_000
_MOST_LISTS: Final = 4096


class ObjectGetter:
    """Reads stored objects for admission plugins and authorizers, within the same turn (no await).

    Objects are decoded on demand and kept while they don't change."""

    def __init__(self, scopes: RequestScopes) -> None:
        self._scopes = scopes
        self._decoded: dict[str, tuple[int, Object]] = {}
        # (resource, namespace) -> the generation of the resource, and the objects
        self._lists: dict[tuple[str, str], tuple[int, list[Object]]] = {}
        self._stores: dict[str, Store | None] = {}  # found at one generation of the table
        self._groups: dict[tuple[str, ...], list[Store]] = {}
        self._generation = -1

    def get(self, resource: str, namespace: str, name: str) -> Object | None:
        store = self._store(resource)
        if store is None:
            return None
        # Not `store.key`, which refuses invalid names: here such objects are just not found.
        key = f"{store.prefix}{namespace}/{name}" if store.namespaced else store.prefix + name
        item = store.storage.get_now(key)
        return self._decode(store, key, item.mod_revision, item.value) if item is not None else None

    def list(self, resource: str, namespace: str = "") -> list[Object]:
        """The objects as a list that stays the same object until the resource is written, so that callers can cache what they derive
        from it."""
        store = self._store(resource)
        if store is None:
            return []
        generation, known = store.storage.generation(store.prefix), self._lists.get((resource, namespace))
        if known is not None and known[0] == generation:
            return known[1]
        items = store.storage.list_now(store.collection(namespace)).items
        objects = [self._decode(store, item.key, item.mod_revision, item.value) for item in items]
        if len(self._lists) >= _MOST_LISTS:
            self._lists.clear()
        self._lists[resource, namespace] = generation, objects
        return objects

    def generation(self, resources: tuple[str, ...]) -> int:
        """A number that rises with every write to one of these resources."""
        if self._generation != self._scopes.table.generation:
            self._forget()
        stores = self._groups.get(resources)
        if stores is None:
            stores = self._groups[resources] = [
                store for resource in resources if (store := self._store(resource)) is not None
            ]
        total = 0
        for store in stores:
            total += store.storage.generation(store.prefix)
        return total

    @property
    def revision(self) -> int:
        return self._scopes.storage.revision

    def changes(self, resources: tuple[str, ...], revision: int) -> Iterator[tuple[str, Object | None, Object | None]]:
        """Every write to these resources after `revision`, in order. LookupError if the history doesn't go back so far."""
        stores = [(store.prefix, resource, store) for resource in resources if (store := self._store(resource))]
        try:
            events = self._scopes.storage.changes_now(revision)
        except Compacted as error:
            raise LookupError(revision) from error
        for old, new in events:
            key = (old or new).key  # type: ignore[union-attr]
            for prefix, resource, store in stores:
                if key.startswith(prefix):
                    before, after = (
                        store.decode(stored.value) if stored is not None else None for stored in (old, new)
                    )
                    yield resource, before, after

    def _store(self, resource: str) -> Store | None:
        if self._generation != self._scopes.table.generation:
            self._forget()
        if resource not in self._stores:
            plural, _, group = resource.partition(".")
            self._stores[resource] = self._scopes.store_for(GroupResource(group, plural))
        return self._stores[resource]

    def _forget(self) -> None:
        """Forgets everything that was found at another generation of the table."""
        self._generation = self._scopes.table.generation
        self._stores.clear()
        self._groups.clear()
        self._decoded.clear()  # of another schema, maybe
        self._lists.clear()

    def _decode(self, store: Store, key: str, revision: int, value: bytes) -> Object:
        cached = self._decoded.get(key)
        if cached is not None and cached[0] == revision:
            return cached[1]
        obj = store.decode(value)
        if len(self._decoded) >= _MOST_DECODED:
            self._decoded.clear()
        self._decoded[key] = (revision, obj)
        return obj
