"""Subresources: status and the others that write the whole object, and those that answer a kind of their own.

Upstream: k8s.io/apiserver/pkg/endpoints/installer.go, pkg/registry/<group>/<resource>/storage.
"""

from collections.abc import Awaitable, Callable

from fakeapiserver.apimachinery.errors import new_generic_method_not_allowed, status_error
from fakeapiserver.endpoints import scale
from fakeapiserver.endpoints.request import Request, Response
from fakeapiserver.endpoints.scope import RequestScope

Handler = Callable[[Request, RequestScope], Awaitable[Response]]


async def subresource(request: Request, scope: RequestScope, handler_of: Callable[[str], Handler | None]) -> Response:
    """StatusError 405 for verbs it lacks, 501 for subresources that aren't built yet (README lists them)."""
    info = request.info
    row = scope.resource.subresources[info.subresource]
    if info.verb not in row.verbs or request.method == "HEAD":
        raise new_generic_method_not_allowed()
    connecter = scope.subresources.get(info.subresource)
    if connecter is not None:
        return await connecter(request, scope)
    if info.subresource == "scale":
        return await scale.scale(request, scope)
    handler = handler_of(info.verb)
    if row.gvk == scope.gvk and handler is not None and info.verb in ("get", "update", "patch"):
        return await handler(request, scope)
    raise status_error(501, "NotImplemented", f"{scope.resource.gvr.resource}/{info.subresource} is not built yet")
