"""Access to the ports of `fakeapiserver nodes`: the API server authenticates and authorizes, as for a real kubelet.

Upstream: pkg/kubelet/server/{auth,server}.go (InstallAuthFilter), with the feature gate KubeletFineGrainedAuthz.
"""

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from msgspec import Struct

from fakeapiserver.apimachinery.errors import StatusError
from fakeapiserver.auth.attributes import forbidden_error
from fakeapiserver.auth.interfaces import (
    Attributes,
    Authenticator,
    Authorizer,
    Decision,
    EvaluationError,
    UserInfo,
)
from fakeapiserver.endpoints import respond
from fakeapiserver.endpoints.request import Request, Response
from fakeapiserver.server.filters.authentication import credentials
from fakeapiserver.server.simulated_nodes.kubelet_server import KubeletServer

log = logging.getLogger(__name__)

_VERBS: Final = {"POST": "create", "GET": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_PROXY: Final = "proxy"
# By the first part of a path. Where two subresources are named, a right to either is enough.
_SUBRESOURCES: Final[dict[str, tuple[str, ...]]] = {
    "pods": ("pods", _PROXY),
    "runningpods": ("pods", _PROXY),
    "healthz": ("healthz", _PROXY),
    "configz": ("configz", _PROXY),
    "statusz": ("statusz", _PROXY),
    "stats": ("stats",),
    "metrics": ("metrics",),
    "logs": ("log",),
    "checkpoint": ("checkpoint",),
}


class KubeletAccess(Struct, frozen=True):
    """Handles requests to kubelets: 401, 403 and 500 are texts, as a kubelet sends them."""

    authenticator: Authenticator
    authorizer: Authorizer
    kubelets: KubeletServer

    async def handle(self, request: Request) -> Response:
        try:
            user = await self.authenticator.authenticate(credentials(request))
        except StatusError:
            user = None
        if user is None:
            return respond.text(401, "Unauthorized")
        wanted = node_attributes(user, request.method, request.path, self.kubelets.node_of(request.path))
        for attributes in wanted:
            try:
                decision, _ = await self.authorizer.authorize(attributes)
            except EvaluationError as error:
                log.error("authorization failed: %s", error)
                return respond.text(500, f"Authorization error ({_shown(wanted[:1], 'subresource')})")
            if decision is Decision.ALLOW:
                return await self.kubelets.handle(request)
        return respond.text(403, f"Forbidden ({_shown(wanted, 'subresource(s)')})")


def node_attributes(user: UserInfo, method: str, path: str, node: str) -> Sequence[Attributes]:
    """Returns the rights of which a request to the kubelet of `node` needs one; "": the right must be one to all nodes."""
    subresources = _SUBRESOURCES.get(path.split("/")[1] if path.startswith("/") else "", (_PROXY,))
    return [
        Attributes(
            user,
            _VERBS.get(method, ""),
            path,
            resource_request=True,
            api_version="v1",
            resource="nodes",
            subresource=subresource,
            name=node,
        )
        for subresource in subresources
    ]


def _shown(wanted: Sequence[Attributes], label: str) -> str:
    first, names = wanted[0], " ".join(attributes.subresource for attributes in wanted)
    names = f"[{names}]" if label.endswith(")") else names
    return f"user={first.user.name}, verb={first.verb}, resource={first.resource}, {label}={names}"


class ControlAccess(Struct, frozen=True):
    """Handles requests to the test control, whose paths are authorized as those of the API server are."""

    authenticator: Authenticator
    authorizer: Authorizer
    answer: Callable[[Request], Awaitable[Response]]

    async def handle(self, request: Request) -> Response:
        user = await self.authenticator.authenticate(credentials(request))
        assert user is not None  # otherwise StatusError 401 was raised
        attributes = Attributes(user, request.method.lower(), request.path)
        decision, reason = await self.authorizer.authorize(attributes)
        if decision is not Decision.ALLOW:
            raise forbidden_error(attributes, reason)
        return await self.answer(request)
