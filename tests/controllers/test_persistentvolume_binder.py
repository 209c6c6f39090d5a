"""Claims and volumes: which are bound to each other, their phases, and their events."""

from typing import Any

import pytest

from fakeapiserver.component_helpers.objects import (
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    STORAGE_CLASSES,
)
from tests.controllers.harness import Harness, Object, run

BINDER = "persistentvolume-binder-controller"
EXPANDER = "persistentvolume-expander-controller"
WAITING = (
    "Waiting for a volume to be created either by the external provisioner 'disks.example.com' or manually by the system "
    "administrator. If volume creation is delayed, please verify that the provisioner is running and correctly registered."
)


def volume(name: str, size: str = "10Gi", **spec: Any) -> Object:
    spec = {
        "capacity": {"storage": size},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "manual",
        "hostPath": {"path": f"/tmp/{name}"},
        **spec,
    }
    return {"metadata": {"name": name}, "spec": {key: value for key, value in spec.items() if value is not None}}


def claim(size: str = "5Gi", **spec: Any) -> Object:
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "manual",
        "resources": {"requests": {"storage": size}},
        **spec,
    }
    return {"metadata": {"name": "data"}, "spec": {key: value for key, value in spec.items() if value is not None}}


def storage_class(provisioner: str = "disks.example.com", mode: str = "Immediate", default: bool = False) -> Object:
    annotations = {"storageclass.kubernetes.io/is-default-class": "true"} if default else {}
    metadata = {"name": "manual", "annotations": annotations}
    return {"metadata": metadata, "provisioner": provisioner, "volumeBindingMode": mode}


async def create_volumes(cluster: Harness, *volumes: Object) -> None:
    for each in volumes:
        await cluster.create(PERSISTENT_VOLUMES, each, "")


async def create_claim(cluster: Harness, made: Object) -> None:
    await cluster.create(PERSISTENT_VOLUME_CLAIMS, made)


async def volume_of_claim(cluster: Harness) -> tuple[str, str]:
    """(its phase, its volume)."""
    found = await cluster.get(PERSISTENT_VOLUME_CLAIMS, "data")
    return found["status"]["phase"], found["spec"].get("volumeName", "")


async def phase(cluster: Harness, name: str) -> str:
    found: str = (await cluster.get(PERSISTENT_VOLUMES, name, ""))["status"]["phase"]
    return found


def test_a_bound_pair_knows_each_other() -> None:
    async def scenario(cluster: Harness) -> None:
        await create_volumes(cluster, volume("disk"))
        assert await phase(cluster, "disk") == "Available"
        await create_claim(cluster, claim())
        found = await cluster.get(PERSISTENT_VOLUME_CLAIMS, "data")
        assert found["metadata"]["annotations"] == {
            "pv.kubernetes.io/bind-completed": "yes",
            "pv.kubernetes.io/bound-by-controller": "yes",
        }
        assert found["status"] == {"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "10Gi"}}
        bound = await cluster.get(PERSISTENT_VOLUMES, "disk", "")
        assert bound["status"]["phase"] == "Bound"
        assert bound["spec"]["claimRef"]["uid"] == found["metadata"]["uid"]
        assert bound["metadata"]["annotations"] == {"pv.kubernetes.io/bound-by-controller": "yes"}

    run(scenario, BINDER)


@pytest.mark.parametrize(
    ("volumes", "made", "chosen"),
    [
        ((volume("big", "50Gi"), volume("small", "6Gi"), volume("tiny", "1Gi")), claim(), "small"),
        ((volume("other", storageClassName="other"),), claim(), ""),
        ((volume("many", accessModes=["ReadWriteOnce", "ReadWriteMany"]), volume("one", "50Gi")), claim(), "one"),
        ((volume("block", volumeMode="Block"),), claim(), ""),
        ((volume("plain"),), claim(selector={"matchLabels": {"tier": "fast"}}), ""),
        (
            (volume("small", "6Gi"), volume("reserved", "50Gi", claimRef={"namespace": "default", "name": "data"})),
            claim(),
            "reserved",
        ),
        ((volume("taken", claimRef={"namespace": "default", "name": "other"}),), claim(), ""),
        ((volume("small", "6Gi"), volume("named", "50Gi")), claim(volumeName="named"), "named"),
    ],
)
def test_a_claim_gets_what_suits_it_best(volumes: tuple[Object, ...], made: Object, chosen: str) -> None:
    async def scenario(cluster: Harness) -> None:
        await create_volumes(cluster, *volumes)
        await create_claim(cluster, made)
        found, name = await volume_of_claim(cluster)
        assert (found, name) == (("Bound", chosen) if chosen else ("Pending", ""))

    run(scenario, BINDER)


def test_a_claim_waits_for_its_volume() -> None:
    async def scenario(cluster: Harness) -> None:
        await create_claim(cluster, claim())
        assert await volume_of_claim(cluster) == ("Pending", "")
        message = 'storageclass.storage.k8s.io "manual" not found'
        assert await cluster.events() == [("ProvisioningFailed", message)]
        await create_volumes(cluster, volume("disk"))
        assert await volume_of_claim(cluster) == ("Bound", "disk")

    run(scenario, BINDER)


@pytest.mark.parametrize(
    ("found", "event"),
    [
        (storage_class(), ("ExternalProvisioning", WAITING)),
        (
            storage_class("kubernetes.io/no-provisioner"),
            ("ProvisioningFailed", "no volume plugin matched name: kubernetes.io/no-provisioner"),
        ),
        (
            storage_class(mode="WaitForFirstConsumer"),
            ("WaitForFirstConsumer", "waiting for first consumer to be created before binding"),
        ),
    ],
)
def test_the_reason_why_a_claim_waits_is_reported(found: Object, event: tuple[str, str]) -> None:
    async def scenario(cluster: Harness) -> None:
        await cluster.create(STORAGE_CLASSES, found, "")
        await create_claim(cluster, claim())
        assert await cluster.events() == [event]
        provisioner = "volume.kubernetes.io/storage-provisioner"
        annotations = (await cluster.get(PERSISTENT_VOLUME_CLAIMS, "data"))["metadata"].get("annotations", {})
        assert (provisioner in annotations) == (event[0] == "ExternalProvisioning")

    run(scenario, BINDER)


def test_a_claim_that_waits_for_its_pod_says_which() -> None:
    async def scenario(cluster: Harness) -> None:
        await cluster.create(STORAGE_CLASSES, storage_class(mode="WaitForFirstConsumer"), "")
        await create_volumes(cluster, volume("disk"))
        volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
        spec = {"containers": [{"name": "c", "image": "i"}], "volumes": volumes}
        await cluster.create(PODS, {"metadata": {"name": "user"}, "spec": spec})
        await create_claim(cluster, claim())
        assert await volume_of_claim(cluster) == ("Pending", "")
        assert await cluster.events() == [("WaitForPodScheduled", "waiting for pod user to be scheduled")]

    run(scenario, BINDER)


def test_a_claim_without_a_class_gets_the_default_one_as_soon_as_there_is_one() -> None:
    async def scenario(cluster: Harness) -> None:
        await create_claim(cluster, claim(storageClassName=None))
        message = "no persistent volumes available for this claim and no storage class is set"
        assert await cluster.events() == [("FailedBinding", message)]
        await cluster.create(STORAGE_CLASSES, storage_class(default=True), "")
        await cluster.advance(15)
        assert (await cluster.get(PERSISTENT_VOLUME_CLAIMS, "data"))["spec"]["storageClassName"] == "manual"

    run(scenario, BINDER)


@pytest.mark.parametrize(
    ("spec", "left", "event"),
    [
        ({"persistentVolumeReclaimPolicy": "Retain"}, "Released", None),
        ({"persistentVolumeReclaimPolicy": "Delete"}, None, None),
        (
            {"persistentVolumeReclaimPolicy": "Delete", "hostPath": {"path": "/data"}},
            "Failed",
            ("VolumeFailedDelete", "host_path deleter only supports /tmp/.+ but received provided /data"),
        ),
        (
            {"persistentVolumeReclaimPolicy": "Delete", "hostPath": None, "nfs": {"server": "a", "path": "/b"}},
            "Failed",
            (
                "VolumeFailedDelete",
                'error getting deleter volume plugin for volume "disk": no deletable volume plugin matched',
            ),
        ),
        (
            {
                "persistentVolumeReclaimPolicy": "Delete",
                "hostPath": None,
                "csi": {"driver": "disks.example.com", "volumeHandle": "1"},
            },
            "Released",
            None,
        ),
    ],
)
def test_what_becomes_of_a_volume_whose_claim_is_gone(
    spec: Object, left: str | None, event: tuple[str, str] | None
) -> None:
    async def scenario(cluster: Harness) -> None:
        await create_volumes(cluster, volume("disk", **spec))
        await create_claim(cluster, claim())
        await cluster.of(PERSISTENT_VOLUME_CLAIMS).delete("data")
        await cluster.settle()
        if left is None:
            assert await cluster.names(PERSISTENT_VOLUMES, "") == []
        else:
            assert await phase(cluster, "disk") == left
        assert await cluster.events() == ([] if event is None else [event])

    run(
        scenario,
        BINDER,
        "persistentvolumeclaim-protection-controller",
        "persistentvolume-protection-controller",
    )


def test_a_claim_whose_volume_is_gone_is_lost() -> None:
    async def scenario(cluster: Harness) -> None:
        await create_volumes(cluster, volume("disk"))
        await create_claim(cluster, claim())
        await cluster.of(PERSISTENT_VOLUMES, "").patch("disk", {"metadata": {"finalizers": None}})
        await cluster.of(PERSISTENT_VOLUMES, "").delete("disk")
        await cluster.settle()
        assert await volume_of_claim(cluster) == ("Lost", "disk")
        message = "Bound claim has lost its PersistentVolume. Data on the volume is lost!"
        assert await cluster.events() == [("ClaimLost", message)]

    run(scenario, BINDER)


@pytest.mark.parametrize(
    ("made", "event"),
    [
        (claim("50Gi", volumeName="disk"), 'Cannot bind to requested volume "disk": requested PV is too small'),
        (
            claim(volumeName="disk", storageClassName="other"),
            'Cannot bind to requested volume "disk": storageClassName does not match',
        ),
    ],
)
def test_a_volume_that_does_not_suit_is_not_taken_even_if_it_is_named(made: Object, event: str) -> None:
    async def scenario(cluster: Harness) -> None:
        await create_volumes(cluster, volume("disk"))
        await create_claim(cluster, made)
        assert await volume_of_claim(cluster) == ("Pending", "disk")
        assert ("VolumeMismatch", event) in await cluster.events()

    run(scenario, BINDER)


def test_a_claim_that_wants_more_waits_for_another_provisioner() -> None:
    async def scenario(cluster: Harness) -> None:
        await cluster.create(STORAGE_CLASSES, {**storage_class(), "allowVolumeExpansion": True}, "")
        await create_volumes(cluster, volume("disk"))
        await create_claim(cluster, claim())
        await cluster.of(PERSISTENT_VOLUME_CLAIMS).patch(
            "data", {"spec": {"resources": {"requests": {"storage": "20Gi"}}}}
        )
        await cluster.settle()
        message = "waiting for an external controller to expand this PVC"
        assert await cluster.events() == [("ExternalExpanding", message)]

    run(scenario, BINDER, EXPANDER)
