"""Volumes of drivers are attached where pods need them, and detached where they don't."""

from typing import Any

import pytest

from fakeapiserver.component_helpers.objects import (
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    VOLUME_ATTACHMENTS,
)
from fakeapiserver.component_helpers.volumes.attachable_volumes import Volume, split_name, volume_of
from fakeapiserver.controllers.attach_detach.controller import attachment_name
from fakeapiserver.controllers.attach_detach.desired_state import MANAGED
from tests.controllers.harness import Harness, Object, run

CONTROLLERS = ("persistentvolume-binder-controller", "persistentvolume-attach-detach-controller")
DRIVER = "driver.example.com"
UNIQUE = f"kubernetes.io/csi/{DRIVER}^h"


async def prepare(cluster: Harness, *modes: str) -> None:
    for name in ("a", "b"):
        await cluster.create(NODES, {"metadata": {"name": name, "annotations": {MANAGED: "true"}}}, "")
    spec = {"accessModes": [*modes], "storageClassName": ""}
    source = {"csi": {"driver": DRIVER, "volumeHandle": "h"}, "capacity": {"storage": "1Gi"}}
    await cluster.create(PERSISTENT_VOLUMES, {"metadata": {"name": "v"}, "spec": {**spec, **source}}, "")
    asked = {"volumeName": "v", "resources": {"requests": {"storage": "1Gi"}}}
    await cluster.create(PERSISTENT_VOLUME_CLAIMS, {"metadata": {"name": "data"}, "spec": {**spec, **asked}})


async def pod(cluster: Harness, name: str, node: str) -> None:
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
    spec = {"nodeName": node, "containers": [{"name": "c", "image": "x"}], "volumes": volumes}
    await cluster.create(PODS, {"metadata": {"name": name}, "spec": spec})


async def delete(cluster: Harness, name: str) -> None:
    await cluster.of(PODS).delete(name, grace_period_seconds=0)
    await cluster.settle()


async def answer(cluster: Harness, node: str, **status: Any) -> None:
    await cluster.patch_status(VOLUME_ATTACHMENTS, attachment_name("h", DRIVER, node), status, "")


async def attached(cluster: Harness, node: str) -> list[str]:
    status: Object = (await cluster.get(NODES, node, ""))["status"]
    return [row["name"] for row in status.get("volumesAttached") or ()]


async def attachments(cluster: Harness) -> list[str]:
    found = (await cluster.of(VOLUME_ATTACHMENTS, "").list())["items"]
    return [row["spec"]["nodeName"] for row in found]


def test_a_volume_follows_its_pods() -> None:
    async def scenario(cluster: Harness) -> None:
        await prepare(cluster, "ReadWriteOnce")
        await pod(cluster, "p", "a")
        assert (await attachments(cluster), await attached(cluster, "a")) == (["a"], [])
        await answer(cluster, "a", attached=True)
        assert await attached(cluster, "a") == [UNIQUE]
        await pod(cluster, "q", "b")
        assert await attachments(cluster) == ["a"]
        await delete(cluster, "p")
        assert (await attachments(cluster), await attached(cluster, "a")) == (["b"], [])
        await answer(cluster, "b", attached=True)
        assert await attached(cluster, "b") == [UNIQUE]
        told = [row for row in await cluster.events() if row[0].endswith("AttachVolume")]
        assert told == [
            ("SuccessfulAttachVolume", 'AttachVolume.Attach succeeded for volume "v" '),
            ("FailedAttachVolume", 'Waiting for detach for volume "v" Volume is already used by pod(s) p'),
            ("SuccessfulAttachVolume", 'AttachVolume.Attach succeeded for volume "v" '),
        ]

    run(scenario, *CONTROLLERS)


def test_a_mounted_volume_is_detached_when_its_node_is_given_up() -> None:
    async def scenario(cluster: Harness) -> None:
        await prepare(cluster, "ReadWriteOnce")
        await pod(cluster, "p", "a")
        await answer(cluster, "a", attached=True)
        await cluster.patch_status(NODES, "a", {"volumesInUse": [UNIQUE]}, "")
        await delete(cluster, "p")
        await cluster.advance(300)
        assert await attachments(cluster) == ["a"]
        await cluster.advance(61)
        assert await attachments(cluster) == []

    run(scenario, *CONTROLLERS)


def test_a_volume_stays_where_its_pod_is_though_the_node_goes() -> None:
    async def scenario(cluster: Harness) -> None:
        await prepare(cluster, "ReadWriteMany")
        await pod(cluster, "p", "a")
        await answer(cluster, "a", attached=True)
        await cluster.of(NODES, "").delete("a")
        await cluster.settle()
        assert await attachments(cluster) == ["a"]
        await delete(cluster, "p")
        assert await attachments(cluster) == []

    run(scenario, *CONTROLLERS)


def test_a_driver_that_fails_is_asked_again_later() -> None:
    async def scenario(cluster: Harness) -> None:
        await prepare(cluster, "ReadWriteOnce")
        await pod(cluster, "p", "a")
        await answer(cluster, "a", attachError={"message": "no room"})
        await answer(cluster, "a", attachError=None)
        await cluster.advance(121 + 123)
        messages = {message for reason, message in await cluster.events() if reason == "FailedAttachVolume"}
        assert messages == {
            'AttachVolume.Attach failed for volume "v" : no room',
            f'AttachVolume.Attach failed for volume "v" : timed out waiting for external-attacher of {DRIVER} CSI driver to '
            "attach volume h",
        }
        assert await attached(cluster, "a") == []

    run(scenario, *CONTROLLERS)


def test_what_can_be_shared_is_on_several_nodes() -> None:
    async def scenario(cluster: Harness) -> None:
        await prepare(cluster, "ReadWriteMany")
        await pod(cluster, "p", "a")
        await pod(cluster, "q", "b")
        assert sorted(await attachments(cluster)) == ["a", "b"]

    run(scenario, *CONTROLLERS)


@pytest.mark.parametrize(
    ("name", "parts"),
    [(UNIQUE, (DRIVER, "h")), ("kubernetes.io/iscsi/x", None), ("kubernetes.io/csi/x", None)],
)
def test_the_unique_name_of_a_volume_contains_its_driver(name: str, parts: tuple[str, str] | None) -> None:
    assert split_name(name) == parts


def test_only_volumes_of_drivers_are_attached() -> None:
    source = {"csi": {"driver": DRIVER, "volumeHandle": "h"}, "accessModes": ["ReadOnlyMany"]}
    assert volume_of({"metadata": {"name": "v"}, "spec": source}) == Volume(DRIVER, "h", "v", shared=True)
    assert volume_of({"metadata": {"name": "v"}, "spec": {"hostPath": {"path": "/x"}}}) is None
