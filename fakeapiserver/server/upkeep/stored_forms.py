"""The stored forms of the objects of a fresh server, which servers of one process share if they are configured alike.

A form has placeholders for the object's identity and times. Each server replaces them by its own, which are as long.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Struct, structs

from fakeapiserver.apimachinery.gvk import GroupVersion, GroupVersionKind, GroupVersionResource
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.endpoints.scopes import RequestScopes
from fakeapiserver.registry.generic.strategy import Strategy
from fakeapiserver.storage.interface import Index

_UID: Final = "00000000-0000-4000-8000-000000000000"
STAMP: Final = "0001-01-01T00:00:00Z"
DATE: Final = STAMP[:10]
_CONDITION_TIMES: Final = ("lastTransitionTime",)


class StoredForm(Struct, frozen=True):
    """`value` and `index` are the object's, with placeholders; the revision goes to `offset`."""

    resource: GroupVersionResource
    key: str
    value: bytes
    offset: int
    index: Index


def forms(scopes: RequestScopes, objects: Iterable[Object]) -> Iterator[StoredForm]:
    """Yields the form of each object whose kind is served; the objects are changed."""
    for obj in objects:
        gvk = GroupVersionKind(*GroupVersion.parse(obj["apiVersion"]), obj["kind"])
        row = scopes.table.for_kind(gvk)
        scope = scopes.lookup(*row.gvr) if row is not None else None
        if row is None or scope is None or scope.store is None:
            continue
        meta, store = metadata(obj), scope.store
        meta["uid"] = _UID
        stamp_times(obj, STAMP)
        encoded = store.versions.encode(obj)
        key = store.key(meta.get("namespace", ""), meta["name"])
        yield StoredForm(row.gvr, key, encoded.value, encoded.offset, store.index(obj))


async def store_form(scopes: RequestScopes, form: StoredForm, stamp: str) -> None:
    """Stores an object with a fresh identity and `stamp` for its times. Raises KeyExists."""
    scope = scopes.lookup(*form.resource)
    assert scope is not None
    store = scope.store
    assert store is not None
    uid = store.chance.uid(form.key)
    value = form.value.replace(_UID.encode(), uid.encode()).replace(STAMP.encode(), stamp.encode())
    value = value.replace(DATE.encode(), stamp[: len(DATE)].encode())
    await store.storage.create(form.key, value, form.offset, structs.replace(form.index, uid=uid))
    if type(store.strategy).on_created is not Strategy.on_created:
        store.strategy.on_created(store.decode(value))


def stamp_times(obj: Object, stamp: str) -> None:
    """Sets the times at which an object was created, written, and got its conditions."""
    meta = obj["metadata"]
    meta["creationTimestamp"] = stamp
    for entry in meta.get("managedFields", ()):
        entry["time"] = stamp
    for condition in (obj.get("status") or {}).get("conditions") or ():
        for name in _CONDITION_TIMES:
            condition[name] = stamp
