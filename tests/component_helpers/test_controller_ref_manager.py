"""Adopting orphans, releasing what is selected no more."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from fakeapiserver.apimachinery import labels
from fakeapiserver.apimachinery.errors import new_invalid, new_not_found
from fakeapiserver.apimachinery.gvk import GroupKind, GroupResource, GroupVersionKind
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.client.errors import StatusError
from fakeapiserver.component_helpers.workloads.controller_ref_manager import AdoptionRefused, ControllerRefManager

KIND = GroupVersionKind("apps", "v1", "ReplicaSet")
GONE = new_not_found(GroupResource("", "pods"), "p")
OTHER = new_invalid(GroupKind("", "Pod"), "p", [])


def controller(**metadata: str) -> Object:
    return {"metadata": {"name": "web", "namespace": "default", "uid": "u1", **metadata}}


def pod(app: str = "web", owner: str = "", **metadata: str) -> Object:
    found: dict[str, Any] = {"name": "p", "namespace": "default", "uid": "p1", "labels": {"app": app}, **metadata}
    if owner:
        found["ownerReferences"] = [{"kind": "ReplicaSet", "name": "web", "uid": owner, "controller": True}]
    return {"metadata": found}


def claim(
    objects: Sequence[Object], *, fresh: Object | None = None, error: StatusError | None = None, owner: Object
) -> tuple[list[Object], list[Object]]:
    """(what is claimed, the patches sent)."""
    patches: list[Object] = []

    async def patch(name: str, change: Object) -> None:
        patches.append(change)
        if error is not None:
            raise error

    async def read() -> Object:
        return fresh or owner

    manager = ControllerRefManager(owner, KIND, labels.parse("app=web"), "Pod", patch, read)
    return asyncio.run(manager.claim(objects)), patches


@pytest.mark.parametrize(
    ("found", "owner", "claimed", "patch"),
    [
        (pod(owner="u1"), controller(), True, None),
        (pod(owner="u1"), controller(deletionTimestamp="t"), True, None),
        (pod(owner="u2"), controller(), False, None),
        (pod(), controller(), True, "controller"),
        (pod(), controller(deletionTimestamp="t"), False, None),
        (pod(deletionTimestamp="t"), controller(), False, None),
        (pod(namespace="elsewhere"), controller(), False, None),
        (pod("db"), controller(), False, None),
        (pod("db", owner="u1"), controller(), False, "$patch"),
        (pod("db", owner="u1"), controller(deletionTimestamp="t"), False, None),
    ],
)
def test_what_becomes_of_an_object(found: Object, owner: Object, claimed: bool, patch: str | None) -> None:
    objects, patches = claim([found], owner=owner)
    assert objects == ([found] if claimed else [])
    assert [patch in change["metadata"]["ownerReferences"][0] for change in patches] == ([True] if patch else [])
    assert all(change["metadata"]["uid"] == "p1" for change in patches)


@pytest.mark.parametrize(("found", "error"), [(pod(), GONE), (pod("db", owner="u1"), GONE), (pod("db", "u1"), OTHER)])
def test_what_is_gone_is_no_failure(found: Object, error: StatusError) -> None:
    assert claim([found], error=error, owner=controller())[0] == []


@pytest.mark.parametrize(
    ("fresh", "text"),
    [
        (controller(uid="u2"), "original ReplicaSet default/web is gone: got uid u2, wanted u1"),
        (controller(deletionTimestamp="t"), "default/web has just been deleted at t"),
    ],
)
def test_a_controller_that_is_gone_adopts_nothing(fresh: Object, text: str) -> None:
    with pytest.raises(AdoptionRefused, match=text):
        claim([pod()], fresh=fresh, owner=controller())


def test_the_server_is_asked_once_for_all_adoptions() -> None:
    asked = 0

    async def read() -> Object:
        nonlocal asked
        asked += 1
        return controller()

    async def patch(name: str, change: Object) -> None:
        pass

    manager = ControllerRefManager(controller(), KIND, labels.parse("app=web"), "Pod", patch, read)
    assert len(asyncio.run(manager.claim([pod(), pod()]))) == 2
    assert asked == 1
