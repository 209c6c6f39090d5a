"""Volumes, claims and classes exist as long as they are used; pods' own claims are created for them."""

import pytest

from fakeapiserver.apimachinery.gvk import GroupVersionResource
from fakeapiserver.apis.recorded import NEWEST
from fakeapiserver.component_helpers.objects import (
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    VOLUME_ATTRIBUTES_CLASSES,
)
from tests.controllers.harness import Harness, Object, run

CLAIM_SPEC: Object = {
    "accessModes": ["ReadWriteOnce"],
    "storageClassName": "none",
    "resources": {"requests": {"storage": "1Gi"}},
}


def pod(*volumes: Object, node: str = "n1") -> Object:
    containers = [{"name": "c", "image": "i"}]
    return {"metadata": {"name": "user"}, "spec": {"nodeName": node, "containers": containers, "volumes": [*volumes]}}


USING: Object = {"name": "v", "persistentVolumeClaim": {"claimName": "data"}}
EPHEMERAL: Object = {
    "name": "own",
    "ephemeral": {"volumeClaimTemplate": {"metadata": {"labels": {"a": "b"}}, "spec": CLAIM_SPEC}},
}


async def create_claim(cluster: Harness, name: str = "data", **spec: str) -> None:
    await cluster.create(PERSISTENT_VOLUME_CLAIMS, {"metadata": {"name": name}, "spec": {**CLAIM_SPEC, **spec}})


async def delete(cluster: Harness, resource: GroupVersionResource, name: str, namespace: str = "default") -> bool:
    """Reports whether it is gone afterwards."""
    await cluster.of(resource, namespace).delete(name)
    await cluster.settle()
    return name not in await cluster.names(resource, namespace)


@pytest.mark.parametrize(("node", "kept"), [("n1", True), ("", False)])
def test_a_claim_stays_while_a_pod_on_a_node_uses_it(node: str, kept: bool) -> None:
    async def scenario(cluster: Harness) -> None:
        await create_claim(cluster)
        await cluster.create(PODS, pod(USING, node=node))
        assert await delete(cluster, PERSISTENT_VOLUME_CLAIMS, "data") is not kept
        await cluster.of(PODS).delete("user", grace_period_seconds=0)
        await cluster.settle()
        assert await cluster.names(PERSISTENT_VOLUME_CLAIMS) == []

    run(scenario, "persistentvolumeclaim-protection-controller")


async def unused(cluster: Harness) -> Object:
    """The condition of the claim `data`, and {} without one."""
    found = (await cluster.get(PERSISTENT_VOLUME_CLAIMS, "data"))["status"].get("conditions") or [{}]
    return {key: found[0].get(key) for key in ("status", "reason", "lastTransitionTime") if found[0]}


def test_a_bound_claim_says_since_when_no_pod_refers_to_it() -> None:
    async def scenario(cluster: Harness) -> None:
        await create_claim(cluster)
        assert await unused(cluster) == {}
        await cluster.patch_status(PERSISTENT_VOLUME_CLAIMS, "data", {"phase": "Bound"})
        bound = await unused(cluster)
        assert (bound["status"], bound["reason"]) == ("True", "NoPodsUsingPVC")

        await cluster.advance(60)
        await cluster.create(PODS, pod(USING, node=""))
        used = await unused(cluster)
        assert (used["status"], used["reason"]) == ("False", "PodUsingPVC")
        assert used["lastTransitionTime"] > bound["lastTransitionTime"]

        await cluster.advance(60)
        assert await unused(cluster) == used
        await cluster.patch_status(PODS, "user", {"phase": "Succeeded"})
        ended = await unused(cluster)
        assert ended["status"] == "True"
        assert ended["lastTransitionTime"] > used["lastTransitionTime"]

    run(scenario, "persistentvolumeclaim-protection-controller")


@pytest.mark.parametrize(
    ("gates", "version"), [({"PersistentVolumeClaimUnusedSinceTime": False}, NEWEST), ({}, "1.36")]
)
def test_without_the_gate_a_claim_says_nothing_of_its_use(gates: dict[str, bool], version: str) -> None:
    async def scenario(cluster: Harness) -> None:
        await create_claim(cluster)
        await cluster.patch_status(PERSISTENT_VOLUME_CLAIMS, "data", {"phase": "Bound"})
        await cluster.create(PODS, pod(USING, node=""))
        assert await unused(cluster) == {}

    run(scenario, "persistentvolumeclaim-protection-controller", feature_gates=gates, version=version)


def test_a_volume_stays_while_it_is_bound() -> None:
    async def scenario(cluster: Harness) -> None:
        spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}
        volume = {"metadata": {"name": "disk"}, "spec": spec, "status": {"phase": "Bound"}}
        await cluster.create(PERSISTENT_VOLUMES, volume, "")
        assert not await delete(cluster, PERSISTENT_VOLUMES, "disk", "")
        await cluster.patch_status(PERSISTENT_VOLUMES, "disk", {"phase": "Released"}, "")
        assert await cluster.names(PERSISTENT_VOLUMES, "") == []

    run(scenario, "persistentvolume-protection-controller")


def test_a_class_of_attributes_stays_while_it_is_named() -> None:
    async def scenario(cluster: Harness) -> None:
        made = {"metadata": {"name": "fast"}, "driverName": "d", "parameters": {"iops": "9"}}
        await cluster.create(VOLUME_ATTRIBUTES_CLASSES, made, "")
        found = await cluster.get(VOLUME_ATTRIBUTES_CLASSES, "fast", "")
        assert found["metadata"]["finalizers"] == ["kubernetes.io/vac-protection"]
        await create_claim(cluster, volumeAttributesClassName="fast")
        assert not await delete(cluster, VOLUME_ATTRIBUTES_CLASSES, "fast", "")
        await cluster.of(PERSISTENT_VOLUME_CLAIMS).delete("data")
        await cluster.settle()
        assert await cluster.names(VOLUME_ATTRIBUTES_CLASSES, "") == []

    run(scenario, "volumeattributesclass-protection-controller", "persistentvolumeclaim-protection-controller")


def test_an_ephemeral_volume_has_a_claim_of_the_pods_own() -> None:
    async def scenario(cluster: Harness) -> None:
        created = await cluster.create(PODS, pod(EPHEMERAL))
        found = await cluster.get(PERSISTENT_VOLUME_CLAIMS, "user-own")
        (owner,) = found["metadata"]["ownerReferences"]
        assert (owner["uid"], owner["controller"]) == (created["metadata"]["uid"], True)
        assert found["metadata"]["labels"] == {"a": "b"}

    run(scenario, "ephemeral-volume-controller")


def test_a_claim_of_that_name_that_is_not_the_pods_is_reported() -> None:
    async def scenario(cluster: Harness) -> None:
        await create_claim(cluster, "user-own")
        await cluster.create(PODS, pod(EPHEMERAL))
        message = "ephemeral volume own: PVC default/user-own was not created for pod default/user (pod is not owner)"
        assert ("FailedBinding", message) in await cluster.events()

    run(scenario, "ephemeral-volume-controller")
