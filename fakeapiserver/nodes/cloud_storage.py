"""Volumes are made for every storage class, as in a cloud whose CSI drivers are there.

A CSI driver stands in for each provisioner that a class names: claims are bound at once or when their first pod is scheduled, with any
access mode, from any node, and may grow. Only the objects are made.
Upstream: kubernetes-csi/external-provisioner/pkg/controller/controller.go, kubernetes-csi/external-attacher/pkg/controller/csi_handler.go.
"""

from collections.abc import Sequence
from typing import Final

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.client.errors import StatusError, is_not_found
from fakeapiserver.component_helpers.controller_context import ControllerContext
from fakeapiserver.component_helpers.objects import VOLUME_ATTACHMENTS, is_terminating
from fakeapiserver.component_helpers.volumes.csi_migration import DRIVERS, MIGRATED_TO
from fakeapiserver.controller_runtime.controller import Controller
from fakeapiserver.controller_runtime.handler import enqueue_request_for_object as enqueue
from fakeapiserver.controller_runtime.reconcile import Request
from fakeapiserver.controller_runtime.source import Informer
from fakeapiserver.nodes import local_storage, provisioning

NAME: Final = "csi-provisioner"
ACCOUNT: Final = "csi-provisioner"
_NONE: Final = "kubernetes.io/no-provisioner"
_FILE_SYSTEM: Final = "csi.storage.k8s.io/fstype"


def objects() -> Sequence[Object]:
    """Returns the objects that exist from the start: the identity of the drivers. The storage classes are the user's."""
    attachments = [
        {"apiGroups": ["storage.k8s.io"], "resources": ["volumeattachments"], "verbs": ["get", "list", "watch"]},
        {"apiGroups": ["storage.k8s.io"], "resources": ["volumeattachments/status"], "verbs": ["patch"]},
    ]
    return provisioning.identity(ACCOUNT, "csi-provisioner", "csi-provisioner", attachments)


class CloudStorage(provisioning.Storage):
    """Volumes of CSI drivers."""

    def provisions_for(self, provisioner: str) -> bool:
        """Reports whether the class asks for a provisioner, other than that of local storage."""
        return provisioner not in ("", _NONE, local_storage.PROVISIONER)

    def owns(self, volume: Object) -> bool:
        """Reports whether a CSI driver has the volume."""
        return "csi" in volume["spec"]

    def refusal(self, claim: Object) -> str:
        """Drivers can provide whatever a claim asks for."""
        return ""

    def problem(self, claim: Object, node: Object | None) -> str:
        """A driver makes new volumes, which have no labels to select."""
        return "claim Selector is not supported" if claim["spec"].get("selector") is not None else ""

    def volume(self, claim: Object, storage_class: Object, node: Object | None) -> Object:
        """A volume that is reached from each node."""
        provisioner = storage_class["provisioner"]
        driver = DRIVERS.get(provisioner, provisioner)
        source = {"driver": driver, "volumeHandle": provisioning.volume_name(claim)}
        if claim["spec"].get("volumeMode") != "Block":
            source["fsType"] = (storage_class.get("parameters") or {}).get(_FILE_SYSTEM, "ext4")
        options = storage_class.get("mountOptions")
        attributes = claim["spec"].get("volumeAttributesClassName")
        return {
            "metadata": {"annotations": {MIGRATED_TO: driver} if driver != provisioner else {}},
            "spec": {
                "csi": source,
                **({"mountOptions": options} if options else {}),
                **({"volumeAttributesClassName": attributes} if attributes else {}),
            },
        }


class Attachments:
    """Requests are attachments of volumes to nodes, each of which succeeds."""

    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client
        self.attachments = context.informer(VOLUME_ATTACHMENTS)

    async def reconcile(self, request: Request) -> None:
        attachment = self.attachments.indexer.get_by_key(request.name)
        if attachment is None or is_terminating(attachment) or (attachment.get("status") or {}).get("attached"):
            return
        try:
            await self._client.resource(VOLUME_ATTACHMENTS).patch(
                request.name, {"status": {"attached": True}}, "status"
            )
        except StatusError as error:
            if not is_not_found(error):
                raise


def new(context: ControllerContext) -> Sequence[Controller]:
    """The controllers of the provisioner, the resizer and the attacher."""
    reconciler = Attachments(context)
    attachments = context.controller(reconciler, workers=1, name=f"{context.name}-attachments")
    attachments.add_source(Informer(reconciler.attachments, enqueue))
    return [*provisioning.new(context, CloudStorage()), attachments]
