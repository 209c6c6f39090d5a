"""The kinds and resources of one Kubernetes version, read from its recorded tables.

Upstream: k8s.io/apimachinery/pkg/runtime/scheme.go, k8s.io/apiserver/pkg/endpoints/discovery
"""

import base64
import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from msgspec import Struct

from fakeapiserver.apimachinery.gvk import GroupVersion, GroupVersionKind, GroupVersionResource
from fakeapiserver.apimachinery.schema.resolve import Definitions, Schema
from fakeapiserver.apis.custom_schema import CustomSchema

VERSIONS: Final = Path(__file__).parent / "versions"
FIRST: Final = 20000


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
    """One served resource at one version.

    `definition` is the schema's name in `definitions` (in the scheme's own where that is None). `columns` are Table columns
    without descriptions: {"name", "type", "format", "priority"}. `custom` marks those a CustomResourceDefinition made,
    `terminating` those whose definition is on its way out.
    A delete that is done at once answers with the object if `returns_deleted`, otherwise with a Status.
    `list_kind` is the kind of its lists, empty if it cannot be listed. `schema` and `selectable_fields` (their jsonPaths) are what a
    CustomResourceDefinition says of it.
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
    definitions: Definitions | None = field(default=None, repr=False, compare=False)
    schema: CustomSchema | None = field(default=None, repr=False, compare=False)
    selectable_fields: tuple[str, ...] = ()


class Priority(NamedTuple):
    """Orders groups, then versions within a group: higher first (an APIService's groupPriorityMinimum and versionPriority)."""

    group: int
    version: int


class RecordedDefinitions(Mapping[str, Schema]):
    """Component schemas by name, each parsed when it is first asked for. Never write into one."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lines: dict[str, bytes] | None = None
        self._parsed: dict[str, Schema] = {}

    def _index(self) -> dict[str, bytes]:
        if self._lines is None:
            rows = self._path.read_bytes().splitlines()[1:-1]
            pairs = (row.split(b":", 1) for row in rows)
            self._lines = {name.strip(b' "').decode(): schema.rstrip(b",") for name, schema in pairs}
        return self._lines

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
    """What one Kubernetes version serves before anything is added to it.

    `groups` is group -> versions, both in discovery order (the legacy group "" first, preferred versions first).
    """

    version: str
    resources: Mapping[GroupVersionResource, APIResource]
    kinds: Mapping[GroupVersionKind, APIResource]
    groups: Mapping[str, tuple[str, ...]]
    priorities: Mapping[GroupVersion, "Priority"]
    definitions: Definitions
    facts: Mapping[str, Any]

    def resource_for(self, gvk: GroupVersionKind) -> APIResource | None:
        """The resource whose objects are of this kind, None if the kind is unknown."""
        return self.kinds.get(gvk)

    def definition_of(self, resource: APIResource) -> Schema | None:
        """The kind's schema, None if it has none."""
        definitions = self.definitions if resource.definitions is None else resource.definitions
        return definitions.get(resource.definition)


@lru_cache(maxsize=4)
def load(version: str = "v1.36") -> Scheme:
    """The scheme of a Kubernetes minor version. Raises ValueError if it is not among the recorded ones."""
    folder = VERSIONS / version
    if not folder.is_dir():
        known = ", ".join(sorted(path.name for path in VERSIONS.iterdir()))
        raise ValueError(f"no recorded tables for Kubernetes {version}; there are: {known}")
    columns = read_table(version, "columns.json")
    resources: dict[GroupVersionResource, APIResource] = {}
    groups: dict[str, tuple[str, ...]] = {}
    priorities: dict[GroupVersion, Priority] = {}
    for prefix, rows in read_table(version, "discovery.json").items():
        for group in rows:
            name = group["metadata"].get("name", "")
            groups[name] = tuple(row["version"] for row in group["versions"])
            for row in group["versions"]:
                gv = GroupVersion(name, row["version"])
                # the API service of apiregistration itself is not stored, and goes before all
                priorities[gv] = Priority(row.get("groupPriorityMinimum", FIRST), row.get("versionPriority", FIRST))
                for resource in _resources(gv, row["resources"], prefix, columns):
                    resources[resource.gvr] = resource
    return Scheme(
        version=version,
        resources=resources,
        kinds={resource.gvk: resource for resource in resources.values()},
        groups=groups,
        priorities=priorities,
        definitions=RecordedDefinitions(folder / "schemas.json"),
        facts=read_table(version, "paths.json"),
    )


def storage_version_hash(gvk: GroupVersionKind) -> str:
    """What discovery calls the version a kind is stored at: equal for equal stored kinds, otherwise opaque."""
    digest = hashlib.sha256(f"{gvk.group}/{gvk.version}/{gvk.kind}".encode()).digest()
    return base64.b64encode(digest[:8]).decode()


def read_table(version: str, name: str) -> Any:
    """One recorded file, parsed. Raises FileNotFoundError."""
    return json.loads((VERSIONS / version / name).read_bytes())


@cache
def known_kinds(version: str = "v1.36") -> dict[str, list[str]]:
    """apiVersion -> kinds that can be decoded though no resource serves them; "*" holds those of any version."""
    found: dict[str, list[str]] = read_table(version, "kinds.json")
    return found


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
