"""Why a pod can't run on a node: one function each, in the order in which they are asked.

Upstream: pkg/scheduler/framework/plugins (nodeunschedulable, nodename, tainttoleration, nodeaffinity, nodeports, noderesources,
podtopologyspread, interpodaffinity); those about volumes are in volumes.py, those about devices in dynamic_resources.py.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct, field

from fakeapiserver.apimachinery import labels
from fakeapiserver.component_helpers.scheduling import matches_node_affinity, tolerates, untolerated_taint
from fakeapiserver.nodes.scheduler.dynamic_resources import PodDevices
from fakeapiserver.nodes.scheduler.node_info import NodeInfo, PodInfo, Snapshot
from fakeapiserver.nodes.scheduler.volumes import PodClaims, Storage

_UNSCHEDULABLE: Final = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}


class Refusal(Struct, frozen=True):
    """`helped`: evicting other pods might change it."""

    reasons: Sequence[str]
    helped: bool = False


class Cycle(Struct):
    """A check of all nodes for one pod; `spread` and `affinity` are counted once for all nodes."""

    pod: PodInfo
    snapshot: Snapshot
    spread: "Sequence[Spread]" = ()
    affinity: "Affinity | None" = None
    storage: Storage | None = None
    claims: PodClaims = field(default_factory=PodClaims)
    devices: PodDevices = field(default_factory=PodDevices)

    @property
    def problem(self) -> str:
        """Why no node will do; "" where some may."""
        return self.claims.problem or self.devices.problem


Filter = Callable[[Cycle, NodeInfo], Refusal | None]


def unschedulable(cycle: Cycle, node: NodeInfo) -> Refusal | None:
    """kubectl cordon."""
    spec = node.node["spec"]
    if not spec.get("unschedulable") or tolerates(_tolerations(cycle.pod), _UNSCHEDULABLE):
        return None
    return Refusal(("node(s) were unschedulable",))


def taints(cycle: Cycle, node: NodeInfo) -> Refusal | None:
    if not node.taints or untolerated_taint(node.taints, _tolerations(cycle.pod), ("NoSchedule", "NoExecute")) is None:
        return None
    return Refusal(("node(s) had untolerated taint(s)",))


def node_affinity(cycle: Cycle, node: NodeInfo) -> Refusal | None:
    if matches_node_affinity(cycle.pod.pod, node.node):
        return None
    return Refusal(("node(s) didn't match Pod's node affinity/selector",))


def ports(cycle: Cycle, node: NodeInfo) -> Refusal | None:
    """Refuses nodes on which a host port is taken."""
    wanted = cycle.pod.ports
    if wanted and any(_conflict(wanted, pod.ports) for pod in node.pods.values()):
        return Refusal(("node(s) didn't have free ports for the requested pod ports",), helped=True)
    return None


def _conflict(wanted: frozenset[tuple[str, str, int]], taken: frozenset[tuple[str, str, int]]) -> bool:
    return any(
        (protocol, number) == (other_protocol, other_number)
        and (address == other_address or "0.0.0.0" in (address, other_address))
        for address, protocol, number in wanted
        for other_address, other_protocol, other_number in taken
    )


def resources(cycle: Cycle, node: NodeInfo) -> Refusal | None:
    reasons, hopeless = [], False
    if len(node.pods) + 1 > node.allocatable.get("pods", 0):
        reasons.append("Too many pods")
    for name, amount in cycle.pod.requests.items():
        if amount > node.allocatable.get(name, 0) - node.requested.get(name, 0):
            reasons.append(f"Insufficient {name}")
            hopeless = hopeless or amount > node.allocatable.get(name, 0)
    return Refusal(reasons, helped=not hopeless) if reasons else None


# ------------------------------------------------------------------------------ volumes


def volume_restrictions(cycle: Cycle, node: NodeInfo) -> Refusal | None:
    why = cycle.storage.restriction(cycle.pod, cycle.claims, node) if cycle.storage is not None else ""
    return Refusal((why,), helped=True) if why else None


def volume_limits(cycle: Cycle, node: NodeInfo) -> Refusal | None:
    why = cycle.storage.limit(cycle.pod, node) if cycle.storage is not None and cycle.pod.has_claims else ""
    return Refusal((why,), helped=True) if why else None


def volume_binding(cycle: Cycle, node: NodeInfo) -> Refusal | None:
    if cycle.storage is None or not cycle.pod.has_claims:
        return None
    reasons = cycle.storage.binding(cycle.claims, node)
    return Refusal(reasons) if reasons else None


def volume_zone(cycle: Cycle, node: NodeInfo) -> Refusal | None:
    why = cycle.storage.zone(cycle.claims, node) if cycle.storage is not None else ""
    return Refusal((why,)) if why else None


# ------------------------------------------------------------------------------ devices


def dynamic_resources(cycle: Cycle, node: NodeInfo) -> Refusal | None:
    why = cycle.devices.refusal(node) if cycle.devices.claims else ""
    return Refusal((why,)) if why else None


# ---------------------------------------------------------------------- topology spread


class Spread:
    """A constraint of a pod: how many pods it selects are in each domain."""

    def __init__(self, pod: PodInfo, constraint: Mapping[str, Any], snapshot: Snapshot, keys: Sequence[str]) -> None:
        self.key: str = constraint["topologyKey"]
        self.max_skew: int = constraint["maxSkew"]
        self._min_domains: int = constraint.get("minDomains") or 1
        selector = labels.from_label_selector(constraint.get("labelSelector"))
        more = [
            labels.Requirement(key, "in", (pod.labels[key],))
            for key in constraint.get("matchLabelKeys") or ()
            if key in pod.labels
        ]
        self._selector = labels.Selector((*selector.requirements, *more)) if more else selector
        self.self_match = int(self._selector.matches(pod.labels))
        self.counts: dict[str, int] = {}
        honours_affinity = (constraint.get("nodeAffinityPolicy") or "Honor") == "Honor"
        honours_taints = constraint.get("nodeTaintsPolicy") == "Honor"
        for node in snapshot.nodes.values():
            if any(key not in node.labels for key in keys):
                continue
            if honours_affinity and not matches_node_affinity(pod.pod, node.node):
                continue
            if honours_taints and untolerated_taint(node.taints, _tolerations(pod), ("NoSchedule", "NoExecute")):
                continue
            domain = node.labels[self.key]
            self.counts[domain] = self.counts.get(domain, 0) + self._matching(pod, node)

    def _matching(self, pod: PodInfo, node: NodeInfo) -> int:
        return sum(
            other.namespace == pod.namespace
            and not other.pod["metadata"].get("deletionTimestamp")
            and self._selector.matches(other.labels)
            for other in node.pods.values()
        )

    def skew(self, domain: str) -> int:
        """Returns how far the domain would be ahead of the emptiest one."""
        least = min(self.counts.values(), default=0) if len(self.counts) >= self._min_domains else 0
        return self.counts.get(domain, 0) + self.self_match - least


def spreads(pod: PodInfo, snapshot: Snapshot, action: str) -> Sequence[Spread]:
    """The pod's constraints with `whenUnsatisfiable: action`."""
    rows = [row for row in pod.pod["spec"].get("topologySpreadConstraints") or () if row["whenUnsatisfiable"] == action]
    keys = [row["topologyKey"] for row in rows]
    return [Spread(pod, row, snapshot, keys) for row in rows]


def topology_spread(cycle: Cycle, node: NodeInfo) -> Refusal | None:
    for spread in cycle.spread:
        domain = node.labels.get(spread.key)
        if domain is None:
            return Refusal(("node(s) didn't match pod topology spread constraints (missing required label)",))
        if spread.skew(domain) > spread.max_skew:
            return Refusal(("node(s) didn't match pod topology spread constraints",), helped=True)
    return None


# ------------------------------------------------------------------------- pod affinity


class Affinity:
    """(topology key, value) -> how many pods: that this pod wants to be near, or far from, and that want to be far from it."""

    def __init__(self, pod: PodInfo, snapshot: Snapshot) -> None:
        self.near: dict[tuple[str, str], int] = {}
        self.far: dict[tuple[str, str], int] = {}
        self.unwanted: set[tuple[str, str]] = set()
        namespaces = snapshot.namespaces
        for node in snapshot.nodes.values():
            for other in node.pods.values():
                for term in other.anti_affinity:
                    if term.topology_key in node.labels and term.matches(pod, namespaces):
                        self.unwanted.add((term.topology_key, node.labels[term.topology_key]))
                if pod.affinity and all(term.matches(other, namespaces) for term in pod.affinity):
                    self._count(self.near, node, [term.topology_key for term in pod.affinity])
                for term in pod.anti_affinity:
                    if term.matches(other, namespaces):
                        self._count(self.far, node, [term.topology_key])

    @staticmethod
    def _count(counts: dict[tuple[str, str], int], node: NodeInfo, keys: Sequence[str]) -> None:
        for key in keys:
            if key in node.labels:
                counts[key, node.labels[key]] = counts.get((key, node.labels[key]), 0) + 1


def pod_affinity(cycle: Cycle, node: NodeInfo) -> Refusal | None:
    affinity, pod = cycle.affinity, cycle.pod
    if affinity is None:
        return None
    if not _is_near(cycle, affinity, node):
        return Refusal(("node(s) didn't match pod affinity rules",))
    if any(affinity.far.get((term.topology_key, node.labels.get(term.topology_key, ""))) for term in pod.anti_affinity):
        return Refusal(("node(s) didn't match pod anti-affinity rules",), helped=True)
    if any(node.labels.get(key) == value for key, value in affinity.unwanted):
        return Refusal(("node(s) didn't satisfy existing pods anti-affinity rules",), helped=True)
    return None


def _is_near(cycle: Cycle, affinity: Affinity, node: NodeInfo) -> bool:
    terms = cycle.pod.affinity
    if any(term.topology_key not in node.labels for term in terms):
        return False
    if all(affinity.near.get((term.topology_key, node.labels[term.topology_key])) for term in terms):
        return True
    # the first of a group that wants to be with itself may go anywhere
    return not affinity.near and all(term.matches(cycle.pod, cycle.snapshot.namespaces) for term in terms)


FILTERS: Final[Sequence[Filter]] = (
    unschedulable,
    taints,
    node_affinity,
    ports,
    resources,
    volume_restrictions,
    volume_limits,
    volume_binding,
    volume_zone,
    topology_spread,
    pod_affinity,
    dynamic_resources,
)


def cycle_of(
    pod: PodInfo, snapshot: Snapshot, storage: Storage | None = None, devices: PodDevices | None = None
) -> Cycle:
    """Counts what is the same for all nodes. `storage`, `devices`: None: volumes and claims for devices don't matter."""
    matters = pod.affinity or pod.anti_affinity or snapshot.avoiding
    affinity = Affinity(pod, snapshot) if matters else None
    storage = storage if pod.pod["spec"].get("volumes") else None
    claims = storage.claims_of(pod, snapshot.nodes.values()) if storage is not None else PodClaims()
    return Cycle(
        pod, snapshot, spreads(pod, snapshot, "DoNotSchedule"), affinity, storage, claims, devices or PodDevices()
    )


def refusal(cycle: Cycle, node: NodeInfo) -> Refusal | None:
    """The first there is, with those on the node that others leave it for, or without them: they may end up elsewhere."""
    expected = cycle.snapshot.nominated.get(node.name)
    if expected:
        pod = cycle.pod
        before = [other for other in expected.values() if other.priority >= pod.priority and other.key != pod.key]
        if before:
            crowded = node.beside(before)
            why = node_refusal(cycle_of(pod, cycle.snapshot.with_node(crowded), cycle.storage, cycle.devices), crowded)
            if why is not None:
                return why
    return node_refusal(cycle, node)


def node_refusal(cycle: Cycle, node: NodeInfo) -> Refusal | None:
    """The first refusal by the node as it is, whatever it is promised to."""
    for ask in FILTERS:
        refusal = ask(cycle, node)
        if refusal is not None:
            return refusal
    return None


def _tolerations(pod: PodInfo) -> Sequence[Mapping[str, Any]]:
    tolerations: Sequence[Mapping[str, Any]] = pod.pod["spec"].get("tolerations") or ()
    return tolerations
