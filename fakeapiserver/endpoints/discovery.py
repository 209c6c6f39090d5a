"""The discovery documents, built from the resource table.

Upstream: k8s.io/apiserver/pkg/endpoints/discovery, .../discovery/aggregated, k8s.io/kube-aggregator/pkg/apiserver/handler_apis.go
"""

import hashlib
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Final, TypeVar

from fakeapiserver.apimachinery.gvk import GroupVersion, GroupVersionKind
from fakeapiserver.apimachinery.serializer import json
from fakeapiserver.apis.resource_table import ResourceTable, VersionView
from fakeapiserver.apis.scheme import APIResource, Subresource
from fakeapiserver.apis.version_priority import kube_aware_key

Document = dict[str, Any]
T = TypeVar("T")

AGGREGATED_PARAMETERS: Final = ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
# v2beta1 of the aggregated documents is not served by 1.36: asking for it alone is answered 406, else the older ones come.
AGGREGATED_HEADERS: Final = ((b"vary", b"Accept"),)
AGGREGATED_CACHE_CONTROL: Final = b"public"
# Custom resources list their verbs in the order the handler was written in, built-in ones by name.
WRITING: Final = frozenset({"create", "patch", "update"})
CUSTOM_VERBS: Final = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")


class DocumentCache:
    """Built documents (or their bytes) by key, dropped when the table changes."""

    def __init__(self, table: ResourceTable) -> None:
        self.table = table
        self._generation = table.generation
        self._built: dict[object, Any] = {}

    def get(self, key: object, build: Callable[[], T]) -> T:
        """The value of `key`, built at most once per generation of the table."""
        if self._generation != self.table.generation:
            self._built.clear()
            self._generation = self.table.generation
        if key not in self._built:
            self._built[key] = build()
        value: T = self._built[key]
        return value


class RowCache:
    """Values by key, each made of some rows and kept while these very rows are served."""

    def __init__(self) -> None:
        self._kept: dict[object, tuple[tuple[APIResource, ...], Any]] = {}

    def get(self, key: object, rows: tuple[APIResource, ...], build: Callable[[], T]) -> T:
        """The value of `key`, built again once it has other rows than before."""
        if not self.has(key, rows):
            self._kept[key] = (rows, build())
        value: T = self._kept[key][1]
        return value

    def has(self, key: object, rows: tuple[APIResource, ...]) -> bool:
        """Whether the value is there."""
        document = self._kept.get(key)
        return (
            document is not None
            and len(document[0]) == len(rows)
            and all(old is new for old, new in zip(document[0], rows, strict=True))
        )

    def retain(self, keys: Collection[object]) -> None:
        """Drops all other keys."""
        for key in self._kept.keys() - set(keys):
            del self._kept[key]


# Pages that exist while a gate is on.
GATED_PAGES: Final = {"/flagz": "ComponentFlagz", "/statusz": "ComponentStatusz"}


def api_versions(server_address: str) -> Document:
    """/api: the legacy group's versions. `server_address` is host:port as clients reach it."""
    addresses = [{"clientCIDR": "0.0.0.0/0", "serverAddress": server_address}]
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": addresses}


def api_group_list(table: ResourceTable) -> Document:
    """/apis: every named group."""
    groups = [_group(name, versions) for name, versions in table.registered() if name]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def api_group(table: ResourceTable, group: str) -> Document | None:
    """/apis/GROUP, None if nothing in it is served."""
    versions = dict(table.registered()).get(group) if group else None
    if versions is None and group and (view := table.group(group)) is not None:
        versions = tuple(version.gv for version in view.versions)  # its APIService is gone: it is served all the same
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(group, versions)} if versions else None


def api_resource_list(table: ResourceTable, group: str, version: str) -> Document | None:
    """/api/v1 or /apis/GROUP/VERSION, None if nothing in it is served."""
    view = table.version(group, version)
    if view is None:
        return None
    hashes = table.scheme.features.enabled("StorageVersionHash")
    rows = [row for resource in view.resources for row in _legacy_rows(resource, hashes=hashes)]
    head = {"kind": "APIResourceList"} if not group else {"kind": "APIResourceList", "apiVersion": "v1"}
    return {**head, "groupVersion": str(view.gv), "resources": rows}


class AggregatedDiscovery:
    """/api and /apis as apidiscovery.k8s.io/v2 APIGroupDiscoveryList. The JSON of each version is kept until its resources change."""

    def __init__(self, table: ResourceTable) -> None:
        self._table = table
        self._versions: dict[GroupVersion, tuple[VersionView, bytes]] = {}

    def document(self, legacy: bool) -> tuple[bytes, str]:
        """/api (`legacy`) or /apis, and its ETag with the quotes."""
        # which metadata always shows, in older versions
        shown: Document = {} if self._table.scheme.features.at_least("v1.34") else {"creationTimestamp": None}
        groups = []
        for name, versions in self._groups():
            if bool(name) != legacy:
                meta = {"name": name, **shown} if name else shown
                groups.append(b'{"metadata":%b,"versions":[%b]}' % (json.encode(meta), b",".join(versions)))
        body = b'"metadata":{},"items":[%b]}' % b",".join(groups)
        digest = hashlib.sha512(b"{" + body).hexdigest().upper()
        return b'{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2",' + body, f'"{digest}"'

    def _groups(self) -> Iterator[tuple[str, list[bytes]]]:
        """Yields groups and their versions' JSON in order; what another server answers hides what this one would."""
        table = self._table
        views = {version.gv: version for view in table.groups() for version in view.versions}
        for gv in self._versions.keys() - views.keys():
            del self._versions[gv]
        if not table.remote:
            for view in table.groups():
                yield view.name, [self._version(version) for version in view.versions]
            return
        priorities = {gv: table.priority(gv) for gv in views} | {gv: row.priority for gv, row in table.remote.items()}
        groups: dict[str, list[GroupVersion]] = {}
        for gv in priorities:
            groups.setdefault(gv.group, []).append(gv)
        first = {name: max(priorities[gv].group for gv in versions) for name, versions in groups.items()}
        for name in sorted(groups, key=lambda name: (-first[name], name)):
            order = sorted(groups[name], key=lambda gv: (-priorities[gv].version, kube_aware_key(gv.version)))
            yield (
                name,
                [
                    json.encode(dict(table.remote[gv].document)) if gv in table.remote else self._version(views[gv])
                    for gv in order
                ],
            )

    def _version(self, view: VersionView) -> bytes:
        known = self._versions.get(view.gv)
        if known is None or known[0] != view:
            known = self._versions[view.gv] = (view, json.encode(_aggregated_version(view)))
        return known[1]


def version_info(table: ResourceTable) -> Document:
    """/version, as the recorded server answered it."""
    return dict(table.scheme.facts["version"])


def root_paths(table: ResourceTable, gated: Mapping[str, str] = GATED_PAGES) -> Document:
    """Returns the document of `/`: every fixed path and the discovery paths of all served resources, sorted.

    `gated` maps a path to the feature gate that it depends on.
    """
    features = table.scheme.features
    fixed = [
        path for path in table.scheme.facts["paths"] if not path.startswith(("/api/", "/apis/")) and path not in gated
    ]
    present = (path for path, gate in gated.items() if features.enabled(gate))
    return {"paths": sorted({*fixed, *present, "/apis/", *_discovery_paths(table)})}


def _discovery_paths(table: ResourceTable) -> Iterator[str]:
    for name, versions in table.registered():
        prefix = f"/apis/{name}" if name else "/api"
        yield prefix
        for gv in versions:
            yield f"{prefix}/{gv.version}"


def _group(name: str, versions: tuple[GroupVersion, ...]) -> Document:
    rows = [{"groupVersion": str(gv), "version": gv.version} for gv in versions]
    return {"name": name, "versions": rows, "preferredVersion": dict(rows[0])}


def _legacy_rows(resource: APIResource, *, hashes: bool) -> Iterator[Document]:
    row: Document = {
        "name": resource.gvr.resource,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.gvk.kind,
        "verbs": _verbs(resource),
        "shortNames": list(resource.short_names),
        "categories": list(resource.categories),
        "storageVersionHash": resource.storage_version_hash if hashes else "",
    }
    optional = ("shortNames", "categories", "storageVersionHash")
    yield {key: value for key, value in row.items() if value or key not in optional}
    for subresource in resource.subresources.values():
        yield _legacy_subresource(resource, subresource)


def _legacy_subresource(resource: APIResource, subresource: Subresource) -> Document:
    foreign = subresource.gvk.group_version != resource.gvr.group_version
    other = {"group": subresource.gvk.group, "version": subresource.gvk.version} if foreign else {}
    return {
        "name": f"{resource.gvr.resource}/{subresource.name}",
        "singularName": "",
        "namespaced": resource.namespaced,
        **other,
        "kind": subresource.gvk.kind,
        "verbs": sorted(subresource.verbs),
    }


def _verbs(resource: APIResource) -> list[str]:
    if resource.custom:
        return [verb for verb in CUSTOM_VERBS if not (resource.terminating and verb in WRITING)]
    return sorted(resource.verbs)


def _aggregated_version(view: VersionView) -> Document:
    rows = [_aggregated_resource(resource) for resource in view.resources]
    return {"version": view.gv.version, "resources": rows, "freshness": "Current"}


def _aggregated_resource(resource: APIResource) -> Document:
    row: Document = {
        "resource": resource.gvr.resource,
        "responseKind": _response_kind(resource, resource.gvk),
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": resource.singular,
        "verbs": _verbs(resource),
        "shortNames": list(resource.short_names),
        "categories": list(resource.categories),
        "subresources": [_aggregated_subresource(resource, item) for item in resource.subresources.values()],
    }
    return {
        key: value for key, value in row.items() if value or key not in ("shortNames", "categories", "subresources")
    }


def _aggregated_subresource(resource: APIResource, subresource: Subresource) -> Document:
    kind = _response_kind(resource, subresource.gvk)
    return {"subresource": subresource.name, "responseKind": kind, "verbs": sorted(subresource.verbs)}


def _response_kind(resource: APIResource, gvk: GroupVersionKind) -> Document:
    """A built-in resource names its own group and version by leaving them empty."""
    own = not resource.custom and gvk.group_version == resource.gvr.group_version
    gv = GroupVersion("", "") if own else gvk.group_version
    return {"group": gv.group, "version": gv.version, "kind": gvk.kind}
