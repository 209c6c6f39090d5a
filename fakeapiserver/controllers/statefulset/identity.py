"""A stateful set's pods and who they are: pure (upstream: pkg/controller/statefulset/stateful_set_utils.go)."""

import re
from collections.abc import Sequence
from typing import Any, Final

from fakeapiserver.apimachinery.go.strconv import parse_int
from fakeapiserver.apimachinery.gvk import GroupVersionKind
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.component_helpers.objects import is_terminating, labels_of
from fakeapiserver.component_helpers.pods import is_pod_available, is_pod_ready, pod_phase
from fakeapiserver.component_helpers.workloads.pod_control import pod_from_template

KIND: Final = GroupVersionKind("apps", "v1", "StatefulSet")
REVISION: Final = "controller-revision-hash"
POD_NAME: Final = "statefulset.kubernetes.io/pod-name"
POD_INDEX: Final = "apps.kubernetes.io/pod-index"
_POD: Final = re.compile(r"(.*)-([0-9]+)", re.ASCII)
_MAX_INT32: Final = 2**31 - 1


# ----------------------------------------------------------------------- ordinals


def parent_and_ordinal(pod: Object) -> tuple[str, int]:
    """Returns (the set's name, the pod's number) from the pod's name, or ("", -1)."""
    match = _POD.fullmatch(pod["metadata"]["name"])
    if match is None:
        return "", -1
    try:
        return match[1], parse_int(match[2], 32)
    except ValueError:
        return match[1], -1


def ordinal_of(pod: Object) -> int:
    return parent_and_ordinal(pod)[1]


def is_member_of(stateful_set: Object, pod: Object) -> bool:
    name: str = stateful_set["metadata"]["name"]
    return parent_and_ordinal(pod)[0] == name


def ordinals(stateful_set: Object) -> range:
    """Returns the ordinals of the wanted pods."""
    spec = stateful_set["spec"]
    start: int = (spec.get("ordinals") or {}).get("start", 0)
    return range(start, start + spec["replicas"])


def pod_name(stateful_set: Object, ordinal: int) -> str:
    return f"{stateful_set['metadata']['name']}-{ordinal}"


def claim_templates(stateful_set: Object) -> Sequence[Object]:
    templates: Sequence[Object] = stateful_set["spec"].get("volumeClaimTemplates") or ()
    return templates


def claim_name(stateful_set: Object, template: Object, ordinal: int) -> str:
    return f"{template['metadata']['name']}-{pod_name(stateful_set, ordinal)}"


# -------------------------------------------------------------------------- states


def revision_of(pod: Object) -> str:
    """The name of the revision it was made of."""
    return labels_of(pod).get(REVISION, "")


def is_created(pod: Object) -> bool:
    """The server knows it."""
    return bool(pod_phase(pod))


def is_running_and_ready(pod: Object) -> bool:
    return pod_phase(pod) == "Running" and is_pod_ready(pod)


def is_unavailable(pod: Object, min_ready_seconds: int, now: float) -> bool:
    return is_terminating(pod) or not is_pod_available(pod, min_ready_seconds, now)


# ----------------------------------------------------------------------- new pods


def identity_matches(stateful_set: Object, pod: Object) -> bool:
    metadata = pod["metadata"]
    parent, ordinal = parent_and_ordinal(pod)
    return (
        ordinal >= 0
        and is_member_of(stateful_set, pod)
        and metadata["name"] == f"{parent}-{ordinal}"
        and metadata["namespace"] == stateful_set["metadata"]["namespace"]
        and labels_of(pod).get(POD_NAME) == metadata["name"]
    )


def storage_matches(stateful_set: Object, pod: Object) -> bool:
    """Reports whether the pod uses the right claims."""
    ordinal = ordinal_of(pod)
    used = {
        volume["name"]: (volume.get("persistentVolumeClaim") or {}).get("claimName")
        for volume in pod["spec"].get("volumes") or ()
    }
    return ordinal >= 0 and all(
        used.get(template["metadata"]["name"]) == claim_name(stateful_set, template, ordinal)
        for template in claim_templates(stateful_set)
    )


def with_identity(stateful_set: Object, pod: Object) -> Object:
    """The pod with the name and labels of its ordinal."""
    ordinal = ordinal_of(pod)
    name = pod_name(stateful_set, ordinal)
    metadata = {
        **pod["metadata"],
        "name": name,
        "namespace": stateful_set["metadata"]["namespace"],
        "labels": {**labels_of(pod), POD_NAME: name, POD_INDEX: str(ordinal)},
    }
    return {**pod, "metadata": metadata}


def with_storage(stateful_set: Object, pod: Object) -> Object:
    """The pod with volumes of its claims, in place of others of their names."""
    ordinal = ordinal_of(pod)
    claims = {
        template["metadata"]["name"]: claim_name(stateful_set, template, ordinal)
        for template in claim_templates(stateful_set)
    }
    volumes: list[dict[str, Any]] = [
        {"name": name, "persistentVolumeClaim": {"claimName": claim}} for name, claim in claims.items()
    ]
    volumes += [volume for volume in pod["spec"].get("volumes") or () if volume["name"] not in claims]
    return {**pod, "spec": {**pod["spec"], "volumes": volumes}} if volumes else pod


def new_pod(stateful_set: Object, template: Object, revision: str, ordinal: int) -> Object:
    """The set's pod of a template, which isn't created yet."""
    pod = pod_from_template(template, stateful_set, KIND)
    name = pod_name(stateful_set, ordinal)
    pod["metadata"]["name"] = name
    pod = with_storage(stateful_set, with_identity(stateful_set, pod))
    pod["metadata"]["labels"][REVISION] = revision
    spec = {**pod["spec"], "hostname": name}
    if service := stateful_set["spec"].get("serviceName"):
        spec["subdomain"] = service
    return {**pod, "spec": spec}


def uses_current_revision(stateful_set: Object, ordinal: int) -> bool:
    """A pod of this ordinal that is made now is one of the former template still."""
    strategy = stateful_set["spec"]["updateStrategy"]
    rolling, start = strategy.get("rollingUpdate"), ordinals(stateful_set).start
    if rolling is not None:
        return ordinal < start + int(rolling.get("partition", 0))
    if strategy.get("type") != "RollingUpdate":
        return False
    return ordinal < start + int(stateful_set["status"].get("currentReplicas", 0))
