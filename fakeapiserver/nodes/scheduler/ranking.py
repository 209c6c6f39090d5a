"""The order of nodes for pods that ask for the same, kept up to date as nodes change.

The best node is exactly that of the filters and scores over all nodes, but only changed nodes are looked at. Upstream samples nodes
(percentageOfNodesToScore) and uses an order again for pods with the same signature (KEP-5598, pkg/scheduler/framework/runtime/batch.go).
"""

from heapq import heapify, heappop, heappush
from typing import Any, Final

import msgspec.json
from msgspec import Struct, field

from fakeapiserver.nodes.scheduler.filters import Cycle, node_refusal
from fakeapiserver.nodes.scheduler.node_info import PREFERRED, NodeInfo, PodInfo, Snapshot
from fakeapiserver.nodes.scheduler.scores import order_of, unwanted_taints
from fakeapiserver.nodes.scheduler.volumes import is_disk

_MAX_RANKINGS: Final = 32
# The place of a node in the order, its name, and the generation of the node that has it; another generation's entry is stale.
_Entry = tuple[tuple[float, int], str, int]


class Rankings:
    """The orders of the nodes of `snapshot` for the last 32 kinds of pods."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._rankings: dict[bytes, _Ranking] = {}

    def best(self, cycle: Cycle) -> NodeInfo | None:
        """Returns the pod's best node; None if no node takes it, or if its node depends on more than each node by itself."""
        if not _depends_on_each_node_alone(cycle):
            return None
        signature = _signature(cycle.pod)
        ranking = self._rankings.pop(signature, None) or _Ranking()
        self._rankings[signature] = ranking
        if len(self._rankings) > _MAX_RANKINGS:
            del self._rankings[next(iter(self._rankings))]
        ranking.update(cycle, self._snapshot)
        return ranking.best(self._snapshot)


class _Ranking(Struct):
    """Nodes that take the pod, best first. `unwanted`: nodes with taints that the pod avoids where it can."""

    heap: list[_Entry] = field(default_factory=list)
    generations: dict[str, int] = field(default_factory=dict)
    unwanted: set[str] = field(default_factory=set)
    generation: int = 0

    def update(self, cycle: Cycle, snapshot: Snapshot) -> None:
        """Looks at the nodes that have changed."""
        for name in snapshot.changed_since(self.generation):
            self.generations.pop(name, None)
            self.unwanted.discard(name)
            node = snapshot.nodes.get(name)
            if node is None or node_refusal(cycle, node) is not None:
                continue
            if unwanted_taints(cycle.pod, node):
                self.unwanted.add(name)
            self.generations[name] = snapshot.generation
            heappush(self.heap, (order_of(cycle.pod, node), name, snapshot.generation))
        self.generation = snapshot.generation
        if len(self.heap) > 2 * len(snapshot.nodes) + _MAX_RANKINGS:
            self.heap = [entry for entry in self.heap if self._is_valid(entry)]
            heapify(self.heap)

    def best(self, snapshot: Snapshot) -> NodeInfo | None:
        """Returns the first node. None: no node takes the pod, or how much the taints count depends on the other nodes."""
        if self.unwanted:
            return None
        while self.heap and not self._is_valid(self.heap[0]):
            heappop(self.heap)
        return snapshot.nodes[self.heap[0][1]] if self.heap else None

    def _is_valid(self, entry: _Entry) -> bool:
        return self.generations.get(entry[1]) == entry[2]


def _depends_on_each_node_alone(cycle: Cycle) -> bool:
    """Reports whether neither other nodes nor objects beside nodes and their pods matter to where the pod runs."""
    spec: dict[str, Any] = cycle.pod.pod["spec"]
    preferred = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(PREFERRED)
    return not (
        cycle.problem
        or cycle.affinity is not None
        or cycle.devices.claims
        or cycle.pod.has_claims
        or cycle.pod.preferred
        or cycle.snapshot.wishing
        or cycle.snapshot.nominated
        or preferred
        or spec.get("topologySpreadConstraints")
        or any(map(is_disk, spec.get("volumes") or ()))
    )


def _signature(pod: PodInfo) -> bytes:
    """Returns what the filters and scores read of a pod whose node depends on each node alone."""
    spec = pod.pod["spec"]
    rows = (pod.requests, sorted(pod.ports), spec.get("tolerations"), spec.get("nodeSelector"), spec.get("affinity"))
    return msgspec.json.encode(rows)
