"""The stored forms of the objects of a fresh server, which servers of one process share if they are configured alike.

A form has placeholders for the object's identity and times. Each server replaces them by its own, which are as long.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import groupby
from operator import attrgetter
from typing import Final

from msgspec import Struct, structs

from fakeapiserver.apimachinery.gvk import GroupVersion, GroupVersionKind, GroupVersionResource
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.endpoints.scopes import RequestScopes
from fakeapiserver.registry.generic.strategy import Strategy
from fakeapiserver.storage.interface import Index, KeyExists

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


async def store_forms(scopes: RequestScopes, forms: Iterable[StoredForm], stamp: str) -> None:
    """Stores the objects with fresh identities and `stamp` for their times. Leaves out those whose keys exist: another server has stored
    them."""
    no_uid, no_stamp, no_date = _UID.encode(), STAMP.encode(), DATE.encode()
    time, date = stamp.encode(), stamp[: len(DATE)].encode()
    for resource, of_resource in groupby(forms, attrgetter("resource")):
        scope = scopes.lookup(*resource)
        assert scope is not None
        store = scope.store
        assert store is not None
        reacts = type(store.strategy).on_created is not Strategy.on_created
        for form in of_resource:
            uid = store.chance.uid(form.key)
            value = form.value.replace(no_uid, uid.encode()).replace(no_stamp, time).replace(no_date, date)
            with suppress(KeyExists):
                await store.storage.create(form.key, value, form.offset, structs.replace(form.index, uid=uid))
                if reacts:
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
