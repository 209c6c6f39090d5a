"""The paths that aren't resources: health, version, discovery, OpenAPI, metrics, status pages, test control.

Upstream: k8s.io/apiserver/pkg/server/{healthz,routes}, pkg/endpoints/discovery, k8s.io/kube-aggregator/pkg/apiserver/handler_apis.go.

Three kinds of handlers stand behind these paths upstream, and answer differently to the same mistake. Routes (/api, /version,
a built-in group version) know one method and the exact media types they produce. The aggregator's (/apis, a group) and the
custom resources' (a custom group version) take every method. Mux handlers (health, OpenAPI) don't care for Accept either.
"""

from collections.abc import Callable, Collection, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Protocol

from fakeapiserver.apimachinery.errors import new_generic_method_not_allowed, new_generic_not_found
from fakeapiserver.apimachinery.gvk import GroupVersion
from fakeapiserver.apimachinery.serializer import json
from fakeapiserver.apis.resource_table import ResourceTable
from fakeapiserver.apis.scheme import Priority
from fakeapiserver.endpoints import discovery, respond
from fakeapiserver.endpoints.discovery import AggregatedDiscovery, DocumentCache
from fakeapiserver.endpoints.negotiation.media_types import (
    CBOR,
    JSON,
    Accept,
    check_body_type,
    check_route,
    negotiate_aggregated,
    negotiate_document,
)
from fakeapiserver.endpoints.openapi import handler
from fakeapiserver.endpoints.request import ASGIApplication, Request, Response
from fakeapiserver.endpoints.services import TokenIssuer
from fakeapiserver.server import exposition
from fakeapiserver.server.filters.flowcontrol.limits import Limiter
from fakeapiserver.server.metrics import Metrics
from fakeapiserver.server.pages import control as control_pages
from fakeapiserver.server.pages import debug_pages, flow_control, health, openid, status_pages
from fakeapiserver.server.pages.health import HealthChecks

if TYPE_CHECKING:
    from fakeapiserver.endpoints.openapi.handler import OpenAPIHandler

Answer = Callable[[Request], Response | None]
# Not among upstream's paths, so no client of a real server meets it by chance.
CONTROL: Final = "fakeapiserver"
# The group that the aggregator serves itself: no APIService stands for it.
_OWN_GROUP: Final = "apiregistration.k8s.io"


class ServingState(Protocol):
    """The state that changes while a server runs: `address` is host:port as clients reach it."""

    address: str
    media_types: tuple[str, ...]

    @property
    def failed_checks(self) -> Collection[str]:
        """The health checks that fail now."""

    @property
    def shares_storage(self) -> bool:
        """Reports whether other servers may serve the same objects."""

    @property
    def flags(self) -> Mapping[str, object]:
        """The flags it was started with, by name."""

    @property
    def limiter(self) -> Limiter:
        """The limiter of requests."""

    @property
    def started(self) -> float:
        """Seconds since the epoch."""

    def now(self) -> float:
        """Seconds since the epoch."""


class FixedPaths:
    """Documents are built when first asked for, and kept as bytes until what is served changes. `registered` are the group
    versions that have an APIService."""

    def __init__(
        self,
        table: ResourceTable,
        metrics: Metrics,
        health_checks: HealthChecks,
        server: "ServingState",
        control: Callable[[], ASGIApplication],
        issuer: TokenIssuer,
        registered: Callable[[], Mapping[GroupVersion, Priority]],
    ) -> None:
        self._table = table
        self._registered = registered
        self._metrics = metrics
        self._health_checks = health_checks
        self._server = server
        self._make_control = control
        self._documents = DocumentCache(table)
        self._aggregated_discovery = AggregatedDiscovery(table)
        exact: dict[str, Answer] = {
            "/": self._root,
            "/index.html": self._root,
            "/flagz": self._flagz,
            "/metrics": self._metrics_text,
            "/metrics/slis": self._health_metrics,
            "/statusz": self._statusz,
        }
        for path, gate in discovery.GATED_PAGES.items():
            if not table.scheme.features.enabled(gate):
                del exact[path]
        routes: dict[str, Answer] = {"/api": self._api, "/apis": self._apis, "/version": self._version}
        if openid.is_published(issuer):
            routes[openid.CONFIGURATION_PATH] = lambda request: openid.configuration(request, issuer, server.address)
            routes[openid.JWKS_PATH] = lambda request: openid.jwks(request, issuer)
        for path, answer in routes.items():
            exact |= {path: answer, f"{path}/": answer}
        self._exact: Final[Mapping[str, Answer]] = exact
        self._prefixes: Final[Mapping[str, Answer]] = {
            ".well-known": openid.below,
            "api": self._group_version,
            "apis": self._group,
            "healthz": self._health,
            "livez": self._health,
            "openid": openid.below,
            "readyz": self._health,
            "version": self._below_version,
        }

    async def answer(self, request: Request) -> Response:
        """Answers a request; 404 as text, as Go's mux does for unknown paths."""
        first = request.path[1:].partition("/")[0]
        if first == CONTROL:
            return await control_pages.answer(request, self._control_application)
        if first == "debug":
            return flow_control.page(request, self._server.limiter) or await debug_pages.page(request) or _nobody()
        if request.path.startswith("/apis//"):
            return _nobody()
        answer = self._exact.get(request.path) or self._prefixes.get(first)
        self._table.register(self._registered())
        if first == "openapi":
            return await self._openapi_handler.answer(request) or _nobody()
        response = answer(request) if answer is not None else None
        return response if response is not None else _nobody()

    @cached_property
    def _control_application(self) -> ASGIApplication:
        return self._make_control()

    def _root(self, request: Request) -> Response:
        gated = {**discovery.GATED_PAGES, **health.GATED_CHECKS}
        return Response(200, json.encode_pretty(discovery.root_paths(self._table, gated)))

    def _below_version(self, request: Request) -> Response:
        if request.path.strip("/") != "version":
            raise new_generic_not_found()
        return self._version(request)

    def _version(self, request: Request) -> Response:
        _check_route(request, JSON)
        return Response(200, json.encode_pretty(discovery.version_info(self._table)))

    # ---------------------------------------------------------------- health

    def _health(self, request: Request) -> Response | None:
        return self._health_checks.answer(request.path, request.query, self._server.failed_checks)

    def _metrics_text(self, request: Request) -> Response:
        if request.method == "DELETE":
            self._metrics.reset()
            return Response(200, b"metrics reset\n", "text/plain; charset=utf-8")
        return Response(
            200,
            exposition.render(self._metrics),
            exposition.content_type(request.header(b"accept")),
            [self._process_start],
        )

    def _health_metrics(self, request: Request) -> Response:
        return Response(
            200,
            exposition.render_health_checks(self._metrics.health_checks),
            exposition.content_type(request.header(b"accept")),
            [self._process_start],
        )

    @property
    def _process_start(self) -> tuple[bytes, bytes]:
        return b"process-start-time-unix", b"%d" % self._server.started

    def _statusz(self, request: Request) -> Response:
        server = self._server
        request.supported = server.media_types
        features = self._table.scheme.features
        absent = {path for path, gate in discovery.GATED_PAGES.items() if not features.enabled(gate)}
        paths = [path for path in status_pages.PATHS if path not in absent]
        if not (features.at_least("v1.35") or status_pages.takes_text(request)):
            return status_pages.text_only()
        return status_pages.statusz(request, self._version_facts, started=server.started, now=server.now(), paths=paths)

    def _flagz(self, request: Request) -> Response:
        request.supported = self._server.media_types
        if not (self._table.scheme.features.at_least("v1.35") or status_pages.takes_text(request)):
            return status_pages.text_only()
        return status_pages.flagz(request, self._server.flags)

    @property
    def _version_facts(self) -> discovery.Document:
        return discovery.version_info(self._table)

    # ------------------------------------------------------------- discovery

    def _api(self, request: Request) -> Response | None:
        _check_route(request)
        if chosen := negotiate_aggregated(request.header(b"accept"), request.general):
            return self._aggregated(request, chosen, legacy=True)
        address = self._server.address
        return self._document(request, ("api", address), lambda: discovery.api_versions(address))

    def _apis(self, request: Request) -> Response | None:
        # With a slash at its end the path leads to the handler behind the one that aggregates.
        if request.path == "/apis" and (chosen := negotiate_aggregated(request.header(b"accept"), request.general)):
            return self._aggregated(request, chosen, legacy=False)
        return self._document(request, "groups", lambda: discovery.api_group_list(self._table))

    def _group(self, request: Request) -> Response | None:
        """/apis/GROUP, and /apis/GROUP/VERSION."""
        group, _, version = request.path.removeprefix("/apis/").partition("/")
        if version.strip("/"):
            return self._group_version(request)
        if version or group == _OWN_GROUP:
            _check_route(request)
        return self._document(request, ("group", group), lambda: discovery.api_group(self._table, group))

    def _group_version(self, request: Request) -> Response | None:
        """/api/v1 and /apis/GROUP/VERSION, with or without a slash at the end."""
        prefix, *parts = [part for part in request.path.split("/") if part]
        if not parts:
            return self._api(request)
        group, version = ("", *parts) if prefix == "api" else parts
        served = self._table.version(group, version)
        built_in = version in self._table.scheme.groups.get(group, ())
        if served is None and group in self._table.scheme.groups:
            raise new_generic_not_found()
        supported = request.general
        if built_in:
            supported = self._server.media_types
            _check_route(request, *supported)
        key = ("resources", group, version)
        build = lambda: discovery.api_resource_list(self._table, group, version)  # noqa: E731
        return self._document(request, key, build, supported)

    def _document(
        self,
        request: Request,
        key: object,
        build: Callable[[], discovery.Document | None],
        supported: tuple[str, ...] | None = None,
    ) -> Response | None:
        body = self._documents.get(key, lambda: _encoded(build()))
        if body is None:
            return None
        return respond.raw(request, body, negotiate_document(request.header(b"accept"), supported or request.general))

    def _aggregated(self, request: Request, chosen: Accept, *, legacy: bool) -> Response:
        body, etag = self._documents.get(("aggregated", legacy), lambda: self._aggregated_discovery.document(legacy))
        headers = [(b"etag", etag.encode()), *discovery.AGGREGATED_HEADERS]
        if request.header(b"if-none-match") == etag:
            return Response(304, b"", "", headers, discovery.AGGREGATED_CACHE_CONTROL)
        response = respond.raw(request, body, chosen)
        response.headers += headers
        response.cache_control = discovery.AGGREGATED_CACHE_CONTROL
        response.content_type += discovery.AGGREGATED_PARAMETERS
        return response

    # --------------------------------------------------------------- OpenAPI

    @cached_property
    def _openapi_handler(self) -> "OpenAPIHandler":
        server = self._server
        is_shared, cbor = server.shares_storage, CBOR in server.media_types
        return handler.OpenAPIHandler(self._table, server.now, cbor=cbor, is_shared=is_shared)


def _nobody() -> Response:
    return respond.text(404, "404 page not found\n")


def _check_route(request: Request, *produced: str) -> None:
    """StatusError 405, 406 or 415, as a route answers that speaks these types (all where none are named)."""
    if request.method != "GET":
        raise new_generic_method_not_allowed()
    check_body_type(request.header(b"content-type"), produced or request.general)
    check_route(request.header(b"accept"), produced or request.general)


def _encoded(document: Any) -> bytes | None:
    return None if document is None else json.encode(document)
