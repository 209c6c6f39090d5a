"""Validation of pods' resources and security, and of the changes of a running pod."""

from copy import deepcopy
from typing import Any

import pytest

from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.registry.core.pod.validation import pod_errors, pod_spec_errors, pod_subresource_errors
from fakeapiserver.registry.core.pod.warnings import deprecated_profiles

Json = dict[str, Any]
HUGE = "hugepages-2Mi"
APPARMOR = "container.apparmor.security.beta.kubernetes.io/c"


def container(name: str = "c", **more: Any) -> Json:
    defaults = {"image": "i", "terminationMessagePolicy": "File", "imagePullPolicy": "Always"}
    return {"name": name, **defaults, **more}


def pod(*containers: Json, annotations: Json | None = None, **spec: Any) -> Json:
    defaults = {"restartPolicy": "Always", "dnsPolicy": "ClusterFirst", "securityContext": {}}
    meta = {"name": "p", "annotations": annotations or {}}
    return {"metadata": meta, "spec": {**defaults, "containers": list(containers) or [container()], **spec}}


def asking(requests: Json, limits: Json | None = None) -> Json:
    return container(resources={"requests": requests, "limits": limits or {}})


def told(errors: ErrorList) -> list[str]:
    return [str(error) for error in errors]


@pytest.mark.parametrize(
    ("new", "complaint"),
    [
        (
            pod(asking({HUGE: "3Mi", "cpu": "1"}, {HUGE: "3Mi"})),
            "3Mi is not positive integer multiple of hugepages-2Mi",
        ),
        (pod(asking({HUGE: "2Mi"}, {HUGE: "2Mi"})), "HugePages require cpu or memory"),
        (pod(asking({"a/b/c": "1"})), "doesn't follow extended resource name standard"),
        (pod(asking({"example.com/gpu": "1"})), "Limit must be set for non overcommitable resources"),
        (pod(asking({"cpu": "2"}), resources={"requests": {"cpu": "1"}}), "aggregate container requests of 2"),
        (
            pod(asking({}, {"cpu": "2"}), resources={"limits": {"cpu": "1"}}),
            'spec.resources.containers[0][cpu].limits: Invalid value: "2": must be less than or equal to pod limits of 1',
        ),
        (pod(resources={"requests": {"storage": "1"}}), 'supported values: "cpu", "hugepages-", "memory"'),
        (pod(resources={"requests": {"cpu": "1"}}, os={"name": "windows"}), "may not be set for a windows pod"),
        (pod(container(securityContext={"procMount": "Unmasked"})), "`hostUsers` must be false to use `Unmasked`"),
        (
            pod(container(securityContext={"privileged": True, "allowPrivilegeEscalation": False})),
            "cannot set `allowPrivilegeEscalation` to false and `privileged` to true",
        ),
        (pod(securityContext={"seccompProfile": {"type": "Localhost"}}), "must be set when seccomp type is Localhost"),
        (pod(securityContext={"runAsUser": -1}), "must be between 0 and 2147483647, inclusive"),
        (
            pod(securityContext={"sysctls": [{"name": "net.a", "value": "1"}]}, hostNetwork=True),
            "may not be specified when 'hostNetwork' is true",
        ),
        (pod(hostUsers=False, hostPID=True), "spec.HostPID: Forbidden: when `hostUsers` is false"),
        (pod(securityContext={"windowsOptions": {"hostProcess": True}}), "hostNetwork must be true"),
        (pod(os={"name": "windows"}, hostIPC=True), "spec.hostIPC: Forbidden: cannot be set for a windows pod"),
        (pod(os={"name": "beos"}), 'supported values: "linux", "windows"'),
        (
            pod(annotations={"kubernetes.io/config.mirror": "x"}),
            "must set spec.nodeName if mirror pod annotation is set",
        ),
        (pod(annotations={"controller.kubernetes.io/pod-deletion-cost": "+1"}), "must be a 32bit integer"),
        (pod(annotations={APPARMOR: "odd"}), 'invalid AppArmor profile name: "odd"'),
        (
            pod(annotations={APPARMOR: "unconfined"}, securityContext={"appArmorProfile": {"type": "RuntimeDefault"}}),
            "apparmor type in annotation and field must match",
        ),
        (pod(tolerations=[{"key": "a", "operator": "Gt"}]), '"Equal", "Exists", "Lt", "Gt"'),
    ],
)
def test_what_a_new_pod_must_not_say(new: Json, complaint: str) -> None:
    assert complaint in "; ".join(told(pod_errors(new)))


def test_a_plain_pod_is_a_good_one() -> None:
    assert not pod_errors(pod(asking({"cpu": "1", HUGE: "2Mi"}, {HUGE: "2Mi"})))


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"requests": {"cpu": "2"}}, ""),
        ({"requests": {}}, "resource requests cannot be removed"),
        ({"requests": {"cpu": "1", "ephemeral-storage": "1"}}, "only cpu and memory resources are mutable"),
        ({"requests": {"cpu": "1"}, "limits": {"cpu": "1", "memory": "1"}}, ""),
        ({"requests": {"cpu": "1", "memory": "1"}, "limits": {"cpu": "1", "memory": "1"}}, "QOS Class may not change"),
    ],
)
def test_what_a_resize_may_change(change: Json, complaint: str) -> None:
    old = pod(asking({"cpu": "1"})) | {"status": {"qosClass": "Burstable"}}
    new = deepcopy(old)
    new["spec"]["containers"][0]["resources"] = change
    assert any(complaint in error for error in told(pod_subresource_errors(new, old, "resize"))) == bool(complaint)


@pytest.mark.parametrize(
    ("added", "complaint"),
    [
        ([container("d")], ""),
        ([], 'existing ephemeral containers "d" may not be removed'),
        ([container("d", command=["x"])], 'existing ephemeral containers "d" may not be changed'),
        ([container("d"), container("c")], 'spec.ephemeralContainers[1].name: Duplicate value: "c"'),
        (
            [container("d"), container("e", ports=[{"containerPort": 1, "protocol": "TCP"}])],
            "cannot be set for an Ephemeral",
        ),
        ([container("d"), container("e", resizePolicy=[])], "spec.ephemeralContainers[1].resizePolicy: Forbidden"),
        ([container("d"), container("e", targetContainerName="lost")], 'Not found: "lost"'),
        ([container("d"), container("e", ports=[])], "spec.ephemeralContainers[1].ports: Forbidden"),
        (
            [container("d"), container("e", resources={"limits": {}})],
            "spec.ephemeralContainers[1].resources: Forbidden",
        ),
        ([container("d"), container("e", resources={}, ports=None)], ""),
    ],
)
def test_ephemeral_containers_are_added_and_nothing_else(added: list[Json], complaint: str) -> None:
    old = pod(ephemeralContainers=[container("d")])
    new = deepcopy(old)
    new["spec"]["ephemeralContainers"] = added
    problems = told(pod_subresource_errors(new, old, "ephemeralcontainers"))
    assert any(complaint in error for error in problems) == bool(complaint), problems


def test_templates_leave_host_ports_to_pods() -> None:
    ports = [{"containerPort": 80, "protocol": "TCP"}]
    assert not pod_spec_errors(pod(container(ports=ports), hostNetwork=True)["spec"], Path("template.spec"))


@pytest.mark.parametrize(
    ("annotation", "profile"),
    [
        ("unconfined", {"type": "Unconfined"}),
        ("localhost/x", {"type": "Localhost", "localhostProfile": "x"}),
        ("odd", None),
    ],
)
def test_annotations_of_profiles_become_fields(annotation: str, profile: Json | None) -> None:
    assert [field_profile for _, _, field_profile in deprecated_profiles(pod(annotations={APPARMOR: annotation}))] == [
        profile
    ]


def test_the_pods_own_profile_needs_no_copies() -> None:
    whole = {"appArmorProfile": {"type": "Unconfined"}}
    assert not list(deprecated_profiles(pod(annotations={APPARMOR: "unconfined"}, securityContext=whole)))
