"""Subresources: status and others that write the whole object, and those with a kind of their own.

Upstream: k8s.io/apiserver/pkg/endpoints/installer.go, pkg/registry/<group>/<resource>/storage.
"""

from collections.abc import Awaitable, Callable, Mapping
from functools import cache
from importlib import import_module
from typing import Final

from fakeapiserver.admission.interfaces import Attributes
from fakeapiserver.apimachinery.errors import status_error
from fakeapiserver.apimachinery.gvk import GroupResource, GroupVersionKind
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.endpoints import respond
from fakeapiserver.endpoints.dialect.routes import handler_of
from fakeapiserver.endpoints.request import Request, Response
from fakeapiserver.endpoints.scope import RequestScope
from fakeapiserver.endpoints.scopes import RequestScopes
from fakeapiserver.endpoints.subresources import scale
from fakeapiserver.endpoints.verbs import create
from fakeapiserver.endpoints.verbs.options import WriteOptions, write_options
from fakeapiserver.registry.generic.kind import Kind

Connecter = Callable[[Request, RequestScope, RequestScopes], Awaitable[Response]]

# (resource, subresource) -> module and function; imported with the first request that needs it.
_CONNECTERS: Final[Mapping[tuple[GroupResource, str], tuple[str, str]]] = {
    (GroupResource("", "nodes"), "proxy"): ("streams.proxy", "node_proxy"),
    (GroupResource("", "pods"), "attach"): ("streams.connect", "attach"),
    (GroupResource("", "pods"), "binding"): ("subresources.binding", "bind"),
    (GroupResource("", "pods"), "eviction"): ("subresources.eviction", "evict"),
    (GroupResource("", "pods"), "exec"): ("streams.connect", "exec_"),
    (GroupResource("", "pods"), "log"): ("streams.connect", "log"),
    (GroupResource("", "pods"), "portforward"): ("streams.connect", "port_forward"),
    (GroupResource("", "pods"), "proxy"): ("streams.proxy", "pod_proxy"),
    (GroupResource("", "serviceaccounts"), "token"): ("subresources.token_request", "token"),
    (GroupResource("", "services"), "proxy"): ("streams.proxy", "service_proxy"),
}


async def subresource(request: Request, scope: RequestScope, scopes: RequestScopes) -> Response:
    """Raises StatusError 405 for verbs it lacks, 501 for subresources that aren't built yet (README lists them)."""
    info = request.info
    row = scope.resource.subresources[info.subresource]
    scope.dialect.check_subresource_verb(request, scope)
    if connecter := _connecter_of(scope.resource.gvr.group_resource, info.subresource):
        return await connecter(request, scope, scopes)
    if info.subresource == "scale":
        return await scale.scale(request, scope)
    handler = handler_of(info.verb)
    if row.gvk == scope.gvk and handler is not None and info.verb in ("get", "update", "patch"):
        return await handler(request, scope)
    raise not_built(scope, info.subresource)


@cache
def _connecter_of(resource: GroupResource, name: str) -> Connecter | None:
    if (resource, name) not in _CONNECTERS:
        return None
    module, function = _CONNECTERS[resource, name]
    connecter: Connecter = getattr(import_module(f"fakeapiserver.endpoints.{module}"), function)
    return connecter


def not_built(scope: RequestScope, name: str) -> Exception:
    return status_error(501, "NotImplemented", f"{scope.resource.gvr.resource}/{name} is not built yet")


# ------------------------------------- a POST whose body is acted upon, not stored


async def decoded(request: Request, kind: Kind, scope: RequestScope) -> tuple[Object, WriteOptions]:
    """The body as an object of `kind`, in the path's namespace. StatusError 400, 406, 413, 415, 422."""
    respond.accepted(request, scope)
    scope.dialect.object_media_type(request)  # 415 comes before 400
    options = write_options(request.query, "CreateOptions")
    return await create.decoded(request, scope, options, kind), options


async def mutated(
    request: Request,
    scopes: RequestScopes,
    scope: RequestScope,
    obj: Object,
    options: WriteOptions,
    *,
    kind: GroupVersionKind | None = None,
) -> Attributes:
    """Runs mutating admission for the creation of `obj` (of `kind`, by default its own)."""
    attributes = create.creation(request, scope, obj, options, kind or GroupVersionKind("", "v1", obj["kind"]))
    await scopes.services.admission.admit(attributes)
    return attributes


def success(request: Request, scope: RequestScope) -> Response:
    """201 with a Status `Success`."""
    status: Object = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
    return respond.encoded(request, status, respond.accepted(request, scope), 201)
