"""Tests an informer's storage: the queue of changes and the indexed store."""

import pytest

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.client.cache.delta_fifo import DeltaFIFO, DeltaType
from fakeapiserver.client.cache.indexer import (
    NAMESPACE_INDEX,
    DeletedFinalStateUnknown,
    Indexer,
    namespace_index,
    split_meta_namespace_key,
)

ADDED, UPDATED, DELETED, REPLACED, SYNC = DeltaType


def obj(name: str, version: int = 1, namespace: str = "ns", **labels: str) -> Object:
    return {"metadata": {"name": name, "namespace": namespace, "resourceVersion": str(version), "labels": labels}}


def drained(fifo: DeltaFIFO) -> dict[str, list[DeltaType]]:
    found = {}
    while (deltas := fifo.pop()) is not None:
        found[deltas.key] = [delta.type for delta in deltas.changes]
    return found


def test_changes_of_one_object_stay_together_in_order() -> None:
    fifo = DeltaFIFO(Indexer())
    fifo.add(obj("a"))
    fifo.add(obj("b"))
    fifo.update(obj("a", 2))
    fifo.delete(obj("a", 3))
    fifo.delete(obj("a", 4))
    assert drained(fifo) == {"ns/a": [ADDED, UPDATED, DELETED], "ns/b": [ADDED]}


def test_the_deletion_of_an_unknown_object_is_not_queued() -> None:
    fifo = DeltaFIFO(Indexer())
    fifo.delete(obj("a"))
    assert fifo.pop() is None


def test_what_a_list_lacks_was_deleted_unseen() -> None:
    known = Indexer()
    known.add(obj("gone", 3))
    known.add(obj("kept", 3))
    fifo = DeltaFIFO(known)
    fifo.update(obj("queued", 4))
    fifo.replace([obj("kept", 5), obj("new", 5)])
    changes = {}
    while (deltas := fifo.pop()) is not None:
        changes[deltas.key] = deltas.changes[-1]
    assert {key: delta.type for key, delta in changes.items()} == {
        "ns/queued": DELETED,
        "ns/kept": REPLACED,
        "ns/new": REPLACED,
        "ns/gone": DELETED,
    }
    assert changes["ns/gone"].object == DeletedFinalStateUnknown("ns/gone", obj("gone", 3))
    assert changes["ns/queued"].object == DeletedFinalStateUnknown("ns/queued", obj("queued", 4))


def test_it_has_synced_when_the_first_list_was_taken_out() -> None:
    fifo = DeltaFIFO(Indexer())
    assert not fifo.has_synced
    fifo.replace([obj("a"), obj("b")])
    first = fifo.pop()
    assert first is not None
    assert first.in_initial_list
    assert not fifo.has_synced
    fifo.pop()
    assert fifo.has_synced
    fifo.replace([obj("a", 2)])
    later = fifo.pop()
    assert later is not None
    assert not later.in_initial_list


def test_resync_asks_for_a_look_at_what_does_not_wait_anyway() -> None:
    known = Indexer()
    for name in "ab":
        known.add(obj(name))
    fifo = DeltaFIFO(known)
    fifo.update(obj("a", 2))
    fifo.resync()
    assert drained(fifo) == {"ns/a": [UPDATED], "ns/b": [SYNC]}


def test_a_transform_sees_each_object_once() -> None:
    seen = []

    def transform(found: Object) -> Object:
        seen.append(found["metadata"]["name"])
        return {"metadata": {**found["metadata"], "labels": {}}}

    known = Indexer()
    fifo = DeltaFIFO(known, transform)
    fifo.add(obj("a", app="web"))
    deltas = fifo.pop()
    assert deltas is not None
    known.add(deltas.changes[0].object)  # type: ignore[arg-type]
    fifo.resync()
    fifo.replace([])
    assert seen == ["a"]


def test_indexes_follow_every_change() -> None:
    indexer = Indexer({NAMESPACE_INDEX: namespace_index, "app": lambda o: o["metadata"]["labels"].values()})
    indexer.add(obj("a", app="web"))
    indexer.add(obj("b", app="web"))
    indexer.add(obj("c", namespace="other", app="db"))
    assert indexer.index_keys("app", "web") == ["ns/a", "ns/b"]
    indexer.update(obj("a", 2, app="db"))
    assert [o["metadata"]["name"] for o in indexer.by_index("app", "db")] == ["c", "a"]
    indexer.delete(obj("b"))
    assert indexer.index_values("app") == ["db"]
    assert [o["metadata"]["name"] for o in indexer.index("app", obj("x", app="db"))] == ["c", "a"]
    indexer.add_indexers({"version": lambda o: (o["metadata"]["resourceVersion"],)})
    assert indexer.index_keys("version", "2") == ["ns/a"]
    indexer.replace([obj("z")])
    assert indexer.list_keys() == ["ns/z"]
    assert indexer.index_keys(NAMESPACE_INDEX, "other") == []
    with pytest.raises(KeyError, match="Index with name nope does not exist"):
        indexer.by_index("nope", "x")
    with pytest.raises(ValueError, match="indexer conflict: app"):
        indexer.add_indexers({"app": namespace_index})


def test_an_object_that_an_index_function_fails_on_changes_nothing() -> None:
    indexer = Indexer({"app": lambda o: (o["metadata"]["labels"]["app"],)})
    indexer.add(obj("a", app="web"))
    with pytest.raises(KeyError):
        indexer.update(obj("a", 2))
    assert indexer.by_index("app", "web") == [obj("a", app="web")]


@pytest.mark.parametrize(("key", "parts"), [("ns/name", ("ns", "name")), ("name", ("", "name"))])
def test_keys_are_split(key: str, parts: tuple[str, str]) -> None:
    assert split_meta_namespace_key(key) == parts


def test_an_invalid_key_is_reported() -> None:
    with pytest.raises(ValueError, match='unexpected key format: "a/b/c"'):
        split_meta_namespace_key("a/b/c")
