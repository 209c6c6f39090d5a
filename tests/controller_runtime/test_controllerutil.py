"""Patches, owners and finalizers."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from fakeapiserver.apimachinery.patch import json as json_patches
from fakeapiserver.client.errors import StatusError
from fakeapiserver.controller_runtime import Client
from fakeapiserver.controller_runtime.controllerutil import (
    AlreadyOwnedError,
    add_finalizer,
    create_or_patch,
    create_or_update,
    has_controller_reference,
    has_owner_reference,
    merge_patch,
    remove_controller_reference,
    remove_finalizer,
    remove_owner_reference,
    set_controller_reference,
    set_owner_reference,
)
from fakeapiserver.controller_runtime.finalizer import Finalizers
from fakeapiserver.controller_runtime.webhook.admission import json_patch

OWNER: dict[str, Any] = {
    "apiVersion": "example.com/v1",
    "kind": "Widget",
    "metadata": {"name": "w", "namespace": "ns", "uid": "1"},
}


def controlled(**metadata: object) -> dict[str, Any]:
    return {"metadata": {"name": "a", "namespace": "ns", **metadata}}


def test_an_object_has_one_controller_and_several_owners() -> None:
    obj = controlled()
    set_owner_reference(OWNER, obj)
    set_controller_reference(OWNER, obj)
    reference = {"apiVersion": "example.com/v1", "kind": "Widget", "name": "w", "uid": "1"}
    assert obj["metadata"]["ownerReferences"] == [{**reference, "controller": True, "blockOwnerDeletion": True}]
    other = {**OWNER, "metadata": {**OWNER["metadata"], "name": "x", "uid": "2"}}
    with pytest.raises(
        AlreadyOwnedError, match=r"^Object ns/a is already owned by another Widget controller w$"
    ) as caught:
        set_controller_reference(other, obj)
    assert (caught.value.object, caught.value.owner["name"]) == (obj, "w")
    again = {**OWNER, "apiVersion": "example.com/v2", "metadata": {**OWNER["metadata"], "uid": "3"}}
    # created again, in another version: the same owner
    set_controller_reference(again, obj, block_owner_deletion=False)
    assert obj["metadata"]["ownerReferences"] == [
        {**reference, "apiVersion": "example.com/v2", "uid": "3", "controller": True, "blockOwnerDeletion": False}
    ]
    set_owner_reference(other, obj)
    assert [row["name"] for row in obj["metadata"]["ownerReferences"]] == ["w", "x"]


@pytest.mark.parametrize(
    ("namespace", "message"),
    [
        ("", "cluster-scoped resource must not have a namespace-scoped owner"),
        ("other", "cross-namespace owner references"),
    ],
)
def test_owners_of_other_namespaces_are_refused(namespace: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        set_controller_reference(OWNER, {"metadata": {"name": "a", "namespace": namespace}})


def test_owners_are_taken_off() -> None:
    obj, other = controlled(), {**OWNER, "metadata": {**OWNER["metadata"], "name": "x"}}
    set_controller_reference(OWNER, obj)
    set_owner_reference(other, obj)
    assert [has_controller_reference(obj), has_owner_reference(obj, other)] == [True, True]
    remove_owner_reference(other, obj)
    remove_controller_reference(OWNER, obj)
    assert [has_controller_reference(obj), has_owner_reference(obj, other)] == [False, False]
    assert obj["metadata"]["ownerReferences"] == []


ANOTHER: dict[str, Any] = {**OWNER, "metadata": {"name": "x", "namespace": "ns", "uid": "2"}}
OWNED = [{"apiVersion": "example.com/v1", "kind": "Widget", "name": "w", "uid": "1"}]
CONTROLLED = [{**OWNED[0], "controller": True}, {**OWNED[0], "name": "y"}]


@pytest.mark.parametrize(
    ("remove", "references", "owner", "message"),
    [
        (remove_owner_reference, [], OWNER, "Pod does not have any owner references"),
        (remove_owner_reference, OWNED, ANOTHER, "Pod does not have an owner reference for Widget"),
        (remove_controller_reference, OWNED, OWNER, "Pod does not have a owner reference with controller equals true"),
        (remove_controller_reference, CONTROLLED, ANOTHER, "Pod does not have an controller reference for Widget"),
        (
            remove_controller_reference,
            CONTROLLED,
            {**OWNER, "metadata": {**OWNER["metadata"], "name": "y"}},
            "Widget owner is not the controller reference for Pod",
        ),
    ],
)
def test_who_is_no_owner_is_not_taken_off(
    remove: Callable[[Any, dict[str, Any]], None], references: list[Any], owner: dict[str, Any], message: str
) -> None:
    obj = {"kind": "Pod", **controlled(ownerReferences=references)}
    with pytest.raises(ValueError, match=f"^{message}$"):
        remove(owner, obj)
    assert obj["metadata"]["ownerReferences"] == references


def test_finalizers_are_put_on_and_taken_off_once() -> None:
    obj = controlled()
    assert [add_finalizer(obj, "example.com/x"), add_finalizer(obj, "example.com/x")] == [True, False]
    assert [remove_finalizer(obj, "example.com/x"), remove_finalizer(obj, "example.com/x")] == [True, False]
    assert obj["metadata"]["finalizers"] == []


@pytest.mark.parametrize(
    ("old", "new", "patch"),
    [
        ({"a": 1}, {"a": 1}, {}),
        ({"a": 1, "b": 2}, {"a": 2}, {"a": 2, "b": None}),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 1}}, {"a": {"c": None}}),
        ({"a": [1, 2]}, {"a": [2]}, {"a": [2]}),
        ({}, {"a": {"b": 1}}, {"a": {"b": 1}}),
    ],
)
def test_merge_patches(old: dict[str, Any], new: dict[str, Any], patch: dict[str, Any]) -> None:
    assert merge_patch(old, new) == patch


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"a": 1}, {"a": 2, "b": {"c": []}}),
        ({"a/b": 1, "c~d": {"x": 1}}, {"c~d": {"y/z": 2}}),
        ({"a": [{"b": 1}, {"b": 2}]}, {"a": [{"b": 1}, {"b": 3, "c": 4}]}),
        ({"a": [1, 2, 3]}, {"a": [1]}),
        ({"a": True}, {"a": 1}),
        ({"a": None}, {"a": {}}),
    ],
)
def test_json_patches_make_the_new_of_the_old(old: dict[str, Any], new: dict[str, Any]) -> None:
    assert json_patches.apply(old, json_patches.decode(json.dumps(json_patch(old, new)).encode())) == new


class Stored(Client):
    """A server with one object."""

    def __init__(self, stored: dict[str, Any] | None) -> None:
        self.stored = stored
        self.done: list[Any] = []

    async def get(self, kind: Any, name: str, namespace: str = "", **options: Any) -> Any:
        if self.stored is None:
            raise StatusError({"code": 404, "reason": "NotFound", "message": "not found"})
        return self.stored

    async def create(self, obj: Any) -> Any:
        self.done.append("create")
        return obj

    async def update(self, obj: Any, subresource: str = "") -> Any:
        self.done.append("update")
        return obj

    async def patch(self, obj: Any, patch: Any, subresource: str = "", **options: Any) -> Any:
        self.done.append((subresource, patch))
        return obj


MADE: dict[str, Any] = {**OWNER, "spec": {"size": 1}, "status": {"ready": 1}}


@pytest.mark.parametrize(
    ("stored", "changes", "result", "done"),
    [
        (None, {"spec": {"size": 1}}, "created", ["create"]),
        (MADE, {}, "unchanged", []),
        (MADE, {"spec": {"size": 2}}, "updated", [("", {"spec": {"size": 2}})]),
        (MADE, {"status": {"ready": 2}}, "updatedStatusOnly", [("status", {"status": {"ready": 2}})]),
        (
            MADE,
            {"spec": {"size": 2}, "status": {"ready": 2}},
            "updatedStatus",
            [("", {"spec": {"size": 2}}), ("status", {"status": {"ready": 2}})],
        ),
    ],
)
def test_create_or_patch_sends_what_changed(
    stored: dict[str, Any] | None, changes: dict[str, Any], result: str, done: list[Any]
) -> None:
    client = Stored(stored)
    _, found = asyncio.run(create_or_patch(client, OWNER, lambda obj: obj.update(changes)))
    assert (found, client.done) == (result, done)


@pytest.mark.parametrize("work", [create_or_update, create_or_patch])
def test_what_goes_wrong_writes_nothing(work: Callable[..., Any]) -> None:
    def renamed(obj: dict[str, Any]) -> None:
        obj["metadata"]["name"] = "y"

    async def failing(obj: dict[str, Any]) -> None:
        raise KeyError("a mistake")

    for stored in (None, MADE):
        client = Stored(stored)
        with pytest.raises(ValueError, match="MutateFn cannot mutate object name and/or object namespace"):
            asyncio.run(work(client, OWNER, renamed))
        with pytest.raises(KeyError, match="a mistake"):
            asyncio.run(work(client, OWNER, failing))
        assert client.done == []
        assert asyncio.run(work(client, OWNER, None))[1] == ("created" if stored is None else "unchanged")


def test_finalizers_report_what_failed() -> None:
    async def fails(obj: dict[str, Any]) -> None:
        raise ValueError(f"{obj['metadata']['name']} is busy")

    async def works(obj: dict[str, Any]) -> None:
        await asyncio.sleep(0)

    finalizers = Finalizers()
    for name, finalize in (("example.com/a", fails), ("example.com/b", works), ("example.com/c", fails)):
        finalizers.register(name, finalize)
    with pytest.raises(ValueError, match=r'^finalizer for key "example.com/a" already registered$'):
        finalizers.register("example.com/a", works)
    with pytest.raises(ValueError, match=r'^finalizer "no/such/name": '):
        finalizers.register("no/such/name", works)
    kept = ["example.com/a", "example.com/c", "other.com/d"]
    metadata = {"name": "w", "resourceVersion": "7", "finalizers": [*kept, "example.com/b"], "deletionTimestamp": "now"}
    client = Stored(None)
    with pytest.raises(ExceptionGroup) as caught:
        asyncio.run(finalizers.finalize(client, {"metadata": metadata}))
    expected = 'finalizer "example.com/a" failed: w is busy; finalizer "example.com/c" failed: w is busy'
    assert caught.value.message == expected
    assert client.done == [("", {"metadata": {"finalizers": kept, "resourceVersion": "7"}})]
