"""Attaches what is needed and detaches what isn't, a step at a time (upstream: reconciler/reconciler.go, cache/actual_state_of_world.go,
pkg/volume/util/operationexecutor, pkg/volume/csi/csi_attacher.go)."""

import hashlib
from collections.abc import Iterable, Sequence
from typing import Final, Literal

from msgspec import Struct

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.client.dynamic import STRATEGIC_MERGE_PATCH
from fakeapiserver.client.errors import StatusError, is_already_exists, is_not_found
from fakeapiserver.component_helpers.controller_context import ControllerContext
from fakeapiserver.component_helpers.objects import NODES, VOLUME_ATTACHMENTS, is_terminating, key_of
from fakeapiserver.component_helpers.volumes.attachable_volumes import split_name, volume_of
from fakeapiserver.controller_runtime.event import CreateEvent, DeleteEvent, Event, UpdateEvent
from fakeapiserver.controller_runtime.handler import Queue
from fakeapiserver.controller_runtime.reconcile import Request, Result
from fakeapiserver.controllers.attach_detach.desired_state import (
    MANAGED,
    DesiredState,
    Pair,
    Wish,
)

_MAX_WAIT_FOR_UNMOUNT: Final = 360.0  # seconds
_TIMEOUT: Final = 120.0
_BACK_OFF, _MAX_BACK_OFF = 0.5, 122.0
_OUT_OF_SERVICE: Final = "node.kubernetes.io/out-of-service"


class _Attached(Struct):
    """An attached volume.

    `confirmed`: False if it may be attached. `detach_requested`: the time since which no pod needs it. `lost`:
    the time since which its
    VolumeAttachment denies it.
    """

    confirmed: bool
    reported: bool
    detach_requested: float | None = None
    lost: float | None = None


class _Operation(Struct):
    """A request to the driver that it has not answered yet. `pods`: the pods that needed the volume then."""

    kind: Literal["attach", "detach"]
    deadline: float
    persistent_volume: str = ""
    pods: Sequence[Object] = ()


class OperationFailed(Exception):
    """In the words of the driver, or about it."""


class AttachDetachController:
    """Requests are a volume (the name) and a node (the namespace). `queue`: of them, once there is one."""

    queue: Queue

    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client
        self._clock = context.clock
        self._configuration = context.configuration
        self._recorder = context.recorder("attachdetach-controller")
        self.desired = DesiredState(context)
        self.nodes = context.informer(NODES)
        self.attachments = context.informer(VOLUME_ATTACHMENTS)
        self._attached: dict[Pair, _Attached] = {}
        self._on_node: dict[str, dict[str, None]] = {}
        self._operations: dict[Pair, _Operation] = {}
        # Failures in a row, and until when nothing is tried.
        self._back_off: dict[Pair, tuple[int, float]] = {}
        self._pair_of: dict[str, Pair] = {}

    # ------------------------------------------------------------------------- events

    def node_changed(self, event: Event, queue: Queue) -> None:
        node = event.object_new if isinstance(event, UpdateEvent) else event.object
        name = node["metadata"]["name"]
        if isinstance(event, CreateEvent) and event.is_in_initial_list:
            for row in node["status"].get("volumesAttached") or ():
                self._mark(Pair(row["name"], name), confirmed=True)
        came = isinstance(event, CreateEvent) or (
            isinstance(event, UpdateEvent) and _is_managed(event.object_old) != _is_managed(node)
        )
        if isinstance(event, DeleteEvent):
            self.desired.node_went(name)
        if came:
            self.desired.node_came(name)
            for pod in self.desired.pods_on_node(name):
                self.desired.update(pod)
        if not isinstance(event, UpdateEvent) or came or _shape(event.object_old) != _shape(node):
            volumes = {*self._on_node.get(name, ()), *self.desired.volumes_on(name)}
            self._enqueue((Pair(volume, name) for volume in volumes), queue)

    def attachment_changed(self, event: Event, queue: Queue) -> None:
        attachment = event.object_new if isinstance(event, UpdateEvent) else event.object
        spec = attachment["spec"]
        pair = self._pair_of.get(attachment["metadata"]["name"])
        if pair is None:
            name = (spec.get("source") or {}).get("persistentVolumeName")
            persistent_volume = self.desired.persistent_volume(name) if name else None
            volume = None if persistent_volume is None else volume_of(persistent_volume)
            if volume is None:
                return
            pair = Pair(volume.unique_name, spec["nodeName"])
            if isinstance(event, CreateEvent) and event.is_in_initial_list and pair not in self._attached:
                self._mark(pair, confirmed=False)
        self._enqueue([pair], queue)

    def pod_changed(self, event: Event, queue: Queue) -> None:
        pod = event.object_new if isinstance(event, UpdateEvent) else event.object
        if pod["spec"].get("nodeName") and pod["spec"].get("volumes"):
            self._enqueue(self.desired.update(pod, gone=isinstance(event, DeleteEvent)), queue)

    def claim_changed(self, event: Event, queue: Queue) -> None:
        claim = event.object_new if isinstance(event, UpdateEvent) else event.object
        if (claim.get("status") or {}).get("phase") == "Bound":
            for pod in self.desired.pods_with_claim(key_of(claim)):
                self._enqueue(self.desired.update(pod), queue)

    def driver_changed(self, event: Event, queue: Queue) -> None:
        for pod in self.desired.all_pods():
            self._enqueue(self.desired.update(pod), queue)

    @staticmethod
    def _enqueue(pairs: Iterable[Pair], queue: Queue) -> None:
        for pair in pairs:
            queue.add(Request(pair.node, pair.volume))

    # ------------------------------------------------------------------------- a step

    async def reconcile(self, request: Request) -> Result | None:
        pair = Pair(request.name, request.namespace)
        now = self._clock.monotonic()
        operation = self._operations.get(pair)
        if operation is not None:
            return await self._go_on(pair, operation, now)
        _, until = self._back_off.get(pair, (0, 0.0))
        if until > now:
            return Result(requeue_after=until - now)
        wish, attached = self.desired.wish(pair), self._attached.get(pair)
        if wish is not None:
            return await self._attach(pair, wish, attached, now)
        if attached is not None:
            return await self._detach(pair, attached, now)
        self._back_off.pop(pair, None)
        return None

    # -------------------------------------------------------------------------- attach

    async def _attach(self, pair: Pair, wish: Wish, attached: _Attached | None, now: float) -> Result | None:
        if attached is not None and attached.confirmed:
            attached.detach_requested = None
            await self._report(pair.node)
            return self._verify(pair, attached, now)
        if not wish.volume.shared:
            others = [node for node in self._nodes_with(pair.volume) if node != pair.node]
            if any(Pair(pair.volume, node) in self._operations for node in self._all_nodes(pair.volume)):
                return None
            if others:
                if not wish.told:
                    wish.told = True
                    self._tell_of_others(pair, wish, others)
                return None
        name = attachment_name(wish.volume.handle, wish.volume.driver, pair.node)
        self._pair_of[name] = pair
        if self.attachments.indexer.get_by_key(name) is None:
            spec = {
                "attacher": wish.volume.driver,
                "nodeName": pair.node,
                "source": {"persistentVolumeName": wish.volume.persistent_volume},
            }
            body = {
                "apiVersion": "storage.k8s.io/v1",
                "kind": "VolumeAttachment",
                "metadata": {"name": name},
                "spec": spec,
            }
            try:
                await self._client.resource(VOLUME_ATTACHMENTS).create(body)
            except StatusError as error:
                if not is_already_exists(error):
                    return await self._attach_failed(pair, _begun(wish, now), f"attacher.Attach failed: {error}")
        operation = self._operations[pair] = _begun(wish, now)
        return await self._go_on(pair, operation, now)

    def _verify(self, pair: Pair, attached: _Attached, now: float) -> Result | None:
        """Notices, after a while, that another client detached the volume."""
        if self._configuration.disable_attach_detach_reconcile_sync:
            return None
        attachment = self.attachments.indexer.get_by_key(self._name(pair))
        if attachment is not None and (attachment.get("status") or {}).get("attached"):
            attached.lost = None
            return None
        if attached.lost is None:
            attached.lost = now
        left = attached.lost + self._configuration.attach_detach_reconcile_sync_period - now
        if left > 0:
            return Result(requeue_after=left)
        self._unmark(pair)
        return Result(requeue_after=0.1)

    def _tell_of_others(self, pair: Pair, wish: Wish, others: list[str]) -> None:
        users = self.desired.pods_on(pair.volume, others)
        waits = self._configuration.feature_gates.at_least("v1.37")
        for pod in wish.pods.values():
            if not users:
                why = "Volume is already exclusively attached to one node"
                why += (
                    ", waiting on detach before it can be attached to another node"
                    if waits
                    else " and can't be attached to another"
                )
            else:
                namespace = pod["metadata"]["namespace"]
                near = [user["metadata"]["name"] for user in users if user["metadata"]["namespace"] == namespace]
                far = len(users) - len(near)
                why = "Volume is already used by "
                why += f"pod(s) {', '.join(near)}" if near else f"{far} pod(s) in different namespaces"
                why += f" and {far} pod(s) in different namespaces" if near and far else ""
            trouble = "Waiting for detach" if waits else "Multi-Attach error"
            message = f'{trouble} for volume "{wish.volume.persistent_volume}" {why}'
            self._recorder.event(pod, "Warning", "FailedAttachVolume", message)

    async def _attach_failed(self, pair: Pair, operation: _Operation, why: str) -> Result:
        self._mark(pair, confirmed=False)
        await self._report(pair.node)
        message = f'AttachVolume.Attach failed for volume "{operation.persistent_volume}" : {why}'
        for pod in operation.pods:
            self._recorder.event(pod, "Warning", "FailedAttachVolume", message)
        return self._failed(pair)

    # -------------------------------------------------------------------------- detach

    async def _detach(self, pair: Pair, attached: _Attached, now: float) -> Result | None:
        if attached.detach_requested is None:
            attached.detach_requested = now
        node = self.nodes.indexer.get_by_key(pair.node)
        left = attached.detach_requested + _MAX_WAIT_FOR_UNMOUNT - now
        expired = left <= 0 and not self._configuration.disable_force_detach_on_timeout
        force = expired and not _is_ready(node)
        gone_for_good = node is not None and any(
            taint["key"] == _OUT_OF_SERVICE for taint in node["spec"].get("taints") or ()
        )
        if _is_mounted(node, pair.volume) and not force and not gone_for_good:
            return Result(requeue_after=left) if left > 0 else None
        attached.reported = False
        try:
            await self._report(pair.node)
        except StatusError:
            attached.reported = attached.confirmed
            raise
        if not expired and not gone_for_good and await self._is_in_use(pair):
            return self._detach_failed(pair)
        try:
            await self._client.resource(VOLUME_ATTACHMENTS).delete(self._name(pair))
        except StatusError as error:
            if is_not_found(error):
                return self._detached(pair)
            return self._detach_failed(pair)
        operation = self._operations[pair] = _Operation("detach", now + _TIMEOUT)
        return await self._go_on(pair, operation, now)

    async def _is_in_use(self, pair: Pair) -> bool:
        """By the server's newest word."""
        try:
            return _is_mounted(await self._client.resource(NODES).get(pair.node), pair.volume)
        except StatusError as error:
            if is_not_found(error):
                return False
            raise

    def _detach_failed(self, pair: Pair) -> Result:
        self._mark(pair, confirmed=False)
        return self._failed(pair)

    def _detached(self, pair: Pair) -> Result | None:
        self._unmark(pair)
        self._back_off.pop(pair, None)
        self._pair_of.pop(self._name(pair), None)
        return self._let_others(pair)

    def _let_others(self, pair: Pair) -> Result | None:
        """Queues the other nodes that wait for the volume."""
        for node in self.desired.nodes_of(pair.volume):
            self.queue.add(Request(node, pair.volume))
        return None

    # ---------------------------------------------------------------------- operations

    async def _go_on(self, pair: Pair, operation: _Operation, now: float) -> Result | None:
        """Whether the driver has answered."""
        attachment = self.attachments.indexer.get_by_key(self._name(pair))
        try:
            done = _is_attached(attachment) if operation.kind == "attach" else _is_detached(attachment)
            if not done and now >= operation.deadline:
                raise OperationFailed(_late(operation, pair))
        except OperationFailed as error:
            del self._operations[pair]
            if operation.kind == "attach":
                result = await self._attach_failed(pair, operation, str(error))
                self._let_others(pair)
                return result
            return self._detach_failed(pair)
        if not done:
            return Result(requeue_after=operation.deadline - now)
        del self._operations[pair]
        if operation.kind == "detach":
            return self._detached(pair)
        self._mark(pair, confirmed=True)
        self._back_off.pop(pair, None)
        message = f'AttachVolume.Attach succeeded for volume "{operation.persistent_volume}" '
        for pod in operation.pods:
            self._recorder.event(pod, "Normal", "SuccessfulAttachVolume", message)
        await self._report(pair.node)
        self._let_others(pair)
        return Result(requeue_after=0.1) if self.desired.wish(pair) is None else None

    def _failed(self, pair: Pair) -> Result:
        failures = self._back_off.get(pair, (0, 0.0))[0] + 1
        wait = min(_BACK_OFF * 2.0 ** (failures - 1), _MAX_BACK_OFF)
        self._back_off[pair] = (failures, self._clock.monotonic() + wait)
        return Result(requeue_after=wait)

    # ------------------------------------------------------------------- actual state

    def _mark(self, pair: Pair, *, confirmed: bool) -> None:
        known = self._attached.get(pair)
        requested = None if known is None or confirmed else known.detach_requested
        self._attached[pair] = _Attached(confirmed, reported=confirmed, detach_requested=requested)
        self._on_node.setdefault(pair.node, {})[pair.volume] = None

    def _unmark(self, pair: Pair) -> None:
        self._attached.pop(pair, None)
        self._on_node.get(pair.node, {}).pop(pair.volume, None)

    def _nodes_with(self, volume: str) -> list[str]:
        return [
            pair.node for pair, attachment in self._attached.items() if pair.volume == volume and attachment.confirmed
        ]

    def _all_nodes(self, volume: str) -> set[str]:
        return {pair.node for pair in self._operations if pair.volume == volume}

    def _name(self, pair: Pair) -> str:
        driver, handle = split_name(pair.volume) or ("", pair.volume)
        return attachment_name(handle, driver, pair.node)

    async def _report(self, name: str) -> None:
        """The node's status says what is attached to it."""
        node = self.nodes.indexer.get_by_key(name)
        if node is None:
            return
        volumes = [volume for volume in self._on_node.get(name, ()) if self._attached[Pair(volume, name)].reported]
        told = [row["name"] for row in node["status"].get("volumesAttached") or ()]
        if sorted(volumes) == sorted(told) or (not volumes and not told):
            return
        rows = [{"name": volume, "devicePath": ""} for volume in volumes] or None
        try:
            await self._client.resource(NODES).patch(
                name, {"status": {"volumesAttached": rows}}, "status", patch_type=STRATEGIC_MERGE_PATCH
            )
        except StatusError as error:
            if not is_not_found(error):
                raise


def attachment_name(handle: str, driver: str, node: str) -> str:
    """Returns the name of the VolumeAttachment for a volume and a node."""
    return f"csi-{hashlib.sha256(f'{handle}{driver}{node}'.encode()).hexdigest()}"


def _begun(wish: Wish, now: float) -> _Operation:
    return _Operation("attach", now + _TIMEOUT, wish.volume.persistent_volume, [*wish.pods.values()])


def _is_attached(attachment: Object | None) -> bool:
    if attachment is None:
        return False
    if is_terminating(attachment):
        raise OperationFailed("volume attachment is being deleted")
    status = attachment.get("status") or {}
    if not status.get("attached") and status.get("attachError") is not None:
        raise OperationFailed(status["attachError"].get("message", ""))
    return bool(status.get("attached"))


def _is_detached(attachment: Object | None) -> bool:
    error = ((attachment or {}).get("status") or {}).get("detachError")
    if error is not None:
        raise OperationFailed(error.get("message", ""))
    return attachment is None


def _late(operation: _Operation, pair: Pair) -> str:
    driver, handle = split_name(pair.volume) or ("", pair.volume)
    driver = driver if operation.kind == "attach" else "unknown"
    return f"timed out waiting for external-attacher of {driver} CSI driver to {operation.kind} volume {handle}"


def _is_managed(node: Object) -> bool:
    return MANAGED in (node["metadata"].get("annotations") or {})


def _shape(node: Object) -> tuple[object, ...]:
    """Returns the parts of a node that the controller depends on."""
    status = node.get("status") or {}
    return status.get("volumesInUse"), status.get("volumesAttached"), node["spec"].get("taints"), _is_ready(node)


def _is_mounted(node: Object | None, volume: str) -> bool:
    return node is not None and volume in ((node.get("status") or {}).get("volumesInUse") or ())


def _is_ready(node: Object | None) -> bool:
    conditions = () if node is None else (node.get("status") or {}).get("conditions") or ()
    return any(row["type"] == "Ready" and row["status"] == "True" for row in conditions)
