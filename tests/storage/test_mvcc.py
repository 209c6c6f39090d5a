"""The history of all objects by itself: one revision for all, compare-and-swap, and what is known of the past."""

import random
from typing import Any

import pytest
from msgspec import structs

from fakeapiserver.storage import bucket
from fakeapiserver.storage.interface import (
    Compacted,
    Index,
    KeyExists,
    KeyNotFound,
    ListQuery,
    ResourceVersionConflict,
    ResourceVersionTooLarge,
    StoredObject,
)
from fakeapiserver.storage.mvcc import MVCC

PODS = "/registry/pods/"
VALUE, OFFSET = b'{"metadata":{"name":"x"}}', 13
PLAIN, BLUE = Index(), Index(labels={"colour": "blue"})


def pod(name: str) -> str:
    return f"{PODS}default/{name}"


def create(core: MVCC, *names: str, index: Index = PLAIN) -> None:
    for name in names:
        core.create(pod(name), VALUE, OFFSET, index)


def names(core: MVCC, query: ListQuery) -> list[str]:
    return [item.key.rpartition("/")[2] for item in core.range(PODS, query).items]


def test_each_write_has_the_next_revision_and_stamps_it() -> None:
    core = MVCC()
    create(core, "a", "b")
    changed = core.update(pod("a"), VALUE, OFFSET, BLUE, 2)
    assert (core.revision, changed.revision) == (4, 4)
    stored = core.get(pod("a"))
    assert stored is not None
    assert (stored.create_revision, stored.mod_revision, stored.index) == (2, 4, BLUE)
    assert stored.value == b'{"metadata":{"resourceVersion":"4","name":"x"}}'


def test_a_deletion_leaves_the_last_state_stamped_with_its_revision() -> None:
    core = MVCC()
    create(core, "a")
    change = core.delete(pod("a"), None)
    assert change.current is None
    assert change.tombstone is not None
    assert b'"resourceVersion":"3"' in change.tombstone.value
    assert core.get(pod("a")) is None


@pytest.mark.parametrize(
    ("write", "error"),
    [
        (lambda core: core.create(pod("a"), VALUE, OFFSET, Index()), KeyExists),
        (lambda core: core.update(pod("b"), VALUE, OFFSET, Index(), 2), KeyNotFound),
        (lambda core: core.update(pod("a"), VALUE, OFFSET, Index(), 1), ResourceVersionConflict),
        (lambda core: core.delete(pod("b"), None), KeyNotFound),
        (lambda core: core.delete(pod("a"), 7), ResourceVersionConflict),
    ],
)
def test_a_refused_write_changes_nothing(write: object, error: type[Exception]) -> None:
    core = MVCC()
    create(core, "a")
    with pytest.raises(error):
        write(core)  # type: ignore[operator]
    assert (core.revision, names(core, ListQuery())) == (2, ["a"])


def test_a_list_shows_any_revision_of_the_history() -> None:
    core = MVCC()
    create(core, "b", "a")  # 2, 3
    core.delete(pod("b"), None)  # 4
    create(core, "c")  # 5
    shown = {revision: names(core, ListQuery(revision=revision)) for revision in range(1, 6)}
    assert shown == {1: [], 2: ["b"], 3: ["a", "b"], 4: ["a"], 5: ["a", "c"]}
    with pytest.raises(ResourceVersionTooLarge):
        core.range(PODS, ListQuery(revision=6))


def is_blue(stored: StoredObject) -> bool:
    return stored.index.labels.get("colour") == "blue"


@pytest.mark.parametrize(
    ("query", "shown", "more"),
    [
        (ListQuery(limit=2), ["a", "b"], True),
        (ListQuery(limit=2, start=pod("c")), ["c", "d"], False),
        (ListQuery(limit=4), ["a", "b", "c", "d"], False),
        (ListQuery(predicate=is_blue), ["b", "d"], False),
        (ListQuery(limit=1, predicate=is_blue), ["b"], True),
    ],
)
def test_a_list_is_cut_and_selected_in_the_order_of_keys(query: ListQuery, shown: list[str], more: bool) -> None:
    core = MVCC()
    create(core, "c", "a")
    create(core, "d", "b", index=BLUE)
    assert (names(core, query), core.range(PODS, query).more) == (shown, more)


def test_what_is_compacted_is_unknown() -> None:
    core = MVCC()
    create(core, "a", "b", "c")
    core.compact(3)
    assert [change.revision for change in core.changes_after(3)] == [4]
    assert names(core, ListQuery(revision=3)) == ["a", "b"]
    for look in (lambda: core.changes_after(2), lambda: core.check_known(2), lambda: core.check_watchable(2)):
        with pytest.raises(Compacted):
            next(iter(look() or ()))
    with pytest.raises(ResourceVersionTooLarge):
        core.compact(9)


def test_the_number_of_events_is_bounded() -> None:
    core = MVCC(max_events=3)
    create(core, *"abcdef")
    assert core.compacted == 4
    assert [change.revision for change in core.changes_after(4)] == [5, 6, 7]


def test_reverting_writes_the_differences_only() -> None:
    core = MVCC()
    create(core, "a", "b")
    then = core.snapshot()
    core.delete(pod("a"), None)
    create(core, "c")
    changes = [(change.key, change.current is None) for change in core.revert(then)]
    assert sorted(changes) == [(pod("a"), False), (pod("c"), True)]
    assert names(core, ListQuery()) == ["a", "b"]


def labelled(core: MVCC, **labels: str) -> list[str] | None:
    found = core.with_labels(PODS, labels)
    return None if found is None else [stored.key.rpartition("/")[2] for stored in found]


def test_an_index_of_labels_follows_every_kind_of_write(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is written while an index is made, or later, it names the objects that have the label, and no more than a quarter of all."""
    monkeypatch.setattr(bucket, "_INDEXED_AT_ONCE", 7)
    core, chance = MVCC(), random.Random(1)
    values = ["a", "b", "c", ""]

    def write() -> None:
        key = f"{PODS}{chance.choice(['default', 'other'])}/{chance.randrange(60):02}"
        index = Index(
            labels=chance.choice([{}, {"app": chance.choice(values)}, {"app": "a", "tier": chance.choice(values)}])
        )
        stored = core.get(key)
        if stored is None:
            core.create(key, VALUE, OFFSET, index)
        elif chance.random() < 0.3:
            core.delete(key, None)
        elif chance.random() < 0.3:
            core.put_form(structs.replace(stored, index=index))
        else:
            core.update(key, VALUE, OFFSET, index, stored.mod_revision)

    def check() -> int:
        everything = core.range(PODS).items
        used = 0
        for value in values:
            found = core.with_labels(PODS, {"app": value, "other": "x"})
            expected = [stored for stored in everything if stored.index.labels.get("app") == value]
            assert (found is None) == (len(expected) * 4 > len(everything))
            if found is not None:
                assert found == expected
                below = core.with_labels(f"{PODS}other/", {"app": value})
                assert below == [stored for stored in expected if "/other/" in stored.key]
                used += 1
        return used

    for _ in range(100):
        write()
    assert core.with_labels(PODS, {"app": "a"}) is None
    for _ in core.index_labels(PODS, {"app": "a"}):
        write()
    used = 0
    for _ in range(300):
        write()
        used += check()
    assert used > 300
    snapshot = core.snapshot()
    for _ in range(50):
        write()
    for change in core.revert(snapshot):
        assert change
    check()


def test_indexes_are_few_and_an_unfinished_one_is_unused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bucket, "_INDEXED_AT_ONCE", 1)
    core = MVCC()
    for number in range(10):
        core.create(f"{PODS}default/{number}", VALUE, OFFSET, Index(labels={str(name): "x" for name in range(number)}))
    unfinished = core.index_labels(PODS, {"8": "x"})
    next(unfinished)
    assert core.with_labels(PODS, {"8": "x"}) is None
    del unfinished  # the list was cancelled
    for name in "87654":
        assert list(core.index_labels(PODS, {name: "x"})) or name == "4"
    found = core.with_labels(PODS, {"8": "x"})
    assert found is not None
    assert [stored.key[-1] for stored in found] == ["9"]
    assert core.with_labels(PODS, {"4": "x"}) is None  # one too many
    both = core.with_labels(PODS, {"4": "x", "7": "x"})
    assert both is not None
    assert len(both) == 2


class CountedKeys(list[str]):
    """Counts the keys that slices have copied."""

    copied = 0

    def __getitem__(self, place: Any) -> Any:
        found = super().__getitem__(place)
        self.copied += len(found) if isinstance(place, slice) else 0
        return found


@pytest.mark.parametrize("writes", [0, 3])
def test_a_page_copies_no_more_keys_than_it_has(writes: int) -> None:
    """The pages of a list take linear time together, also while others write."""
    state = MVCC()
    for number in range(1000):
        state.create(f"/registry/pods/default/p{number:04}", b'{"metadata":{"name":"p"}}', 13, Index())
    revision = state.revision
    expected = [item.key for item in state.range("/registry/pods/").items]
    for number in range(writes):
        state.create(f"/registry/pods/default/p00{number}x", b'{"metadata":{"name":"x"}}', 13, Index())
        state.delete(f"/registry/pods/default/p050{number}", None)
    pods = state._buckets["pods"]
    pods.sort()
    keys = pods.keys = CountedKeys(pods.keys)
    found: list[str] = []
    start = ""
    while True:
        page = state.range("/registry/pods/", ListQuery(revision=revision, start=start, limit=10))
        found += [item.key for item in page.items]
        assert page.remaining == 1000 - len(found)
        if not page.more:
            break
        start = found[-1] + "\0"
    assert found == expected
    assert keys.copied <= 1000 + 100 * writes
