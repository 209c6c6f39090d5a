"""Patches, owners and finalizers."""

import json
from typing import Any

import pytest

from fakeapiserver.apimachinery.patch import json as json_patches
from fakeapiserver.controller_runtime.controllerutil import (
    AlreadyOwnedError,
    add_finalizer,
    merge_patch,
    remove_finalizer,
    set_controller_reference,
    set_owner_reference,
)
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
    with pytest.raises(AlreadyOwnedError, match="already owned by another Widget controller w"):
        set_controller_reference(other, obj)
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
