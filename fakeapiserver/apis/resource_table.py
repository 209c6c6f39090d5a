"""The table of served resources: a version's own, and custom ones that come and go.

Upstream: k8s.io/apiserver/pkg/endpoints/discovery/aggregated/handler.go (order),
k8s.io/kube-aggregator/pkg/apis/apiregistration/v1/helper/helpers.go
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from fakeapiserver.apimachinery.gvk import GroupVersion, GroupVersionKind, GroupVersionResource
from fakeapiserver.apimachinery.schema.resolve import Definitions, Schema
from fakeapiserver.apis.scheme import APIResource, Priority, Scheme
from fakeapiserver.apis.version_priority import kube_aware_key

# What the server registers the group versions of CustomResourceDefinitions with.
CUSTOM_PRIORITY: Final = Priority(1000, 100)
# The aggregator's own group version comes before all others, and has no APIService.
_OWN: Final = GroupVersion("apiregistration.k8s.io", "v1")
_OWN_PRIORITY: Final = Priority(20_001, 0)


class VersionView(Struct, frozen=True):
    """A group version and its resources in the order in which discovery lists them."""

    gv: GroupVersion
    resources: tuple[APIResource, ...]


class GroupView(Struct, frozen=True):
    """A group and its versions, preferred first."""

    name: str
    versions: tuple[VersionView, ...]


class RemoteVersion(Struct, frozen=True):
    """A group version that another server answers. `document` is its APIVersionDiscovery, as JSON data."""

    priority: Priority
    document: Mapping[str, Any]


class RemoteSpec(Struct, frozen=True):
    """The place of a remote server's OpenAPI v3 document: `url` on the server of the APIService `name`.

    `own`: it is the APIService's own group version, not another one of the same server.
    """

    name: str
    url: str
    own: bool


class ResourceTable:
    """Rows by group, version and resource. `generation` rises with each change, so that documents can be rebuilt lazily."""

    def __init__(self, scheme: Scheme) -> None:
        self.scheme = scheme
        self.generation = 0
        self._rows: dict[tuple[str, str, str], APIResource] = dict(scheme.resources.items())
        self._kinds = dict(scheme.kinds)
        self._groups: dict[str, dict[GroupVersion, dict[str, APIResource]]] = {}
        for row in self:
            self._put(row)
        self._priorities = dict(scheme.priorities)
        # Made when asked for; of a group that changes, a new one.
        self._views: dict[str, GroupView] = {}
        self._in_order: tuple[GroupView, ...] | None = None
        self._registered: Mapping[GroupVersion, Priority] | None = None
        self.remote: Mapping[GroupVersion, RemoteVersion] = {}
        self._remote: dict[str, Mapping[GroupVersion, RemoteVersion]] = {}
        self.remote_openapi: Mapping[str, RemoteSpec] = {}
        self.remote_openapi_v2: Sequence[dict[str, Any]] = ()

    def lookup(self, group: str, version: str, resource: str) -> APIResource | None:
        """The row of a plural resource name, None if it is not served."""
        return self._rows.get((group, version, resource))

    def for_kind(self, gvk: GroupVersionKind) -> APIResource | None:
        """The row whose objects are of this kind, None if it is not served."""
        return self._kinds.get(gvk)

    def __iter__(self) -> Iterator[APIResource]:
        return iter(self._rows.values())

    def __len__(self) -> int:
        return len(self._rows)

    def insert(self, *resources: APIResource) -> None:
        """Serves these from now on; a row with the same group, version and resource is replaced."""
        for row in resources:
            self._forget(row.gvr)
            self._rows[row.gvr] = row
            self._kinds[row.gvk] = row
            self._put(row)
        self._changed()

    def remove(self, *gvrs: GroupVersionResource) -> None:
        """Serves these no longer; unknown ones are ignored."""
        for gvr in gvrs:
            self._forget(gvr)
        self._changed()

    def register(self, versions: Mapping[GroupVersion, Priority]) -> None:
        """The group versions that have an APIService, whether anything in them is served or not."""
        if versions is self._registered:
            return
        changed, self._registered = versions != self._registered, versions
        if changed:
            self._changed()

    def set_remote(self, versions: Mapping[GroupVersion, RemoteVersion], owner: str = "") -> None:
        """The group versions that others answer, and what they say of them: all those of one `owner`; "" goes before the rest."""
        self._remote[owner] = versions
        self.remote = {
            gv: priority for name in sorted(self._remote, reverse=True) for gv, priority in self._remote[name].items()
        }
        self._changed()

    def set_remote_openapi(self, specs: Mapping[str, RemoteSpec], version_2: Sequence[dict[str, Any]]) -> None:
        """The documents of other servers: where version 3's are, by key, and version 2's, the most important first."""
        self.remote_openapi, self.remote_openapi_v2 = specs, version_2
        self._changed()

    def registered(self) -> tuple[tuple[str, tuple[GroupVersion, ...]], ...]:
        """Every group with its versions as the aggregator lists them: the highest priority first. Among groups of one priority
        the name of an API service (`v1.apps`) decides. The aggregator's own group needs no APIService to be the first."""
        versions = self._registered
        if versions is None:
            versions = {row.gvr.group_version: self.priority(row.gvr.group_version) for row in self}
        versions = {**versions, _OWN: _OWN_PRIORITY}
        groups: dict[str, list[GroupVersion]] = {}
        for gv in versions:
            groups.setdefault(gv.group, []).append(gv)

        def place(name: str) -> tuple[int, str]:
            return min((-versions[gv].group, f"{gv.version}.{gv.group}") for gv in groups[name])

        def version_place(gv: GroupVersion) -> tuple[int, tuple[int, int, int, int, str]]:
            return -versions[gv].version, kube_aware_key(gv.version)

        return tuple((name, tuple(sorted(groups[name], key=version_place))) for name in sorted(groups, key=place))

    def _version_place(self, gv: GroupVersion) -> tuple[int, tuple[int, int, int, int, str]]:
        return -self.priority(gv).version, kube_aware_key(gv.version)

    def set_priority(self, gv: GroupVersion, priority: Priority | None) -> None:
        """Orders a group version otherwise than by default, or by default again (None)."""
        if priority is None:
            self._priorities.pop(gv, None)
        else:
            self._priorities[gv] = priority
        self._views.pop(gv.group, None)
        self._changed()

    def definitions_of(self, resource: APIResource) -> Definitions:
        """The definitions a row's schema is among, and those it refers to."""
        return self.scheme.definitions if resource.definitions is None else resource.definitions

    def definition(self, resource: APIResource) -> Schema | None:
        """The schema of a row's kind, None if it has none."""
        return self.definitions_of(resource).get(resource.definition)

    def groups(self) -> tuple[GroupView, ...]:
        """Every group in discovery order, the legacy group "" among them."""
        if self._in_order is None:
            views = [self._view(name) for name in self._groups]
            first = {view.name: max(self.priority(version.gv).group for version in view.versions) for view in views}
            self._in_order = tuple(sorted(views, key=lambda view: (-first[view.name], view.name)))
        return self._in_order

    def group(self, name: str) -> GroupView | None:
        """Returns a group, or None if nothing in it is served."""
        return self._view(name) if name in self._groups else None

    def version(self, group: str, version: str) -> VersionView | None:
        """Returns a group version, or None if nothing in it is served."""
        view = self.group(group)
        return next((v for v in view.versions if v.gv.version == version), None) if view else None

    def priority(self, gv: GroupVersion) -> Priority:
        """Returns the priority that sorts a group version."""
        return self._priorities.get(gv, CUSTOM_PRIORITY)

    def _put(self, row: APIResource) -> None:
        gv = row.gvr.group_version
        self._groups.setdefault(gv.group, {}).setdefault(gv, {})[row.gvr.resource] = row

    def _forget(self, gvr: GroupVersionResource) -> None:
        self._views.pop(gvr.group, None)
        row = self._rows.pop(gvr, None)
        if row is None:
            return
        if self._kinds.get(row.gvk) is row:
            del self._kinds[row.gvk]
        versions = self._groups[gvr.group]
        del versions[gvr.group_version][gvr.resource]
        if not versions[gvr.group_version]:
            del versions[gvr.group_version]
        if not versions:
            del self._groups[gvr.group]

    def _changed(self) -> None:
        self.generation += 1
        self._in_order = None

    def _view(self, name: str) -> GroupView:
        view = self._views.get(name)
        if view is None:
            versions = self._groups[name]
            order = sorted(versions, key=self._version_place)
            views = (
                VersionView(gv, tuple(sorted(versions[gv].values(), key=lambda row: row.gvr.resource))) for gv in order
            )
            view = self._views[name] = GroupView(name, tuple(views))
        return view
