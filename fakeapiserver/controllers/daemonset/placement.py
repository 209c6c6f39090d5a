"""On which nodes a daemon set's pods belong: pure (upstream: pkg/controller/daemon/{daemon_controller,util/daemonset_util}.go)."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from fakeapiserver.apimachinery.go.strconv import parse_int
from fakeapiserver.apimachinery.gvk import GroupVersionKind
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.component_helpers.objects import is_terminating, labels_of
from fakeapiserver.component_helpers.pods import is_pod_terminal
from fakeapiserver.component_helpers.scheduling import matches_node_affinity, untolerated_taint

KIND: Final = GroupVersionKind("apps", "v1", "DaemonSet")
# Label of pods and revisions.
REVISION_HASH: Final = "controller-revision-hash"
_GENERATION_LABEL: Final = "pod-template-generation"
_GENERATION: Final = "deprecated.daemonset.template.generation"
_NODE_NAME: Final = "metadata.name"
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_TOLERATED: Final = (
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
)
_TOLERATED_ON_HOST_NETWORK: Final = ("node.kubernetes.io/network-unavailable", "NoSchedule")


def with_tolerations(spec: Object) -> Object:
    """A pod spec that also tolerates what befalls nodes; one for the same taint is replaced in its place."""
    tolerations = [*(spec.get("tolerations") or ())]
    wanted = [*_TOLERATED, *([_TOLERATED_ON_HOST_NETWORK] if spec.get("hostNetwork") else [])]
    for key, effect in wanted:
        toleration = {"key": key, "operator": "Exists", "effect": effect}
        if any(_matches(existing, toleration) for existing in tolerations):
            tolerations = [toleration if _matches(existing, toleration) else existing for existing in tolerations]
        else:
            tolerations.append(toleration)
    return {**spec, "tolerations": tolerations}


def _matches(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    names = ("key", "operator", "effect", "value")
    return all(one.get(name, "") == other.get(name, "") for name in names)


class Placement:
    """Decides on which nodes the pods of one daemon set run."""

    def __init__(self, daemon_set: Object) -> None:
        spec: Mapping[str, Any] = daemon_set["spec"]["template"]["spec"]
        self._node_name: str = spec.get("nodeName", "")
        self._tolerations: Sequence[Mapping[str, Any]] = with_tolerations(dict(spec))["tolerations"]
        self._pod = {"spec": spec}

    def of(self, node: Object) -> tuple[bool, bool]:
        """(whether a pod should run on the node, whether one that does may go on)."""
        if self._node_name not in ("", node["metadata"]["name"]) or not matches_node_affinity(self._pod, node):
            return False, False
        taints = (node.get("spec") or {}).get("taints") or ()
        if untolerated_taint(taints, self._tolerations, ("NoExecute", "NoSchedule")) is None:
            return True, True
        return False, untolerated_taint(taints, self._tolerations, ("NoExecute",)) is None

    def should_run(self, node: Object) -> bool:
        return self.of(node)[0]


def template_generation(daemon_set: Object) -> str:
    """Returns the number of the template as older versions counted it, or ""."""
    text: str = (daemon_set["metadata"].get("annotations") or {}).get(_GENERATION, "")
    try:
        return str(parse_int(text))
    except ValueError:
        return ""


def pod_template(daemon_set: Object, revision_hash: str) -> Object:
    """Returns the current template of the set's pods, for any node."""
    template = daemon_set["spec"]["template"]
    metadata = template.get("metadata") or {}
    labels = {**(metadata.get("labels") or {})}
    if generation := template_generation(daemon_set):
        labels[_GENERATION_LABEL] = generation
    if revision_hash:
        labels[REVISION_HASH] = revision_hash
    return {**template, "metadata": {**metadata, "labels": labels}, "spec": with_tolerations(template["spec"])}


def bound_to(spec: Object, node: str) -> Object:
    """A pod spec that only this node fits."""
    terms = [{"matchFields": [{"key": _NODE_NAME, "operator": "In", "values": [node]}]}]
    affinity = spec.get("affinity") or {}
    by_node = affinity.get("nodeAffinity") or {}
    required = {**(by_node.get(_REQUIRED) or {}), "nodeSelectorTerms": terms}
    return {**spec, "affinity": {**affinity, "nodeAffinity": {**by_node, _REQUIRED: required}}}


def target_node(pod: Object) -> str:
    """The node that the pod is on, or made for; "" for neither."""
    spec: Mapping[str, Any] = pod["spec"]
    if name := spec.get("nodeName", ""):
        return str(name)
    required = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(_REQUIRED) or {}
    for term in required.get("nodeSelectorTerms") or ():
        for field in term.get("matchFields") or ():
            if field["key"] == _NODE_NAME and field["operator"] == "In":
                values: Sequence[str] = field.get("values") or ()
                return str(values[0]) if len(values) == 1 else ""
    return ""


def pods_by_node(pods: Iterable[Object], *, ended: bool = False) -> dict[str, list[Object]]:
    """The pods of each node; those that have ended and are being deleted only with `ended`."""
    by_node: dict[str, list[Object]] = {}
    for pod in pods:
        node = target_node(pod)
        if node and (ended or not (is_pod_terminal(pod) and is_terminating(pod))):
            by_node.setdefault(node, []).append(pod)
    return by_node


def is_updated(pod: Object, revision_hash: str, generation: str) -> bool:
    """Reports whether the pod has the newest template."""
    labels = labels_of(pod)
    by_generation = bool(generation) and labels.get(_GENERATION_LABEL) == generation
    return by_generation or (bool(revision_hash) and labels.get(REVISION_HASH) == revision_hash)


def oldest_first(pods: Iterable[Object]) -> list[Object]:
    """Sorts pods by age; those with a node come before the others."""
    return sorted(
        pods,
        key=lambda pod: (
            not pod["spec"].get("nodeName"),
            pod["metadata"].get("creationTimestamp", ""),
            pod["metadata"]["name"],
        ),
    )
