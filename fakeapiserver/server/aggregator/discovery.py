"""The resources of remote group versions for the aggregated discovery document, read from each server every minute.

Upstream: k8s.io/kube-aggregator/pkg/apiserver/handler_discovery.go, k8s.io/apiserver/pkg/endpoints/discovery.go (the conversion
of older servers' lists).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, TypeVar

from msgspec import Struct

from fakeapiserver.apimachinery.gvk import GroupVersion
from fakeapiserver.apimachinery.serializer import json
from fakeapiserver.apis.resource_table import RemoteVersion
from fakeapiserver.auth.interfaces import UserInfo
from fakeapiserver.clock import Clock
from fakeapiserver.server.aggregator.api_services import APIServices, RemoteService, ServiceReference
from fakeapiserver.server.aggregator.proxy import Proxy
from fakeapiserver.server.aggregator.work_queue import Retry
from fakeapiserver.transport.round_trip import Answer, TransportError

T = TypeVar("T")
Document = dict[str, Any]
# Where the documents go: by group version, when one has come, changed or gone.
Publish = Callable[[Mapping[GroupVersion, RemoteVersion]], None]

REFRESH: Final = 60.0
_TIMEOUT: Final = 5.0
_LIST: Final = "as=apigroupdiscoverylist"
_ACCEPT: Final = ",".join(
    f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList" for version in ("v2", "v2beta1")
).encode()
_GROUPS: Final = UserInfo("system:kube-aggregator", groups=("system:masters",))
# Older servers are asked with less power.
_GROUP_VERSION: Final = UserInfo("system:kube-aggregator")


class _Known(Struct, frozen=True):
    """A server's document: its group versions, its ETag, when it was asked for (monotonic)."""

    versions: Mapping[GroupVersion, Document]
    etag: bytes
    asked: float


class DiscoveryManager:
    """Documents of servers are shared by their group versions; one is asked again when an APIService has changed since."""

    def __init__(self, services: APIServices, proxy: Proxy, clock: Clock, publish: Publish) -> None:
        self._services = services
        self._proxy = proxy
        self._clock = clock
        self._publish = publish
        self._known: dict[ServiceReference, _Known] = {}
        self._dirty: dict[str, float] = {}  # since when an APIService's document may be another (monotonic)
        self._published: dict[GroupVersion, RemoteVersion] = {}

    def mark_dirty(self, name: str) -> None:
        self._dirty[name] = self._clock.monotonic()

    async def sync(self, name: str) -> float | None:
        """Retry where the server gives no document: what it serves is stale then."""
        service = self._services.remote.get(name)
        if service is None:
            self._withdraw(name)
            return None
        try:
            version_document: Document | None = (await self._versions(service)).get(service.gv)
            fresh, failure = True, ""
        except (TransportError, LookupError, ValueError) as error:
            version_document, fresh, failure = None, False, str(error)
        if self._services.remote.get(name) is not None:  # it may have gone meanwhile
            resources = (version_document or {}).get("resources")
            document = {
                "version": service.gv.version,
                **({"resources": resources} if resources else {}),
                "freshness": "Current" if fresh else "Stale",
            }
            self._set(service.gv, RemoteVersion(service.priority, document))
        if not fresh:
            raise Retry(failure)
        self.mark_dirty(name)
        return REFRESH

    def _set(self, gv: GroupVersion, version: RemoteVersion) -> None:
        if self._published.get(gv) != version:
            self._published[gv] = version
            self._publish(dict(self._published))

    def _withdraw(self, name: str) -> None:
        version, _, group = name.partition(".")
        self._dirty.pop(name, None)
        if self._published.pop(GroupVersion(group, version), None) is not None:
            self._publish(dict(self._published))
        used = {service.service for service in self._services.remote.values()}
        self._known = {reference: known for reference, known in self._known.items() if reference in used}

    async def _versions(self, service: RemoteService) -> Mapping[GroupVersion, Document]:
        """Returns what the server serves. Raises TransportError, LookupError; ValueError for an invalid document."""
        known = self._known.get(service.service)
        if known is not None and known.asked > self._dirty.get(service.name, 0.0):
            return known.versions
        now = self._clock.monotonic()
        headers = [(b"accept", _ACCEPT)]
        if known is not None and known.etag:
            headers.append((b"if-none-match", known.etag))
        answer, body = await self._proxy.fetch(service, "/apis", _GROUPS, headers, _TIMEOUT)
        if answer.status == 304 and known is not None:
            self._known[service.service] = _Known(known.versions, known.etag, now)
            return known.versions
        if answer.status == 503:
            raise ValueError(f"service {service.service} returned non-success response code: 503")
        if answer.status == 200 and _is_list(answer):
            versions = _read(body, lambda document: dict(_listed(document)))
            self._known[service.service] = _Known(versions, answer.header(b"etag"), now)
            return versions
        return await self._group_version(service)

    async def _group_version(self, service: RemoteService) -> Mapping[GroupVersion, Document]:
        """Returns the group version's own list, for servers without aggregated discovery."""
        path = f"/api/{service.gv.version}" if service.path == "/api" else service.path
        accept = [(b"accept", b"application/json")]
        answer, body = await self._proxy.fetch(service, path, _GROUP_VERSION, accept, _TIMEOUT)
        if answer.status != 200:
            raise ValueError(f"failed to download legacy discovery for {path}: {answer.status}")
        resources = _read(body, lambda document: resources_of(document.get("resources") or []))
        return {service.gv: {"resources": resources}}


def _read(body: bytes, parse: Callable[[Document], T]) -> T:
    """ValueError for what isn't such a document."""
    try:
        return parse(json.decode(body))
    except (LookupError, TypeError, AttributeError) as error:
        raise ValueError(f"the discovery document can't be read: {error!r}") from error


def _is_list(answer: Answer) -> bool:
    """Reports whether its Content-Type says that it is an aggregated document of a version we know."""
    _, *parameters = answer.header(b"content-type").decode("latin-1").replace(" ", "").lower().split(";")
    return {"g=apidiscovery.k8s.io", _LIST} <= set(parameters) and bool({"v=v2", "v=v2beta1"} & set(parameters))


def _listed(document: Document) -> Iterator[tuple[GroupVersion, Document]]:
    for group in document.get("items") or ():
        for version in group.get("versions") or ():
            gv = GroupVersion((group.get("metadata") or {}).get("name", ""), version.get("version", ""))
            yield gv, {"resources": [_resource(row, row) for row in version.get("resources") or ()]}


def resources_of(rows: Iterable[Document]) -> list[Document]:
    """The rows of an APIResourceList as aggregated discovery shows them, subresources below theirs. ValueError where a
    subresource has another scope."""
    resources: dict[str, Document] = {}
    for row in rows:
        if "/" not in row["name"]:
            told = {"resource": row["name"], "scope": _scope(row), "singularResource": row.get("singularName", "")}
            resources[row["name"]] = _resource({**row, **told}, {"responseKind": row})
    for row in rows:
        name, slash, subresource = row["name"].partition("/")
        if not slash:
            continue
        parent = resources.setdefault(name, _resource({"resource": name, "scope": _scope(row)}, {}))
        if parent["scope"] != _scope(row):
            raise ValueError(f"the scopes of {name} and {row['name']} do not match")
        told = {"subresource": subresource, "responseKind": row if row.get("kind") else None, "verbs": row.get("verbs")}
        parent.setdefault("subresources", []).append(_subresource(told))
    return list(resources.values())


def _scope(row: Document) -> str:
    return "Namespaced" if row.get("namespaced") else "Cluster"


def _resource(row: Document, parts: Document) -> Document:
    """Returns an APIResourceDiscovery as Go encodes it; its kind and its subresources are those of `parts`."""
    told = {
        "resource": row.get("resource", ""),
        "responseKind": _kind(parts.get("responseKind")),
        "scope": row.get("scope", ""),
        "singularResource": row.get("singularResource", ""),
        "verbs": row.get("verbs"),
    }
    lists = {
        "shortNames": row.get("shortNames"),
        "categories": row.get("categories"),
        "subresources": [_subresource(item) for item in parts.get("subresources") or ()],
    }
    return told | {key: value for key, value in lists.items() if value}


def _subresource(row: Document) -> Document:
    accepted = {"acceptedTypes": row["acceptedTypes"]} if row.get("acceptedTypes") else {}
    return {
        "subresource": row.get("subresource", ""),
        "responseKind": _kind(row.get("responseKind")),
        **accepted,
        "verbs": row.get("verbs"),
    }


def _kind(row: Document | None) -> Document:
    """Some clients stumble over a resource without a kind, so there is always one."""
    return {key: (row or {}).get(key, "") for key in ("group", "version", "kind")}
