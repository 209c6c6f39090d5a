"""Which resources a server has: aggregated discovery in two requests, one request per group version where there is none.

Upstream: k8s.io/client-go/discovery/{discovery_client,aggregated_discovery}.go, discovery/cached/{memory,disk}.
"""

import asyncio
import hashlib
import os
import tempfile
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

import msgspec

from fakeapiserver.apimachinery.gvk import GroupResource, GroupVersion, GroupVersionKind, GroupVersionResource
from fakeapiserver.client.errors import StatusError
from fakeapiserver.client.rest import JSON, Object, RESTClient

_AGGREGATED: Final = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_ACCEPT: Final = f"{_AGGREGATED},{JSON}"
_DISK_SECONDS: Final = 6 * 60 * 60.0


class APIResource(msgspec.Struct, frozen=True):
    """One resource of a group version; `subresources` are names such as `status`."""

    gvr: GroupVersionResource
    kind: GroupVersionKind
    namespaced: bool
    verbs: Sequence[str] = ()
    singular: str = ""
    short_names: Sequence[str] = ()
    categories: Sequence[str] = ()
    subresources: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class APIGroup:
    """A group's versions, the preferred one first, and their resources. `stale`: versions whose server doesn't answer."""

    name: str
    versions: Mapping[str, Sequence[APIResource]]
    stale: Sequence[str] = ()


class DiscoveryInterface(Protocol):
    """What tells of resources."""

    async def groups(self) -> Sequence[APIGroup]:
        """All groups, the legacy one ("") first, in the server's order."""

    def invalidate(self) -> None:
        """What is remembered counts no more."""


class GroupDiscoveryFailedError(Exception):
    """Some group versions can't be told about now (upstream: ErrGroupDiscoveryFailed)."""

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
    found: dict[GroupResource, APIResource] = {}
    for group in groups:
        for version, resources in group.versions.items():
            if version not in group.stale:
                for resource in resources:
                    found.setdefault(resource.gvr.group_resource, resource)
    return [resource for resource in found.values() if all(verb in resource.verbs for verb in verbs)]


class DiscoveryClient:
    """Asks the server each time."""

    def __init__(self, rest: RESTClient) -> None:
        self._rest = rest

    async def groups(self) -> Sequence[APIGroup]:
        """StatusError, TransportError."""
        legacy, named = await asyncio.gather(self._ask("/api"), self._ask("/apis"))
        return [*await self._of_legacy(legacy), *await self._of_named(named)]

    async def server_version(self) -> Object:
        """What `/version` says."""
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
        """Nothing is remembered."""

    async def _ask(self, path: str) -> Object:
        try:
            return (await self._rest.request("GET", path, accept=_ACCEPT)).json()
        except StatusError as error:
            if error.code in (403, 404):
                return {"kind": "APIGroupDiscoveryList", "items": []}
            raise

    async def _of_legacy(self, found: Object) -> Sequence[APIGroup]:
        if found.get("kind") == "APIGroupDiscoveryList":
            return _aggregated(found)
        versions = {
            version: await self._resources(GroupVersion("", version)) for version in found.get("versions") or ()
        }
        return [APIGroup("", versions)] if versions else []

    async def _of_named(self, found: Object) -> Sequence[APIGroup]:
        if found.get("kind") == "APIGroupDiscoveryList":
            return _aggregated(found)
        groups = []
        for row in found.get("groups") or ():
            names = [version["version"] for version in row["versions"]]
            first = (row.get("preferredVersion") or {}).get("version") or names[0]
            names.sort(key=lambda name: name != first)
            tables = await asyncio.gather(*(self._resources(GroupVersion(row["name"], name)) for name in names))
            groups.append(APIGroup(row["name"], dict(zip(names, tables, strict=True))))
        return groups

    async def _resources(self, group_version: GroupVersion) -> Sequence[APIResource]:
        path = f"/apis/{group_version}" if group_version.group else f"/api/{group_version.version}"
        found = await self._rest.request("GET", path)
        return _listed(group_version, found.json().get("resources") or ())


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


class DiskCache:
    """Keeps what it hears in `folder`, in a file of the server's own, for `seconds` (upstream: discovery/cached/disk, with
    kubectl's six hours). A file that can't be read or written is as if there were none."""

    def __init__(
        self, discovery: DiscoveryInterface, host: str, folder: Path | None = None, seconds: float = _DISK_SECONDS
    ) -> None:
        folder = folder or Path("~/.kube/cache/discovery").expanduser()
        self._path = folder / f"{hashlib.sha256(host.encode()).hexdigest()[:32]}.json"
        self._discovery = discovery
        self._seconds = seconds
        self._ignored_before = 0.0

    async def groups(self) -> Sequence[APIGroup]:
        with suppress(OSError, msgspec.DecodeError):
            written = self._path.stat().st_mtime
            if written > self._ignored_before and time.time() - written < self._seconds:
                return msgspec.json.decode(self._path.read_bytes(), type=list[APIGroup])
        found = await self._discovery.groups()
        with suppress(OSError):
            self._write(msgspec.json.encode(found))
        return found

    def invalidate(self) -> None:
        """The file isn't read again until it is written."""
        self._ignored_before = time.time()
        self._discovery.invalidate()

    def _write(self, data: bytes) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=self._path.parent, delete=False) as file:
            file.write(data)
        os.replace(file.name, self._path)


def _aggregated(found: Mapping[str, Any]) -> Sequence[APIGroup]:
    groups = []
    for item in found.get("items") or ():
        name = (item.get("metadata") or {}).get("name", "")
        rows = item.get("versions") or ()
        versions = {
            row["version"]: tuple(_discovered(GroupVersion(name, row["version"]), row.get("resources") or ()))
            for row in rows
        }
        stale = tuple(row["version"] for row in rows if row.get("freshness") == "Stale")
        groups.append(APIGroup(name, versions, stale))
    return groups


def _discovered(group_version: GroupVersion, rows: Iterable[Mapping[str, Any]]) -> Iterable[APIResource]:
    for row in rows:
        if not (row.get("responseKind") or {}).get("kind"):
            continue  # only its subresources are served
        yield APIResource(
            gvr=GroupVersionResource(*group_version, row["resource"]),
            kind=_kind(row["responseKind"], group_version),
            namespaced=row.get("scope") == "Namespaced",
            verbs=tuple(row.get("verbs") or ()),
            singular=row.get("singularResource") or "",
            short_names=tuple(row.get("shortNames") or ()),
            categories=tuple(row.get("categories") or ()),
            subresources=tuple(sub["subresource"] for sub in row.get("subresources") or ()),
        )


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
