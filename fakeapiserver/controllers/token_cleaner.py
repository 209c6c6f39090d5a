"""Bootstrap tokens go when their time is over (upstream: pkg/controller/bootstrap/tokencleaner.go)."""

import logging
from collections.abc import Sequence
from typing import Final

from fakeapiserver.client.errors import StatusError, is_conflict, is_not_found
from fakeapiserver.component_helpers.controller_context import ControllerContext
from fakeapiserver.component_helpers.objects import SECRETS
from fakeapiserver.component_helpers.secret_data import bootstrap_token_expires_in
from fakeapiserver.controller_runtime.controller import Controller
from fakeapiserver.controller_runtime.event import DeleteEvent, Event, object_of
from fakeapiserver.controller_runtime.handler import Queue, request_for
from fakeapiserver.controller_runtime.reconcile import Request, Result
from fakeapiserver.controller_runtime.source import Informer

log = logging.getLogger(__name__)

_TYPE: Final = "bootstrap.kubernetes.io/token"
_NAMESPACE: Final = "kube-system"


class TokenCleaner:
    """Requests are secrets."""

    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client
        self._clock = context.clock
        self.secrets = context.informer(SECRETS)

    def secret_changed(self, event: Event, queue: Queue) -> None:
        if isinstance(event, DeleteEvent):
            return
        obj = object_of(event)
        if obj.get("type") == _TYPE and obj["metadata"]["namespace"] == _NAMESPACE:
            queue.add(request_for(obj))

    async def reconcile(self, request: Request) -> Result | None:
        secret = self.secrets.indexer.get_by_key(str(request))
        if secret is None or secret.get("type") != _TYPE:
            return None
        left = bootstrap_token_expires_in(secret, self._clock.now())
        if left is None:
            return None
        if left:
            return Result(requeue_after=left)
        try:
            await self._client.resource(SECRETS, request.namespace).delete(request.name, uid=secret["metadata"]["uid"])
        except StatusError as error:
            if not (is_conflict(error) or is_not_found(error)):
                log.warning("bootstrap token %s is not deleted: %s", request, error)
        return None


def new(context: ControllerContext) -> Sequence[Controller]:
    reconciler = TokenCleaner(context)
    controller = context.controller(reconciler)
    controller.add_source(Informer(reconciler.secrets, reconciler.secret_changed))
    return [controller]
