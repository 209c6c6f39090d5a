"""The volumes that have to be attached, by node and pod (upstream: cache/desired_state_of_world.go, util/util.go)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct, field

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.component_helpers.controller_context import ControllerContext
from fakeapiserver.component_helpers.objects import (
    CSI_DRIVERS,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
)
from fakeapiserver.component_helpers.pods import POD_NODE_NAME_INDEX, add_pod_node_name_indexer
from fakeapiserver.component_helpers.volumes.attachable_volumes import AttachableVolumes, Volume
from fakeapiserver.component_helpers.volumes.pod_volumes import (
    POD_PVC_INDEX,
    add_pod_pvc_indexer,
    has_pod_ended,
)

MANAGED: Final = "volumes.kubernetes.io/controller-managed-attach-detach"


class Pair(Struct, frozen=True):
    """A volume, by its unique name, and a node."""

    volume: str
    node: str


class Wish(Struct):
    """A volume that pods on a node need.

    `pods`: by uid. `told`: whether the conflict with another node was reported.
    """

    volume: Volume
    pods: dict[str, Object] = field(default_factory=dict)
    told: bool = False


class DesiredState:
    """Follows pods; `of_pod` names what changes."""

    def __init__(self, context: ControllerContext) -> None:
        self.pods = context.informer(PODS)
        self.claims = context.informer(PERSISTENT_VOLUME_CLAIMS)
        self.drivers = context.informer(CSI_DRIVERS)
        self._by_claim = add_pod_pvc_indexer(self.pods)
        self._by_node = add_pod_node_name_indexer(self.pods)
        self._volumes = context.informer(PERSISTENT_VOLUMES).indexer
        self._attachable = AttachableVolumes(self.claims.indexer, self._volumes, self.drivers.indexer)
        self._nodes = context.informer(NODES).indexer
        self._wishes: dict[Pair, Wish] = {}
        self._of_pod: dict[str, frozenset[Pair]] = {}
        self._of_volume: dict[str, dict[str, None]] = {}
        # Nodes that are gone, but whose pods aren't.
        self._kept: set[str] = set()

    def wish(self, pair: Pair) -> Wish | None:
        """Returns the wish for a volume on a node, or None if no pod needs it there."""
        return self._wishes.get(pair)

    def nodes_of(self, volume: str) -> Sequence[str]:
        """Returns the nodes where the volume is needed, the oldest wish first."""
        return [*self._of_volume.get(volume, ())]

    def pods_on(self, volume: str, nodes: Iterable[str]) -> list[Object]:
        """Returns the pods that need the volume on these nodes."""
        wishes: Iterable[Wish | None] = [self.wish(Pair(volume, node)) for node in nodes]
        return [pod for wish in wishes if wish is not None for pod in wish.pods.values()]

    def volumes_on(self, node: str) -> Sequence[str]:
        """Returns the volumes that are needed on the node."""
        return [pair.volume for pod in self.pods_on_node(node) for pair in self._of_pod.get(pod["metadata"]["uid"], ())]

    def pods_with_claim(self, claim: str) -> Sequence[Object]:
        """By the claim's `namespace/name`."""
        return self._by_claim.by_index(POD_PVC_INDEX, claim)

    def update(self, pod: Object, *, gone: bool = False) -> Iterable[Pair]:
        """Looks at a pod; where something may have to be attached or detached now."""
        uid = pod["metadata"]["uid"]
        needed: Mapping[Pair, Volume] = {} if gone or has_pod_ended(pod) else dict(self._needed(pod))
        before = self._of_pod.pop(uid, frozenset())
        if needed:
            self._of_pod[uid] = frozenset(needed)
        for pair in before - needed.keys():
            wish = self._wishes[pair]
            wish.pods.pop(uid, None)
            if not wish.pods:
                del self._wishes[pair]
                self._of_volume[pair.volume].pop(pair.node, None)
        for pair, volume in needed.items():
            self._wishes.setdefault(pair, Wish(volume)).pods[uid] = pod
            self._of_volume.setdefault(pair.volume, {})[pair.node] = None
        return before ^ needed.keys()

    def _needed(self, pod: Object) -> Iterator[tuple[Pair, Volume]]:
        name = pod["spec"].get("nodeName") or ""
        node = self._nodes.get_by_key(name)
        managed = node is not None and MANAGED in (node["metadata"].get("annotations") or {})
        for volume in self._attachable.of(pod) if managed or name in self._kept else ():
            yield Pair(volume.unique_name, name), volume

    def node_came(self, name: str) -> None:
        """Forgets that the node was deleted."""
        self._kept.discard(name)

    def node_went(self, name: str) -> None:
        """Keeps a deleted node's wishes as long as there are pods on it."""
        if any(pair.node == name for pair in self._wishes):
            self._kept.add(name)

    def persistent_volume(self, name: str) -> Object | None:
        return self._volumes.get_by_key(name)

    def pods_on_node(self, name: str) -> Sequence[Object]:
        """Returns the node's pods that have volumes."""
        return [pod for pod in self._by_node.by_index(POD_NODE_NAME_INDEX, name) if pod["spec"].get("volumes")]

    def all_pods(self) -> Sequence[Object]:
        """Returns the pods that are bound to a node."""
        return [pod for pod in self.pods.indexer.list() if pod["spec"].get("nodeName")]
