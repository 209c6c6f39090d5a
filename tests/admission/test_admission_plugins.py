"""Tests what each admission plugin changes and rejects."""

import asyncio
from copy import deepcopy
from typing import Any

import pytest

from fakeapiserver.admission.interfaces import Attributes, Initializer, Operation
from fakeapiserver.admission.measures import PLUGIN_SECONDS, STEP_SECONDS
from fakeapiserver.admission.options import DEFAULT_OFF, IMPLEMENTED, ORDER, enabled_plugins, exactly, new_chain
from fakeapiserver.apimachinery.errors import StatusError
from fakeapiserver.apimachinery.gvk import GroupVersionKind, GroupVersionResource
from fakeapiserver.auth.interfaces import UserInfo

Json = dict[str, Any]
KINDS = {
    "pods": "Pod",
    "namespaces": "Namespace",
    "nodes": "Node",
    "services": "Service",
    "persistentvolumeclaims": "PersistentVolumeClaim",
    "ingresses.networking.k8s.io": "Ingress",
    "priorityclasses.scheduling.k8s.io": "PriorityClass",
    "configmaps": "ConfigMap",
}
DEFAULT = "storageclass.kubernetes.io/is-default-class"
STORED: dict[str, list[Json]] = {
    "namespaces": [
        {"metadata": {"name": "shop"}, "status": {"phase": "Active"}},
        {"metadata": {"name": "going"}, "status": {"phase": "Terminating"}},
    ],
    "priorityclasses.scheduling.k8s.io": [
        {"metadata": {"name": "high"}, "value": 1000, "preemptionPolicy": "Never"},
        {"metadata": {"name": "usual"}, "value": 7, "globalDefault": True, "preemptionPolicy": "PreemptLowerPriority"},
    ],
    "storageclasses.storage.k8s.io": [
        {"metadata": {"name": "b", "annotations": {DEFAULT: "true"}, "creationTimestamp": "2026-01-01T00:00:00Z"}},
        {"metadata": {"name": "a", "annotations": {DEFAULT: "true"}, "creationTimestamp": "2026-01-02T00:00:00Z"}},
        {"metadata": {"name": "grows"}, "allowVolumeExpansion": True},
    ],
    "limitranges": [
        {
            "metadata": {"name": "ratio"},
            "spec": {"limits": [{"type": "Container", "maxLimitRequestRatio": {"cpu": "1.1"}}]},
        }
    ],
    "runtimeclasses.node.k8s.io": [
        {"metadata": {"name": "tiny"}, "overhead": {"podFixed": {"cpu": "100u"}}},
        {
            "metadata": {"name": "vm"},
            "overhead": {"podFixed": {"cpu": "250m"}},
            "scheduling": {"nodeSelector": {"vm": "yes"}, "tolerations": [{"key": "vm", "operator": "Exists"}]},
        },
    ],
}


class Stored:
    def get(self, resource: str, namespace: str, name: str) -> Json | None:
        return next((obj for obj in self.list(resource) if obj["metadata"]["name"] == name), None)

    def list(self, resource: str, namespace: str = "") -> list[Json]:
        return STORED.get(resource, [])


def run(
    plugin: str, resource: str, obj: Json | None, *, op: Operation = "CREATE", old: Json | None = None, ns: str = "shop"
) -> Json:
    """The object after one plugin, or the StatusError it raises."""
    name, _, group = resource.partition(".")
    kind = GroupVersionKind(group, "v1", KINDS[resource])
    called = (obj or old or {}).get("metadata", {}).get("name", "")
    gvr = GroupVersionResource(group, "v1", name)
    attributes = Attributes(op, kind, gvr, "", ns, called, deepcopy(obj), old, UserInfo("jane"))
    others = [other for other in ORDER if other not in DEFAULT_OFF and other != plugin]
    chain, _ = new_chain(Initializer(Stored()), [plugin], others)

    async def both() -> None:
        await chain.admit(attributes)
        await chain.validate(attributes)

    asyncio.run(both())
    return attributes.object or {}


def pod(**spec: Any) -> Json:
    return {"metadata": {"name": "p"}, "spec": spec}


def claim(size: str = "1Gi", phase: str = "Bound", **spec: Any) -> Json:
    requests = {"resources": {"requests": {"storage": size}}}
    return {"metadata": {"name": "c"}, "spec": requests | spec, "status": {"phase": phase}}


@pytest.mark.parametrize(
    ("plugin", "resource", "before", "spec"),
    [
        ("Priority", "pods", pod(priorityClassName="high"), {"priority": 1000, "preemptionPolicy": "Never"}),
        ("Priority", "pods", pod(), {"priority": 7, "priorityClassName": "usual"}),
        ("DefaultStorageClass", "persistentvolumeclaims", claim(), {"storageClassName": "a"}),
        ("DefaultStorageClass", "persistentvolumeclaims", claim(storageClassName=""), {"storageClassName": ""}),
        ("AlwaysPullImages", "pods", pod(containers=[{}]), {"containers": [{"imagePullPolicy": "Always"}]}),
        (
            "RuntimeClass",
            "pods",
            pod(runtimeClassName="vm"),
            {"overhead": {"cpu": "250m"}, "nodeSelector": {"vm": "yes"}},
        ),
        ("RuntimeClass", "pods", pod(runtimeClassName="vm", overhead={"cpu": "0.25"}), {"overhead": {"cpu": "250m"}}),
        ("RuntimeClass", "pods", pod(runtimeClassName="tiny"), {"overhead": {"cpu": "1m"}}),
        (
            "TaintNodesByCondition",
            "nodes",
            pod(),
            {"taints": [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]},
        ),
        (
            "DefaultTolerationSeconds",
            "pods",
            pod(tolerations=[{"operator": "Exists"}]),
            {"tolerations": [{"operator": "Exists"}]},
        ),
    ],
)
def test_completes(plugin: str, resource: str, before: Json, spec: Json) -> None:
    after = run(plugin, resource, before)["spec"]
    assert {key: after.get(key) for key in spec} == spec


def test_default_tolerations() -> None:
    tolerations = run("DefaultTolerationSeconds", "pods", pod())["spec"]["tolerations"]
    assert [(t["key"], t["tolerationSeconds"]) for t in tolerations] == [
        ("node.kubernetes.io/not-ready", 300),
        ("node.kubernetes.io/unreachable", 300),
    ]


def test_storage_protection() -> None:
    after = run("StorageObjectInUseProtection", "persistentvolumeclaims", claim())
    assert after["metadata"]["finalizers"] == ["kubernetes.io/pvc-protection"]


EXPANSION = (
    "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize"
)
TERM = {"topologyKey": "zone"}
SPREAD = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [TERM]}}


@pytest.mark.parametrize(
    ("plugin", "resource", "obj", "more", "message"),
    [
        ("NamespaceLifecycle", "configmaps", pod(), {"ns": "nope"}, 'namespaces "nope" not found'),
        (
            "NamespaceLifecycle",
            "configmaps",
            pod(),
            {"ns": "going"},
            'configmaps "p" is forbidden: unable to create new content in namespace going because it is being terminated',
        ),
        (
            "NamespaceLifecycle",
            "namespaces",
            None,
            {"op": "DELETE", "old": {"metadata": {"name": "default"}}, "ns": "default"},
            'namespaces "default" is forbidden: this namespace may not be deleted',
        ),
        ("NamespaceExists", "configmaps", None, {"op": "DELETE", "ns": "nope"}, 'namespaces "nope" not found'),
        (
            "AlwaysDeny",
            "configmaps",
            pod(),
            {},
            'configmaps "p" is forbidden: admission control is denying all modifications',
        ),
        (
            "Priority",
            "pods",
            pod(priorityClassName="x"),
            {},
            'pods "p" is forbidden: no PriorityClass with name x was found',
        ),
        (
            "Priority",
            "pods",
            pod(priorityClassName="high", priority=5),
            {},
            'pods "p" is forbidden: the integer value of priority (5) must not be provided in pod spec; '
            "priority admission controller computed 1000 from the given PriorityClass name",
        ),
        (
            "Priority",
            "priorityclasses.scheduling.k8s.io",
            {"metadata": {"name": "x"}, "globalDefault": True},
            {},
            'priorityclasses.scheduling.k8s.io "x" is forbidden: PriorityClass usual is already marked as default. '
            "Only one default can exist",
        ),
        (
            "RuntimeClass",
            "pods",
            pod(runtimeClassName="x"),
            {},
            'pods "p" is forbidden: pod rejected: RuntimeClass "x" not found',
        ),
        (
            "RuntimeClass",
            "pods",
            pod(overhead={"cpu": "1"}),
            {},
            'pods "p" is forbidden: pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead',
        ),
        (
            "DenyServiceExternalIPs",
            "services",
            pod(externalIPs=["1.2.3.4"]),
            {},
            'services "p" is forbidden: Use of external IPs is denied by admission control',
        ),
        (
            "LimitPodHardAntiAffinityTopology",
            "pods",
            pod(affinity=SPREAD),
            {},
            'pods "p" is forbidden: affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey zone '
            "but only key kubernetes.io/hostname is allowed",
        ),
        (
            "LimitRanger",
            "pods",
            pod(containers=[{"name": "a", "resources": {"requests": {"cpu": "10m"}, "limits": {"cpu": "12m"}}}] * 2),
            {},
            # Equal errors are reported once.
            'pods "p" is forbidden: cpu max limit to request ratio per Container is 1100m, but provided ratio is 1.200000',
        ),
        (
            "PersistentVolumeClaimResize",
            "persistentvolumeclaims",
            claim("2Gi"),
            {"op": "UPDATE", "old": claim(phase="Pending")},
            'persistentvolumeclaims "c" is forbidden: Only bound persistent volume claims can be expanded',
        ),
        (
            "PersistentVolumeClaimResize",
            "persistentvolumeclaims",
            claim("2Gi", storageClassName="a"),
            {"op": "UPDATE", "old": claim(storageClassName="a")},
            f'persistentvolumeclaims "c" is forbidden: {EXPANSION}',
        ),
    ],
)
def test_refuses(plugin: str, resource: str, obj: Json | None, more: Json, message: str) -> None:
    with pytest.raises(StatusError) as refusal:
        run(plugin, resource, obj, **more)
    assert refusal.value.message == message


def test_the_chain_times_its_plugins() -> None:
    initializer = Initializer(Stored())
    chain, _ = new_chain(
        initializer, ["AlwaysAdmit", "AlwaysDeny"], [name for name in ORDER if name not in DEFAULT_OFF]
    )
    kind, gvr = GroupVersionKind("", "v1", "Pod"), GroupVersionResource("", "v1", "pods")
    with pytest.raises(StatusError):
        asyncio.run(chain.admit(Attributes("CREATE", kind, gvr, "", "shop", "p", pod(), None, UserInfo("jane"))))
    counts = {
        (family.name, *values): histogram.count
        for family, histograms in initializer.instruments.histograms.items()
        for values, histogram in histograms.items()
        if histogram.count
    }
    assert counts == {
        (PLUGIN_SECONDS.name, "AlwaysAdmit", "CREATE", "false", "admit"): 1,
        (PLUGIN_SECONDS.name, "AlwaysDeny", "CREATE", "true", "admit"): 1,
        (STEP_SECONDS.name, "CREATE", "true", "admit"): 1,
    }


def test_a_claim_of_a_growing_class_grows() -> None:
    old = claim("1024Mi", storageClassName="grows")
    run(
        "PersistentVolumeClaimResize",
        "persistentvolumeclaims",
        claim("2Gi", storageClassName="grows"),
        op="UPDATE",
        old=old,
    )


def test_terminating_names_its_cause() -> None:
    with pytest.raises(StatusError) as refusal:
        run("NamespaceLifecycle", "configmaps", pod(), ns="going")
    assert refusal.value.status["details"]["causes"][0]["reason"] == "NamespaceTerminating"


@pytest.mark.parametrize(
    ("enable", "disable", "message"),
    [
        (["Nope"], [], 'enable-admission-plugins plugin "Nope" is unknown'),
        ([], ["Nope"], 'disable-admission-plugins plugin "Nope" is unknown'),
        (
            ["PodSecurityPolicy"],
            [],
            'enable-admission-plugins plugin "PodSecurityPolicy" is unknown: '
            "it was removed in 1.25, PodSecurity (on by default) takes its place",
        ),
        (["Priority"], ["Priority"], "[Priority] in enable-admission-plugins and disable-admission-plugins overlapped"),
    ],
)
def test_wrong_plugin_names(enable: list[str], disable: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=r".") as error:
        enabled_plugins(enable, disable)
    assert str(error.value) == message


def test_the_older_flag_names_all_that_is_on() -> None:
    enable, disable = exactly(["AlwaysAdmit", "LimitRanger"], others_are_named=False)
    assert enabled_plugins(enable, disable) == ["AlwaysAdmit", "LimitRanger"]
    with pytest.raises(
        ValueError, match=r'^\[admission-control and .* exclusive, admission-control plugin "Foo" is unknown\]$'
    ):
        exactly(["Foo"], others_are_named=True)


def test_plugins_not_implemented_are_named_once(monkeypatch: pytest.MonkeyPatch) -> None:
    built = IMPLEMENTED - {"EventRateLimit", "PodNodeSelector"}
    monkeypatch.setattr("fakeapiserver.admission.options.IMPLEMENTED", built)
    chain, warning = new_chain(Initializer(Stored()), ["EventRateLimit", "PodNodeSelector"])
    assert warning == "admission plugins accepted but not implemented yet: PodNodeSelector, EventRateLimit"
    assert len(chain.plugins) == len(built - DEFAULT_OFF)


EVENTS = {"kind": "Configuration", "apiVersion": "eventratelimit.admission.k8s.io/v1alpha1"}
TOLERATIONS = {"kind": "Configuration", "apiVersion": "podtolerationrestriction.admission.k8s.io/v1alpha1"}


@pytest.mark.parametrize(
    ("plugin", "configuration", "message"),
    [
        ("EventRateLimit", EVENTS, "limits: Invalid value: null: must not be empty"),
        (
            "EventRateLimit",
            {**EVENTS, "limits": [{"type": "Nope", "qps": 0, "burst": -1, "cacheSize": -2}]},
            '[limits[0].type: Unsupported value: "Nope": supported values: "Server", "Namespace", "User", '
            '"SourceAndObject", limits[0].burst: Invalid value: -1: must be positive, limits[0].qps: Invalid value: 0: '
            "must be positive, limits[0].cacheSize: Invalid value: -2: must not be negative]",
        ),
        (
            "EventRateLimit",
            {**EVENTS, "limits": [{"type": "Server", "qps": "x", "burst": 1}]},
            "json: cannot unmarshal string into Go struct field Limit.limits.qps of type int32",
        ),
        ("EventRateLimit", None, "limits: Invalid value: null: must not be empty"),
        (
            "PodTolerationRestriction",
            {**TOLERATIONS, "default": [{"key": "a", "operator": "Odd"}], "whitelist": [{"key": "a", "effect": "b"}]},
            'invalid config: [podtolerationrestriction.default[0].operator: Unsupported value: "Odd": supported values: '
            '"Equal", "Exists" podtolerationrestriction.whitelist[0].effect: Unsupported value: "b": supported values: '
            '"NoSchedule", "PreferNoSchedule", "NoExecute"]',
        ),
        (
            "PodSecurity",
            {"defaults": {"enforce": "baseline"}},
            'Object \'Kind\' is missing in \'{"defaults":{"enforce":"baseline"}}\'',
        ),
        (
            "PodSecurity",
            "text",
            "couldn't get version/kind; json parse error: json: cannot unmarshal string into Go value of type struct { "
            'APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }',
        ),
        (
            "ResourceQuota",
            {
                "kind": "ResourceQuotaConfiguration",
                "apiVersion": "apiserver.config.k8s.io/v1",
                "limitedResources": [{}],
            },
            "limitedResources[0].resource: Required value",
        ),
        (
            "PodTolerationRestriction",
            {"kind": "Other", "apiVersion": "v1"},
            'no kind "Other" is registered for version "v1" in scheme "pkg/runtime/scheme.go:111"',
        ),
    ],
)
def test_configurations_that_will_not_do(plugin: str, configuration: Any, message: str) -> None:
    given = {} if configuration is None else {plugin: configuration}
    with pytest.raises(ValueError, match=r".") as error:
        new_chain(Initializer(Stored(), configuration=given), [plugin])
    assert str(error.value) == f'failed to apply admission: couldn\'t init admission plugin "{plugin}": {message}'


@pytest.mark.parametrize(
    ("plugin", "configuration"),
    [
        ("EventRateLimit", {**EVENTS, "limits": [{"type": "Server", "qps": 1, "burst": 1, "size": 5}]}),
        ("PodTolerationRestriction", {**TOLERATIONS, "extra": 1}),
        ("PodNodeSelector", {"podNodeSelectorPluginConfig": [1]}),
    ],
)
def test_configurations_with_more_than_is_known(plugin: str, configuration: Json) -> None:
    new_chain(Initializer(Stored(), configuration={plugin: configuration}), [plugin])
