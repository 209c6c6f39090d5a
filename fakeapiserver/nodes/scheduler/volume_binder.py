"""Binds a pod's volumes before the pod is bound to its node (upstream: plugins/volumebinding/binder.go, BindPodVolumes).

The bindings are written, then the pod waits for the binder and the provisioner, without blocking other pods.
"""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct, field

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.component_helpers.controller_context import ControllerContext
from fakeapiserver.component_helpers.objects import (
    CSI_DRIVERS,
    CSI_NODES,
    CSI_STORAGE_CAPACITIES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    STORAGE_CLASSES,
    VOLUME_ATTACHMENTS,
    key_of,
)
from fakeapiserver.component_helpers.pods import add_indexer
from fakeapiserver.component_helpers.volumes.matching import SELECTED_NODE, annotations_of
from fakeapiserver.controller_runtime.reconcile import Request
from fakeapiserver.nodes.scheduler.node_info import PodInfo
from fakeapiserver.nodes.scheduler.volumes import (
    Assumed,
    PodVolumes,
    Storage,
    is_fully_bound,
    matches_affinity,
    version,
)

TIMEOUT: Final = 600.0  # seconds
_BY_NODE: Final = "va.spec.nodename"


class VolumeBindingFailed(Exception):
    """The pod must be scheduled again."""


class Binding(Struct):
    """A pod that has a node, and waits for its volumes. static, dynamic: claim key -> the volume, the claim, as they were written."""

    info: PodInfo
    node: str
    deadline: float
    static: dict[str, Object] = field(default_factory=dict)
    dynamic: dict[str, Object] = field(default_factory=dict)


class VolumeBinder:
    """The pods that wait for their volumes."""

    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client
        self._clock = context.clock
        self.claims = context.informer(PERSISTENT_VOLUME_CLAIMS)
        self.volumes = context.informer(PERSISTENT_VOLUMES)
        self.others = [
            context.informer(resource)
            for resource in (STORAGE_CLASSES, CSI_NODES, CSI_DRIVERS, CSI_STORAGE_CAPACITIES, VOLUME_ATTACHMENTS)
        ]
        classes, csi_nodes, csi_drivers, capacities, attachments = (informer.indexer for informer in self.others)
        self._nodes = context.informer(NODES).indexer
        add_indexer(self.others[-1], _BY_NODE, lambda pod: [pod["spec"].get("nodeName", "")])
        self.storage = Storage(
            Assumed(self.claims.indexer),
            Assumed(self.volumes.indexer),
            classes,
            csi_nodes,
            csi_drivers,
            capacities,
            lambda node: attachments.by_index(_BY_NODE, node),
        )
        self._bindings: dict[Request, Binding] = {}
        self._of_claim: dict[str, set[Request]] = {}

    def of(self, request: Request) -> Binding | None:
        """Returns the volumes that the pod waits for, or None."""
        return self._bindings.get(request)

    def waiting_for(self, claim: str) -> Sequence[Request]:
        """Pods, by `namespace/name` of a claim."""
        return [*self._of_claim.get(claim, ())]

    def forget(self, request: Request) -> None:
        """Forgets a pod that was bound, is gone, or is scheduled again."""
        binding = self._bindings.pop(request, None)
        if binding is None:
            return
        self.storage.revert(binding.static.values(), binding.dynamic.values())
        for claim in (*binding.static, *binding.dynamic):
            waiting = self._of_claim.get(claim, set())
            waiting.discard(request)
            if not waiting:
                self._of_claim.pop(claim, None)

    def begin(self, request: Request, info: PodInfo, node: str, pod_volumes: PodVolumes) -> Binding:
        """Assumes the volumes, so that no other pod gets them."""
        volumes, claims = self.storage.assume(pod_volumes, node)
        binding = self._bindings[request] = Binding(info, node, self._clock.monotonic() + TIMEOUT)
        binding.static = {key_of(claim): volume for (claim, _), volume in zip(pod_volumes.static, volumes, strict=True)}
        binding.dynamic = {key_of(claim): claim for claim in (*pod_volumes.dynamic, *claims)}
        for claim in (*binding.static, *binding.dynamic):
            self._of_claim.setdefault(claim, set()).add(request)
        return binding

    async def write(self, binding: Binding) -> None:
        """Writes the bindings. Raises StatusError if another client was faster."""
        for key, volume in binding.static.items():
            written = await self._client.resource(PERSISTENT_VOLUMES).update(volume)
            binding.static[key] = written
            self.storage.volumes.assume(written)
        for key, claim in binding.dynamic.items():
            claims = self._client.resource(PERSISTENT_VOLUME_CLAIMS, claim["metadata"]["namespace"])
            written = await claims.update(claim)
            binding.dynamic[key] = written
            self.storage.claims.assume(written)

    def is_bound(self, binding: Binding) -> bool:
        """VolumeBindingFailed where waiting is in vain."""
        done = all(
            [
                *(self._has_volume(binding, key, volume) for key, volume in binding.static.items()),
                *(self._is_provisioned(binding, claim) for claim in binding.dynamic.values()),
            ]
        )
        if not done and self._clock.monotonic() >= binding.deadline:
            raise VolumeBindingFailed("context deadline exceeded")
        return done

    def _has_volume(self, binding: Binding, key: str, written: Object) -> bool:
        name = written["metadata"]["name"]
        volume, claim = self.volumes.indexer.get_by_key(name), self.claims.indexer.get_by_key(key)
        if volume is None or claim is None:
            missing = f'volume "{name}"' if volume is None else f'persistentvolumeclaim "{key}"'
            raise VolumeBindingFailed(f"failed to check binding: could not find {missing}")
        if version(written) > version(volume):
            return False
        self._check_affinity(binding, volume)
        if not (volume["spec"].get("claimRef") or {}).get("uid"):
            raise VolumeBindingFailed(f'ClaimRef got reset for pv "{name}"')
        return is_fully_bound(claim)

    def _is_provisioned(self, binding: Binding, written: Object) -> bool:
        claim = self.claims.indexer.get_by_key(key_of(written))
        if claim is None:
            raise VolumeBindingFailed(f'failed to check provisioning pvc: could not find "{key_of(written)}"')
        if version(written) > version(claim):
            return False
        if annotations_of(claim).get(SELECTED_NODE) != binding.node:
            raise VolumeBindingFailed(f'provisioning failed for PVC "{claim["metadata"]["name"]}"')
        if name := claim["spec"].get("volumeName"):
            volume = self.volumes.indexer.get_by_key(name)
            if volume is None:
                return False
            self._check_affinity(binding, volume)
        return is_fully_bound(claim)

    def _check_affinity(self, binding: Binding, volume: Object) -> None:
        node = self._nodes.get_by_key(binding.node)
        if node is None:
            raise VolumeBindingFailed(f'failed to get node "{binding.node}": node "{binding.node}" not found')
        if not matches_affinity(volume, node):
            raise VolumeBindingFailed(
                f'pv "{volume["metadata"]["name"]}" node affinity doesn\'t match node "{binding.node}": no matching '
                "NodeSelectorTerms"
            )
