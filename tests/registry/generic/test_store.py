"""The write loop: its order, lost races, generated names, dry runs and deletions, for config maps in memory."""

import asyncio
import json
import sys
from collections.abc import Callable, Coroutine
from typing import Any, Final

import pytest

from fakeapiserver.admission.interfaces import Attributes
from fakeapiserver.apimachinery.errors import StatusError
from fakeapiserver.apimachinery.gvk import GroupVersionKind, GroupVersionResource
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.apis.recorded import NEWEST, VERSIONS
from fakeapiserver.auth.interfaces import UserInfo
from fakeapiserver.clock import SystemClock
from fakeapiserver.registry.core import RESOURCES
from fakeapiserver.registry.generic.deletion import Deletion
from fakeapiserver.registry.generic.kind import BuiltinKind
from fakeapiserver.registry.generic.store import Store, StoreOptions
from fakeapiserver.registry.generic.versions import Versions
from fakeapiserver.registry.generic.write_request import WriteRequest, posted
from fakeapiserver.storage.keys import prefix_of
from fakeapiserver.storage.memory import MemoryStorage
from fakeapiserver.storage.mvcc import MVCC, Change

GVK: Final = GroupVersionKind("", "v1", "ConfigMap")
DEFINITIONS: Final = json.loads((VERSIONS / NEWEST / "schemas.json").read_bytes())
KIND: Final = BuiltinKind(GVK, "io.k8s.api.core.v1.ConfigMap", DEFINITIONS, lambda obj, version: None)


class Admission:
    """Remembers the operations that it sees, and calls `during` while it admits."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.during: Callable[[], Coroutine[Any, Any, object]] | None = None

    async def admit(self, attributes: Attributes) -> None:
        self.seen.append(f"admit {attributes.operation}")
        if self.during is not None:
            during, self.during = self.during, None
            await during()

    async def validate(self, attributes: Attributes) -> None:
        self.seen.append(f"validate {attributes.operation}")


class Names:
    """Generates the same name twice, then another."""

    def __init__(self) -> None:
        self.suffixes = ["a", "a", "b"]

    def __call__(self, generate_name: str) -> str:
        return generate_name + self.suffixes.pop(0)


@pytest.fixture
def admission() -> Admission:
    return Admission()


@pytest.fixture
def store(admission: Admission) -> Store:
    return Store(
        StoreOptions(
            gvr=GroupVersionResource("", "v1", "configmaps"),
            versions=Versions(GVK, lambda api_version: KIND, KIND.encode),
            namespaced=True,
            prefix=prefix_of("configmaps"),
            strategy=RESOURCES["configmaps"],
            storage=MemoryStorage(),
            admission=admission,
            clock=SystemClock(),
            name_generator=Names(),
        )
    )


def request(name: str = "", **options: Any) -> WriteRequest:
    return WriteRequest(KIND, UserInfo("admin"), "test", "default", name, **options)


def config_map(name: str = "x", **data: str) -> Object:
    return {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name, "namespace": "default"}, "data": data}


def setting(**data: str) -> Callable[[Object | None], Object]:
    """A change that adds to the data."""

    def change(current: Object | None) -> Object:
        assert current is not None
        return {**current, "data": {**current.get("data", {}), **data}}

    return change


async def create(store: Store, obj: Object) -> Object:
    return store.decode((await store.write(request(), posted(obj), create=True)).value)


def test_every_write_is_admitted_then_validated_then_stored(store: Store, admission: Admission) -> None:
    async def scenario() -> None:
        await create(store, config_map(a="1"))
        await store.write(request("x"), setting(b="2"))
        deleted = await store.deleter.delete(request("x"), Deletion())
        assert deleted.deleted
        assert admission.seen == [
            f"{step} {operation}" for operation in ("CREATE", "UPDATE", "DELETE") for step in ("admit", "validate")
        ]

    asyncio.run(scenario())


def test_a_write_that_loses_its_race_starts_over(store: Store, admission: Admission) -> None:
    async def scenario() -> None:
        await create(store, config_map(a="1"))
        admission.during = lambda: store.write(request("x"), setting(b="2"))
        written = store.decode((await store.write(request("x"), setting(c="3"))).value)
        assert written["data"] == {"a": "1", "b": "2", "c": "3"}

    asyncio.run(scenario())


def test_a_delete_that_loses_its_race_starts_over(store: Store, admission: Admission) -> None:
    async def scenario() -> None:
        await create(store, config_map(a="1"))
        admission.during = lambda: store.write(request("x"), setting(b="2"))
        deleted = await store.deleter.delete(request("x"), Deletion())
        assert (deleted.deleted, store.decode(deleted.value)["data"]) == (True, {"a": "1", "b": "2"})
        assert admission.seen.count("admit DELETE") == 2

    asyncio.run(scenario())


@pytest.mark.parametrize("successor", [False, True])
def test_a_delete_that_loses_its_race_looks_at_its_preconditions_again(
    successor: bool, store: Store, admission: Admission
) -> None:
    """The object is changed, or deleted and created again, after its first look."""

    async def scenario() -> None:
        meta = metadata(await create(store, config_map(a="1")))

        async def change() -> None:
            if successor:
                await store.deleter.delete(request("x"), Deletion())
                await create(store, config_map(b="2"))
            else:
                await store.write(request("x"), setting(b="2"))

        admission.during = change
        deletion = Deletion(uid=meta["uid"]) if successor else Deletion(resource_version=meta["resourceVersion"])
        with pytest.raises(StatusError, match="in the precondition") as refused:
            await store.deleter.delete(request("x"), deletion)
        assert refused.value.code == 409
        stored = await store.storage.get(store.key("default", "x"))
        assert stored is not None
        assert store.decode(stored.value)["data"]["b"] == "2"

    asyncio.run(scenario())


def test_an_object_that_exists_meanwhile_is_updated(store: Store, admission: Admission) -> None:
    async def scenario() -> None:
        admission.during = lambda: create(store, config_map(a="1"))
        apply = lambda current: setting(b="2")(current) if current else config_map(b="2")  # noqa: E731
        written = await store.write(request("x"), apply, create=True)
        assert not written.created
        assert store.decode(written.value)["data"] == {"a": "1", "b": "2"}

    asyncio.run(scenario())


def test_another_name_is_generated_if_the_first_is_taken(store: Store) -> None:
    async def scenario() -> None:
        unnamed = config_map()
        unnamed["metadata"] = {"generateName": "x-", "namespace": "default"}
        names = [metadata(await create(store, unnamed))["name"] for _ in range(2)]
        assert names == ["x-a", "x-b"]

    asyncio.run(scenario())


def test_what_cant_be_written_is_refused(store: Store) -> None:
    async def scenario() -> list[str]:
        await create(store, config_map())
        refusals = []
        for write in (
            create(store, config_map()),
            store.write(request("y"), setting()),
            store.write(request("x", uid_precondition="u"), setting()),
            store.write(
                request("x"), lambda current: {**config_map(), "metadata": {"name": "x", "resourceVersion": "1"}}
            ),
            store.write(request("x"), setting(**{"no key!": ""})),
        ):
            with pytest.raises(StatusError) as refused:
                await write
            refusals.append(f"{refused.value.code} {refused.value.status['reason']}")
        return refusals

    assert asyncio.run(scenario()) == [
        "409 AlreadyExists",
        "404 NotFound",
        "409 Conflict",
        "409 Conflict",
        "422 Invalid",
    ]


def test_a_dry_run_stores_nothing(store: Store) -> None:
    async def scenario() -> None:
        await create(store, config_map(a="1"))
        revision = store.storage.revision
        await store.write(request(dry_run=True), posted(config_map("y")), create=True)
        written = await store.write(request("x", dry_run=True), setting(b="2"))
        await store.deleter.delete(request("x", dry_run=True), Deletion())
        assert store.decode(written.value)["data"] == {"a": "1", "b": "2"}
        assert store.storage.revision == revision

    asyncio.run(scenario())


def test_an_update_that_changes_nothing_isnt_written(store: Store) -> None:
    async def scenario() -> None:
        created = await create(store, config_map(a="1"))
        written = await store.write(request("x"), setting(a="1"))
        assert metadata(store.decode(written.value))["resourceVersion"] == metadata(created)["resourceVersion"]

    asyncio.run(scenario())


def test_an_object_with_finalizers_is_marked_and_goes_with_the_last_of_them(store: Store) -> None:
    async def scenario() -> None:
        obj = config_map()
        metadata(obj)["finalizers"] = ["example.com/f"]
        await create(store, obj)
        marked = await store.deleter.delete(request("x"), Deletion())
        assert not marked.deleted
        assert "deletionTimestamp" in metadata(store.decode(marked.value))
        again = await store.deleter.delete(request("x"), Deletion())
        assert again.value == marked.value

        def freed(current: Object | None) -> Object:
            assert current is not None
            return {**current, "metadata": {**metadata(current), "finalizers": []}}

        await store.write(request("x"), freed)
        assert await store.storage.get(store.key("default", "x")) is None

    asyncio.run(scenario())


def test_three_calls_lead_from_a_verb_to_the_commit(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """The verb calls Store.write, and MVCC's create or update commits."""
    paths: list[list[str]] = []
    commit = MVCC.commit

    def spy(mvcc: MVCC, change: Change) -> Change:
        frame, path = sys._getframe(1), list[str]()
        while frame.f_code.co_name != "verb":
            path.insert(0, frame.f_code.co_name)
            assert frame.f_back is not None
            frame = frame.f_back
        paths.append(path)
        return commit(mvcc, change)

    async def verb() -> None:
        await store.write(request(), posted(config_map()), create=True)
        await store.write(request("x"), setting(b="2"))

    monkeypatch.setattr(MVCC, "commit", spy)
    asyncio.run(verb())
    assert paths == [["write", "insert", "create", "create"], ["write", "replace", "update", "update"]]
