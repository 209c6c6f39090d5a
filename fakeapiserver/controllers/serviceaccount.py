"""Every namespace has its service account `default` (upstream: pkg/controller/serviceaccount/serviceaccounts_controller.go)."""

from collections.abc import Sequence
from typing import Final

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.client.errors import StatusError, is_already_exists, is_not_found
from fakeapiserver.component_helpers.controller_context import ControllerContext
from fakeapiserver.component_helpers.objects import NAMESPACES, SERVICE_ACCOUNTS, is_namespace_terminating
from fakeapiserver.controller_runtime.controller import Controller
from fakeapiserver.controller_runtime.event import DeleteEvent, Event, object_of
from fakeapiserver.controller_runtime.handler import Queue
from fakeapiserver.controller_runtime.reconcile import Request
from fakeapiserver.controller_runtime.source import Informer

_NAME: Final = "default"


def new_account(namespace: str) -> Object:
    """Returns the service account as it is created in a namespace."""
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": _NAME, "namespace": namespace}}


class ServiceAccountsController:
    """Requests are namespaces."""

    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client
        self.namespaces = context.informer(NAMESPACES)
        self.accounts = context.informer(SERVICE_ACCOUNTS)

    def namespace_changed(self, event: Event, queue: Queue) -> None:
        """Queues a namespace unless it was deleted."""
        if not isinstance(event, DeleteEvent):
            obj = object_of(event)
            queue.add(Request("", obj["metadata"]["name"]))

    def account_changed(self, event: Event, queue: Queue) -> None:
        """A deleted one comes back."""
        if isinstance(event, DeleteEvent) and event.object["metadata"]["name"] == _NAME:
            queue.add(Request("", event.object["metadata"]["namespace"]))

    async def reconcile(self, request: Request) -> None:
        namespace = self.namespaces.indexer.get_by_key(request.name)
        if namespace is None or namespace.get("status", {}).get("phase") != "Active":
            return
        if self.accounts.indexer.get_by_key(f"{request.name}/{_NAME}") is not None:
            return
        try:
            await self._client.resource(SERVICE_ACCOUNTS, request.name).create(new_account(request.name))
        except StatusError as error:
            if not (is_already_exists(error) or is_not_found(error) or is_namespace_terminating(error)):
                raise


def new(context: ControllerContext) -> Sequence[Controller]:
    reconciler = ServiceAccountsController(context)
    controller = context.controller(reconciler)
    controller.add_source(Informer(reconciler.namespaces, reconciler.namespace_changed))
    controller.add_source(Informer(reconciler.accounts, reconciler.account_changed))
    return [controller]
