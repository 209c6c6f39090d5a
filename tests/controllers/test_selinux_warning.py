"""Pods that use one volume with different SELinux labels."""

from typing import Any

import pytest

from fakeapiserver.component_helpers.objects import (
    CSI_DRIVERS,
    NAMESPACES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
)
from fakeapiserver.controllers.selinux_warning.volume_cache import differ, label_of
from tests.controllers.harness import EVENTS, Harness, run

CONTROLLER = "selinux-warning-controller"
Object = dict[str, Any]


@pytest.mark.parametrize(
    ("label", "other", "conflict"),
    [
        ("", "", False),
        (":::s0:c1,c2", "u:r:t:s0:c1,c2", False),
        (":::s0:c1,c2", "u:r:t:s0:c98,c99", True),
        ("", ":::s0:c1", True),
        ("u:r:t:s0", "v:r:t:s0", True),
        ("u:r:t:", "u:::", False),
    ],
)
def test_what_nodes_fill_in_makes_no_conflict(label: str, other: str, conflict: bool) -> None:
    assert differ(label, other) == differ(other, label) == conflict


def test_labels_have_four_parts() -> None:
    assert label_of({"level": "s0:c1"}) == ":::s0:c1"
    assert label_of({"user": "u", "role": "r", "type": "t", "level": "s0"}) == "u:r:t:s0"
    assert label_of({"user": ""}) == ""


def pod(name: str, level: str = "", policy: str = "", claim: str = "c", inner: str = "") -> Object:
    container: Object = {"name": "c", "image": "busybox", "volumeMounts": [{"name": "v", "mountPath": "/v"}]}
    other = {**container, "name": "d", "securityContext": {"seLinuxOptions": {"level": inner}}}
    context: Object = {}
    if level:
        context["seLinuxOptions"] = {"level": level}
    if policy:
        context["seLinuxChangePolicy"] = policy
    volume: Object = (
        {"name": "v", "persistentVolumeClaim": {"claimName": claim}} if claim else {"name": "v", "emptyDir": {}}
    )
    containers = [container, other] if inner else [container]
    return {
        "metadata": {"name": name},
        "spec": {"containers": containers, "securityContext": context, "volumes": [volume]},
    }


async def volume(cluster: Harness, *, namespace: str = "default", source: Object | None = None) -> None:
    spec: Object = {
        "accessModes": ["ReadWriteMany"],
        "resources": {"requests": {"storage": "1Gi"}},
        "volumeName": f"v-{namespace}",
    }
    claim = {"metadata": {"name": "c"}, "spec": spec, "status": {"phase": "Bound"}}
    made = await cluster.create(PERSISTENT_VOLUME_CLAIMS, claim, namespace)
    reference = {"kind": "PersistentVolumeClaim", "namespace": namespace, "name": "c", "uid": made["metadata"]["uid"]}
    csi = source or {"csi": {"driver": "csi.example.com", "volumeHandle": "one"}}
    persistent = {"accessModes": ["ReadWriteMany"], "capacity": {"storage": "1Gi"}, "claimRef": reference, **csi}
    await cluster.create(PERSISTENT_VOLUMES, {"metadata": {"name": f"v-{namespace}"}, "spec": persistent}, "")


async def driver(cluster: Harness, *, mounts: bool) -> None:
    made = {"metadata": {"name": "csi.example.com"}, "spec": {"seLinuxMount": mounts}}
    await cluster.create(CSI_DRIVERS, made, "")


async def told(cluster: Harness, namespace: str = "default") -> set[tuple[str, str, str]]:
    found = (await cluster.client.resource(EVENTS, namespace).list())["items"]
    return {(event["involvedObject"]["name"], event["reason"], event["message"]) for event in found}


def metric(cluster: Harness) -> list[str]:
    lines = cluster.manager.metrics.exposition().decode().splitlines()
    return [line for line in lines if line.startswith("selinux_warning_controller_selinux_volume_conflict{")]


END = "If both pods land on the same node, only one of them may access the volume."


def test_both_pods_get_events_about_differing_labels() -> None:
    async def scenario(cluster: Harness) -> None:
        await driver(cluster, mounts=True)
        await volume(cluster)
        await cluster.create(PODS, pod("a", "s0:c1"))
        await cluster.create(PODS, pod("b", "s0:c2"))
        same = "that uses the same volume as this pod with SELinuxLabel"
        assert await told(cluster) == {
            ("a", "SELinuxLabelConflict", f'SELinuxLabel ":::s0:c1" conflicts with pod b {same} ":::s0:c2". {END}'),
            ("b", "SELinuxLabelConflict", f'SELinuxLabel ":::s0:c2" conflicts with pod a {same} ":::s0:c1". {END}'),
        }
        labels = 'pod1_name="a",pod1_namespace="default",pod1_value=":::s0:c1",pod2_name="b",pod2_namespace="default"'
        assert len(metric(cluster)) == 2
        assert any(labels in line for line in metric(cluster))
        await cluster.patch_status(PODS, "b", {"phase": "Succeeded"})
        assert metric(cluster) == []

    run(scenario, CONTROLLER)


def test_policies_that_differ() -> None:
    async def scenario(cluster: Harness) -> None:
        await driver(cluster, mounts=True)
        await volume(cluster)
        await cluster.create(PODS, pod("a", "s0:c1"))
        await cluster.create(PODS, pod("b", "s0:c1", "Recursive"))
        assert {reason for _, reason, _ in await told(cluster)} == {
            "SELinuxLabelConflict",  # a recursive change has no label
            "SELinuxChangePolicyConflict",
        }

    run(scenario, CONTROLLER)


def test_what_a_driver_says_later_counts() -> None:
    async def scenario(cluster: Harness) -> None:
        await volume(cluster)
        await cluster.create(PODS, pod("a", "s0:c1"))
        await cluster.create(PODS, pod("b", "s0:c2"))
        assert await told(cluster) == set()
        await driver(cluster, mounts=True)
        assert len(metric(cluster)) == 2
        await cluster.of(CSI_DRIVERS, "").patch("csi.example.com", {"spec": {"seLinuxMount": False}})
        await cluster.settle()
        assert metric(cluster) == []

    run(scenario, CONTROLLER)


def test_pods_of_other_namespaces_are_not_named() -> None:
    async def scenario(cluster: Harness) -> None:
        await cluster.create(NAMESPACES, {"metadata": {"name": "other"}}, "")
        await driver(cluster, mounts=True)
        for namespace in ("default", "other"):
            await volume(cluster, namespace=namespace)
            await cluster.create(PODS, pod("a", f"s0:{namespace[0]}1"), namespace)
        same = "that uses the same volume as this pod with a different SELinuxLabel"
        text = f'SELinuxLabel":::s0:o1" conflicts with another pod {same}. {END}'
        assert await told(cluster, "other") == {("a", "SELinuxLabelConflict", text)}

    run(scenario, CONTROLLER)


@pytest.mark.parametrize(
    ("source", "conflict"),
    [
        ({"iscsi": {"targetPortal": "1.2.3.4", "iqn": "iqn.2001-04.com.example:disk", "lun": 0}}, True),
        ({"fc": {"wwids": ["3600"]}}, True),
        ({"nfs": {"server": "s", "path": "/"}}, False),
        ({"hostPath": {"path": "/"}}, False),
        (
            {
                "local": {"path": "/"},
                "nodeAffinity": {
                    "required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "k", "operator": "Exists"}]}]}
                },
            },
            False,
        ),
    ],
)
def test_not_every_volume_is_mounted_with_a_label(source: Object, conflict: bool) -> None:
    async def scenario(cluster: Harness) -> None:
        await volume(cluster, source=source)
        await cluster.create(PODS, pod("a", "s0:c1"))
        await cluster.create(PODS, pod("b", "s0:c2"))
        assert bool(await told(cluster)) == conflict

    run(scenario, CONTROLLER)


@pytest.mark.parametrize("claim", ["", "c"])
def test_containers_of_one_pod_that_do_not_agree(claim: str) -> None:
    async def scenario(cluster: Harness) -> None:
        await volume(cluster)
        await cluster.create(PODS, pod("a", "s0:c1", inner="s0:c2", claim=claim))
        text = 'Volume "v" is mounted twice with different SELinux labels inside this pod'
        assert await told(cluster) == {("a", "MultipleSELinuxLabels", text)}

    run(scenario, CONTROLLER)


def test_pods_wait_for_their_claims() -> None:
    async def scenario(cluster: Harness) -> None:
        await driver(cluster, mounts=True)
        await cluster.create(PODS, pod("a", "s0:c1"))
        await cluster.create(PODS, pod("b", "s0:c2"))
        await volume(cluster)
        assert len(await told(cluster)) == 2

    run(scenario, CONTROLLER)
