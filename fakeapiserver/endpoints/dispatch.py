"""Finds the function for a request's resource and verb.

Upstream: k8s.io/apiserver/pkg/endpoints/installer.go and the go-restful routes it makes.
"""

import re
from collections.abc import Awaitable, Callable, Mapping
from functools import cache
from importlib import import_module
from typing import Final

from fakeapiserver.apimachinery.errors import (
    StatusError,
    new_generic_method_not_allowed,
    new_generic_not_found,
    new_method_not_supported,
    new_not_found,
)
from fakeapiserver.apimachinery.gvk import GroupResource
from fakeapiserver.apimachinery.instruments import Family
from fakeapiserver.endpoints import respond
from fakeapiserver.endpoints.negotiation.media_types import check_route, takes_body_type
from fakeapiserver.endpoints.request import Answered, Request, Response
from fakeapiserver.endpoints.request_info import RequestInfo
from fakeapiserver.endpoints.scope import RequestScope
from fakeapiserver.endpoints.scopes import RequestScopes

Handler = Callable[[Request, RequestScope], Awaitable[Response]]

# verb -> module and function. A module is imported with the first request that needs it, so that starting stays quick.
_VERBS: Final[Mapping[str, tuple[str, str]]] = {
    "get": ("get", "get"),
    "list": ("list", "list_"),
    "watch": ("watch", "watch"),
    "create": ("create", "create"),
    "update": ("update", "update"),
    "patch": ("patch", "patch"),
    "delete": ("delete", "delete"),
    "deletecollection": ("deletecollection", "deletecollection"),
}


@cache
def handler_of(verb: str) -> Handler | None:
    """The function for a verb; None for a verb that no resource has."""
    if verb not in _VERBS:
        return None
    module, name = _VERBS[verb]
    found: Handler = getattr(import_module(f"fakeapiserver.endpoints.verbs.{module}"), name)
    return found


_UNAVAILABLE: Final = re.compile(r"unavailable in v([0-9]+\.[0-9]+)").search
# Upstream: pkg/endpoints/metrics/metrics.go.
DEPRECATED: Final = Family(
    "apiserver_requested_deprecated_apis",
    "Deprecated resources that were asked for",
    ("group", "removed_release", "resource", "subresource", "version"),
    gauge=True,
)
# Resources with handlers of their own: one that is only written, and one that is only read.
_BINDINGS: Final = GroupResource("", "bindings")
_COMPONENT_STATUSES: Final = GroupResource("", "componentstatuses")
# Verbs of a collection; all others concern one object.
_COLLECTION: Final = frozenset(("list", "watch", "create", "deletecollection"))


def dispatch(request: Request, scopes: RequestScopes) -> Awaitable[Response]:
    """Returns the answer to a resource request, to be awaited. Raises StatusError 404 and 405 for paths and verbs that aren't served, and
    Answered for paths that Go's mux refuses.
    """
    info = request.info
    scope = scopes.lookup(info.group, info.version, info.resource)
    if scope is None:
        if not _is_builtin_group(info.group, scopes):
            raise Answered(respond.text(404, "404 page not found\n"))
        raise new_generic_not_found()
    if scope.kind.custom and not _is_in_scope(info, scope):
        raise Answered(respond.text(404, "404 page not found\n"))
    unknown = scope.kind.custom and info.subresource and info.subresource not in scope.resource.subresources
    if not (unknown or _is_served_path(info, scope)):
        raise new_generic_not_found()
    # Upstream warns in the routes, so a verb without a route has no warning; all verbs of custom resources share a route.
    warns = scope.resource.deprecation
    # A watch of a resource that can only be listed has the list's route.
    watches = info.verb == "watch" and "list" in scope.resource.verbs and "watch" not in scope.resource.verbs
    if warns and (
        scope.kind.custom
        or _is_routed(
            request, scope, scopes.media_types, listed=watches and request.method == "GET" and not info.watch_path
        )
    ):
        _warn(request, scope, scopes, warns)
    if unknown:
        raise new_not_found(scope.resource.gvr.group_resource, info.name)
    if info.subresource:
        from fakeapiserver.endpoints.subresources.subresource import subresource

        request.supported = scopes.media_types
        return subresource(request, scope, scopes, handler_of)
    handler = handler_of(info.verb)
    if watches and info.watch_path:
        raise new_generic_not_found()
    if watches and request.method == "GET":
        respond.accepted(request, scope)
    if watches or (scope.kind.custom and handler is None):
        raise new_method_not_supported(scope.resource.gvr.group_resource, info.verb)
    if handler is None or not (scope.kind.custom or _is_served_verb(request, scope)):
        raise new_generic_method_not_allowed()
    # Upstream sends the errors above without the resource's own media types.
    request.supported = scopes.media_types
    if scope.resource.gvr.group_resource == _BINDINGS:
        from fakeapiserver.endpoints.subresources.binding import bind

        return bind(request, scope, scopes)
    if scope.resource.gvr.group_resource == _COMPONENT_STATUSES:
        from fakeapiserver.endpoints import componentstatus

        return componentstatus.read(request, scope)
    return handler(request, scope)


def _warn(request: Request, scope: RequestScope, scopes: RequestScopes, warning: str) -> None:
    """Reports the use of a deprecated resource to the client, in the metrics and to audit."""
    info, removed = request.info, "" if scope.kind.custom else _removed_release(warning)
    request.warnings.append(warning)
    scopes.instruments.set(DEPRECATED, 1, info.group, removed, info.resource, info.subresource, info.version)
    if request.audit is not None:
        request.audit.annotate("k8s.io/deprecated", "true", at_end=True)
        if removed:
            request.audit.annotate("k8s.io/removed-release", removed, at_end=True)


def _removed_release(warning: str) -> str:
    """`1.40` from `... is deprecated in v1.33+, unavailable in v1.40+`; empty if no release is named."""
    found = _UNAVAILABLE(warning)
    return found[1] if found else ""


def _is_builtin_group(name: str, scopes: RequestScopes) -> bool:
    """Whether upstream has a handler of its own for unknown resources in the group; Go's mux answers for those in other groups."""
    return name in scopes.table.scheme.groups


def _is_in_scope(info: RequestInfo, scope: RequestScope) -> bool:
    """Whether a path has a namespace if and only if the resource is namespaced, except when it is read across all namespaces."""
    if scope.resource.namespaced:
        return bool(info.namespace) or info.verb in ("list", "watch")
    return not info.namespace


def _is_served_path(info: RequestInfo, scope: RequestScope) -> bool:
    namespaced = scope.resource.namespaced
    if info.namespaced_path != namespaced and (info.namespaced_path or info.named_path):
        return False
    if namespaced and not info.namespaced_path and "list" not in scope.resource.verbs:
        return False  # across all namespaces, objects can only be read
    if info.verb == "proxy" and not scope.kind.custom:
        return False
    if info.subresource:
        if info.verb == "watch" and not scope.kind.custom:
            return False
        return info.subresource in scope.resource.subresources and (not info.rest or info.subresource == "proxy")
    # Resources that can only be created, such as reviews, have no paths with names.
    return not info.named_path or tuple(scope.resource.verbs) != ("create",)


def _is_routed(request: Request, scope: RequestScope, supported: tuple[str, ...], *, listed: bool) -> bool:
    """Whether upstream's router finds a route for the method and the media types."""
    if not listed and not _is_served_verb(request, scope):
        return False
    if request.info.verb == "patch":
        from fakeapiserver.endpoints.verbs.patch import patch_types

        if not takes_body_type(request.header(b"content-type"), patch_types(supported, custom=False)):
            return False
    try:
        check_route(request.header(b"accept"), respond.produced(request, supported))
    except StatusError:
        return False
    return True


def _is_served_verb(request: Request, scope: RequestScope) -> bool:
    """Whether a built-in resource has a route for the verb; the handler of custom resources looks at the verb alone."""
    info, verbs = request.info, scope.resource.verbs
    if request.method == "HEAD" or info.verb not in verbs or (info.verb == "watch" and request.method != "GET"):
        return False
    if info.verb in _COLLECTION:
        if info.named_path and info.verb == "create":
            return False
        crosses_namespaces = scope.resource.namespaced and not info.namespace
        return not (crosses_namespaces and info.verb in ("create", "deletecollection"))
    return bool(info.name)
