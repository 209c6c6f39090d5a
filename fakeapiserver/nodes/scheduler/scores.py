"""The scores of nodes for a pod: each is 0 to 100, weighed by upstream's defaults.

Upstream: pkg/scheduler/framework/plugins (noderesources/{least_allocated,balanced_allocation}.go, tainttoleration, nodeaffinity,
podtopologyspread/scoring.go, interpodaffinity/scoring.go), apis/config/v1/default_plugins.go.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from fakeapiserver.component_helpers.scheduling import matches_term, tolerates
from fakeapiserver.nodes.scheduler.filters import spreads
from fakeapiserver.nodes.scheduler.node_info import PREFERRED, UNSAID, NodeInfo, PodInfo, Snapshot

MAX: Final = 100.0


def best(
    pod: PodInfo, nodes: Sequence[NodeInfo], snapshot: Snapshot, devices: Mapping[str, float] | None = None
) -> NodeInfo:
    """Returns the best node; among equals the one with the fewest pods, then the first by name.

    `devices`: scores by devices.
    """
    if len(nodes) == 1:
        return nodes[0]
    totals = {node.name: _resources(pod, node) for node in nodes}
    for weight, scores in (
        (3, _reversed({node.name: float(unwanted_taints(pod, node)) for node in nodes})),
        (2, _normalized({node.name: _preferred_affinity(pod, node) for node in nodes})),
        (2, _spread(pod, nodes, snapshot)),
        (2, _pod_affinity(pod, nodes, snapshot)),
        (2, _normalized(devices) if devices else {}),
    ):
        for name, score in scores.items():
            totals[name] += weight * score
    return min(nodes, key=lambda node: (*_order(totals[node.name], node), node.name))


def order_of(pod: PodInfo, node: NodeInfo) -> tuple[float, int]:
    """Returns the node's place among others as far as it depends on the node alone; the smallest is the best."""
    return _order(_resources(pod, node), node)


def _order(total: float, node: NodeInfo) -> tuple[float, int]:
    return -round(total, 6), len(node.pods)


def _resources(pod: PodInfo, node: NodeInfo) -> float:
    """The scores by resources, together."""
    return _least_allocated(pod, node) + _balanced(pod, node)


def _after(pod: PodInfo, node: NodeInfo, name: str) -> float:
    """The share of the node's resource that would be taken."""
    capacity = node.allocatable.get(name, 0)
    if not capacity:
        return 1.0
    return min((node.presumed[name] + (pod.requests.get(name) or UNSAID[name])) / capacity, 1.0)


def _least_allocated(pod: PodInfo, node: NodeInfo) -> float:
    return sum((1.0 - _after(pod, node, name)) * MAX for name in UNSAID) / len(UNSAID)


def _balanced(pod: PodInfo, node: NodeInfo) -> float:
    cpu, memory = (_after(pod, node, name) for name in UNSAID)
    return (1.0 - abs(cpu - memory) / 2) * MAX


def unwanted_taints(pod: PodInfo, node: NodeInfo) -> int:
    """Returns how many of the node's PreferNoSchedule taints the pod does not tolerate."""
    tolerations = pod.pod["spec"].get("tolerations") or ()
    unwanted = [taint for taint in node.taints if taint["effect"] == "PreferNoSchedule"]
    return sum(not tolerates(tolerations, taint) for taint in unwanted)


def _preferred_affinity(pod: PodInfo, node: NodeInfo) -> float:
    affinity = (pod.pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    rows = affinity.get(PREFERRED) or ()
    return float(sum(row["weight"] for row in rows if matches_term(row["preference"], node.node)))


def _spread(pod: PodInfo, nodes: Sequence[NodeInfo], snapshot: Snapshot) -> Mapping[str, float]:
    """Soft constraints: rather where fewer are."""
    constraints = spreads(pod, snapshot, "ScheduleAnyway")
    if not constraints:
        return {}
    counts = {
        node.name: float(sum(spread.counts.get(node.labels.get(spread.key, ""), 0) for spread in constraints))
        for node in nodes
    }
    return _reversed(counts)


def _pod_affinity(pod: PodInfo, nodes: Sequence[NodeInfo], snapshot: Snapshot) -> Mapping[str, float]:
    """Near to, or far from, what it would like, and what would like it."""
    if not pod.preferred and not snapshot.wishing:
        return {}
    weights: dict[tuple[str, str], int] = {}
    for node in snapshot.nodes.values():
        for other in node.pods.values():
            wishes = [term for term in pod.preferred if term.matches(other, snapshot.namespaces)]
            wishes += [term for term in other.preferred if term.matches(pod, snapshot.namespaces)]
            for term in wishes:
                domain = (term.topology_key, node.labels.get(term.topology_key, ""))
                weights[domain] = weights.get(domain, 0) + term.weight
    if not weights:
        return {}
    sums = {
        node.name: float(sum(weight for (key, value), weight in weights.items() if node.labels.get(key) == value))
        for node in nodes
    }
    low, high = min(sums.values()), max(sums.values())
    return {name: (value - low) / (high - low) * MAX if high > low else 0.0 for name, value in sums.items()}


def _normalized(scores: Mapping[str, float]) -> Mapping[str, float]:
    """The best has 100."""
    most = max(scores.values())
    return {name: score / most * MAX for name, score in scores.items()} if most > 0 else {}


def _reversed(scores: Mapping[str, float]) -> Mapping[str, float]:
    """Reverses scores: the lowest becomes 100."""
    most = max(scores.values())
    return {name: MAX - score / most * MAX for name, score in scores.items()} if most > 0 else {}
