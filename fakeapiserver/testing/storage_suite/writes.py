"""Creates, updates and deletes: compare-and-swap, and what a refusal says and leaves."""

import asyncio

from fakeapiserver.storage.interface import Index, KeyExists, KeyNotFound, ResourceVersionConflict, StoredObject
from fakeapiserver.testing.storage_suite.pods import (
    PODS,
    MakeStorage,
    create,
    key_of,
    made,
    names,
    refused,
    revision_in,
    update,
    write_elsewhere,
)


async def run_test_create_stamps_the_next_revision(make: MakeStorage) -> None:
    storage = await made(make)
    before = storage.revision
    assert await storage.get(key_of("a")) is None
    obj = await create(storage, "a")
    assert obj.mod_revision == obj.create_revision == revision_in(obj) == storage.revision > before
    assert await storage.get(obj.key) == obj


async def run_test_create_refuses_a_second_one_and_writes_nothing(make: MakeStorage) -> None:
    storage = await made(make)
    first = await create(storage, "a", "first")
    await refused(KeyExists, create(storage, "a", "second"))
    assert storage.revision == first.mod_revision
    assert await storage.get(first.key) == first


async def run_test_update_swaps_only_from_the_expected_revision(make: MakeStorage) -> None:
    storage = await made(make)
    first = await create(storage, "a", "1")
    second = await update(storage, first, "2")
    assert second.create_revision == first.mod_revision < second.mod_revision
    conflict = await refused(ResourceVersionConflict, update(storage, first, "3"))
    assert conflict.current == second
    assert storage.revision == second.mod_revision


async def run_test_update_and_delete_of_nothing(make: MakeStorage) -> None:
    storage = await made(make)
    ghost = StoredObject(f"{PODS}default/ghost", b"", 1, 1, Index(), 0)
    before = storage.revision
    for attempt in (update(storage, ghost, "x"), storage.delete(ghost.key)):
        await refused(KeyNotFound, attempt)
    assert storage.revision == before


async def run_test_delete_answers_the_last_state_with_its_own_revision(make: MakeStorage) -> None:
    storage = await made(make)
    obj = await create(storage, "a", "last")
    gone = await storage.delete(obj.key)
    assert b'"note":"last"' in gone.value
    assert revision_in(gone) == gone.mod_revision == storage.revision > obj.mod_revision
    assert await storage.get(obj.key) is None


async def run_test_delete_from_a_stale_revision_is_refused(make: MakeStorage) -> None:
    storage = await made(make)
    first = await create(storage, "a", "1")
    second = await update(storage, first, "2")
    await refused(ResourceVersionConflict, storage.delete(first.key, expected_revision=first.mod_revision))
    assert await storage.get(first.key) == second


async def run_test_conditional_delete(make: MakeStorage) -> None:
    """A delete from the present revision goes through, whatever else was written meanwhile."""
    storage = await made(make)
    obj = await create(storage, "a", "last")
    await write_elsewhere(storage)
    gone = await storage.delete(obj.key, expected_revision=obj.mod_revision)
    assert b'"note":"last"' in gone.value
    assert await storage.get(obj.key) is None


async def run_test_delete_with_suggestion_and_conflict(make: MakeStorage) -> None:
    """A refused delete names the present state, from which the next attempt goes through and which it returns."""
    storage = await made(make)
    suggestion = await create(storage, "a", "1")
    current = await update(storage, suggestion, "2")
    attempt = storage.delete(suggestion.key, expected_revision=suggestion.mod_revision)
    conflict = await refused(ResourceVersionConflict, attempt)
    assert conflict.current == current
    gone = await storage.delete(suggestion.key, expected_revision=conflict.current.mod_revision)
    assert b'"note":"2"' in gone.value


async def run_test_delete_with_conflict(make: MakeStorage) -> None:
    """If an update and deletes start from the same state at once, exactly one write goes through."""
    storage = await made(make)
    obj = await create(storage, "a", "1")
    attempts = [storage.delete(obj.key, expected_revision=obj.mod_revision) for _ in range(3)]
    results = await asyncio.gather(update(storage, obj, "2"), *attempts, return_exceptions=True)
    written = [result for result in results if isinstance(result, StoredObject)]
    assert len(written) == 1
    assert {type(result) for result in results} <= {StoredObject, ResourceVersionConflict, KeyNotFound}
    assert storage.revision == written[0].mod_revision
    left = await storage.get(obj.key)
    assert left is None or left == written[0]


async def run_test_delete_with_suggestion_of_deleted_object(make: MakeStorage) -> None:
    storage = await made(make)
    obj = await create(storage, "a")
    await storage.delete(obj.key, expected_revision=obj.mod_revision)
    await refused(KeyNotFound, storage.delete(obj.key, expected_revision=obj.mod_revision))
    await refused(KeyNotFound, update(storage, obj, "x"))


async def run_test_a_successor_of_the_same_name_is_another_object(make: MakeStorage) -> None:
    """Writes that start from the deleted object don't touch the one that was created in its place."""
    storage = await made(make)
    obj = await create(storage, "a", "1")
    gone = await storage.delete(obj.key)
    successor = await create(storage, "a", "1")
    assert successor.create_revision == successor.mod_revision > gone.mod_revision
    for attempt in (update(storage, obj, "2"), storage.delete(obj.key, expected_revision=obj.mod_revision)):
        assert (await refused(ResourceVersionConflict, attempt)).current == successor
    assert await storage.get(obj.key) == successor


async def run_test_guaranteed_update_with_conflict(make: MakeStorage) -> None:
    """Each of 5 clients raises a number 6 times: each takes the present state, and starts again after a conflict."""
    storage = await made(make)
    obj = await create(storage, "a", "0")

    async def count() -> None:
        left = 6
        while left:
            current = await storage.get_for_update(obj.key)
            assert current is not None
            try:
                await update(storage, current, str(int(current.index.labels["note"]) + 1))
                left -= 1
            except ResourceVersionConflict as conflict:
                assert conflict.current.mod_revision > current.mod_revision

    await asyncio.gather(*(count() for _ in range(5)))
    stored = await storage.get(obj.key)
    assert stored is not None
    assert stored.index.labels["note"] == "30"
    assert stored.create_revision == obj.create_revision


async def run_test_guaranteed_update_with_suggestion_and_conflict(make: MakeStorage) -> None:
    """A conflict names the present state, and an update from there goes through at the first attempt."""
    storage = await made(make)
    suggestion = await create(storage, "a", "1")
    current = await update(storage, suggestion, "2")
    assert await storage.get_for_update(suggestion.key) == current
    conflict = await refused(ResourceVersionConflict, update(storage, suggestion, "3"))
    updated = await update(storage, conflict.current, "3")
    assert updated.index.labels["note"] == "3"
    assert await storage.get_for_update(suggestion.key) == updated


async def run_test_creates_at_once_have_one_winner(make: MakeStorage) -> None:
    storage = await made(make)
    attempts = (create(storage, "a", str(i)) for i in range(4))
    results = await asyncio.gather(*attempts, return_exceptions=True)
    (winner,) = [result for result in results if isinstance(result, StoredObject)]
    assert [type(result) for result in results if result is not winner] == [KeyExists] * 3
    assert await storage.get(winner.key) == winner
    assert names(await storage.list(PODS)) == ["a"]


async def run_test_generation_rises_with_writes_to_its_resource_only(make: MakeStorage) -> None:
    storage = await made(make)
    await create(storage, "a")
    before = storage.generation(PODS)
    await write_elsewhere(storage)
    assert storage.generation(PODS) == before
    await create(storage, "b")
    assert storage.generation(PODS) > before
