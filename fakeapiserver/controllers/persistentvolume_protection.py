"""Volumes stay as long as they are bound (upstream: pkg/controller/volume/pvprotection/pv_protection_controller.go)."""

from collections.abc import Sequence

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.component_helpers.controller_context import ControllerContext
from fakeapiserver.component_helpers.objects import PERSISTENT_VOLUMES
from fakeapiserver.component_helpers.volumes.protection import PV_PROTECTION, Protection
from fakeapiserver.controller_runtime.controller import Controller
from fakeapiserver.controller_runtime.source import Informer


async def _is_bound(volume: Object) -> bool:
    return bool(volume.get("status", {}).get("phase") == "Bound")


def new(context: ControllerContext) -> Sequence[Controller]:
    volumes = context.informer(PERSISTENT_VOLUMES)
    client = context.client.resource(PERSISTENT_VOLUMES)
    protection = Protection(PV_PROTECTION, volumes.indexer, client.namespaced, _is_bound)
    controller = context.controller(protection)
    controller.add_source(Informer(volumes, protection.changed))
    return [controller]
