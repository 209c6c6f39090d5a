"""The Kubernetes paths as routes: one for each operation, in one group of routes for each group version.

A request finds its route in a dictionary, so that hundreds of routes cost no more than one. Custom resources' routes come and go
with their definitions.
"""

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, Final

from starlette.datastructures import URLPath
from starlette.routing import BaseRoute, Match, NoMatchFound, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from fakeapiserver.apis.resource_table import ResourceTable
from fakeapiserver.endpoints.openapi.documents import OpenAPI
from fakeapiserver.endpoints.openapi.operations import METHODS

# Subresources of a namespace, whose paths look like lists in it.
_OF_NAMESPACES: Final = ("status", "finalize")
# What follows a proxy, with all its slashes.
_REST: Final = "{path:path}"


class GroupVersionRoutes:
    """The routes of one group version: `path` is `/api/v1` or `/apis/GROUP/VERSION`. They are made when they are first used."""

    def __init__(self, path: str, openapi: OpenAPI, endpoint: ASGIApp) -> None:
        self.path = path
        self.rows = openapi.rows(path[1:])
        self._openapi = openapi
        self._endpoint = endpoint

    @cached_property
    def routes(self) -> list[Route]:
        """A route for each operation, whose name is the operation's id."""
        return [
            Route(
                pattern.replace("{path}", _REST),
                self._endpoint,
                methods=[method.upper()],
                name=item[method]["operationId"],
            )
            for pattern, item in sorted(self._openapi.paths(self.path[1:]).items())
            for method in METHODS
            if method in item
        ]

    @cached_property
    def _found(self) -> dict[tuple[str, str], Route]:
        return {(method, route.path): route for route in self.routes for method in route.methods or ()}

    def find(self, method: str, path: str) -> tuple[Route | None, dict[str, str]]:
        """The route of a request and its path parameters; None if there is no such operation."""
        pattern, parameters = _pattern(self.path, path[len(self.path) + 1 :].split("/"))
        route = self._found.get((method, pattern))
        return route, parameters if route is not None else {}


class KubernetesRoutes(BaseRoute):
    """A route that matches each path below a served group version and hands the request to `endpoint`. `group_versions` and `routes` are
    those of the moment."""

    path: Final = ""
    name: Final = "kubernetes"

    def __init__(self, table: Callable[[], ResourceTable], endpoint: ASGIApp) -> None:
        self.endpoint = endpoint
        self._table = table
        self._known: tuple[ResourceTable, int] | None = None
        self._group_versions: Mapping[str, GroupVersionRoutes] = {}

    @property
    def group_versions(self) -> Mapping[str, GroupVersionRoutes]:
        """The group versions that are served now, by path."""
        table = self._table()
        known = (table, table.generation)
        if self._known != known:
            self._group_versions, self._known = self._build(table), known
        return self._group_versions

    @property
    def routes(self) -> list[BaseRoute]:
        """Every operation of every group version that is served now."""
        return [route for version in self.group_versions.values() for route in version.routes]

    def _build(self, table: ResourceTable) -> dict[str, GroupVersionRoutes]:
        openapi = OpenAPI(table)
        routes = {}
        for key in openapi.listed():
            if rows := openapi.rows(key):
                known = self._group_versions.get(f"/{key}")
                same = known is not None and known.rows is rows
                routes[f"/{key}"] = known if known and same else GroupVersionRoutes(f"/{key}", openapi, self.endpoint)
        return routes

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        if scope["type"] not in ("http", "websocket"):
            return Match.NONE, {}
        path = path_of(scope)
        version = self.group_versions.get(_group_version_path(path))
        if version is None:
            return Match.NONE, {}
        route, parameters = version.find(scope.get("method", "GET"), path)
        return Match.FULL, {
            "endpoint": self.endpoint,
            "route": route or self,
            "path_params": {**scope.get("path_params", {}), **parameters},
        }

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.endpoint(scope, receive, send)

    def url_path_for(self, name: str, /, **path_params: Any) -> URLPath:
        for version in self.group_versions.values():
            for route in version.routes:
                if route.name == name:
                    return route.url_path_for(name, **path_params)
        raise NoMatchFound(name, path_params)


def path_of(scope: Scope) -> str:
    """A request's path without the path at which the application is mounted."""
    path: str = scope["path"]
    root: str = scope.get("root_path", "").rstrip("/")
    return path[len(root) :] or "/" if root and path.startswith(root) else path


def _group_version_path(path: str) -> str:
    parts = path.split("/", 4)
    return "/".join(parts[:3] if parts[1:2] == ["api"] else parts[:4])


def _pattern(root: str, parts: list[str]) -> tuple[str, dict[str, str]]:
    """Returns the pattern and parameters of a path below a group version.

    `namespaces/a/pods/b` is `namespaces/{namespace}/pods/{name}`.
    """
    parameters: dict[str, str] = {}
    if parts[0] == "watch":
        root, parts = f"{root}/watch", parts[1:]
    if parts[:1] == ["namespaces"] and len(parts) > 2 and parts[2] not in _OF_NAMESPACES:
        root, parameters["namespace"], parts = f"{root}/namespaces/{{namespace}}", parts[1], parts[2:]
    resource, *named = parts or [""]
    pattern = f"{root}/{resource}"
    if named:
        pattern, parameters["name"] = f"{pattern}/{{name}}", named[0]
    if len(named) > 1:
        pattern = f"{pattern}/{named[1]}"
    if len(named) > 2:
        pattern, parameters["path"] = f"{pattern}/{_REST}", "/".join(named[2:])
    return pattern, parameters
