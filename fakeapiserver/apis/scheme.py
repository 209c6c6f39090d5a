"""The kinds and resources of one Kubernetes version, read from its recorded tables.

Upstream: k8s.io/apimachinery/pkg/runtime/scheme.go, k8s.io/apiserver/pkg/endpoints/discovery
"""

import base64
import hashlib
import json
import re
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Struct

from fakeapiserver.apimachinery.gvk import GroupVersion, GroupVersionKind, GroupVersionResource
from fakeapiserver.apimachinery.schema.go_types import recorded_go_types
from fakeapiserver.apimachinery.schema.resolve import Definitions, Schema
from fakeapiserver.apis import emulation, removed_versions
from fakeapiserver.apis.custom_schema import CustomSchema
from fakeapiserver.apis.emulation import NO_EMULATION, Emulation
from fakeapiserver.apis.feature_gates import FeatureGates, feature_gates
from fakeapiserver.apis.recorded import NEWEST, VERSIONS, minor_version, read_table
from fakeapiserver.apis.runtime_config import RuntimeConfig, runtime_config, serves_removed

FIRST: Final = 20000
# The number of sets of switches whose schemes are kept.
_SWITCHED: Final = 16
_REFERENCE: Final = re.compile(rb'"#/components/schemas/([^"]+)"')
# What the fixed paths and every verb refer to.
_ALWAYS: Final = (
    *(
        f"io.k8s.apimachinery.pkg.apis.meta.v1.{kind}"
        for kind in ("APIGroup", "APIGroupList", "APIResourceList", "APIVersions", "Patch", "Status", "WatchEvent")
    ),
    "io.k8s.apimachinery.pkg.version.Info",
)


@dataclass(frozen=True, slots=True)
class Subresource:
    """`gvk` is the kind of the answer (autoscaling/v1 Scale for `scale`); `definition` its schema's name or empty.

    `query_parameters` are those of its own by their JSON type: {"command": "string", "tty": "boolean"} for `exec`.
    """

    name: str
    gvk: GroupVersionKind
    verbs: frozenset[str]
    definition: str = ""
    query_parameters: Mapping[str, str] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class APIResource:
    """A served resource at one version.

    `definition` is the schema's name in `definitions` (in the scheme's own where that is None). `columns` are Table columns
    without descriptions: {"name", "type", "format", "priority"}. `custom` marks those a CustomResourceDefinition made,
    `terminating` those whose definition is on its way out.
    `deprecation` is the warning that comes with every answer, where this version is on its way out.
    A delete that is done at once answers with the object if `returns_deleted`, otherwise with a Status.
    `list_kind` is the kind of its lists, empty if it cannot be listed. `schema` and `selectable_fields` (their
    jsonPaths) come from a CustomResourceDefinition.
    """

    gvr: GroupVersionResource
    gvk: GroupVersionKind
    singular: str
    namespaced: bool
    verbs: frozenset[str]
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: Mapping[str, Subresource] = field(default_factory=dict, hash=False)
    storage_version_hash: str = ""
    definition: str = ""
    columns: tuple[Mapping[str, Any], ...] = field(default=(), hash=False)
    custom: bool = False
    terminating: bool = False
    returns_deleted: bool = False
    list_kind: str = ""
    deprecation: str = ""
    definitions: Definitions | None = field(default=None, repr=False, compare=False)
    schema: CustomSchema | None = field(default=None, repr=False, compare=False)
    selectable_fields: tuple[str, ...] = ()


class Priority(NamedTuple):
    """Orders groups, then versions within a group: higher first (an APIService's groupPriorityMinimum and versionPriority)."""

    group: int
    version: int


class RecordedDefinitions(Mapping[str, Schema]):
    """Component schemas by name, each parsed when it is first asked for. Never write into one."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "schemas.json"
        self._go_types = folder / "go_types.json"
        self._lines: dict[str, bytes] | None = None
        self._parsed: dict[str, Schema] = {}

    def _index(self) -> dict[str, bytes]:
        if self._lines is None:
            rows = self._path.read_bytes().splitlines()[1:-1]
            pairs = (row.split(b":", 1) for row in rows)
            self._lines = {name.strip(b' "').decode(): schema.rstrip(b",") for name, schema in pairs}
        return self._lines

    @cached_property
    def go_types(self) -> Mapping[str, Mapping[str, str]]:
        """The facts of this version's Go types that the schemas lack."""
        if not self._go_types.is_file():  # the newest version's are with who reads them
            return recorded_go_types()
        return msgspec.json.decode(self._go_types.read_bytes(), type=dict[str, dict[str, str]])

    def references(self, name: str) -> list[str]:
        """The definitions that one refers to; none of an unknown one."""
        return [match.decode() for match in _REFERENCE.findall(self._index().get(name, b""))]

    def __getitem__(self, name: str) -> Schema:
        schema = self._parsed.get(name)
        if schema is None:
            schema = self._parsed[name] = json.loads(self._index()[name])
        return schema

    def __iter__(self) -> Iterator[str]:
        return iter(self._index())

    def __len__(self) -> int:
        return len(self._index())

    def __contains__(self, name: object) -> bool:
        return name in self._index()


class Scheme(Struct, frozen=True):
    """The resources and types of a Kubernetes version, before anything is added.

    `groups` is group -> versions, both in discovery order (the legacy group "" first, preferred versions first); `features` are
    its feature gates.
    """

    version: str
    features: FeatureGates
    resources: Mapping[GroupVersionResource, APIResource]
    kinds: Mapping[GroupVersionKind, APIResource]
    groups: Mapping[str, tuple[str, ...]]
    priorities: Mapping[GroupVersion, "Priority"]
    definitions: RecordedDefinitions
    facts: Mapping[str, Any]

    def resource_for(self, gvk: GroupVersionKind) -> APIResource | None:
        """The resource whose objects are of this kind, None if the kind is unknown."""
        return self.kinds.get(gvk)

    def served_definitions(self) -> list[str]:
        """The definitions of the served resources and those that they refer to, in the recorded order."""
        known = self.definitions
        names: set[str] = set()
        wanted = [*_ALWAYS]
        wanted += [
            name
            for row in self.resources.values()
            for name in (
                row.definition,
                f"{row.definition}List",
                *(sub.definition for sub in row.subresources.values()),
            )
        ]
        while wanted:
            name = wanted.pop()
            if name in known and name not in names:
                names.add(name)
                wanted += known.references(name)
        return [name for name in known if name in names]


@lru_cache(maxsize=8)
def load(version: str = NEWEST) -> Scheme:
    """Returns the scheme of a Kubernetes minor version with its defaults.

    Raises ValueError if the version is not recorded.
    """
    return _read(version, {}, {})


def serving(
    version: str,
    feature_switches: Mapping[str, bool],
    runtime_switches: Mapping[str, str],
    emulated: Emulation = NO_EMULATION,
) -> Scheme:
    """Returns the scheme of a minor version with --feature-gates, --runtime-config and --emulated-version.

    Raises ValueError in upstream's words for unknown switches.
    """
    if not (feature_switches or runtime_switches or emulated.version):
        return load(version)
    return _switched(version, tuple(feature_switches.items()), tuple(runtime_switches.items()), emulated)


@lru_cache(_SWITCHED)
def _switched(
    version: str,
    feature_switches: tuple[tuple[str, bool], ...],
    runtime_switches: tuple[tuple[str, str], ...],
    emulated: Emulation,
) -> Scheme:
    """The scheme, shared by all servers with these switches, as of the cases of a sweep: much is compiled for each scheme, and kept."""
    return _read(version, dict(feature_switches), dict(runtime_switches), emulated)


@cache
def _definitions(version: str) -> RecordedDefinitions:
    return RecordedDefinitions(VERSIONS / version)


def _read(
    version: str,
    feature_switches: Mapping[str, bool],
    runtime_switches: Mapping[str, str],
    emulated: Emulation = NO_EMULATION,
) -> Scheme:
    version = minor_version(version)
    columns = read_table(version, "columns.json")
    discovery = read_table(version, "discovery.json")
    if serves_removed(runtime_switches):
        discovery = removed_versions.with_removed(discovery)
    features = feature_gates(version, feature_switches, emulated)
    absent = emulation.absent(version, emulated.version)
    config = runtime_config(runtime_switches, [gv for gv, _, _ in _group_versions(discovery)])
    resources: dict[GroupVersionResource, APIResource] = {}
    groups: dict[str, tuple[str, ...]] = {}
    priorities: dict[GroupVersion, Priority] = {}
    for gv, prefix, row in _group_versions(discovery):
        # the API service of apiregistration itself is not stored, and goes before all
        priorities[gv] = Priority(row.get("groupPriorityMinimum", FIRST), row.get("versionPriority", FIRST))
        rows = [item for item in row["resources"] if _is_served(gv, item, config, features, absent)]
        if rows:
            groups[gv.group] = (*groups.get(gv.group, ()), gv.version)
        for resource in _resources(gv, rows, prefix, columns):
            resources[resource.gvr] = resource
    return Scheme(
        version=version,
        features=features,
        resources=resources,
        kinds={resource.gvk: resource for resource in resources.values()},
        groups=groups,
        priorities=priorities,
        definitions=_definitions(version),
        facts=emulation.emulated_facts(read_table(version, "paths.json"), emulated),
    )


def storage_version_hash(gvk: GroupVersionKind) -> str:
    """Returns discovery's name for the stored version of a kind: equal for equal stored kinds, otherwise opaque."""
    digest = hashlib.sha256(f"{gvk.group}/{gvk.version}/{gvk.kind}".encode()).digest()
    return base64.b64encode(digest[:8]).decode()


@cache
def known_kinds(version: str = NEWEST) -> dict[str, list[str]]:
    """apiVersion -> kinds that can be decoded though no resource serves them; "*" holds those of any version."""
    kinds: dict[str, list[str]] = read_table(version, "kinds.json")
    return kinds


def packages(version: str = NEWEST) -> Mapping[GroupVersion, str]:
    """The package of the definitions of each group version that there is, whether it is served or not: io.k8s.api.core.v1."""
    return {
        gv: resource["definition"].rpartition(".")[0]
        for gv, _, row in _group_versions(removed_versions.with_removed(read_table(version, "discovery.json")))
        for resource in row["resources"]
        if resource.get("definition")
    }


def group_versions(version: str) -> Sequence[GroupVersion]:
    """Every group version that a Kubernetes minor version can serve."""
    return [gv for gv, _, _ in _group_versions(read_table(version, "discovery.json"))]


def _group_versions(
    discovery: Mapping[str, list[dict[str, Any]]],
) -> Iterator[tuple[GroupVersion, str, dict[str, Any]]]:
    """(group version, path it is below, its recorded row) in the order of discovery."""
    for prefix, groups in discovery.items():
        for group in groups:
            for row in group["versions"]:
                yield GroupVersion(group["metadata"].get("name", ""), row["version"]), prefix, row


def _is_served(
    gv: GroupVersion, row: Mapping[str, Any], config: RuntimeConfig, features: FeatureGates, absent: Container[str]
) -> bool:
    by_default, name = not row.get("onRequest", False), f"{gv.group}/{gv.version}/{row['resource']}"
    if not config.enabled(GroupVersionResource(*gv, row["resource"]), by_default and name not in absent):
        return False
    # default resources depend on no gate that is off, unless gates are switched
    return (by_default and not features.switched and not features.emulated) or features.serve(name)


def _resources(
    gv: GroupVersion, rows: list[dict[str, Any]], prefix: str, columns: Mapping[str, list[dict[str, Any]]]
) -> Iterator[APIResource]:
    for row in rows:
        plural = row["resource"]
        yield APIResource(
            gvr=GroupVersionResource(*gv, plural),
            gvk=_kind(gv, row["responseKind"]),
            singular=row["singularResource"],
            namespaced=row["scope"] == "Namespaced",
            verbs=frozenset(row["verbs"]),
            short_names=tuple(row.get("shortNames", ())),
            categories=tuple(row.get("categories", ())),
            subresources={item["subresource"]: _subresource(gv, item) for item in row.get("subresources", ())},
            storage_version_hash=row.get("storageVersionHash", ""),
            definition=row.get("definition", ""),
            columns=tuple(columns.get(f"{prefix}/{gv}/{plural}", ())),
            returns_deleted=row.get("returnsDeleted", False),
            deprecation=row.get("deprecation", ""),
            list_kind=row["responseKind"]["kind"] + "List" if "list" in row["verbs"] else "",
        )


def _subresource(gv: GroupVersion, row: dict[str, Any]) -> Subresource:
    gvk = _kind(gv, row["responseKind"])
    return Subresource(
        row["subresource"], gvk, frozenset(row["verbs"]), row.get("definition", ""), row.get("queryParameters", {})
    )


def _kind(gv: GroupVersion, kind: dict[str, str]) -> GroupVersionKind:
    """An empty version stands for the resource's own group and version."""
    return (
        GroupVersionKind(kind["group"], kind["version"], kind["kind"])
        if kind["version"]
        else GroupVersionKind(*gv, kind["kind"])
    )
