"""Plugins of features that are off by default, and those that look at nodes."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from fakeapiserver.admission.interfaces import Attributes, Initializer, Operation
from fakeapiserver.admission.options import enabled_plugins, new_chain
from fakeapiserver.admission.plugins.mutatingadmissionpolicy import MutatingAdmissionPolicy
from fakeapiserver.apimachinery.errors import StatusError
from fakeapiserver.apimachinery.gvk import GroupVersionKind, GroupVersionResource
from fakeapiserver.apis.feature_gates import FeatureGates
from fakeapiserver.auth.interfaces import Attributes as Wanted
from fakeapiserver.auth.interfaces import Decision, UserInfo

Json = dict[str, Any]
GANG = {"schedulingPolicy": {"gang": {"minCount": 2}}}
OWNED = {"ownerReferences": [{"uid": "j1", "controller": True}]}
STORED: Mapping[str, list[Json]] = {
    "workloads.scheduling.k8s.io": [
        {"metadata": {"name": "w"}, "spec": {"podGroupTemplates": [{"name": "t"}]}},
        {"metadata": {"name": "going", "deletionTimestamp": "2026-01-01T00:00:00Z"}, "spec": {}},
    ],
    "nodes": [
        {
            "metadata": {"name": "n1", "labels": {"k": "1"}},
            "status": {"declaredFeatures": ["DRANodeAllocatableResources"]},
        },
        {"metadata": {"name": "n2", "labels": {"k": "2"}}, "status": {}},
    ],
    "podgroups.scheduling.k8s.io": [
        {"metadata": {"name": "gang"}, "spec": GANG},
        {"metadata": {"name": "basic"}, "spec": {"schedulingPolicy": {"basic": {}}}},
        {"metadata": {"name": "owned", **OWNED}, "spec": GANG},
    ],
}
GROUPS = "podgroups.scheduling.k8s.io"
BUNDLES = "clustertrustbundles.certificates.k8s.io"


class Stored:
    def get(self, resource: str, namespace: str, name: str) -> Json | None:
        return next((obj for obj in self.list(resource) if obj["metadata"]["name"] == name), None)

    def list(self, resource: str, namespace: str = "") -> list[Json]:
        return STORED.get(resource, [])

    def generation(self, resources: tuple[str, ...]) -> int:
        return 0


class OnlyJane:
    """Jane may act for every signer of example.com."""

    async def authorize(self, attributes: Wanted) -> tuple[Decision, str]:
        allowed = attributes.user.name == "jane" and attributes.name == "example.com/*" and attributes.verb == "attest"
        return (Decision.ALLOW if allowed else Decision.NO_OPINION), ""


def run(
    plugin: str, resource: str, obj: Json, *, old: Json | None = None, user: str = "joe", gates: Mapping[str, bool]
) -> Json:
    """The object after one plugin, or the StatusError it raises."""
    name, _, group = resource.partition(".")
    operation: Operation = "CREATE" if old is None else "UPDATE"
    gvr = GroupVersionResource(group, "v1alpha2", name)
    kind = GroupVersionKind(group, "v1alpha2", "Kind")
    attributes = Attributes(operation, kind, gvr, "", "shop", obj["metadata"]["name"], obj, old, UserInfo(user))
    initializer = Initializer(Stored(), authorizer=OnlyJane(), features=FeatureGates(switched=gates))
    others = [other for other in enabled_plugins() if other != plugin]
    chain, _ = new_chain(initializer, [plugin], others)

    async def both() -> None:
        await chain.admit(attributes)
        await chain.validate(attributes)

    asyncio.run(both())
    return attributes.object or {}


def group(workload: str, template: str) -> Json:
    ref = {"workload": {"workloadName": workload, "podGroupTemplateName": template}}
    return {"metadata": {"name": "g"}, "spec": {"podGroupTemplateRef": ref}}


def job(parallelism: int, pod_group: str | None = None, uid: str = "j0") -> Json:
    pod: Json = {"schedulingGroup": {"podGroupName": pod_group}} if pod_group else {}
    meta = {"name": "j", "namespace": "shop", "uid": uid}
    return {"metadata": meta, "spec": {"parallelism": parallelism, "template": {"spec": pod}}}


def bundle(signer: str, **meta: Any) -> Json:
    return {"metadata": {"name": "b", **meta}, "spec": {"signerName": signer, "trustBundle": "PEM"}}


REFUSED: list[tuple[str, str, Json, Json | None, str]] = [
    ("PodGroupWorkloadExists", GROUPS, group("x", "t"), None, 'PodGroup rejected: Workload "x" not found'),
    (
        "PodGroupWorkloadExists",
        GROUPS,
        group("going", "t"),
        None,
        'PodGroup rejected: Workload "going" is being deleted',
    ),
    (
        "PodGroupWorkloadExists",
        GROUPS,
        group("w", "u"),
        None,
        'PodGroup rejected: PodGroupTemplate "u" not found in Workload "w"',
    ),
    (
        "JobValidation",
        "jobs.batch",
        job(3, "gang"),
        job(2, "gang"),
        'cannot change parallelism for a Job referencing gang-scheduled PodGroup "gang"',
    ),
    (
        "JobValidation",
        "jobs.batch",
        job(3, uid="j1"),
        job(2, uid="j1"),
        'cannot change parallelism for a Job referencing gang-scheduled PodGroup "owned"',
    ),
    (
        "ClusterTrustBundleAttest",
        BUNDLES,
        bundle("example.com/s"),
        None,
        'user not permitted to attest for signerName "example.com/s"',
    ),
]
ON = {"GenericWorkload": True, "ClusterTrustBundle": True}
OFF = dict.fromkeys(ON, False)


@pytest.mark.parametrize(("plugin", "resource", "obj", "old", "reason"), REFUSED)
def test_refused_where_the_feature_is_on(plugin: str, resource: str, obj: Json, old: Json | None, reason: str) -> None:
    with pytest.raises(StatusError) as error:
        run(plugin, resource, obj, old=old, gates=ON)
    assert error.value.code == 403
    assert error.value.message == f'{resource} "{obj["metadata"]["name"]}" is forbidden: {reason}'
    run(plugin, resource, obj, old=old, gates=OFF)


@pytest.mark.parametrize(
    ("plugin", "resource", "obj", "old", "user"),
    [
        ("PodGroupWorkloadExists", GROUPS, group("w", "t"), None, "joe"),
        ("PodGroupWorkloadExists", GROUPS, {"metadata": {"name": "g"}, "spec": {}}, None, "joe"),
        ("JobValidation", "jobs.batch", job(3, "basic"), job(2, "basic"), "joe"),
        ("JobValidation", "jobs.batch", job(3, "gone"), job(2, "gone"), "joe"),
        ("JobValidation", "jobs.batch", job(2, "gang"), job(2, "gang"), "joe"),
        ("JobValidation", "jobs.batch", job(3), job(2), "joe"),
        ("ClusterTrustBundleAttest", BUNDLES, bundle("example.com/s"), None, "jane"),
        ("ClusterTrustBundleAttest", BUNDLES, bundle(""), None, "joe"),
        (
            "ClusterTrustBundleAttest",
            BUNDLES,
            bundle("example.com/s", finalizers=["a"]),
            bundle("example.com/s"),
            "joe",
        ),
    ],
)
def test_allowed_where_the_feature_is_on(plugin: str, resource: str, obj: Json, old: Json | None, user: str) -> None:
    assert run(plugin, resource, obj, old=old, user=user, gates=ON) == obj


@pytest.mark.parametrize(
    ("gates", "before", "after"),
    [
        (ON, None, ["scheduling.k8s.io/podgroup-protection"]),
        (ON, ["a"], ["a", "scheduling.k8s.io/podgroup-protection"]),
        (ON, ["scheduling.k8s.io/podgroup-protection"], ["scheduling.k8s.io/podgroup-protection"]),
        ({}, None, None),
    ],
)
def test_groups_of_pods_get_a_finalizer(gates: Mapping[str, bool], before: Any, after: Any) -> None:
    meta = {"name": "g"} if before is None else {"name": "g", "finalizers": before}
    made = run("PodGroupProtection", GROUPS, {"metadata": meta, "spec": {}}, gates=gates)
    assert made["metadata"].get("finalizers") == after


@pytest.mark.parametrize(("gates", "handles"), [({}, True), ({"MutatingAdmissionPolicy": False}, False)])
def test_mutating_policies_rest_while_their_gate_is_off(gates: Mapping[str, bool], handles: bool) -> None:
    initializer = Initializer(Stored(), features=FeatureGates("v1.36", gates))
    assert MutatingAdmissionPolicy(initializer).handles("CREATE") is handles


def selector(operator: str, *values: str, by: str = "matchExpressions", key: str = "k") -> Json:
    return {"nodeSelector": {"nodeSelectorTerms": [{by: [{"key": key, "operator": operator, "values": list(values)}]}]}}


UNSUPPORTED = 'node "n2" does not support DRANodeAllocatableResources feature'
NODES_OF_DEVICES = [
    ({"nodeName": "n1"}, ""),
    ({"nodeName": "n2"}, UNSUPPORTED),
    ({"nodeName": "n"}, 'node "n" not found for device "x"'),
    ({"allNodes": True}, UNSUPPORTED),
    (selector("In", "1"), ""),
    (selector("In", "2"), UNSUPPORTED),
    (selector("Gt", "1"), UNSUPPORTED),
    (selector("Gt", "2"), ""),
    (
        selector("Gt", "x"),
        "nodeSelectorTerms[0].matchExpressions[0].values[0]: Invalid value: \"x\": for 'Gt', 'Lt' operators",
    ),
    (selector("In", "n2", by="matchFields", key="metadata.name"), UNSUPPORTED),
    ({"nodeSelector": {"nodeSelectorTerms": [{}]}}, ""),
    ({}, 'device "x" in ResourceSlice has NodeAllocatableResources but does not map to any nodes'),
]


@pytest.mark.parametrize(("chosen", "refusal"), NODES_OF_DEVICES)
@pytest.mark.parametrize("each_device", [False, True])
def test_nodes_of_devices_must_declare_that_they_count_resources(chosen: Json, refusal: str, each_device: bool) -> None:
    """Recorded from kube-apiserver 1.37.2."""
    device = {"name": "x", "nodeAllocatableResources": {"cpu": {"mapping": {"deviceMultiplier": "1"}}}}
    spec: Json = {"devices": [{**device, **chosen}], "perDeviceNodeSelection": True}
    if not each_device:
        spec = {"devices": [device], **chosen}
    made = {"metadata": {"name": "s"}, "spec": spec}
    slices, gate = "resourceslices.resource.k8s.io", "DRANodeAllocatableResources"
    if refusal:
        with pytest.raises(StatusError) as caught:
            run("NodeDeclaredFeatureValidator", slices, made, gates={"NodeDeclaredFeatures": True, gate: True})
        assert refusal in str(caught.value)
    else:
        run("NodeDeclaredFeatureValidator", slices, made, gates={"NodeDeclaredFeatures": True, gate: True})
    run("NodeDeclaredFeatureValidator", slices, made, gates={"NodeDeclaredFeatures": True, gate: False})
