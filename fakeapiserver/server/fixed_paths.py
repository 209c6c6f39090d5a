"""The paths that aren't resources: health, version, discovery, OpenAPI, metrics, test control.

Upstream: k8s.io/apiserver/pkg/server/{healthz,routes}, pkg/endpoints/discovery.
"""

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Final, Protocol

from fakeapiserver.apimachinery.errors import new_generic_method_not_allowed, new_generic_not_found
from fakeapiserver.apimachinery.serializer import json
from fakeapiserver.apis.resource_table import ResourceTable
from fakeapiserver.endpoints import discovery, respond
from fakeapiserver.endpoints.discovery import DocumentCache
from fakeapiserver.endpoints.negotiation import (
    Accept,
    check_json_accepted,
    negotiate_aggregated,
    negotiate_document,
    not_acceptable,
)
from fakeapiserver.endpoints.request import ASGIApplication, Message, Request, Response
from fakeapiserver.server import health
from fakeapiserver.server.metrics import CONTENT_TYPE, Metrics

if TYPE_CHECKING:
    from fakeapiserver.endpoints.openapi import OpenAPI

# Not among upstream's paths, so no client of a real server meets it by chance.
CONTROL: Final = "fakeapiserver"

Answer = Callable[[Request], Response | None]


class ServingState(Protocol):
    """What changes while a server runs: `address` is host:port as clients reach it."""

    address: str
    shutting_down: bool


class FixedPaths:
    """Documents are built when first asked for, and kept as bytes until what is served changes."""

    def __init__(
        self, table: ResourceTable, metrics: Metrics, server: "ServingState", control: Callable[[], ASGIApplication]
    ) -> None:
        self._table = table
        self._metrics = metrics
        self._server = server
        self._make_control = control
        self._documents = DocumentCache(table)
        self._answers: Final[Mapping[str, Answer]] = {
            "": self._root,
            "api": self._discovery,
            "apis": self._discovery,
            "healthz": self._health,
            "index.html": self._root,
            "livez": self._health,
            "metrics": self._metrics_text,
            "openapi": self._openapi,
            "readyz": self._health,
            "version": self._version,
        }

    async def answer(self, request: Request) -> Response:
        """404 as text, as Go's mux answers what nobody registered."""
        first = request.path.strip("/").partition("/")[0]
        if first == CONTROL:
            return await self._control(request)
        answer = self._answers.get(first) if not request.path.startswith("//") else None
        found = answer(request) if answer is not None else None
        return found if found is not None else respond.text(404, "404 page not found\n")

    async def _control(self, request: Request) -> Response:
        """The test control, a FastAPI application; its answers are small, so they are collected."""
        response = Response(content_type="")

        async def send(message: Message) -> None:
            if message["type"] == "http.response.start":
                response.status = message["status"]
                response.headers = [pair for pair in message["headers"] if pair[0] != b"content-length"]
            else:
                response.body += message.get("body", b"")

        await self._control_application(request.scope, request.receive, send)
        return response

    @cached_property
    def _control_application(self) -> ASGIApplication:
        return self._make_control()

    def _root(self, request: Request) -> Response:
        return respond.encoded(request, discovery.root_paths(self._table))

    def _version(self, request: Request) -> Response:
        if request.method != "GET":
            raise new_generic_method_not_allowed()
        check_json_accepted(request.header(b"accept"))
        return respond.encoded(request, discovery.version_info(self._table))

    def _health(self, request: Request) -> Response | None:
        return health.health(request, shutting_down=self._server.shutting_down)

    def _metrics_text(self, request: Request) -> Response:
        return Response(200, self._metrics.render(), CONTENT_TYPE)

    def _discovery(self, request: Request) -> Response | None:
        """/api, /apis, /apis/GROUP, /api/v1 and /apis/GROUP/VERSION."""
        prefix, *rest = [part for part in request.path.split("/") if part]
        if not rest:
            wanted = negotiate_aggregated(request.header(b"accept"))
            if wanted is not None:
                return self._aggregated(request, prefix, wanted)
            if prefix == "api":
                if request.method != "GET":
                    raise new_generic_method_not_allowed()
                address = self._server.address
                return self._document(request, ("api", address), lambda: discovery.api_versions(address), routed=True)
            return self._document(request, "groups", lambda: discovery.api_group_list(self._table))
        if prefix == "apis" and len(rest) == 1:
            group = rest[0]
            return self._document(request, ("group", group), lambda: discovery.api_group(self._table, group))
        group, version = ("", rest[0]) if prefix == "api" else (rest[0], rest[1])
        if self._table.version(group, version) is None and group not in self._table.scheme.groups:
            return None
        if request.method != "GET":
            raise new_generic_method_not_allowed()
        if self._table.version(group, version) is None:
            raise new_generic_not_found()
        key = ("resources", group, version)
        build = lambda: discovery.api_resource_list(self._table, group, version)  # noqa: E731
        return self._document(request, key, build, routed=group in self._table.scheme.groups)

    def _document(
        self, request: Request, key: object, build: Callable[[], discovery.Document | None], *, routed: bool = False
    ) -> Response | None:
        body = self._documents.get(key, lambda: _encoded(build()))
        if body is None:
            return None
        return respond.raw(request, body, negotiate_document(request.header(b"accept"), routed))

    def _aggregated(self, request: Request, prefix: str, accept: Accept) -> Response:
        legacy = prefix == "api"
        body, etag = self._documents.get(("aggregated", legacy), lambda: _aggregated_bytes(self._table, legacy))
        headers = [(key.lower().encode(), value.encode()) for key, value in discovery.AGGREGATED_HEADERS.items()]
        headers.append((b"etag", etag.encode()))
        if request.header(b"if-none-match") == etag:
            return Response(304, b"", accept.media_type + discovery.AGGREGATED_PARAMETERS, headers)
        response = respond.raw(request, body, Accept(accept.media_type))
        compressed = [header for header in response.headers if header[0] != b"cache-control"]
        return Response(200, response.body, accept.media_type + discovery.AGGREGATED_PARAMETERS, headers + compressed)

    @cached_property
    def _openapi_documents(self) -> "OpenAPI":
        from fakeapiserver.endpoints.openapi import OpenAPI

        return OpenAPI(self._table)

    def _openapi(self, request: Request) -> Response | None:
        """/openapi/v3, its documents by group version, and /openapi/v2."""
        from fakeapiserver.endpoints.openapi import INDEX_MEDIA_TYPE

        version, _, key = request.path.removeprefix("/openapi/").partition("/")
        if version == "v2" and not key:
            return self._openapi_v2(request)
        if version != "v3":
            return None
        if not key:
            return Response(200, self._openapi_documents.index(), INDEX_MEDIA_TYPE)
        found = self._openapi_documents.document(key)
        if found is None:
            return Response(404, b"", "")
        body, digest = found
        asked = request.param("hash")
        if asked and asked != digest:
            place = f"/openapi/v3/{key}?hash={digest}".encode()
            return Response(301, b"", INDEX_MEDIA_TYPE, [(b"location", place)])
        etag = f'"{digest}"'.encode()
        headers = [(b"etag", etag), (b"vary", b"Accept")]
        # A document asked for by its hash never changes.
        headers.append((b"cache-control", b"public, immutable" if "hash" in request.query else b"no-cache, private"))
        if request.header(b"if-none-match").encode() == etag:
            return Response(304, b"", headers=headers)
        return Response(200, body, "application/json", headers)

    def _openapi_v2(self, request: Request) -> Response:
        """As JSON only: clients that take nothing but protobuf get 406."""
        accept = request.header(b"accept")
        if accept and "json" not in accept and "*/*" not in accept:
            raise not_acceptable()
        from fakeapiserver.endpoints.openapi import v2

        build = lambda: json.encode(v2.document(self._table, self._openapi_documents))  # noqa: E731
        return Response(200, self._documents.get("openapi/v2", build))


def _encoded(document: discovery.Document | None) -> bytes | None:
    return None if document is None else json.encode(document)


def _aggregated_bytes(table: ResourceTable, legacy: bool) -> tuple[bytes, str]:
    document, etag = discovery.aggregated(table, legacy)
    return json.encode(document), etag
