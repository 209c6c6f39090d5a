"""OpenAPI v3: the index and one document for each group version.

Upstream: k8s.io/kube-openapi/pkg/handler3/handler.go, k8s.io/kube-openapi/pkg/builder3/openapi.go
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from fakeapiserver.apimachinery.gvk import GroupVersion
from fakeapiserver.apimachinery.serializer import json
from fakeapiserver.apis import prose
from fakeapiserver.apis.recorded import VERSIONS
from fakeapiserver.apis.resource_table import ResourceTable, VersionView
from fakeapiserver.apis.scheme import APIResource
from fakeapiserver.endpoints.discovery import DocumentCache, RowCache
from fakeapiserver.endpoints.openapi import descriptions, operations, words
from fakeapiserver.endpoints.openapi.operations import (
    LIST,
    META,
    REFERENCE,
    camel_group,
    discovery_item,
    fixed_operation,
    group_tag,
    paths_of,
    with_cbor,
    with_words,
)

Document = dict[str, Any]

OPENAPI_VERSION: Final = "3.0.0"
SECURITY: Final = {"BearerToken": {"type": "apiKey", "name": "authorization", "in": "header"}}
# The kinds that are part of every group version; each document names its own group version's only.
EVERYWHERE: Final = (META + "DeleteOptions", META + "WatchEvent")
CUSTOM_INFO: Final = {"title": "Kubernetes CRD Swagger", "version": "v0.1.0"}
# Groups of the server that client-go's scheme, which custom resources' documents are made with, does not have.
UNKNOWN_TO_CLIENTS: Final = frozenset(
    {"admission.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "imagepolicy.k8s.io"}
)
GVK: Final = "x-kubernetes-group-version-kind"


class OpenAPI:
    """Serves documents as JSON bytes with their hashes; each is built when first asked for, once per generation of the table.
    `cbor`: built-in kinds are served as CBOR as well."""

    def __init__(self, table: ResourceTable, *, cbor: bool = False) -> None:
        self.table = table
        self._shown: Callable[[Document], Document] = with_cbor if cbor else lambda item: item
        in_general = cbor and table.scheme.features.at_least("v1.37")
        self._shown_general: Callable[[Document], Document] = with_cbor if in_general else lambda item: item
        self._enums = table.scheme.features.enabled("OpenAPIEnums")
        self._cache = DocumentCache(table)
        self._documents, self._hashes = RowCache(), RowCache()
        # What newer versions' lists take.
        named = {key.partition("@")[0] for key in table.scheme.facts["openapiParameters"]}
        self._unknown = {name for name in LIST if f"query/{name}" not in named}

    def listed(self) -> list[str]:
        """Returns the keys of the index: `api/v1`, `apis/apps`, `apis/apps/v1`, `version` ..., sorted."""
        return self._cache.get("keys", self._list)

    def _list(self) -> list[str]:
        keys = sorted(self._keys())
        for kept in (self._documents, self._hashes):
            kept.retain(keys)
        return keys

    def index(self) -> bytes:
        """/openapi/v3: each document's address, which carries its hash."""
        return self._cache.get("index", self._index)

    def prepare(self) -> Iterator[None]:
        """Hashes what the index needs, one document each step, so that others have their turn in between."""
        for key in self.listed():
            self._hash(key)
            yield

    def document(self, key: str) -> tuple[bytes, str] | None:
        """Returns a document's JSON and its hash (the ETag without quotes), or None for an unknown key."""
        if key not in self.listed():
            return None
        return self._documents.get(key, self.rows(key), lambda: (json.encode(self.build(key)), self._hash(key)))

    def digest(self) -> str:
        """Returns the hash of the index, which depends on all that is served."""
        return hashlib.sha512(self.index()).hexdigest().upper()

    def _keys(self) -> Iterator[str]:
        yield from self.table.scheme.facts["openapi"]
        for view in self.table.groups():
            if view.name in self.table.scheme.groups and view.name:
                yield f"apis/{view.name}"
            for version in view.versions:
                yield f"apis/{version.gv}" if view.name else f"api/{version.gv}"

    def _index(self) -> bytes:
        urls = {key: f"/openapi/v3/{key}?hash={self._hash(key)}" for key in self.listed()}
        for key, spec in self.table.remote_openapi.items():
            if spec.own or key not in urls:
                urls[key] = spec.url
        urls = dict(sorted(urls.items()))
        return json.encode({"paths": {key: {"serverRelativeURL": url} for key, url in urls.items()}})

    def _hash(self, key: str) -> str:
        return self._hashes.get(key, self.rows(key), lambda: self._hash_of(key))

    def _hash_of(self, key: str) -> str:
        """Returns the hash of a document's sources rather than of its bytes, so that the index needs no document. It is the same in each
        server that serves the same."""
        digest = self._cache.get("recorded", self._recorded).copy()
        digest.update(key.encode())
        for row in self.rows(key):
            if row.custom:
                ordered = replace(row, verbs=frozenset(), subresources={})
                digest.update(repr((ordered, sorted(row.verbs), list(row.subresources))).encode())
                digest.update(row.schema.digest.encode() if row.schema is not None else b"")
        return digest.hexdigest().upper()

    def _recorded(self) -> "hashlib._Hash":
        version = self.table.scheme.version
        return _recorded_digest(version, prose.folder(), enums=self._enums)

    def customised(self, key: str) -> bool:
        """Reports whether a custom resource has a part in the document."""
        return any(row.custom for row in self.rows(key))

    def rows(self, key: str) -> tuple[APIResource, ...]:
        """Returns the resources in a key's document."""
        view = self._view(key)
        return view.resources if view else ()

    def _view(self, key: str) -> VersionView | None:
        parts = key.split("/")
        return self.table.version("" if parts[0] == "api" else parts[-2], parts[-1]) if len(parts) > 1 else None

    def build(self, key: str) -> Document:
        """The document of a key in `listed()` as JSON data."""
        view = self._view(key) if key not in self.table.scheme.facts["openapi"] else None
        return self._document(self.paths(key), view.resources, view.gv) if view else self._document(self.paths(key), ())

    def paths(self, key: str) -> Document:
        """Returns the paths of a key's document."""
        items = self.own_paths(key)
        for row in self.rows(key):
            items |= self.row_paths(row)
        return items

    def own_paths(self, key: str) -> Document:
        """Returns the paths of a key without a resource."""
        facts, view = self.table.scheme.facts, self._view(key)
        if key in facts["openapi"]:
            return {path: self._shown_general(with_words(item)) for path, item in facts["openapi"][key].items()}
        if view is None:
            return {f"/{key}/": self._shown_general(_group_item(key.removeprefix("apis/")))}
        custom = all(row.custom for row in view.resources)
        return {} if custom else {f"/{key}/": self._shown(discovery_item(view.gv))}

    def row_paths(self, row: APIResource) -> Document:
        """The paths of a resource."""
        return {path: item if row.custom else self._shown(item) for path, item in paths_of(row, self._unknown) if item}

    def _document(self, paths: Document, rows: tuple[APIResource, ...], gv: GroupVersion | None = None) -> Document:
        custom = any(row.custom for row in rows)
        schemas = self._schemas(paths, rows)
        if gv is not None and not custom and self.table.scheme.features.at_least("v1.36"):
            schemas |= {name: _of_group_version(schemas[name], gv) for name in EVERYWHERE if name in schemas}
        if custom:
            schemas |= {name: _of_clients(schemas[name]) for name in EVERYWHERE if name in schemas}
        return {
            "openapi": OPENAPI_VERSION,
            "info": CUSTOM_INFO if custom else self.table.scheme.facts["openapiInfo"]["info"],
            "paths": dict(sorted(paths.items())),
            "components": _components(schemas, secured=not custom),
        }

    def _schemas(self, paths: Document, rows: tuple[APIResource, ...]) -> Document:
        """Returns the schemas that paths refer to, directly or indirectly, by name."""
        schemas: Document = {}
        waiting = list(_references(paths))
        while waiting:
            name = waiting.pop()
            if name not in schemas:
                schemas[name], references = self._schema(name, rows)
                waiting += references
        return dict(sorted(schemas.items()))

    def _schema(self, name: str, rows: tuple[APIResource, ...]) -> tuple[Document, Iterable[str]]:
        """A schema, and those that it refers to."""
        for row in rows:
            if row.definitions is not None and name in row.definitions:
                schema = descriptions.described_custom(row, name, row.definitions[name], self.prose)
                # All else in a custom resource's schema stands there in full.
                return schema, (
                    [META + "ObjectMeta"] if name == row.definition else [row.definition, META + "ListMeta"]
                )
        schema = self.built_in(name)
        return schema, _references(schema)

    def built_in(self, name: str) -> Document:
        """Returns a built-in definition with its prose. Raises KeyError for an unknown name."""
        schema = self.table.scheme.definitions[name]
        return descriptions.described(name, schema if self._enums else descriptions.without_enums(schema), self.prose)

    @property
    def prose(self) -> prose.Descriptions:
        """The descriptions of built-in definitions."""
        return descriptions.load()


def _references(value: Any) -> Iterator[str]:
    """The names of all schemas that JSON data refers to."""
    if isinstance(value, list):
        for item in value:
            yield from _references(item)
    elif isinstance(value, dict):
        target = value.get("$ref")
        if isinstance(target, str):
            yield target.removeprefix(REFERENCE)
        for item in value.values():
            if isinstance(item, dict | list):
                yield from _references(item)


def _of_group_version(schema: Document, gv: GroupVersion) -> Document:
    own = (GroupVersion("", "v1"), gv)
    return {**schema, GVK: [row for row in schema[GVK] if (row["group"], row["version"]) in own]}


def _of_clients(schema: Document) -> Document:
    return {**schema, GVK: [row for row in schema[GVK] if row["group"] not in UNKNOWN_TO_CLIENTS]}


def _components(schemas: Document, secured: bool) -> Document:
    filled = {"schemas": schemas} if schemas else {}
    return {**filled, "securitySchemes": SECURITY} if secured else filled


def _group_item(group: str) -> Document:
    return fixed_operation(group_tag(group), f"get{camel_group(group)}APIGroup", META + "APIGroup")


@lru_cache(maxsize=4)
def _recorded_digest(version: str, models: Path | None, *, enums: bool) -> "hashlib._Hash":
    """Returns the hash of the tables and of the code that documents are made from:

    clients cache a document by its hash for a year.
    """
    digest = hashlib.sha512(b"" if enums else b"no enums")
    for path in (Path(__file__), Path(operations.__file__), Path(words.__file__), Path(descriptions.__file__)):
        digest.update(path.read_bytes())
    for name in ("schemas.json", "discovery.json", "paths.json"):
        digest.update((VERSIONS / version / name).read_bytes())
    for path in sorted(models.glob("*.py")) if models else ():
        digest.update(f"{path.name} {path.stat().st_size}".encode())
    return digest
