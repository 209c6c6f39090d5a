"""Claims and volumes find each other, stay together, and part (upstream: pkg/controller/volume/persistentvolume).

Volumes that a provisioner of its own makes and deletes are left to it. What Kubernetes itself once deleted, host paths below /tmp, is not
touched: only the volume object goes. Nothing is recycled.
"""

from collections.abc import Sequence

from fakeapiserver.component_helpers.controller_context import ControllerContext
from fakeapiserver.controller_runtime.controller import Controller
from fakeapiserver.controller_runtime.handler import request_for
from fakeapiserver.controller_runtime.source import Informer
from fakeapiserver.controllers.persistentvolume_binder.binder import (
    Binder,
    waits,
)
from fakeapiserver.controllers.persistentvolume_binder.claim_controller import ClaimController
from fakeapiserver.controllers.persistentvolume_binder.resync import Resync
from fakeapiserver.controllers.persistentvolume_binder.volume_controller import VolumeController


def new(context: ControllerContext) -> Sequence[Controller]:
    binder = Binder(context)
    configuration = context.configuration
    claim_controller = ClaimController(binder, provisions=configuration.enable_dynamic_provisioning)
    claims = context.controller(claim_controller, name=f"{context.name}-claims")
    volume_controller = VolumeController(binder, claims.queue)
    volumes = context.controller(volume_controller, name=f"{context.name}-volumes")
    claim_controller.volume_queue = volumes.queue
    claims.add_source(Informer(binder.claim_informer, claim_controller.claim_changed))
    volumes.add_source(Informer(binder.volume_informer, volume_controller.volume_changed))

    def look() -> bool:
        all_claims, all_volumes = binder.claim_informer.indexer.list(), binder.volume_informer.indexer.list()
        for claim in all_claims:
            claims.queue.add(request_for(claim))
        for volume in all_volumes:
            volumes.queue.add(request_for(volume))
        return any(map(waits, all_claims)) or any(map(waits, all_volumes))

    resyncing = Resync(look, context.clock, configuration.pvclaimbinder_sync_period)
    resync = context.controller(resyncing, name=f"{context.name}-resync")
    resync.add_source(Informer(binder.claim_informer, resyncing.changed))
    resync.add_source(Informer(binder.volume_informer, resyncing.changed))
    return [volumes, claims, resync]
