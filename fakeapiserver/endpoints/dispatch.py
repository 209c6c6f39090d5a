"""Finds what answers a request for a resource.

Upstream: k8s.io/apiserver/pkg/endpoints/installer.go and the go-restful routes it makes.
"""

from collections.abc import Awaitable

from fakeapiserver.apimachinery.errors import new_generic_not_found
from fakeapiserver.endpoints import respond
from fakeapiserver.endpoints.request import Answered, Request, Response
from fakeapiserver.endpoints.scopes import RequestScopes


def dispatch(request: Request, scopes: RequestScopes) -> Awaitable[Response]:
    """Returns the answer to a resource request, to be awaited. Raises StatusError 404 and 405 for paths and verbs that aren't served, and
    Answered for paths that Go's mux refuses.
    """
    info = request.info
    scope = scopes.lookup(info.group, info.version, info.resource)
    if scope is None:
        # Upstream has a handler of its own for unknown resources in a built-in group; Go's mux answers for those in other groups.
        if info.group not in scopes.table.scheme.groups:
            raise Answered(respond.text(404, "404 page not found\n"))
        raise new_generic_not_found()
    return scope.dialect.route(request, scope, scopes)
