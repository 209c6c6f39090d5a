"""Pods with ephemeral volumes get claims of their own (upstream: pkg/controller/volume/ephemeral/controller.go)."""

from collections.abc import Sequence

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.client.errors import StatusError
from fakeapiserver.component_helpers.controller_context import ControllerContext
from fakeapiserver.component_helpers.objects import PERSISTENT_VOLUME_CLAIMS, PODS, is_terminating, key_of
from fakeapiserver.component_helpers.volumes.pod_volumes import (
    POD_PVC_INDEX,
    add_pod_pvc_indexer,
    claim_name,
    is_for_pod,
)
from fakeapiserver.controller_runtime.controller import Controller
from fakeapiserver.controller_runtime.event import CreateEvent, DeleteEvent, Event
from fakeapiserver.controller_runtime.handler import Queue, request_for
from fakeapiserver.controller_runtime.reconcile import Request
from fakeapiserver.controller_runtime.source import Informer


class EphemeralVolumeFailed(Exception):
    """The claim does not exist or belongs to another object."""


class EphemeralVolumeController:
    """Requests are pods."""

    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client
        name = "ephemeral_volume_controller_create"
        self._tries = context.metrics.counter(f"{name}_total", "Claims that were to be made")
        self._failures = context.metrics.counter(f"{name}_failures_total", "Claims that could not be made")
        self.pods = context.informer(PODS)
        self.claims = context.informer(PERSISTENT_VOLUME_CLAIMS)
        self._indexer = add_pod_pvc_indexer(self.pods)
        self._recorder = context.recorder("ephemeral_volume")

    def pod_changed(self, event: Event, queue: Queue) -> None:
        """A new one: its volumes stay what they are."""
        if isinstance(event, CreateEvent):
            _enqueue(event.object, queue)

    def claim_changed(self, event: Event, queue: Queue) -> None:
        """A deleted one is made again, while the pod is there."""
        if isinstance(event, DeleteEvent):
            for pod in self._indexer.by_index(POD_PVC_INDEX, key_of(event.object)):
                _enqueue(pod, queue)

    async def reconcile(self, request: Request) -> None:
        pod = self.pods.indexer.get_by_key(str(request))
        if pod is None or is_terminating(pod):
            return
        for volume in pod["spec"].get("volumes") or ():
            if volume.get("ephemeral") is None:
                continue
            try:
                await self._provide(pod, volume)
            except EphemeralVolumeFailed as error:
                problem = f"ephemeral volume {volume['name']}: {error}"
                self._recorder.event(pod, "Warning", "FailedBinding", problem)
                raise EphemeralVolumeFailed(f"pod {request}, {problem}") from error

    async def _provide(self, pod: Object, volume: Object) -> None:
        owner, name = pod["metadata"], claim_name(pod, volume)
        namespace = owner["namespace"]
        existing = self.claims.indexer.get_by_key(f"{namespace}/{name}")
        if existing is not None:
            if not is_for_pod(pod, existing):
                raise EphemeralVolumeFailed(
                    f"PVC {namespace}/{name} was not created for pod {namespace}/{owner['name']} (pod is not owner)"
                )
            return
        template = volume["ephemeral"]["volumeClaimTemplate"]
        reference = {
            "apiVersion": "v1",
            "kind": "Pod",
            "name": owner["name"],
            "uid": owner["uid"],
            "controller": True,
            "blockOwnerDeletion": True,
        }
        kept = {
            key: value for key, value in (template.get("metadata") or {}).items() if key in ("annotations", "labels")
        }
        claim = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {**kept, "name": name, "ownerReferences": [reference]},
            "spec": template["spec"],
        }
        self._tries.inc()
        try:
            await self._client.resource(PERSISTENT_VOLUME_CLAIMS, namespace).create(claim)
        except StatusError as error:
            self._failures.inc()
            raise EphemeralVolumeFailed(f"create PVC {name}: {error}") from error


def _enqueue(pod: Object, queue: Queue) -> None:
    if not is_terminating(pod) and any(volume.get("ephemeral") for volume in pod["spec"].get("volumes") or ()):
        queue.add(request_for(pod))


def new(context: ControllerContext) -> Sequence[Controller]:
    reconciler = EphemeralVolumeController(context)
    controller = context.controller(reconciler, workers=context.configuration.concurrent_ephemeralvolume_syncs)
    controller.add_source(Informer(reconciler.pods, reconciler.pod_changed))
    controller.add_source(Informer(reconciler.claims, reconciler.claim_changed))
    return [controller]
