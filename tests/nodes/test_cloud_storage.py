"""Claims of every storage class get volumes, and grow with them, in a cluster with the storage of a cloud."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from fakeapiserver import Cluster

DRIVER = "disk.example.com"
# Other than a CSI driver that serves one node from a claim's first pod on.
CASES: Mapping[str, tuple[Mapping[str, Any], Mapping[str, Any], Mapping[str, Any]]] = {
    "immediately": ({"volumeBindingMode": "Immediate"}, {}, {}),
    "for the first pod": ({"volumeBindingMode": "WaitForFirstConsumer"}, {}, {}),
    "for many nodes": ({}, {"accessModes": ["ReadWriteMany"]}, {"accessModes": ["ReadWriteMany"]}),
    "as a device": ({}, {"volumeMode": "Block"}, {"csi": {"driver": DRIVER, "volumeHandle": "<name>"}}),
    "by a plugin of earlier days": (
        {"provisioner": "kubernetes.io/aws-ebs"},
        {},
        {"csi": {"driver": "ebs.csi.aws.com", "volumeHandle": "<name>", "fsType": "ext4"}},
    ),
    "of the default class": (
        {"metadata": {"name": "fast", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}},
        {"storageClassName": None},
        {},
    ),
}


def storage_class(**fields: Any) -> dict[str, Any]:
    named = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "fast"}}
    return {**named, "provisioner": DRIVER, "allowVolumeExpansion": True, **fields}


def claim(**fields: Any) -> dict[str, Any]:
    asked = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    spec = {**asked, "storageClassName": "fast", **fields}
    if spec["storageClassName"] is None:
        del spec["storageClassName"]
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"}, "spec": spec}


def pod() -> dict[str, Any]:
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    spec = {"containers": [{"name": "c", "image": "x"}], "volumes": [volume]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}


def reasons(cluster: Cluster, name: str) -> Sequence[str]:
    return [event["reason"] for event in cluster.list("events") if event["involvedObject"]["name"] == name]


@pytest.mark.parametrize(("of_class", "of_claim", "of_volume"), CASES.values(), ids=CASES)
def test_a_claim_gets_a_volume(
    of_class: Mapping[str, Any], of_claim: Mapping[str, Any], of_volume: Mapping[str, Any]
) -> None:
    with Cluster(nodes=1, cloud_storage=True) as cluster:
        cluster.apply(storage_class(**of_class))
        cluster.apply([claim(**of_claim), pod()])
        cluster.wait(
            "pods/p", "condition=Ready"
        )  # the scheduler may have seen the pod before its claim, and then tries again later
        cluster.settle()
        [volume] = cluster.list("persistentvolumes")
        bound, spec = cluster.get("pvc/data"), volume["spec"]
        name = volume["metadata"]["name"]
        assert bound["status"]["phase"] == "Bound"
        assert bound["spec"]["volumeName"] == name
        assert "nodeAffinity" not in spec
        assert spec["claimRef"]["name"] == "data"
        spec["csi"]["volumeHandle"] = spec["csi"]["volumeHandle"].replace(name, "<name>")
        assert {key: spec[key] for key in of_volume} == of_volume
        assert {"Provisioning", "ProvisioningSucceeded"} <= {*reasons(cluster, "data")}
        [attachment] = cluster.list("volumeattachments")
        assert attachment["spec"]["attacher"] == spec["csi"]["driver"]
        assert attachment["status"]["attached"]


def test_a_claim_is_bound_without_a_pod() -> None:
    with Cluster(cloud_storage=True) as cluster:
        cluster.apply([storage_class(volumeBindingMode="Immediate"), claim()])
        cluster.settle()
        assert cluster.get("pvc/data")["status"]["phase"] == "Bound"


def test_a_claim_grows_and_its_volume_goes_with_it() -> None:
    with Cluster(nodes=1, cloud_storage=True) as cluster:
        cluster.apply([storage_class(), claim(), pod()])
        cluster.settle()
        cluster.patch("pvc/data", {"spec": {"resources": {"requests": {"storage": "2Gi"}}}})
        cluster.settle()
        status = cluster.get("pvc/data")["status"]
        assert status["capacity"] == status["allocatedResources"] == {"storage": "2Gi"}
        assert [condition["type"] for condition in status["conditions"]] == ["Unused"]
        assert "allocatedResourceStatuses" not in status
        [volume] = cluster.list("persistentvolumes")
        assert volume["spec"]["capacity"] == {"storage": "2Gi"}
        assert reasons(cluster, "data")[-2:] == ["Resizing", "VolumeResizeSuccessful"]
        cluster.delete("pods/p")
        cluster.delete("pvc/data")
        cluster.settle()
        assert cluster.list("persistentvolumes") == []


@pytest.mark.parametrize("provisioner", ["kubernetes.io/no-provisioner", "rancher.io/local-path"])
def test_others_have_no_provisioner(provisioner: str) -> None:
    with Cluster(nodes=1, cloud_storage=True) as cluster:
        cluster.apply([storage_class(provisioner=provisioner), claim()])
        cluster.settle()
        assert cluster.get("pvc/data")["status"]["phase"] == "Pending"
