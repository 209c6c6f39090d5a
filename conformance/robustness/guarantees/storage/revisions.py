"""Random writes, lists, watches and compactions of the history of all objects, next to a model: a list of all changes."""

import random
import traceback
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from msgspec import Struct

from conformance.robustness.guarantees.guarantee import Report
from fakeapiserver.storage.interface import (
    Compacted,
    Index,
    KeyExists,
    KeyNotFound,
    ListQuery,
    ResourceVersionConflict,
    StorageError,
    StoredObject,
)
from fakeapiserver.storage.mvcc import MVCC

_NAMES: Final = [f"/registry/pods/default/{name}" for name in "abcdefghijkl"]
_PREFIX: Final = "/registry/pods/"
_VALUE: Final = b'{"metadata":{"name":"x"}}'
_OFFSET: Final = len('{"metadata":{')
_COLORS: Final = ("red", "blue")
# Operations by weight.
_OPERATIONS: Final = ("create", "update", "stale", "delete", "list", "page", "changes", "compact")
_WEIGHTS: Final = (20, 30, 5, 14, 12, 12, 6, 1)
# How far back a list or a watch goes at most, and a history within which the storage forgets by itself.
_BACK: Final = 60
_HISTORY: Final = 50


class _Entry(Struct, frozen=True):
    """A change of the model: `stored` is the new state, None after a deletion."""

    key: str
    stored: StoredObject | None


class _Pair:
    """A history and its model. `entries[i]` has the revision `i + 2`, since the first write does."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.mvcc = MVCC(max_events=_HISTORY)
        self.now: dict[str, StoredObject] = {}
        self.entries: list[_Entry] = []
        self.compacted = 1

    @property
    def revision(self) -> int:
        return len(self.entries) + 1

    def wrote(self, key: str, stored: StoredObject | None) -> None:
        before = self.now.get(key)
        self.entries.append(_Entry(key, stored))
        if stored is None:
            del self.now[key]
        else:
            self.now[key] = stored
            assert stored.mod_revision == self.revision
            assert b'"resourceVersion":"%d"' % self.revision in stored.value
            assert stored.create_revision == (before.create_revision if before else self.revision)
        self.compacted = max(self.compacted, self.revision - _HISTORY)
        assert self.mvcc.revision == self.revision
        assert self.mvcc.get(key) is stored

    def state_at(self, revision: int) -> list[StoredObject]:
        """Returns the objects of a revision in the order of their keys, from all changes before it."""
        state: dict[str, StoredObject] = {}
        for entry in self.entries[: revision - 1]:
            if entry.stored is None:
                del state[entry.key]
            else:
                state[entry.key] = entry.stored
        return [state[key] for key in sorted(state)]


def _index(pair: _Pair) -> Index:
    return Index({"color": pair.chance.choice(_COLORS)})


def _create(pair: _Pair) -> None:
    key = pair.chance.choice(_NAMES)
    if key in pair.now:
        _refused(pair, KeyExists, lambda: pair.mvcc.create(key, _VALUE, _OFFSET, Index()))
    else:
        pair.wrote(key, pair.mvcc.create(key, _VALUE, _OFFSET, _index(pair)).current)


def _update(pair: _Pair) -> None:
    key = pair.chance.choice(_NAMES)
    stored = pair.now.get(key)
    if stored is None:
        _refused(pair, KeyNotFound, lambda: pair.mvcc.update(key, _VALUE, _OFFSET, Index(), 1))
    else:
        pair.wrote(key, pair.mvcc.update(key, _VALUE, _OFFSET, _index(pair), stored.mod_revision).current)


def _stale(pair: _Pair) -> None:
    """Writes that expect another revision than the newest."""
    for key, stored in [*pair.now.items()][:2]:
        revision = pair.chance.choice((stored.mod_revision - 1, stored.mod_revision + 1, 1))
        _refused(pair, ResourceVersionConflict, partial(pair.mvcc.update, key, _VALUE, _OFFSET, Index(), revision))
        _refused(pair, ResourceVersionConflict, partial(pair.mvcc.delete, key, revision))


def _delete(pair: _Pair) -> None:
    key = pair.chance.choice(_NAMES)
    stored = pair.now.get(key)
    if stored is None:
        _refused(pair, KeyNotFound, lambda: pair.mvcc.delete(key, None))
        return
    change = pair.mvcc.delete(key, pair.chance.choice((None, stored.mod_revision)))
    pair.wrote(key, None)
    assert change.previous is stored
    assert change.tombstone is not None
    assert change.tombstone.mod_revision == pair.revision


def _list(pair: _Pair) -> None:
    """Lists now, or in the past, with and without a selector."""
    revision = max(pair.revision - pair.chance.randrange(_BACK), 1)
    color = pair.chance.choice((None, *_COLORS))
    query = ListQuery(
        revision=revision,
        predicate=None if color is None else lambda stored: stored.index.labels["color"] == color,
    )
    if revision < pair.compacted:
        _refused(pair, Compacted, lambda: pair.mvcc.range(_PREFIX, query))
        return
    state = pair.state_at(revision)
    result = pair.mvcc.range(_PREFIX, query)
    assert result.items == [stored for stored in state if color is None or stored.index.labels["color"] == color]
    assert result.revision == revision


def _page(pair: _Pair) -> None:
    """Reads all pages of a revision, each behind the last key of the one before."""
    revision = max(pair.revision - pair.chance.randrange(_BACK), 1)
    if revision < pair.compacted:
        return
    limit, start, items = pair.chance.randrange(1, 5), "", list[StoredObject]()
    while True:
        result = pair.mvcc.range(_PREFIX, ListQuery(revision=revision, limit=limit, start=start))
        items += result.items
        assert len(result.items) <= limit
        if not result.more:
            break
        start = f"{items[-1].key}\0"
    assert items == pair.state_at(revision)


def _changes(pair: _Pair) -> None:
    """Reads what a watch from a revision on would get."""
    revision = max(pair.revision - pair.chance.randrange(_BACK), 1)
    if revision < pair.compacted:
        _refused(pair, Compacted, lambda: [*pair.mvcc.changes_after(revision)])
        return
    changes = [*pair.mvcc.changes_after(revision)]
    assert [change.revision for change in changes] == [*range(revision + 1, pair.revision + 1)]
    expected = pair.entries[revision - 1 :]
    assert [(change.key, change.current) for change in changes] == [(entry.key, entry.stored) for entry in expected]


def _compact(pair: _Pair) -> None:
    revision = max(pair.revision - pair.chance.randrange(_BACK), 1)
    pair.mvcc.compact(revision)
    pair.compacted = max(pair.compacted, revision)
    assert pair.mvcc.compacted == pair.compacted


def _refused(pair: _Pair, error: type[StorageError], operation: Callable[[], object]) -> None:
    """A refused operation changes nothing."""
    try:
        operation()
    except error:
        assert pair.mvcc.revision == pair.revision
        return
    raise AssertionError(f"{error.__name__} was expected")


_BY_NAME: Final[dict[str, Callable[[_Pair], None]]] = {
    "create": _create,
    "update": _update,
    "stale": _stale,
    "delete": _delete,
    "list": _list,
    "page": _page,
    "changes": _changes,
    "compact": _compact,
}
# Operations with one history: `state_at` goes through all of its changes.
_LENGTH: Final = 500


def revisions(full: bool) -> Report:
    """20,000 histories of 500 operations in full, 200 for CI."""
    seeds, changes, problems = 20_000 if full else 200, 0, list[str]()
    for seed in range(seeds):
        pair = _Pair(seed)
        done: Sequence[str] = pair.chance.choices(_OPERATIONS, _WEIGHTS, k=_LENGTH)
        for number, name in enumerate(done):
            try:
                _BY_NAME[name](pair)
            except (AssertionError, StorageError) as error:
                line = traceback.extract_tb(error.__traceback__)[-1].line
                problems.append(f"seed {seed}, operation {number} ({name}): {line}: {error!r}")
                break
        changes += len(pair.entries)
    return Report({"operations": f"{seeds * _LENGTH:,}", "changes": f"{changes:,}"}, problems)
