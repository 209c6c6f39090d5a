"""Kinds and their resources, each from the other.

Upstream: k8s.io/apimachinery/pkg/api/meta/{interfaces,errors}.go, k8s.io/client-go/restmapper/{discovery,shortcut,category_expansion}.go.
"""

from collections.abc import Callable, Sequence

from msgspec import Struct

from fakeapiserver.apimachinery.gvk import (
    GroupKind,
    GroupResource,
    GroupVersion,
    GroupVersionKind,
    GroupVersionResource,
)
from fakeapiserver.client.discovery import APIGroup, APIResource, DiscoveryInterface

__all__ = ["NoMatchError", "RESTMapper", "RESTMapping"]


class NoMatchError(LookupError):
    """The server has no such kind or resource."""


class RESTMapping(Struct, frozen=True):
    """The resource of a kind."""

    gvr: GroupVersionResource
    gvk: GroupVersionKind
    namespaced: bool


class RESTMapper:
    """Maps kinds to resources. Reads discovery on first use, and again for names that it does not know: definitions come and go.

    Where several resources fit, the legacy group's goes first, then the groups in the server's order, each with its preferred
    version first."""

    def __init__(self, discovery: DiscoveryInterface) -> None:
        self._discovery = discovery
        self._tables: _Tables | None = None

    def reset(self) -> None:
        """Forgets everything."""
        self._tables = None
        self._discovery.invalidate()

    async def mapping(self, kind: GroupKind, *versions: str) -> RESTMapping:
        """Returns the mapping for the first of `versions` that is served, or for the preferred version.

        Raises NoMatchError.
        """
        resource = await self._search(lambda tables: tables.of_kind(kind, versions))
        if resource is None:
            raise NoMatchError(f'no matches for kind "{kind.kind}" in {_wanted(kind.group, versions)}')
        return RESTMapping(resource.gvr, resource.kind, resource.namespaced)

    async def mapping_of(self, gvk: GroupVersionKind) -> RESTMapping:
        """NoMatchError."""
        return await self.mapping(gvk.group_kind, gvk.version)

    async def mapping_for(self, name: str) -> RESTMapping:
        """Returns the mapping for a name as people type it. Raises NoMatchError.

        Names are e.g. `pods`, `pod`, `Pod`, `po`, `deploy.apps`, `deployments.v1.apps`, `storageclass.storage` (the beginning of a group),
        `events.v1.`.
        """
        resource = await self._search(lambda tables: tables.of_text(name))
        if resource is None:
            raise NoMatchError(f'the server doesn\'t have a resource type "{name}"')
        return RESTMapping(resource.gvr, resource.kind, resource.namespaced)

    async def kind_for(self, gvr: GroupVersionResource) -> GroupVersionKind:
        """Returns the kind of a resource, given in full, in the singular or by short name. Raises NoMatchError.

        Group and version may be empty; the group may be the beginning of one.
        """
        return (await self._resource(gvr)).kind

    async def resource_for(self, gvr: GroupVersionResource) -> GroupVersionResource:
        """Returns the full resource for what `kind_for` accepts. Raises NoMatchError."""
        return (await self._resource(gvr)).gvr

    async def expand(self, category: str) -> Sequence[GroupResource]:
        """Returns the resources of a category such as `all`; empty for an unknown category."""
        return tuple((await self._known()).categories.get(category, ()))

    async def _resource(self, gvr: GroupVersionResource) -> APIResource:
        resource = await self._search(lambda tables: tables.of_resource(gvr))
        if resource is None:
            raise NoMatchError(f"no matches for {gvr.group}/{gvr.version}, Resource={gvr.resource}")
        return resource

    async def _search(self, find: Callable[["_Tables"], APIResource | None]) -> APIResource | None:
        """Searches the known resources, and reads discovery once more if nothing matches."""
        resource = find(await self._known())
        if resource is None:
            self.reset()
            resource = find(await self._known())
        return resource

    async def _known(self) -> "_Tables":
        if self._tables is None:
            self._tables = _Tables(await self._discovery.groups())
        return self._tables


def _wanted(group: str, versions: Sequence[str]) -> str:
    if not versions:
        return f'group "{group}"'
    names = [f'"{GroupVersion(group, version)}"' for version in versions]
    return f"version {names[0]}" if len(names) == 1 else f"versions [{' '.join(names)}]"


class _Tables:
    """Resources by each of their names, the one that goes first in front. Upstream: NewDiscoveryRESTMapper, shortcutExpander."""

    def __init__(self, groups: Sequence[APIGroup]) -> None:
        self._kinds: dict[GroupKind, list[APIResource]] = {}
        self._names: dict[str, list[APIResource]] = {}
        self._short_names: dict[str, list[APIResource]] = {}
        self.categories: dict[str, dict[GroupResource, None]] = {}
        for resource in (resource for group in groups for rows in group.versions.values() for resource in rows):
            group, kind = resource.kind.group_kind
            for written in dict.fromkeys((kind, kind.lower())):
                self._kinds.setdefault(GroupKind(group, written), []).append(resource)
            for name in dict.fromkeys((resource.gvr.resource, resource.singular or kind.lower())):
                self._names.setdefault(name, []).append(resource)
            for name in resource.short_names:
                self._short_names.setdefault(name, []).append(resource)
            for category in resource.categories:
                self.categories.setdefault(category, {})[resource.gvr.group_resource] = None

    def of_kind(self, kind: GroupKind, versions: Sequence[str]) -> APIResource | None:
        """Returns the first of `versions` that is served; without any, the preferred one."""
        rows = self._kinds.get(kind, ())
        wanted = [version for version in versions if version]
        if not wanted:
            return next(iter(rows), None)
        return next((row for version in wanted for row in rows if row.kind.version == version), None)

    def of_text(self, text: str) -> APIResource | None:
        """Finds RESOURCE, RESOURCE.GROUP, RESOURCE.VERSION.GROUP or the same with a kind.

        Upstream: cli-runtime's Builder.mappingFor.
        """
        name, _, rest = text.partition(".")
        version, has_group, group = rest.partition(".")
        resource = self.of_resource(GroupVersionResource(group, version, name)) if has_group else None
        resource = resource or self.of_resource(GroupVersionResource(rest, "", name))
        if resource is None and has_group:
            resource = self.of_kind(GroupKind(group, name), (version,))
        return resource or self.of_kind(GroupKind(rest, name), ())

    def of_resource(self, gvr: GroupVersionResource) -> APIResource | None:
        group, version, resource = self._expanded(gvr)
        for row in self._names.get(resource.lower(), ()):
            if _is_of(row, group, version):
                return row
        return None

    def _expanded(self, gvr: GroupVersionResource) -> GroupVersionResource:
        """Expands a short name to its resource, unless a resource has it as its full name."""
        group, version, name = gvr
        if any(row.gvr.group == group for row in self._names.get(name, ()) if group) or (
            not group and name in self._names
        ):
            return gvr
        rows = self._short_names.get(name, ())
        exact = next((row for row in rows if group in ("", row.gvr.group)), None)
        if exact is not None:
            return GroupVersionResource(exact.gvr.group, "", exact.gvr.resource)
        beginning = next((row for row in rows if row.gvr.group.startswith(group)), None)
        return gvr if beginning is None else GroupVersionResource(beginning.gvr.group, version, beginning.gvr.resource)


def _is_of(resource: APIResource, group: str, version: str) -> bool:
    if group and version:
        return (resource.gvr.group, resource.gvr.version) == (group, version)
    return resource.gvr.group.startswith(group) and version in ("", resource.gvr.version)
