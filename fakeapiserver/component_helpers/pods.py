"""Functions on pods for controllers (upstream: pkg/controller/controller_utils.go, pkg/api/v1/pod/util.go).

Pods are an informer's objects: read, never changed.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cmp_to_key
from typing import Any, Final, NamedTuple

from fakeapiserver.apimachinery.go.strconv import parse_int
from fakeapiserver.apimachinery.labels import Selector
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.timestamp import seconds_of
from fakeapiserver.client.cache.indexer import Indexer, IndexFunc
from fakeapiserver.client.cache.shared_informer import SharedInformer
from fakeapiserver.component_helpers.objects import controller_of

# Index: objects by the key that `controller_key` makes of their controller.
CONTROLLER_INDEX: Final = "controller"
# Index: pods by the node they are bound to; unbound ones are in none.
POD_NODE_NAME_INDEX: Final = "spec.nodeName"

# Seconds until a check that is due already.
SOON: Final = 0.001

DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
_TERMINAL: Final = ("Succeeded", "Failed")
_PHASES: Final = {"Pending": 0, "Unknown": 1, "Running": 2}
_COST: Final = re.compile(r"-[0-9]+|0|[1-9][0-9]*")
_NANOSECONDS: Final = 1e9


# -------------------------------------------------------------------- conditions


def pod_phase(pod: Object) -> str:
    """Pending, Running, Succeeded, Failed, Unknown; "" before anybody wrote one."""
    phase: str = pod["status"].get("phase", "") if "status" in pod else ""
    return phase


def pod_condition(pod: Object, condition_type: str) -> Mapping[str, Any] | None:
    """The condition of this type."""
    for condition in (pod.get("status") or {}).get("conditions") or ():
        if condition["type"] == condition_type:
            row: Mapping[str, Any] = condition
            return row
    return None


def is_pod_ready(pod: Object) -> bool:
    # As pod_condition, without the call: controllers ask this of all their pods each time that one changes.
    for condition in (pod.get("status") or {}).get("conditions") or ():
        if condition["type"] == "Ready":
            return bool(condition["status"] == "True")
    return False


def is_pod_available(pod: Object, min_ready_seconds: int, now: float) -> bool:
    """Ready for so many seconds."""
    condition = pod_condition(pod, "Ready")
    if condition is None or condition["status"] != "True":
        return False
    if not min_ready_seconds:
        return True
    since = transition_time(condition)
    return since is not None and since + min_ready_seconds <= now


def transition_time(condition: Mapping[str, Any]) -> float | None:
    """Returns seconds since the epoch, or None if the condition has no time."""
    text = condition.get("lastTransitionTime")
    return seconds_of(text) if text else None


def is_pod_terminal(pod: Object) -> bool:
    """All its containers have ended for good."""
    return pod_phase(pod) in _TERMINAL


def is_pod_active(pod: Object) -> bool:
    """Reports whether the pod has not ended and is not being deleted."""
    return "deletionTimestamp" not in pod["metadata"] and pod_phase(pod) not in _TERMINAL


def is_pod_terminating(pod: Object) -> bool:
    """Reports whether the pod is being deleted and has not ended."""
    return "deletionTimestamp" in pod["metadata"] and pod_phase(pod) not in _TERMINAL


def active_pods(pods: Iterable[Object]) -> list[Object]:
    return [pod for pod in pods if is_pod_active(pod)]


def selects(selector: Selector) -> Callable[[Object], bool]:
    """Whether the selector matches an object; a controller's objects mostly have the same labels, which are looked at once."""
    known: Mapping[str, str] | None = None
    answer = False

    def matches(obj: Object) -> bool:
        nonlocal known, answer
        labels = obj["metadata"].get("labels") or {}
        if labels != known:
            known, answer = labels, selector.matches(labels)
        return answer

    return matches


def claimed_pods(controller: Object, selector: Selector, pods: Iterable[Object]) -> list[Object]:
    """Returns the pods that the controller owns and selects."""
    uid, selected = controller["metadata"]["uid"], selects(selector)
    return [pod for pod in pods if (owner := controller_of(pod)) is not None and owner["uid"] == uid and selected(pod)]


def next_availability_check(
    pods: Iterable[Object], min_ready_seconds: int, status_at: float, now: float
) -> float | None:
    """Returns the seconds until the next ready pod becomes available, or None if none will.

    Only pods that weren't available at `status_at` count. The result is 0 if one became available since then.
    """
    if min_ready_seconds <= 0:
        return None
    due = [
        since + min_ready_seconds
        for pod in pods
        if (condition := pod_condition(pod, "Ready")) is not None
        and condition["status"] == "True"
        and (since := transition_time(condition)) is not None
    ]
    later = [time for time in due if time > status_at]
    return max(0.0, min(later) - now) if later else None


# ----------------------------------------------------------------------- indexes


def controller_key(namespace: str, owner: Mapping[str, Any] | None) -> str:
    """The value of CONTROLLER_INDEX for what a controller has, by its owner reference; for the namespace's orphans without."""
    return namespace if owner is None else f"{namespace}/{owner['kind']}/{owner['name']}/{owner['uid']}"


def _by_controller(obj: Object) -> Iterable[str]:
    return (controller_key(obj["metadata"].get("namespace", ""), controller_of(obj)),)


def _by_node_name(pod: Object) -> Iterable[str]:
    name = (pod.get("spec") or {}).get("nodeName")
    return (name,) if name else ()


def add_controller_indexer(informer: SharedInformer) -> Indexer:
    """The informer's indexer, with CONTROLLER_INDEX."""
    return add_indexer(informer, CONTROLLER_INDEX, _by_controller)


def add_pod_node_name_indexer(informer: SharedInformer) -> Indexer:
    """The informer's indexer, with POD_NODE_NAME_INDEX."""
    return add_indexer(informer, POD_NODE_NAME_INDEX, _by_node_name)


def add_indexer(informer: SharedInformer, name: str, function: IndexFunc) -> Indexer:
    """The informer's indexer, with the index unless another controller has added it."""
    if name not in informer.indexer.indexers:
        informer.indexer.add_indexers({name: function})
    return informer.indexer


def objects_of_owner(indexer: Indexer, owner: Object, kind: str, *, orphans: bool) -> list[Object]:
    """Returns the objects that `owner`, of `kind`, controls; with `orphans` also those in its namespace without a
    controller.
    """
    metadata = owner["metadata"]
    namespace = metadata["namespace"]
    reference = {"kind": kind, "name": metadata["name"], "uid": metadata["uid"]}
    objects = [*indexer.by_index(CONTROLLER_INDEX, controller_key(namespace, reference))]
    if orphans:
        objects += indexer.by_index(CONTROLLER_INDEX, controller_key(namespace, None))
    return objects


# ------------------------------------------------------------------ the order of deletion


class _Standing(NamedTuple):
    """A pod's rank for deletion."""

    pod: Object
    # Compared as a whole: unassigned first, then by phase, not ready, deletion cost, and doubled up on a node.
    order: tuple[int, int, int, int, int]
    ready_since: float | None
    is_ready: bool
    restarts: tuple[int, int]
    created: float | None
    uid: str


def sort_for_deletion(pods: Iterable[Object], ranks: Mapping[str, int], now: float) -> list[Object]:
    """The pods, those first that should be deleted first (upstream: ActivePodsWithRanks).

    ranks: by node name, how many related pods there are. Times are compared on a logarithmic scale; where that sees no
    difference, uids decide, which is as good as chance."""
    standings = [_standing(pod, ranks) for pod in pods]

    def compare(left: _Standing, right: _Standing) -> int:
        if left.order != right.order:
            return -1 if left.order < right.order else 1
        if left.is_ready and left.ready_since != right.ready_since:
            return _compare_times(left.ready_since, right.ready_since, left.uid, right.uid, now)
        if left.restarts != right.restarts:
            return -1 if left.restarts > right.restarts else 1
        if left.created != right.created:
            return _compare_times(left.created, right.created, left.uid, right.uid, now)
        return 0

    return [standing.pod for standing in sorted(standings, key=cmp_to_key(compare))]


def sort_active(pods: Iterable[Object]) -> list[Object]:
    """The pods, those first that should be deleted first, where neither costs nor nodes matter (upstream: ActivePods).

    Those of equal standing stay in their order."""

    def key(pod: Object) -> tuple[object, ...]:
        standing = _standing(pod, {})
        ready_since = _younger_first(standing.ready_since) if standing.is_ready else 0.0
        restarts = tuple(-count for count in standing.restarts)
        return (*standing.order[:3], ready_since, restarts, _younger_first(standing.created))

    return sorted(pods, key=key)


def _younger_first(moment: float | None) -> float:
    """Sorts later times first, and a missing time before all."""
    return -math.inf if moment is None else -moment


def _standing(pod: Object, ranks: Mapping[str, int]) -> _Standing:
    metadata, node = pod["metadata"], (pod.get("spec") or {}).get("nodeName", "")
    condition = pod_condition(pod, "Ready")
    ready = condition is not None and condition["status"] == "True"
    order = (
        int(bool(node)),
        _PHASES.get(pod_phase(pod), 0),
        int(ready),
        _deletion_cost(metadata.get("annotations") or {}),
        -ranks.get(node, 0),
    )
    since = transition_time(condition) if ready and condition is not None else None
    created = seconds_of(metadata["creationTimestamp"]) if metadata.get("creationTimestamp") else None
    return _Standing(pod, order, since, ready, _restarts(pod), created, metadata["uid"])


def _compare_times(left: float | None, right: float | None, left_uid: str, right_uid: str, now: float) -> int:
    """Younger first, and what has no time before that."""
    if left is None or right is None:
        return -1 if left is None else 1
    difference = _magnitude(now - left) - _magnitude(now - right)
    if difference:
        return -1 if difference < 0 else 1
    return -1 if left_uid < right_uid else 1


def _magnitude(seconds: float) -> int:
    return int(math.log2(seconds * _NANOSECONDS)) if seconds > 0 else -1


def _deletion_cost(annotations: Mapping[str, str]) -> int:
    text = annotations.get(DELETION_COST, "")
    try:
        return parse_int(text, 32) if _COST.fullmatch(text) else 0
    except ValueError:
        return 0


def _restarts(pod: Object) -> tuple[int, int]:
    """The most of its containers, and the most of its sidecars."""
    status = pod.get("status") or {}
    regular = max(
        (container_status.get("restartCount", 0) for container_status in status.get("containerStatuses") or ()),
        default=0,
    )
    sidecars = {
        container["name"]
        for container in pod["spec"].get("initContainers") or ()
        if container.get("restartPolicy") == "Always"
    }
    counts = (
        container_status.get("restartCount", 0)
        for container_status in status.get("initContainerStatuses") or ()
        if container_status["name"] in sidecars
    )
    return regular, max(counts, default=0)


__all__: Sequence[str] = (
    "CONTROLLER_INDEX",
    "DELETION_COST",
    "POD_NODE_NAME_INDEX",
    "SOON",
    "active_pods",
    "add_controller_indexer",
    "add_indexer",
    "add_pod_node_name_indexer",
    "claimed_pods",
    "controller_key",
    "is_pod_active",
    "is_pod_available",
    "is_pod_ready",
    "is_pod_terminal",
    "is_pod_terminating",
    "next_availability_check",
    "objects_of_owner",
    "pod_condition",
    "pod_phase",
    "selects",
    "sort_active",
    "sort_for_deletion",
    "transition_time",
)
