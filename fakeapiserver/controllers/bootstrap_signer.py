"""kube-public/cluster-info is signed with every bootstrap token that may sign (upstream: pkg/controller/bootstrap/bootstrapsigner.go)."""

import base64
import hashlib
import hmac
import json
import logging
import re
from collections.abc import Iterator, Sequence
from typing import Final

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.client.cache.indexer import NAMESPACE_INDEX
from fakeapiserver.client.errors import StatusError, is_conflict, is_not_found
from fakeapiserver.component_helpers.controller_context import ControllerContext
from fakeapiserver.component_helpers.objects import CONFIG_MAPS, SECRETS
from fakeapiserver.component_helpers.secret_data import bootstrap_token_expires_in, secret_text
from fakeapiserver.controller_runtime.controller import Controller
from fakeapiserver.controller_runtime.event import DeleteEvent, Event, object_of
from fakeapiserver.controller_runtime.handler import Queue, request_for
from fakeapiserver.controller_runtime.reconcile import Request
from fakeapiserver.controller_runtime.source import Informer

log = logging.getLogger(__name__)

_CLUSTER_INFO: Final = Request("kube-public", "cluster-info")
_TOKENS: Final = "kube-system"
_TYPE: Final = "bootstrap.kubernetes.io/token"
_SECRET_NAME: Final = re.compile("bootstrap-token-([a-z0-9]{6})")
_KUBECONFIG: Final = "kubeconfig"
_SIGNATURE: Final = "jws-kubeconfig-"


class Signer:
    """The one request is the config map."""

    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client
        self._clock = context.clock
        self.config_maps = context.informer(CONFIG_MAPS)
        self.secrets = context.informer(SECRETS)

    def config_map_changed(self, event: Event, queue: Queue) -> None:
        obj = object_of(event)
        if not isinstance(event, DeleteEvent) and request_for(obj) == _CLUSTER_INFO:
            queue.add(_CLUSTER_INFO)

    def secret_changed(self, event: Event, queue: Queue) -> None:
        obj = object_of(event)
        if obj.get("type") == _TYPE and obj["metadata"]["namespace"] == _TOKENS:
            queue.add(_CLUSTER_INFO)

    async def reconcile(self, request: Request) -> None:
        info = self.config_maps.indexer.get_by_key(str(request))
        if info is None or _KUBECONFIG not in (info.get("data") or {}):
            return
        data = {name: value for name, value in info["data"].items() if not name.startswith(_SIGNATURE)}
        for token_id, token_secret in self._tokens():
            data.setdefault(_SIGNATURE + token_id, detached_signature(data[_KUBECONFIG], token_id, token_secret))
        if data == info["data"]:
            return
        try:
            await self._client.resource(CONFIG_MAPS, request.namespace).update({**info, "data": data})
        except StatusError as error:
            if not (is_conflict(error) or is_not_found(error)):
                log.warning("%s is not signed: %s", request, error)

    def _tokens(self) -> Iterator[tuple[str, str]]:
        """Yields (id, secret) of the tokens that may sign."""
        for secret in self.secrets.indexer.by_index(NAMESPACE_INDEX, _TOKENS):
            if secret.get("type") == _TYPE and self._may_sign(secret):
                yield secret_text(secret, "token-id"), secret_text(secret, "token-secret")

    def _may_sign(self, secret: Object) -> bool:
        name = _SECRET_NAME.fullmatch(secret["metadata"]["name"])
        return (
            name is not None
            and name[1] == secret_text(secret, "token-id")
            and bool(secret_text(secret, "token-secret"))
            and bootstrap_token_expires_in(secret, self._clock.now()) != 0.0
            and secret_text(secret, "usage-bootstrap-signing") == "true"
        )


def detached_signature(content: str, token_id: str, token_secret: str) -> str:
    """A compact JWS without its content (RFC 7515, appendix F)."""
    header = _segment(json.dumps({"alg": "HS256", "kid": token_id}, separators=(",", ":")).encode())
    signed = f"{header}.{_segment(content.encode())}".encode()
    return f"{header}..{_segment(hmac.digest(token_secret.encode(), signed, hashlib.sha256))}"


def _segment(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def new(context: ControllerContext) -> Sequence[Controller]:
    reconciler = Signer(context)
    controller = context.controller(reconciler)
    controller.add_source(Informer(reconciler.config_maps, reconciler.config_map_changed))
    controller.add_source(Informer(reconciler.secrets, reconciler.secret_changed))
    return [controller]
