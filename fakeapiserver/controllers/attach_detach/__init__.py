"""Attaches volumes of CSI drivers to the nodes of their pods, and detaches them when no pod needs them there.

The driver's external-attacher does the work: a VolumeAttachment carries the request and its result.
Upstream: pkg/controller/volume/attachdetach, pkg/volume/csi/csi_attacher.go. Volumes of earlier days (iSCSI, Fibre
Channel, and those whose
work is a driver's now) are left alone.
"""

from collections.abc import Sequence

from fakeapiserver.component_helpers.controller_context import ControllerContext
from fakeapiserver.controller_runtime.controller import Controller
from fakeapiserver.controller_runtime.source import Informer
from fakeapiserver.controllers.attach_detach.controller import AttachDetachController


def new(context: ControllerContext) -> Sequence[Controller]:
    reconciler = AttachDetachController(context)
    controller = context.controller(reconciler, workers=1)
    reconciler.queue = controller.queue
    controller.add_source(Informer(reconciler.nodes, reconciler.node_changed))
    controller.add_source(Informer(reconciler.attachments, reconciler.attachment_changed))
    controller.add_source(Informer(reconciler.desired.pods, reconciler.pod_changed))
    controller.add_source(Informer(reconciler.desired.claims, reconciler.claim_changed))
    controller.add_source(Informer(reconciler.desired.drivers, reconciler.driver_changed))
    return [controller]
