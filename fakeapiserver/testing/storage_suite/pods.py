"""The pods of the suite: a few bytes, and a label `note` that is their content."""

import re
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from fakeapiserver.storage.interface import (
    Backend,
    Event,
    Index,
    ListResult,
    Predicate,
    Storage,
    StorageError,
    StoredObject,
    Watcher,
)

MakeStorage = Callable[[], Backend | Awaitable[Backend]]
Check = Callable[[MakeStorage], Awaitable[None]]
E = TypeVar("E", bound=StorageError)

PODS: Final = "/registry/pods/"
SECRETS: Final = "/registry/secrets/"
OFFSET: Final = len('{"metadata":{')
_REVISION: Final = re.compile(rb'"resourceVersion":"(\d+)"')
# Seconds for which a check waits for events: when they are there already, and when they are on their way.
SOON: Final = 0.05
LATE: Final = 10.0


async def made(make: MakeStorage) -> Backend:
    """A new, empty storage."""
    storage = make()
    return await storage if isinstance(storage, Awaitable) else storage


def value(name: str, note: str = "") -> bytes:
    return f'{{"metadata":{{"name":"{name}"}},"note":"{note}"}}'.encode()


def key_of(name: str, namespace: str = "default") -> str:
    return f"{PODS}{namespace}/{name}"


async def create(storage: Storage, name: str, note: str = "", namespace: str = "default") -> StoredObject:
    return await storage.create(key_of(name, namespace), value(name, note), OFFSET, Index({"note": note}))


async def update(storage: Storage, obj: StoredObject, note: str) -> StoredObject:
    new = value(name_of(obj), note)
    return await storage.update(obj.key, new, OFFSET, Index({"note": note}), expected_revision=obj.mod_revision)


async def write_elsewhere(storage: Storage, name: str = "x") -> StoredObject:
    """Writes an object of another resource, which raises the revision."""
    return await storage.create(f"{SECRETS}default/{name}", value(name), OFFSET, Index())


def revision_in(obj: StoredObject) -> int:
    match = _REVISION.search(obj.value)
    assert match is not None, obj.value
    return int(match[1])


def name_of(obj: StoredObject) -> str:
    return obj.key.rpartition("/")[2]


def names(result: ListResult) -> list[str]:
    return [name_of(item) for item in result.items]


def noted(*notes: str) -> Predicate:
    """Selects pods with one of the notes."""
    return lambda item: item.index.labels["note"] in notes


def not_named(name: str) -> Predicate:
    return lambda item: name_of(item) != name


async def drain(watcher: Watcher) -> list[Event]:
    """Returns the events so far."""
    events: list[Event] = []
    while batch := await watcher.next_batch(SOON):
        events += batch
    return events


async def refused(error: type[E], attempt: Awaitable[object]) -> E:
    """Returns the error with which the attempt ends; any other end fails the check."""
    try:
        await attempt
    except error as expected:
        return expected
    raise AssertionError(f"the attempt didn't end with {error.__name__}")
