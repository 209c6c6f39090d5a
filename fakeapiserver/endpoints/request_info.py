"""Reads from its method and path what a request is about.

Upstream: k8s.io/apiserver/pkg/endpoints/request/requestinfo.go.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Final, NamedTuple

_VERBS: Final[Mapping[str, str]] = {
    "POST": "create",
    "GET": "get",
    "HEAD": "get",
    "PUT": "update",
    "PATCH": "patch",
    "DELETE": "delete",
}
# Parts that follow a namespace's name and belong to the namespace object itself.
_NAMESPACE_SUBRESOURCES: Final = frozenset({"status", "finalize"})
_LONG_RUNNING_VERBS: Final = frozenset({"watch", "proxy"})
_LONG_RUNNING_SUBRESOURCES: Final = frozenset({"attach", "exec", "proxy", "log", "portforward"})


# Longer ones are read each time, so that what is remembered stays small.
_REMEMBERED: Final = 256


class RequestInfo(NamedTuple):
    """The attributes of a request that its method and path determine.

    `verb` is the API verb (get, list, watch, create, update, patch, delete, deletecollection), or the method in lower case where
    `resource_request` is false. `rest` is the part of the path after the subresource; only proxies serve such paths.
    """

    path: str
    verb: str
    resource_request: bool = False
    group: str = ""
    version: str = ""
    namespace: str = ""
    resource: str = ""
    subresource: str = ""
    name: str = ""
    rest: tuple[str, ...] = ()
    namespaced_path: bool = False
    # The old way to watch: /api/v1/watch/pods.
    watch_path: bool = False
    # `name` stands in the path, and isn't only what a selector asks for.
    named_path: bool = False


def known_request_info(method: str, path: str) -> RequestInfo:
    """`request_info` of a request without a query, remembered: clients ask for the same things again and again."""
    return (_remembered if len(path) + len(method) <= _REMEMBERED else request_info)(method, path)


class NoResource(ValueError):
    """A path that begins as a resource's and names none."""


def request_info(method: str, path: str, *, watch: bool = False, name_selector: str = "") -> RequestInfo:
    """`watch` is the query's watch flag; `name_selector` the name a field selector `metadata.name=` asks for, which
    makes a list or watch one of a single object to authorizers. NoResource for a path such as /api/v1/watch.

    >>> info = request_info("GET", "/apis/apps/v1/namespaces/default/deployments/web/scale")
    >>> info.verb, info.resource, info.subresource, info.name
    ('get', 'deployments', 'scale', 'web')
    """
    # Empty parts stay: `/api/v1/namespaces//pods` is upstream's for all namespaces. Slashes too many in front change nothing
    # here, so that who may not list secrets isn't asked about a path instead; no such path is served.
    parts = path.strip("/").split("/") if path.startswith("/") else []
    prefix = parts[0] if parts else ""
    if prefix not in ("api", "apis") or len(parts) < (3 if prefix == "api" else 4):
        return RequestInfo(path, method.lower())
    group, rest = ("", parts[1:]) if prefix == "api" else (parts[1], parts[2:])
    version, rest = rest[0], rest[1:]
    verb = _VERBS.get(method, "")
    watch_path = rest[0] == "watch"
    if rest[0] in ("proxy", "watch"):
        if len(rest) == 1:
            raise NoResource(path)
        # Whatever the method is; built-in kinds have routes for GET only.
        verb, rest = rest[0], rest[1:]
    namespace, namespaced_path = "", False
    if rest[0] == "namespaces" and len(rest) > 1:
        namespace = rest[1]
        if len(rest) > 2 and rest[2] not in _NAMESPACE_SUBRESOURCES:
            rest, namespaced_path = rest[2:], True
    resource, name, subresource = (*rest[:3], "", "", "")[:3]
    return RequestInfo(
        path=path,
        verb=_collection_verb(verb, watch) if not name else verb,
        resource_request=True,
        group=group,
        version=version,
        namespace=namespace,
        resource=resource,
        subresource=subresource,
        name=name or (name_selector if verb == "get" else ""),
        rest=tuple(rest[3:]),
        namespaced_path=namespaced_path,
        watch_path=watch_path,
        named_path=bool(name),
    )


_remembered = lru_cache(maxsize=2048)(request_info)


def is_long_running(info: RequestInfo) -> bool:
    """Reports whether a request has no deadline and takes no seat (upstream: BasicLongRunningRequestCheck)."""
    if info.resource_request:
        return info.verb in _LONG_RUNNING_VERBS or info.subresource in _LONG_RUNNING_SUBRESOURCES
    return info.path.startswith("/debug/pprof/")


def _collection_verb(verb: str, watch: bool) -> str:
    if verb == "get":
        return "watch" if watch else "list"
    return "deletecollection" if verb == "delete" else verb
