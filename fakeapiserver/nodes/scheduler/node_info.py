"""The scheduler's cache of nodes and the pods on them (upstream: pkg/scheduler/framework/types.go, backend/cache)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct, field

from fakeapiserver.apimachinery import labels
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.component_helpers.scheduling import Amounts, amounts_of, pod_requests

REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
# What a pod without requests is thought to need.
UNSAID: Final[Mapping[str, int]] = {"cpu": 100, "memory": 200 * 1024 * 1024}
Port = tuple[str, str, int]  # address, protocol, number


class Term(Struct, frozen=True):
    """A PodAffinityTerm, of a pod in `namespace`."""

    selector: labels.Selector
    namespaces: frozenset[str]
    namespace_selector: labels.Selector | None
    topology_key: str
    weight: int = 1

    def matches(self, pod: "PodInfo", namespace_labels: Mapping[str, Mapping[str, str]]) -> bool:
        """Reports whether `pod` is one that the term is about."""
        if pod.namespace not in self.namespaces and not (
            self.namespace_selector is not None
            and self.namespace_selector.matches(namespace_labels.get(pod.namespace, {}))
        ):
            return False
        return self.selector.matches(pod.labels)


class PodInfo:
    """A pod with what filters ask for, worked out once."""

    __slots__ = (
        "affinity",
        "anti_affinity",
        "claims",
        "has_claims",
        "key",
        "labels",
        "namespace",
        "pod",
        "ports",
        "preferred",
        "priority",
        "requests",
    )

    def __init__(self, pod: Object) -> None:
        metadata, spec = pod["metadata"], pod["spec"]
        self.pod = pod
        self.key: str = f"{metadata['namespace']}/{metadata['name']}"
        self.namespace: str = metadata["namespace"]
        self.labels: Mapping[str, str] = metadata.get("labels") or {}
        self.priority: int = spec.get("priority") or 0
        self.requests: Amounts = pod_requests(pod)
        self.ports: frozenset[Port] = frozenset(_host_ports(spec))
        volumes = spec.get("volumes") or ()
        named = [row["persistentVolumeClaim"]["claimName"] for row in volumes if row.get("persistentVolumeClaim")]
        self.claims: frozenset[str] = frozenset(named)
        self.has_claims = bool(named) or any(row.get("ephemeral") for row in volumes)
        affinity = spec.get("affinity") or {}
        self.affinity = self._terms((affinity.get("podAffinity") or {}).get(REQUIRED))
        self.anti_affinity = self._terms((affinity.get("podAntiAffinity") or {}).get(REQUIRED))
        self.preferred = [
            *self._weighted((affinity.get("podAffinity") or {}).get(PREFERRED), 1),
            *self._weighted((affinity.get("podAntiAffinity") or {}).get(PREFERRED), -1),
        ]

    def _terms(self, terms: Iterable[Mapping[str, Any]] | None) -> Sequence[Term]:
        return [self._term(term, 1) for term in terms or ()]

    def _weighted(self, terms: Iterable[Mapping[str, Any]] | None, sign: int) -> Iterator[Term]:
        for row in terms or ():
            yield self._term(row["podAffinityTerm"], sign * row["weight"])

    def _term(self, term: Mapping[str, Any], weight: int) -> Term:
        selector = labels.from_label_selector(term.get("labelSelector"))
        more = [
            labels.Requirement(key, operator, (self.labels[key],))
            for keys, operator in (("matchLabelKeys", "in"), ("mismatchLabelKeys", "notin"))
            for key in term.get(keys) or ()
            if key in self.labels
        ]
        if more and term.get("labelSelector") is not None:
            selector = labels.Selector((*selector.requirements, *more))
        namespaces = term.get("namespaces") or ()
        chosen = term.get("namespaceSelector")
        if not namespaces and chosen is None:
            namespaces = (self.namespace,)
        return Term(
            selector,
            frozenset(namespaces),
            labels.from_label_selector(chosen) if chosen is not None else None,
            term["topologyKey"],
            weight,
        )


def _host_ports(spec: Mapping[str, Any]) -> Iterator[Port]:
    for container in (*spec["containers"], *(spec.get("initContainers") or ())):
        for port in container.get("ports") or ():
            if port.get("hostPort"):
                yield port.get("hostIP") or "0.0.0.0", port.get("protocol") or "TCP", port["hostPort"]


class NodeInfo(Struct):
    """A node, the pods that are on it or will be, and what they need together."""

    node: Object
    pods: dict[str, PodInfo] = field(default_factory=dict)
    requested: Amounts = field(default_factory=dict)
    # With a guess for pods without requests, as the scores use it.
    presumed: Amounts = field(default_factory=lambda: dict.fromkeys(UNSAID, 0))
    allocatable: Amounts = field(default_factory=dict)

    @property
    def name(self) -> str:
        name: str = self.node["metadata"]["name"]
        return name

    @property
    def labels(self) -> Mapping[str, str]:
        labels: Mapping[str, str] = self.node["metadata"].get("labels") or {}
        return labels

    @property
    def taints(self) -> Sequence[Mapping[str, Any]]:
        taints: Sequence[Mapping[str, Any]] = self.node["spec"].get("taints") or ()
        return taints

    def set_node(self, node: Object) -> None:
        """Replaces the node's object."""
        self.node = node
        self.allocatable = amounts_of(node["status"].get("allocatable"))

    def add(self, pod: PodInfo) -> None:
        """Adds a pod that is on the node or will be."""
        self.remove(pod.key)
        self.pods[pod.key] = pod
        for name, amount in pod.requests.items():
            self.requested[name] = self.requested.get(name, 0) + amount
        for name, guess in UNSAID.items():
            self.presumed[name] += pod.requests.get(name) or guess

    def remove(self, key: str) -> None:
        """Removes a pod, if it is there."""
        pod = self.pods.pop(key, None)
        if pod is not None:
            for name, amount in pod.requests.items():
                self.requested[name] -= amount
            for name, guess in UNSAID.items():
                self.presumed[name] -= pod.requests.get(name) or guess

    def without(self, keys: Iterable[str]) -> "NodeInfo":
        """The same with these pods gone."""
        copy = self._copy()
        for key in keys:
            copy.remove(key)
        return copy

    def beside(self, pods: Iterable[PodInfo]) -> "NodeInfo":
        """The same with these pods on it too."""
        copy = self._copy()
        for pod in pods:
            copy.add(pod)
        return copy

    def _copy(self) -> "NodeInfo":
        return NodeInfo(self.node, dict(self.pods), dict(self.requested), dict(self.presumed), self.allocatable)


class Snapshot:
    """All nodes, kept up to date by informers, and ahead of them by the scheduler's own decisions."""

    def __init__(self) -> None:
        self.nodes: dict[str, NodeInfo] = {}
        self.namespaces: dict[str, Mapping[str, str]] = {}
        # Pods that others have to look at: those that must not have some beside them, those that would like something.
        self.avoiding: set[str] = set()
        self.wishing: set[str] = set()
        # Pods for which others leave a node, by node: the room is theirs unless a pod of higher priority comes.
        self.nominated: dict[str, dict[str, PodInfo]] = {}
        # Counts the changes of nodes and of the pods on them.
        self.generation = 0
        # The last change of each node, the newest last; a node that is gone stays in it.
        self._changes: dict[str, int] = {}
        self._where: dict[str, str] = {}
        self._unknown: dict[str, dict[str, PodInfo]] = {}

    def set_node(self, node: Object) -> None:
        """Adds or replaces a node."""
        name = node["metadata"]["name"]
        info = self.nodes.get(name)
        if info is None:
            info = self.nodes[name] = NodeInfo(node)
            for pod in self._unknown.pop(name, {}).values():
                info.add(pod)
        info.set_node(node)
        self._note(name)

    def remove_node(self, name: str) -> None:
        """Removes a node; its pods are kept in case it comes back."""
        info = self.nodes.pop(name, None)
        self._note(name)
        if info is not None and info.pods:
            self._unknown[name] = info.pods

    def place(self, pod: PodInfo, name: str) -> None:
        """Places a pod on a node."""
        self.withdraw(pod.key)
        if self._where.get(pod.key, name) != name:
            self.remove_pod(pod.key)
        self._where[pod.key] = name
        if pod.anti_affinity:
            self.avoiding.add(pod.key)
        if pod.preferred:
            self.wishing.add(pod.key)
        info = self.nodes.get(name)
        if info is not None:
            info.add(pod)
            self._note(name)
        else:
            self._unknown.setdefault(name, {})[pod.key] = pod

    def refresh(self, pod: Object, name: str) -> bool:
        """Takes over a new state of a pod in which its spec and labels are as before. Returns False unless it is on this node."""
        key = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
        info = self.nodes.get(name)
        known = info.pods.get(key) if info is not None else None
        if known is None:
            return False
        known.pod = pod
        return True

    def remove_pod(self, key: str) -> bool:
        """Removes a pod; returns whether it had a place."""
        self.withdraw(key)
        name = self._where.pop(key, None)
        if name is None:
            return False
        self.avoiding.discard(key)
        self.wishing.discard(key)
        if name in self.nodes:
            self.nodes[name].remove(key)
            self._note(name)
        self._unknown.get(name, {}).pop(key, None)
        return True

    def nominate(self, pod: PodInfo, name: str) -> None:
        """Promises a pod a node that others have to leave, unless it has a place already."""
        self.withdraw(pod.key)
        if pod.key not in self._where:
            self.nominated.setdefault(name, {})[pod.key] = pod

    def withdraw(self, key: str) -> None:
        """Withdraws the promise of a node, if the pod has one."""
        for name, pods in self.nominated.items():
            if pods.pop(key, None) is not None:
                if not pods:
                    del self.nominated[name]
                return

    def changed_since(self, generation: int) -> Iterator[str]:
        """Yields the nodes that have changed after that generation, the newest change first."""
        for name, changed in reversed(self._changes.items()):
            if changed <= generation:
                return
            yield name

    def _note(self, name: str) -> None:
        self.generation += 1
        self._changes.pop(name, None)
        self._changes[name] = self.generation

    def with_node(self, node: NodeInfo) -> "Snapshot":
        """The same with this one in its place, for a look at what would be."""
        snapshot = Snapshot()
        snapshot.nodes = {**self.nodes, node.name: node}
        snapshot.namespaces, snapshot.wishing, snapshot.nominated = self.namespaces, self.wishing, self.nominated
        here = {key for key, pod in node.pods.items() if pod.anti_affinity}
        snapshot.avoiding = self.avoiding if here <= self.avoiding else self.avoiding | here
        return snapshot
