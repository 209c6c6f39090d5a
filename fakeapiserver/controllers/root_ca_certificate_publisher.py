"""Every namespace has the config map kube-root-ca.crt (upstream: pkg/controller/certificates/rootcacertpublisher/publisher.go)."""

from collections.abc import Mapping, Sequence
from typing import Final

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.client.errors import StatusError, is_not_found
from fakeapiserver.component_helpers.controller_context import ControllerContext
from fakeapiserver.component_helpers.objects import CONFIG_MAPS, NAMESPACES, is_namespace_terminating
from fakeapiserver.component_helpers.sync_metrics import SyncMetrics
from fakeapiserver.controller_runtime.controller import Controller
from fakeapiserver.controller_runtime.event import CreateEvent, DeleteEvent, Event, UpdateEvent, object_of
from fakeapiserver.controller_runtime.handler import Queue
from fakeapiserver.controller_runtime.reconcile import Request
from fakeapiserver.controller_runtime.source import Informer

_NAME: Final = "kube-root-ca.crt"
_ANNOTATION: Final = "kubernetes.io/description"
_DESCRIPTION: Final = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal "
    "service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters."
)


def data_of(root_ca: bytes) -> Mapping[str, str]:
    """Returns the data of the config map, with the authorities as PEM."""
    return {"ca.crt": root_ca.decode()}


def new_config_map(data: Mapping[str, str]) -> Object:
    """Returns the config map as it is created in a namespace."""
    metadata = {"name": _NAME, "annotations": {_ANNOTATION: _DESCRIPTION}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


class Publisher:
    """Requests are namespaces."""

    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client
        self._metrics = SyncMetrics(context.metrics, "root_ca_cert_publisher_sync", "namespaces")
        self._data = data_of(context.root_ca)
        self.namespaces = context.informer(NAMESPACES)
        self.config_maps = context.informer(CONFIG_MAPS, object_name=_NAME)  # upstream keeps all, and looks at these

    def namespace_changed(self, event: Event, queue: Queue) -> None:
        """Added, or still active."""
        if isinstance(event, CreateEvent):
            queue.add(Request("", event.object["metadata"]["name"]))
        elif isinstance(event, UpdateEvent) and event.object_new["status"].get("phase") == "Active":
            queue.add(Request("", event.object_new["metadata"]["name"]))

    def config_map_changed(self, event: Event, queue: Queue) -> None:
        """Queues the namespace of a changed or deleted config map, which is restored."""
        if isinstance(event, UpdateEvent | DeleteEvent):
            queue.add(Request("", object_of(event)["metadata"]["namespace"]))

    async def reconcile(self, request: Request) -> None:
        with self._metrics.sync():
            await self._publish(request)

    async def _publish(self, request: Request) -> None:
        maps = self._client.resource(CONFIG_MAPS, request.name)
        config_map = self.config_maps.indexer.get_by_key(f"{request.name}/{_NAME}")
        if config_map is None:
            try:
                await maps.create(new_config_map(self._data))
            except StatusError as error:
                if not (is_not_found(error) or is_namespace_terminating(error)):
                    raise
            return
        annotations = config_map["metadata"].get("annotations") or {}
        if config_map.get("data") != self._data or not annotations.get(_ANNOTATION):
            metadata = {**config_map["metadata"], "annotations": {**annotations, _ANNOTATION: _DESCRIPTION}}
            await maps.update({**config_map, "metadata": metadata, "data": self._data})


def new(context: ControllerContext) -> Sequence[Controller]:
    """Returns the controllers; none without a certificate authority to publish."""
    if not context.root_ca:
        return []
    reconciler = Publisher(context)
    controller = context.controller(reconciler)
    controller.add_source(Informer(reconciler.namespaces, reconciler.namespace_changed))
    controller.add_source(Informer(reconciler.config_maps, reconciler.config_map_changed))
    return [controller]
