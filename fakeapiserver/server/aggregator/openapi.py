"""The OpenAPI documents of remote servers: which there are for /openapi/v3, and what of theirs goes into /openapi/v2.

Upstream: k8s.io/kube-aggregator/pkg/controllers/{openapi,openapiv3}.
"""

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct, field

from fakeapiserver.apimachinery.serializer import json
from fakeapiserver.apis.resource_table import RemoteSpec, ResourceTable
from fakeapiserver.auth.interfaces import UserInfo
from fakeapiserver.endpoints.openapi.merge import below
from fakeapiserver.server.aggregator.api_services import APIServices, RemoteService
from fakeapiserver.server.aggregator.proxy import Proxy
from fakeapiserver.server.aggregator.work_queue import Retry
from fakeapiserver.transport.round_trip import TransportError

Document = dict[str, Any]

REFRESH: Final = 60.0
FIRST: Final = 1.0
_TIMEOUT: Final = 60.0
_USER: Final = UserInfo("system:aggregator")
_PREFIX: Final = "/openapi/v3/"


class _Known(Struct):
    """The documents that one APIService's server publishes. `urls`: address by key (`apis/apps/v1`)."""

    urls: Mapping[str, str] = field(default_factory=dict)
    version_2: Document | None = None
    etag: bytes = b""


class OpenAPIAggregation:
    def __init__(self, services: APIServices, proxy: Proxy, table: ResourceTable) -> None:
        self._services = services
        self._proxy = proxy
        self._table = table
        self._known: dict[str, _Known] = {}

    async def sync_version_3(self, name: str) -> float | None:
        """Retry where the server's index can't be read."""
        service = self._services.remote.get(name)
        if service is None:
            self._forget(name)
            return None
        status, _, body = await self._fetch(service, "/openapi/v3", [])
        urls: dict[str, str] = {}
        if status == 200:
            urls = _urls(body)
        elif status != 404:
            raise Retry("could not get the list of group versions")
        known = self._known.setdefault(name, _Known())
        if known.urls != urls:
            known.urls = urls
            self._publish()
        return REFRESH

    async def sync_version_2(self, name: str) -> float | None:
        """Retry where the server's document can't be read; one that has none is asked no more."""
        service = self._services.remote.get(name)
        if service is None:
            self._forget(name)
            return None
        known = self._known.setdefault(name, _Known())
        headers = [(b"accept", b"application/json")]
        if known.etag:
            headers.append((b"if-none-match", known.etag))
        status, etag, body = await self._fetch(service, "/openapi/v2", headers)
        if status == 304:
            return REFRESH
        if status == 404:
            return None
        if status != 200:
            raise Retry(f"failed to retrieve openAPI spec, http error: {status}")
        try:
            document = below(json.decode(body), f"{service.path}/")
        except (ValueError, TypeError, AttributeError) as error:
            raise Retry(f"the document can't be read: {error}") from None
        changed, known.version_2, known.etag = document != known.version_2, document, etag
        if changed:
            self._publish()
        return REFRESH

    def owner(self, path: str) -> RemoteService | None:
        """Returns the APIService whose server has the document at `/openapi/v3/...`, or None for this server's own."""
        key = path.removeprefix(_PREFIX)
        spec = self._table.remote_openapi.get(key)
        return (
            self._services.remote.get(spec.name) if spec is not None and (spec.own or not self._is_local(key)) else None
        )

    def _is_local(self, key: str) -> bool:
        """Reports whether this server has such a document too."""
        if key in self._table.scheme.facts["openapi"]:
            return True
        prefix, group, version = (*key.split("/"), "", "")[:3]
        if prefix == "api":
            return True
        return self._table.version(group, version) is not None if version else group in self._table.scheme.groups

    async def _fetch(
        self, service: RemoteService, path: str, headers: list[tuple[bytes, bytes]]
    ) -> tuple[int, bytes, bytes]:
        """Status, ETag and body. Retry."""
        if not service.available:
            raise Retry("service unavailable")
        try:
            answer, body = await self._proxy.fetch(service, path, _USER, headers, _TIMEOUT)
        except (TransportError, LookupError) as error:
            raise Retry(str(error)) from None
        return answer.status, answer.header(b"etag"), body

    def _forget(self, name: str) -> None:
        if self._known.pop(name, None) is not None:
            self._publish()

    def _publish(self) -> None:
        """Publishes the keys; if several servers have a key, an APIService's own group version is its server's."""
        specs: dict[str, RemoteSpec] = {}
        for service in self._in_order():
            for key, url in (known.urls if (known := self._known.get(service.name)) else {}).items():
                own = key == service.path.removeprefix("/")
                if own or key not in specs:
                    specs[key] = RemoteSpec(service.name, url, own)
        documents = [self._known[service.name].version_2 for service in self._in_order() if service.name in self._known]
        self._table.set_remote_openapi(specs, [document for document in documents if document is not None])

    def _in_order(self) -> list[RemoteService]:
        return sorted(self._services.remote.values(), key=_place)


def _urls(body: bytes) -> dict[str, str]:
    """Returns the documents' addresses in an index. Raises Retry."""
    try:
        paths = json.decode(body).get("paths") or {}
        return {key: str(item["serverRelativeURL"]) for key, item in paths.items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Retry(f"the index can't be read: {error}") from None


def _place(service: RemoteService) -> tuple[int, int, str]:
    return -service.priority.group, -service.priority.version, service.name
