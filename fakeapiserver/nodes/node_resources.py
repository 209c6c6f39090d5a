"""The requirements of pods on simulated nodes before their containers start: attached volumes, reserved devices.

The nodes run the plugins of all CSIDrivers, and CSINodes list them. Volumes of such drivers hold their pods until the node's status
lists them as attached, and its volumesInUse keep them from being detached. Attaching, VolumeAttachment.status, is left to
the driver's attacher.
Upstream: pkg/kubelet/volumemanager, pkg/volume/csi/nodeinfomanager, pkg/kubelet/cm/dra/manager.go
"""

from collections.abc import Iterable, Sequence

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.client.dynamic import STRATEGIC_MERGE_PATCH, DynamicClient
from fakeapiserver.client.errors import StatusError, is_already_exists, is_conflict, is_not_found
from fakeapiserver.component_helpers.controller_context import ControllerContext
from fakeapiserver.component_helpers.objects import (
    CSI_DRIVERS,
    CSI_NODES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    RESOURCE_CLAIMS,
    key_of,
)
from fakeapiserver.component_helpers.pods import POD_NODE_NAME_INDEX, add_pod_node_name_indexer, is_pod_terminal
from fakeapiserver.component_helpers.resource_claims import claim_names, is_for, is_generated, is_reserved_for
from fakeapiserver.component_helpers.volumes.attachable_volumes import AttachableVolumes
from fakeapiserver.controller_runtime.controller import Controller
from fakeapiserver.controller_runtime.event import DeleteEvent, Event, UpdateEvent, object_of
from fakeapiserver.controller_runtime.handler import Queue
from fakeapiserver.controller_runtime.reconcile import Request
from fakeapiserver.controller_runtime.source import Informer
from fakeapiserver.nodes.simulation import Simulation


class Needs:
    """Finds what a pod waits for. `look_again`: called with pods for which something has changed."""

    def __init__(self, context: ControllerContext) -> None:
        self.claims = context.informer(PERSISTENT_VOLUME_CLAIMS)
        self.volumes = context.informer(PERSISTENT_VOLUMES)
        self.drivers = context.informer(CSI_DRIVERS)
        self.devices = context.informer(RESOURCE_CLAIMS, optional=True)
        self.nodes = context.informer(NODES)
        self._attachable = AttachableVolumes(self.claims.indexer, self.volumes.indexer, self.drivers.indexer)

    def volumes_of(self, pod: Object) -> Sequence[str]:
        """Returns the unique names of the pod's volumes that a driver on the nodes has to attach."""
        volumes = self._attachable.of(pod) if self.drivers.indexer.list() else ()
        return [row.unique_name for row in volumes if self.drivers.indexer.get_by_key(row.driver) is not None]

    def is_attached(self, pod: Object) -> bool:
        """All of its volumes are."""
        wanted = self.volumes_of(pod) if pod["spec"].get("volumes") else ()
        if not wanted:
            return True
        node = self.nodes.indexer.get_by_key(pod["spec"]["nodeName"]) or {}
        status = node.get("status") or {}
        attached = {row["name"] for row in status.get("volumesAttached") or ()}
        return attached.issuperset(wanted) and set(status.get("volumesInUse") or ()).issuperset(wanted)

    def problem(self, pod: Object) -> str:
        """Why its devices aren't prepared; "" if they can be."""
        for row, name in claim_names(pod):
            claim = self.devices.indexer.get_by_key(f"{pod['metadata']['namespace']}/{name}") if name else None
            if name is None:
                return f'pod "{key_of(pod)}": ResourceClaim not created yet'
            if not name:
                continue
            if claim is None:
                missing = f'resourceclaims.resource.k8s.io "{name}" not found'
                return f"fetch ResourceClaim {name}: {missing}"
            if is_generated(row) and not is_for(pod, claim):
                return f"ResourceClaim {key_of(claim)} was not created for Pod {key_of(pod)} (Pod is not owner)"
            if not is_reserved_for(pod, claim):
                uids = pod["metadata"]["uid"], claim["metadata"]["uid"]
                who = f"pod {pod['metadata']['name']} ({uids[0]})"
                return f"{who} is not allowed to use ResourceClaim {name} ({uids[1]})"
            if (claim.get("status") or {}).get("allocation") is None:
                return f"ResourceClaim {name}: not allocated"
        return ""


class NodeVolumes:
    """Requests are simulated nodes: their CSINodes, and which volumes they have in use."""

    def __init__(self, context: ControllerContext, simulation: Simulation, needs: Needs) -> None:
        self._context = context
        self._simulation = simulation
        self.needs = needs
        self.pods = context.informer(PODS)
        self._pods_by_node = add_pod_node_name_indexer(self.pods)
        self.csi_nodes = context.informer(CSI_NODES)

    def pod_changed(self, event: Event, queue: Queue) -> None:
        pod = object_of(event)
        if pod["spec"].get("volumes") and pod["spec"].get("nodeName") in self._simulation.nodes:
            queue.add(Request("", pod["spec"]["nodeName"]))

    def claim_changed(self, event: Event, queue: Queue) -> None:
        if self.needs.drivers.indexer.list() and not isinstance(event, DeleteEvent):
            self._all(queue)

    def driver_changed(self, event: Event, queue: Queue) -> None:
        self._all(queue)

    def node_changed(self, event: Event, queue: Queue) -> None:
        """Queues a node that is new, or whose volumes in use another client has written."""
        name = object_of(event)["metadata"]["name"]
        if name in self._simulation.nodes and not isinstance(event, DeleteEvent) and self.needs.drivers.indexer.list():
            queue.add(Request("", name))

    def _all(self, queue: Queue) -> None:
        for name in self._simulation.nodes:
            queue.add(Request("", name))

    async def reconcile(self, request: Request) -> None:
        node = self.needs.nodes.indexer.get_by_key(request.name)
        if node is None or not self._simulation.nodes[request.name].runs:
            return
        client = self._context.client_of(f"system:node:{request.name}")
        try:
            await self._register(client, node)
            used = sorted({name for pod in self._pods_on(request.name) for name in self.needs.volumes_of(pod)})
            if used != sorted((node.get("status") or {}).get("volumesInUse") or ()):
                patch = {"status": {"volumesInUse": used or None}}
                await client.resource(NODES).patch(request.name, patch, "status", patch_type=STRATEGIC_MERGE_PATCH)
        except StatusError as error:
            if not (is_not_found(error) or is_conflict(error) or is_already_exists(error)):
                raise

    def _pods_on(self, name: str) -> Iterable[Object]:
        """Yields the node's pods with volumes that have not ended."""
        for pod in self._pods_by_node.by_index(POD_NODE_NAME_INDEX, name):
            if pod["spec"].get("volumes") and not is_pod_terminal(pod):
                yield pod

    async def _register(self, client: DynamicClient, node: Object) -> None:
        """The drivers that the node runs."""
        name = node["metadata"]["name"]
        names = sorted(driver_object["metadata"]["name"] for driver_object in self.needs.drivers.indexer.list())
        drivers = [{"name": driver, "nodeID": name, "topologyKeys": None} for driver in names]
        known = self.csi_nodes.indexer.get_by_key(name)
        if known is None and drivers:
            owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": node["metadata"]["uid"]}
            body = {
                "apiVersion": "storage.k8s.io/v1",
                "kind": "CSINode",
                "metadata": {"name": name, "ownerReferences": [owner]},
                "spec": {"drivers": drivers},
            }
            await client.resource(CSI_NODES).create(body)
        elif known is not None:
            # other clients' entries about a driver stay
            told = {row["name"]: row for row in known["spec"].get("drivers") or ()}
            missing = [row for row in drivers if row["name"] not in told]
            if missing:
                spec = {**known["spec"], "drivers": [*told.values(), *missing]}
                await client.resource(CSI_NODES).update({**known, "spec": spec})


def attached_changed(event: Event) -> bool:
    """Reports whether a node's attached or used volumes changed."""
    if not isinstance(event, UpdateEvent):
        return False
    before, after = ((status.get("status") or {}) for status in (event.object_old, event.object_new))
    return any(before.get(name) != after.get(name) for name in ("volumesAttached", "volumesInUse"))


def new(context: ControllerContext, simulation: Simulation, needs: Needs) -> Controller:
    """Returns the controller of volumes on the nodes of `simulation`."""
    reconciler = NodeVolumes(context, simulation, needs)
    controller = context.controller(reconciler, name="kubelet-volumes")
    controller.add_source(Informer(needs.drivers, reconciler.driver_changed))
    controller.add_source(Informer(needs.volumes, reconciler.claim_changed))
    controller.add_source(Informer(needs.claims, reconciler.claim_changed))
    controller.add_source(Informer(needs.nodes, reconciler.node_changed))
    controller.add_source(Informer(reconciler.pods, reconciler.pod_changed))
    controller.add_source(Informer(reconciler.csi_nodes, reconciler.node_changed))
    return controller
