"""Discovery of a server's resources: aggregated discovery in two requests, otherwise one request per group version.

Upstream: k8s.io/client-go/discovery/{discovery_client,aggregated_discovery}.go, discovery/cached/memory.
"""

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, Protocol

import msgspec
from msgspec import Struct

from fakeapiserver.apimachinery.gvk import GroupResource, GroupVersion, GroupVersionKind, GroupVersionResource
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.client.errors import StatusError
from fakeapiserver.client.rest import JSON, Response, RESTClient

__all__ = [
    "APIGroup",
    "APIResource",
    "DiscoveryClient",
    "DiscoveryInterface",
    "Documents",
    "GroupDiscoveryFailedError",
    "MemoryCache",
    "check_complete",
    "groups_of",
    "preferred_resources",
]

_AGGREGATED: Final = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_ACCEPT: Final = f"{_AGGREGATED},{JSON}"
_LIST_OF_GROUPS: Final = "APIGroupDiscoveryList"
_NO_GROUPS: Final[Object] = {"kind": _LIST_OF_GROUPS, "items": []}


class APIResource(msgspec.Struct, frozen=True):
    """A resource of a group version; `subresources` are names such as `status`."""

    gvr: GroupVersionResource
    kind: GroupVersionKind
    namespaced: bool
    verbs: Sequence[str] = ()
    singular: str = ""
    short_names: Sequence[str] = ()
    categories: Sequence[str] = ()
    subresources: Sequence[str] = ()


class APIGroup(Struct, frozen=True):
    """A group's versions, the preferred one first, and their resources. `stale`: versions whose server doesn't answer."""

    name: str
    versions: Mapping[str, Sequence[APIResource]]
    stale: Sequence[str] = ()


class Documents(Struct, frozen=True):
    """Discovery in the form of servers without aggregated discovery, which kubectl's cache has as well.

    APIGroups in the server's order, APIResourceLists by group version (`apps/v1`), and the group versions whose server is unavailable.
    """

    groups: Sequence[Object]
    resources: Mapping[str, Object]
    stale: Sequence[str] = ()


class DiscoveryInterface(Protocol):
    """A source of the server's groups and resources."""

    async def groups(self) -> Sequence[APIGroup]:
        """All groups, the legacy one ("") first, in the server's order."""

    def invalidate(self) -> None:
        """Forgets what is cached."""


class GroupDiscoveryFailedError(Exception):
    """Some group versions are unavailable (upstream: ErrGroupDiscoveryFailed)."""

    def __init__(self, failed: Sequence[GroupVersion]) -> None:
        self.failed = failed
        each = sorted(f"{group_version}: stale GroupVersion discovery: {group_version}" for group_version in failed)
        super().__init__(f"unable to retrieve the complete list of server APIs: {', '.join(each)}")


def check_complete(groups: Iterable[APIGroup]) -> None:
    """GroupDiscoveryFailedError unless every group version answers."""
    failed = [GroupVersion(group.name, version) for group in groups for version in group.stale]
    if failed:
        raise GroupDiscoveryFailedError(failed)


def preferred_resources(groups: Iterable[APIGroup], verbs: Collection[str] = ()) -> Sequence[APIResource]:
    """Each resource once, as its group's preferred version has it, or the first that does; those with all of `verbs`. Those of
    versions that don't answer are left out (upstream: ServerPreferredResources, FilteredBy SupportsAllVerbs)."""
    preferred: dict[GroupResource, APIResource] = {}
    for group in groups:
        for version, resources in group.versions.items():
            if version not in group.stale:
                for resource in resources:
                    preferred.setdefault(resource.gvr.group_resource, resource)
    return [resource for resource in preferred.values() if all(verb in resource.verbs for verb in verbs)]


class DiscoveryClient:
    """Asks the server each time."""

    def __init__(self, rest: RESTClient) -> None:
        self._rest = rest

    async def groups(self) -> Sequence[APIGroup]:
        """StatusError, TransportError."""
        answers = await self._answers()
        bodies = [answer.body for answer in answers if answer is not None and _is_aggregated(answer)]
        if len(bodies) == len(answers):
            return [group for body in bodies for group in _groups_of_body(body)]
        return groups_of(await self._read(*answers))

    async def documents(self) -> Documents:
        """Reads discovery as documents. Raises StatusError, TransportError; unavailable versions are in `stale`."""
        return await self._read(*await self._answers())

    async def _answers(self) -> tuple[Response | None, Response | None]:
        """Returns the answers of `/api` and `/apis`, or None for a path that isn't served."""
        return await asyncio.gather(self._ask("/api"), self._ask("/apis"))

    async def _read(self, *answers: Response | None) -> Documents:
        legacy, named = (_NO_GROUPS if answer is None else answer.json() for answer in answers)
        if legacy.get("kind") != _LIST_OF_GROUPS:
            names = [_version("", name) for name in legacy.get("versions") or ()]
            legacy = {"groups": [_group("", names)] if names else []}
        return _joined(await self._documents(legacy), await self._documents(named))

    async def server_version(self) -> Object:
        """Returns the document at `/version`."""
        return (await self._rest.request("GET", "/version")).json()

    async def openapi_v3(self, group_version: GroupVersion | None = None) -> Object:
        """The OpenAPI document of a group version, or without one the index of them all."""
        if group_version is None:
            return (await self._rest.request("GET", "/openapi/v3")).json()
        index = await self.openapi_v3()
        prefix = "apis" if group_version.group else "api"
        where = index["paths"][f"{prefix}/{group_version}"]["serverRelativeURL"]
        path, _, query = where.partition("?")
        params = dict(pair.split("=", 1) for pair in query.split("&")) if query else None
        return (await self._rest.request("GET", path, params=params)).json()

    def invalidate(self) -> None:
        """Does nothing: nothing is cached."""

    async def _ask(self, path: str) -> Response | None:
        try:
            return await self._rest.request("GET", path, accept=_ACCEPT)
        except StatusError as error:
            if error.code in (403, 404):
                return None
            raise

    async def _documents(self, document: Object) -> Documents:
        if document.get("kind") == _LIST_OF_GROUPS:
            return _split(document)
        groups = document.get("groups") or []
        names = [version["groupVersion"] for group in groups for version in group.get("versions") or ()]
        tables = await asyncio.gather(*map(self._resources, names))
        resources = {name: table for name, table in zip(names, tables, strict=True) if table is not None}
        return Documents(groups, resources, [name for name in names if name not in resources])

    async def _resources(self, group_version: str) -> Object | None:
        """Returns an APIResourceList, or None if the group version is unavailable."""
        path = f"/apis/{group_version}" if "/" in group_version else f"/api/{group_version}"
        try:
            return (await self._rest.request("GET", path)).json()
        except StatusError:
            return None


class MemoryCache:
    """Asks once, and again after `invalidate` (upstream: discovery/cached/memory)."""

    def __init__(self, discovery: DiscoveryInterface) -> None:
        self._discovery = discovery
        self._lock = asyncio.Lock()
        self._groups: Sequence[APIGroup] | None = None

    async def groups(self) -> Sequence[APIGroup]:
        async with self._lock:
            if self._groups is None:
                self._groups = await self._discovery.groups()
            return self._groups

    def invalidate(self) -> None:
        self._groups = None
        self._discovery.invalidate()


def _is_aggregated(answer: Response) -> bool:
    return f"as={_LIST_OF_GROUPS}" in answer.headers.get("content-type", "")


@lru_cache(maxsize=2)
def _groups_of_body(body: bytes) -> Sequence[APIGroup]:
    """Returns the groups of an APIGroupDiscoveryList. The clients of a process read the same bytes from many fresh clusters."""
    document: Object = msgspec.json.decode(body)
    return groups_of(_split(document))


def groups_of(documents: Documents) -> Sequence[APIGroup]:
    """Returns the groups of documents, each with its preferred version first and unavailable versions last."""
    groups = []
    for group in documents.groups:
        name = group.get("name") or ""
        stale = [GroupVersion.parse(text).version for text in documents.stale if GroupVersion.parse(text).group == name]
        versions = {
            version: _listed(GroupVersion(name, version), documents.resources[text].get("resources") or ())
            for text, version in _in_order(group)
            if text in documents.resources
        }
        groups.append(APIGroup(name, {**versions, **dict.fromkeys(stale, ())}, tuple(stale)))
    return groups


def _in_order(group: Object) -> Sequence[tuple[str, str]]:
    """`apps/v1` and `v1`."""
    preferred = (group.get("preferredVersion") or {}).get("version")
    versions = [(row["groupVersion"], row["version"]) for row in group.get("versions") or ()]
    return sorted(versions, key=lambda names: names[1] != preferred)


def _joined(*parts: Documents) -> Documents:
    return Documents(
        [group for part in parts for group in part.groups],
        {name: table for part in parts for name, table in part.resources.items()},
        [name for part in parts for name in part.stale],
    )


def _split(document: Object) -> Documents:
    """Splits an APIGroupDiscoveryList (upstream: SplitGroupsAndResources)."""
    groups, resources, stale = [], {}, []
    for item in document.get("items") or ():
        name, versions = (item.get("metadata") or {}).get("name", ""), []
        for row in item.get("versions") or ():
            version = _version(name, row["version"])
            if row.get("freshness") == "Stale":
                stale.append(version["groupVersion"])
                continue
            versions.append(version)
            resources[version["groupVersion"]] = {
                "kind": "APIResourceList",
                "apiVersion": "v1",
                "groupVersion": version["groupVersion"],
                "resources": [table for resource in row.get("resources") or () for table in _rows(resource)],
            }
        groups.append(_group(name, versions))
    return Documents(groups, resources, stale)


def _group(name: str, versions: Sequence[Mapping[str, str]]) -> Object:
    return {"name": name, "versions": versions, "preferredVersion": versions[0] if versions else {}}


def _version(group: str, version: str) -> dict[str, str]:
    return {"groupVersion": f"{group}/{version}" if group else version, "version": version}


def _rows(resource: Object) -> Iterable[Object]:
    """APIResources of one and its subresources; what has no kind isn't served itself."""
    name = resource["resource"]
    shared = {
        "singularName": resource.get("singularResource") or "",
        "namespaced": resource.get("scope") == "Namespaced",
    }
    lists = {key: resource[key] for key in ("shortNames", "categories") if resource.get(key)}
    if (kind := resource.get("responseKind") or {}).get("kind"):
        yield {"name": name, **shared, **kind, "verbs": resource.get("verbs") or [], **lists}
    for row in resource.get("subresources") or ():
        if (kind := row.get("responseKind") or {}).get("kind"):
            yield {"name": f"{name}/{row['subresource']}", **shared, **kind, "verbs": row.get("verbs") or []}


def _listed(group_version: GroupVersion, rows: Sequence[Mapping[str, Any]]) -> Sequence[APIResource]:
    subresources: dict[str, list[str]] = {}
    for row in rows:
        resource, _, subresource = row["name"].partition("/")
        if subresource:
            subresources.setdefault(resource, []).append(subresource)
    return tuple(
        APIResource(
            gvr=GroupVersionResource(*group_version, row["name"]),
            kind=_kind(row, group_version),
            namespaced=bool(row.get("namespaced")),
            verbs=tuple(row.get("verbs") or ()),
            singular=row.get("singularName") or "",
            short_names=tuple(row.get("shortNames") or ()),
            categories=tuple(row.get("categories") or ()),
            subresources=tuple(subresources.get(row["name"], ())),
        )
        for row in rows
        if "/" not in row["name"]
    )


def _kind(row: Mapping[str, Any], group_version: GroupVersion) -> GroupVersionKind:
    """A resource whose kind is of another group version names it."""
    named = bool(row.get("group") or row.get("version"))
    group = row.get("group") or "" if named else group_version.group
    return GroupVersionKind(group, row.get("version") or group_version.version, row["kind"])
