"""The shared parts of the routes of built-in and custom resources: handlers, paths, the warning of deprecated resources."""

from collections.abc import Awaitable, Callable, Mapping
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Final

from fakeapiserver.apimachinery.instruments import Family
from fakeapiserver.endpoints.request import Request, Response
from fakeapiserver.endpoints.request_info import RequestInfo

if TYPE_CHECKING:
    from fakeapiserver.endpoints.scope import RequestScope
    from fakeapiserver.endpoints.scopes import RequestScopes

Handler = Callable[[Request, "RequestScope"], Awaitable[Response]]

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
# Upstream: pkg/endpoints/metrics/metrics.go.
DEPRECATED: Final = Family(
    "apiserver_requested_deprecated_apis",
    "Deprecated resources that were asked for",
    ("group", "removed_release", "resource", "subresource", "version"),
    gauge=True,
)


@cache
def handler_of(verb: str) -> Handler | None:
    """Returns the function for a verb, or None for a verb that no resource has."""
    if verb not in _VERBS:
        return None
    module, name = _VERBS[verb]
    handler: Handler = getattr(import_module(f"fakeapiserver.endpoints.verbs.{module}"), name)
    return handler


def is_served_path(info: RequestInfo, scope: "RequestScope") -> bool:
    """Reports whether the resource has this path, for some verb."""
    namespaced = scope.resource.namespaced
    if info.namespaced_path != namespaced and (info.namespaced_path or info.named_path):
        return False
    if namespaced and not info.namespaced_path and "list" not in scope.resource.verbs:
        return False  # across all namespaces, objects can only be read
    if info.subresource:
        return info.subresource in scope.resource.subresources and (not info.rest or info.subresource == "proxy")
    # Resources that can only be created, such as reviews, have no paths with names.
    return not info.named_path or tuple(scope.resource.verbs) != ("create",)


def warn(request: Request, scopes: "RequestScopes", warning: str, removed: str) -> None:
    """Reports the use of a deprecated resource to the client, in the metrics and to audit.

    removed: the release that removes it, such as `1.40`; empty if none is known.
    """
    info = request.info
    request.warnings.append(warning)
    scopes.instruments.set(DEPRECATED, 1, info.group, removed, info.resource, info.subresource, info.version)
    if request.audit is not None:
        request.audit.annotate("k8s.io/deprecated", "true", at_end=True)
        if removed:
            request.audit.annotate("k8s.io/removed-release", removed, at_end=True)
