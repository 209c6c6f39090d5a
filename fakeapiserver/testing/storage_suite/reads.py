"""Reads of one object."""

from typing import Final

from fakeapiserver.storage.interface import ListQuery, ResourceVersionTooLarge, StoredObject
from fakeapiserver.testing.storage_suite.pods import (
    PODS,
    MakeStorage,
    create,
    key_of,
    made,
    not_named,
    refused,
    update,
    write_elsewhere,
)

_FUTURE: Final = 2**62


async def run_test_get(make: MakeStorage) -> None:
    """A state that is at least as new as the requested revision, whichever object was written then."""
    storage = await made(make)
    created = await create(storage, "a", "1")
    stored = await update(storage, created, "2")
    last = await create(storage, "b")
    for minimum in (None, 0, created.mod_revision, stored.mod_revision, last.mod_revision):
        assert await storage.get(stored.key, minimum_revision=minimum) == stored
        assert await storage.get(key_of("ghost"), minimum_revision=minimum) is None
    assert storage.get_now(stored.key) == stored
    for key in (stored.key, key_of("ghost")):
        error = await refused(ResourceVersionTooLarge, storage.get(key, minimum_revision=_FUTURE))
        assert error.current >= last.mod_revision


async def run_test_get_of_a_future_revision(make: MakeStorage) -> None:
    storage = await made(make)
    obj = await create(storage, "a")
    assert await storage.get(obj.key, minimum_revision=obj.mod_revision) == obj
    error = await refused(ResourceVersionTooLarge, storage.get(obj.key, minimum_revision=obj.mod_revision + 1))
    assert error.current == obj.mod_revision


async def run_test_get_list_non_recursive(make: MakeStorage) -> None:
    """A list shows a single object at any revision, and only if the object is selected."""
    storage = await made(make)
    before = storage.revision
    previous = await create(storage, "a", "1")
    current = await update(storage, previous, "2")
    await create(storage, "ab")
    await write_elsewhere(storage)
    states: list[tuple[int, list[StoredObject]]] = [
        (before, []),
        (previous.mod_revision, [previous]),
        (current.mod_revision, [current]),
        (0, [current]),
    ]
    for revision, expected in states:
        query = ListQuery(revision=revision, predicate=lambda item: item.key == current.key)
        assert (await storage.list(f"{PODS}default/", query)).items == expected
    for minimum in (0, previous.mod_revision, current.mod_revision):
        query = ListQuery(minimum_revision=minimum, predicate=lambda item: item.key == current.key)
        assert (await storage.list(f"{PODS}default/", query)).items == [current]
    unselected = ListQuery(revision=current.mod_revision, predicate=not_named("a"))
    assert (await storage.list(f"{PODS}default/", unselected)).items == []
