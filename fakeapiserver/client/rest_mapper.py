"""Kinds and their resources, each from the other.

Upstream: k8s.io/apimachinery/pkg/api/meta/{interfaces,errors}.go, k8s.io/client-go/restmapper/{discovery,shortcut,category_expansion}.go.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from fakeapiserver.apimachinery.gvk import GroupKind, GroupResource, GroupVersionKind, GroupVersionResource
from fakeapiserver.client.discovery import APIGroup, APIResource, DiscoveryInterface


class NoMatchError(LookupError):
    """The server has no such kind or resource."""


@dataclass(frozen=True, slots=True)
class RESTMapping:
    """Where a kind's objects are."""

    gvr: GroupVersionResource
    gvk: GroupVersionKind
    namespaced: bool


@dataclass(slots=True)
class _Tables:
    kinds: dict[GroupKind, list[APIResource]] = field(default_factory=dict)
    resources: dict[str, list[APIResource]] = field(default_factory=dict)
    categories: dict[str, dict[GroupResource, None]] = field(default_factory=dict)


class RESTMapper:
    """Asks discovery when it is first asked itself, and once more for what it doesn't know: definitions come and go."""

    def __init__(self, discovery: DiscoveryInterface) -> None:
        self._discovery = discovery
        self._tables: _Tables | None = None

    def reset(self) -> None:
        """Forgets everything."""
        self._tables = None
        self._discovery.invalidate()

    async def mapping(self, kind: GroupKind, *versions: str) -> RESTMapping:
        """Of the first of `versions` that is served; without any, of the preferred one. NoMatchError."""
        found = await self._search(lambda tables: _versioned(tables.kinds.get(kind, ()), versions))
        if found is None:
            wanted = f" in version {versions[0]!r}" if versions else ""
            raise NoMatchError(f'no matches for kind "{kind.kind}"{wanted} in group "{kind.group}"')
        return RESTMapping(found.gvr, found.kind, found.namespaced)

    async def mapping_of(self, gvk: GroupVersionKind) -> RESTMapping:
        """NoMatchError."""
        return await self.mapping(gvk.group_kind, gvk.version)

    async def mapping_for(self, name: str) -> RESTMapping:
        """Of `pods`, `pod`, `po`, `deploy.apps` or `deployments.v1.apps`, as people type it. NoMatchError."""
        resource, _, rest = name.lower().partition(".")
        found = await self._search(
            lambda tables: next((row for row in tables.resources.get(resource, ()) if _named(row, rest)), None)
        )
        if found is None:
            raise NoMatchError(f'the server doesn\'t have a resource type "{name}"')
        return RESTMapping(found.gvr, found.kind, found.namespaced)

    async def kind_for(self, gvr: GroupVersionResource) -> GroupVersionKind:
        """NoMatchError."""
        found = await self._search(
            lambda tables: next((row for row in tables.resources.get(gvr.resource, ()) if row.gvr == gvr), None)
        )
        if found is None:
            raise NoMatchError(f"no matches for {gvr}")
        return found.kind

    async def expand(self, category: str) -> Sequence[GroupResource]:
        """The resources of a category such as `all`; empty for one that nobody is in."""
        return tuple((await self._known()).categories.get(category, ()))

    async def _search(self, find: Callable[[_Tables], APIResource | None]) -> APIResource | None:
        """What isn't known is looked for once more in what the server says now."""
        found = find(await self._known())
        if found is None:
            self.reset()
            found = find(await self._known())
        return found

    async def _known(self) -> _Tables:
        if self._tables is None:
            self._tables = _tables(await self._discovery.groups())
        return self._tables


def _versioned(resources: Sequence[APIResource], versions: Sequence[str]) -> APIResource | None:
    for version in versions or ("",):
        for resource in resources:
            if version in ("", resource.kind.version):
                return resource
    return None


def _named(resource: APIResource, rest: str) -> bool:
    """`rest` is what stands behind the first dot: nothing, a group, a part of one, or version.group."""
    group, version = resource.gvr.group, resource.gvr.version
    return not rest or group == rest or group.startswith(f"{rest}.") or rest == f"{version}.{group}".rstrip(".")


def _tables(groups: Sequence[APIGroup]) -> _Tables:
    """Names come before short names, and a group's preferred version before its others."""
    tables = _Tables()
    everything = [resource for group in groups for rows in group.versions.values() for resource in rows]
    for resource in everything:
        tables.kinds.setdefault(resource.kind.group_kind, []).append(resource)
        names = dict.fromkeys((resource.gvr.resource, resource.singular or resource.kind.kind.lower()))
        for name in names:
            tables.resources.setdefault(name, []).append(resource)
        for category in resource.categories:
            tables.categories.setdefault(category, {})[resource.gvr.group_resource] = None
    for resource in everything:
        for name in resource.short_names:
            tables.resources.setdefault(name, []).append(resource)
    return tables
