"""Classes of volume attributes stay as long as a claim or a volume names them.

Upstream: pkg/controller/volume/vacprotection/vac_protection_controller.go.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.component_helpers.controller_context import ControllerContext
from fakeapiserver.component_helpers.objects import (
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    VOLUME_ATTRIBUTES_CLASSES,
)
from fakeapiserver.component_helpers.pods import add_indexer
from fakeapiserver.component_helpers.volumes.protection import VAC_PROTECTION, Protection
from fakeapiserver.controller_runtime.controller import Controller
from fakeapiserver.controller_runtime.event import CreateEvent, Event, UpdateEvent
from fakeapiserver.controller_runtime.handler import Queue
from fakeapiserver.controller_runtime.reconcile import Request
from fakeapiserver.controller_runtime.source import Informer

# Index: claims and volumes by the classes they name.
_BY_CLASS: Final = "volumeAttributesClassName"


def _named(obj: Object) -> Iterable[str]:
    """The classes that a claim or a volume names; a claim also that which it has now, and that which it is to get."""
    status = obj.get("status") or {}
    names = (
        obj["spec"].get("volumeAttributesClassName"),
        status.get("currentVolumeAttributesClassName"),
        (status.get("modifyVolumeStatus") or {}).get("targetVolumeAttributesClassName"),
    )
    return dict.fromkeys(name for name in names if name)


def _user_changed(event: Event, queue: Queue) -> None:
    """Queues the classes that an object no longer names."""
    if isinstance(event, CreateEvent):
        return
    for name in _freed(event):
        queue.add(Request("", name))


def _freed(event: Event) -> Iterator[str]:
    if isinstance(event, UpdateEvent):
        kept = {*_named(event.object_new)}
        yield from (name for name in _named(event.object_old) if name not in kept)
    else:
        yield from _named(event.object)


def new(context: ControllerContext) -> Sequence[Controller]:
    classes = context.informer(VOLUME_ATTRIBUTES_CLASSES)
    users = [context.informer(PERSISTENT_VOLUMES), context.informer(PERSISTENT_VOLUME_CLAIMS)]
    indexers = [add_indexer(informer, _BY_CLASS, _named) for informer in users]

    async def is_used(volume: Object) -> bool:
        return any(indexer.index_keys(_BY_CLASS, volume["metadata"]["name"]) for indexer in indexers)

    client = context.client.resource(VOLUME_ATTRIBUTES_CLASSES)
    protection = Protection(VAC_PROTECTION, classes.indexer, client.namespaced, is_used)
    controller = context.controller(protection)
    controller.add_source(Informer(classes, protection.changed))
    for informer in users:
        controller.add_source(Informer(informer, _user_changed))
    return [controller]
