"""Preemption: the pods of lower priority that are evicted for another one (upstream: plugins/defaultpreemption,
framework/preemption).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.component_helpers.conditions import Condition
from fakeapiserver.component_helpers.objects import is_terminating
from fakeapiserver.nodes.scheduler.dynamic_resources import PodDevices
from fakeapiserver.nodes.scheduler.filters import Refusal, cycle_of, refusal
from fakeapiserver.nodes.scheduler.node_info import NodeInfo, PodInfo, Snapshot
from fakeapiserver.nodes.scheduler.volumes import Storage

PREEMPTED: Final[Condition] = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "PreemptionByScheduler",
    "message": "default-scheduler: preempting to accommodate a higher priority pod",
}


class Candidate(Struct, frozen=True):
    """A node, and the pods that have to leave it."""

    node: str
    victims: Sequence[PodInfo]


def ineligible(pod: PodInfo, snapshot: Snapshot, refusals: Mapping[str, Refusal]) -> str:
    """Returns why no pod is evicted for this one now, as the event words it; "" if one may be."""
    if pod.pod["spec"].get("preemptionPolicy") == "Never":
        return "not eligible due to preemptionPolicy=Never."
    name = (pod.pod.get("status") or {}).get("nominatedNodeName")
    node = snapshot.nodes.get(name or "")
    if node is None or not refusals[node.name].helped:
        return ""
    waits = any(other.priority < pod.priority and _is_victim(other.pod) for other in node.pods.values())
    return "not eligible due to a terminating pod on the nominated node." if waits else ""


def candidate(
    pod: PodInfo,
    snapshot: Snapshot,
    refusals: Mapping[str, Refusal],
    storage: Storage | None = None,
    devices: PodDevices | None = None,
) -> tuple[Candidate | None, str]:
    """Returns the node with the least important victims, or the text of the event if no node has any."""
    total = len(snapshot.nodes)
    candidates, hopeless, spared = [], 0, 0
    for name, why in refusals.items():
        if not why.helped:
            hopeless += 1
            continue
        victims = _victims(pod, snapshot.nodes[name], lambda node: _fits(pod, snapshot, node, storage, devices))
        if victims is None:
            spared += 1
        else:
            candidates.append(Candidate(name, victims))
    if candidates:
        return min(candidates, key=_cost), ""
    reasons = []
    if spared:
        reasons.append(f"{spared} No preemption victims found for incoming pod")
    if hopeless:
        reasons.append(f"{hopeless} Preemption is not helpful for scheduling")
    return None, f"0/{total} nodes are available: {', '.join(sorted(reasons))}."


def _is_victim(pod: Object) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    why = next((row for row in conditions if row["type"] == PREEMPTED["type"]), None)
    return is_terminating(pod) and why is not None and why["status"] == "True" and why["reason"] == PREEMPTED["reason"]


def _cost(candidate: Candidate) -> tuple[int, int, int, str]:
    """Less is better: the highest priority that would suffer, their sum, how many."""
    priorities = [victim.priority for victim in candidate.victims]
    return max(priorities), sum(priorities), len(priorities), candidate.node


def _victims(pod: PodInfo, node: NodeInfo, fits: Callable[[NodeInfo], bool]) -> Sequence[PodInfo] | None:
    """Returns as few victims as possible, the least important ones; None if even all of them aren't enough."""
    lesser = sorted((other for other in node.pods.values() if other.priority < pod.priority), key=_importance)
    if not lesser:
        return None
    gone = {other.key for other in lesser}
    if not fits(node.without(gone)):
        return None
    for other in reversed(lesser):  # the most important stay if they can
        if fits(node.without(gone - {other.key})):
            gone.discard(other.key)
    return [other for other in lesser if other.key in gone]


def _importance(pod: PodInfo) -> tuple[int, str]:
    """Returns a sort key: among equals, a pod that runs longer is more important, and sorts last."""
    started = (pod.pod.get("status") or {}).get("startTime") or "9999"
    return pod.priority, "".join(chr(0x10FFFF - ord(letter)) for letter in started)


def _fits(
    pod: PodInfo, snapshot: Snapshot, node: NodeInfo, storage: Storage | None, devices: PodDevices | None
) -> bool:
    return refusal(cycle_of(pod, snapshot.with_node(node), storage, devices), node) is None
