"""OpenAPI v2 as JSON: every definition, and each path with its operations.

Only `kubectl explain --output=plaintext-openapiv2` and clients older than 1.27 ask for it, as protobuf.

Upstream: k8s.io/kube-openapi/pkg/builder/{openapi,parameters}.go,
k8s.io/apiextensions-apiserver/pkg/controller/openapi/v2/conversion.go
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, Final, NamedTuple

import msgspec

from fakeapiserver.apimachinery.gvk import GroupVersionResource
from fakeapiserver.apimachinery.serializer import json
from fakeapiserver.apis.custom_definitions import custom_definitions
from fakeapiserver.apis.resource_table import ResourceTable
from fakeapiserver.apis.scheme import APIResource
from fakeapiserver.endpoints.discovery import RowCache
from fakeapiserver.endpoints.openapi import protobuf
from fakeapiserver.endpoints.openapi.descriptions import described_custom
from fakeapiserver.endpoints.openapi.documents import OpenAPI
from fakeapiserver.endpoints.openapi.operations import JSON_YAML

Document = dict[str, Any]

# What the older version cannot say is left out, or leaves nothing known about a value.
UNKNOWN_TO_V2: Final = frozenset({"default", "nullable", "oneOf", "anyOf", "not"})
UNTYPED: Final = ("nullable", "x-kubernetes-int-or-string", "x-kubernetes-preserve-unknown-fields")
NAMES: Final = ("properties", "definitions")
# Media types in the order routes name them.
PRODUCED: Final = (
    "text/plain",
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    "application/cbor",
    "application/json;stream=watch",
    "application/vnd.kubernetes.protobuf;stream=watch",
    "application/cbor-seq",
    "application/jwk-set+json",
    "*/*",
)
PATCHES: Final = (
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
    "application/apply-patch+cbor",
)
GENERIC: Final = "#/definitions/io.k8s.apimachinery"


class _Form(NamedTuple):
    """The functions that write a document: a path, a definition, the whole."""

    path: Callable[[str, Document], bytes | msgspec.Raw]
    definition: Callable[[str, Document], bytes | msgspec.Raw]
    whole: Callable[[Document], bytes]


class _Part(NamedTuple):
    """A part of the document: its encoded paths and definitions, and parameters that all parts share."""

    paths: Mapping[str, bytes | msgspec.Raw]
    definitions: Mapping[str, bytes | msgspec.Raw]
    shared: Document


def _raw(_: str, value: Document) -> msgspec.Raw:
    return msgspec.Raw(json.encode(value))


def _written(message: str) -> Callable[[str, Document], bytes]:
    encode = protobuf.encoder("v2", message)
    return lambda name, value: protobuf.Written(encode((name, msgspec.json.decode(json.encode(value)))))


class Version2:
    """The whole document, put together from parts: each built-in definition, what a group version has besides its resources,
    and each resource. A part is kept while its resource is the same, so a change costs what it changes."""

    def __init__(self, table: ResourceTable, openapi: OpenAPI) -> None:
        self._table = table
        self._openapi = openapi
        self._json = _Form(_raw, _raw, msgspec.json.encode), RowCache()
        self._protobuf: tuple[_Form, RowCache] | None = None

    def prepare(self, *, as_protobuf: bool = False) -> Iterator[Callable[[], object] | None]:
        """Makes the document's parts, one each step, so that others have their turn in between. Those of custom resources, whose
        schemas have any size, are made where another thread calls what a step gives."""
        form, kept = self._form(as_protobuf)
        for key, rows, build in list(self._sources()):
            part = partial(kept.get, key, rows, partial(build, form))
            if isinstance(key, GroupVersionResource) and rows[0].custom and not kept.has(key, rows):
                yield part
            else:
                part()
                yield None

    def body(self, *, as_protobuf: bool = False) -> bytes:
        """The document as JSON, or as protobuf."""
        form, kept = self._form(as_protobuf)
        facts, parts = self._table.scheme.facts, list(self._parts(form, kept))
        kept.retain([key for key, *_ in self._sources()])
        document = {
            **facts["openapiInfo"],
            "paths": _merged(part.paths for part in parts),
            "definitions": _merged(part.definitions for part in parts),
            "parameters": _merged(part.shared for part in parts),
            **facts["openapiSecurity"],
        }
        return form.whole(document)

    def document(self) -> Document:
        """The document as JSON data."""
        document: Document = msgspec.json.decode(self.body())
        return document

    def _form(self, as_protobuf: bool) -> tuple[_Form, RowCache]:
        if not as_protobuf:
            return self._json
        if self._protobuf is None:
            form = _Form(_written("NamedPathItem"), _written("NamedSchema"), protobuf.encoder("v2"))
            self._protobuf = form, RowCache()
        return self._protobuf

    def _parts(self, form: _Form, kept: RowCache) -> Iterator[_Part]:
        for key, rows, build in list(self._sources()):
            yield kept.get(key, rows, partial(build, form))

    def _sources(self) -> Iterator[tuple[object, tuple[APIResource, ...], Callable[[_Form], _Part]]]:
        """Each part's key, the rows that it is made from, and what makes it."""
        for name in self._table.scheme.served_definitions():
            yield name, (), partial(self._built_in, name)
        for key in self._openapi.listed():
            rows = self._openapi.rows(key)
            yield (key,), rows, partial(self._besides, key)
            for row in rows:
                yield row.gvr, (row,), partial(self._resource, row)

    def _built_in(self, name: str, form: _Form) -> _Part:
        return _Part({}, {name: form.definition(name, definition(self._openapi.built_in(name)))}, {})

    def _besides(self, key: str, form: _Form) -> _Part:
        return self._part(form, self._openapi.own_paths(key), {}, custom=False)

    def _resource(self, row: APIResource, form: _Form) -> _Part:
        definitions = {
            name: _custom(described_custom(row, name, schema, self._openapi.prose))
            for name, schema in (_custom_definitions(row) if row.custom else {}).items()
        }
        return self._part(form, self._openapi.row_paths(row), definitions, custom=row.custom)

    def _part(self, form: _Form, items: Document, definitions: Document, *, custom: bool) -> _Part:
        paths = _Paths(self._table.scheme.facts["openapiParameters"])
        for path, item in items.items():
            paths.add(path, item, custom=custom)
        return _Part(
            {path: form.path(path, item) for path, item in paths.items.items()},
            {name: form.definition(name, schema) for name, schema in definitions.items()},
            paths.shared,
        )


def document(table: ResourceTable, openapi: OpenAPI) -> Document:
    """The whole document as JSON data."""
    return Version2(table, openapi).document()


def _merged(parts: Iterable[Mapping[str, Any]]) -> Document:
    """In the order of their names."""
    merged: Document = {}
    for part in parts:
        merged.update(part)
    return dict(sorted(merged.items()))


def definition(schema: Document) -> Document:
    """A version 3 schema as version 2 says it."""
    kept = {key: _convert(key, value, definition) for key, value in schema.items() if key not in UNKNOWN_TO_V2}
    if len(all_of := schema.get("allOf", ())) == 1:
        del kept["allOf"]
        return {**definition(all_of[0]), **kept}
    if any(schema.get(key) for key in UNTYPED):
        return {key: value for key, value in kept.items() if key.startswith("x-")}
    if "oneOf" in schema and "type" not in schema:
        kept["type"] = "string"
    return kept


def _custom_definitions(row: APIResource) -> Document:
    schema = row.schema.unpacked() if row.schema is not None else None
    return custom_definitions(row.gvk, row.list_kind, schema, row.selectable_fields, version_2=True)


def _custom(schema: Document) -> Document:
    """A custom definition that was cut down to version 2, with its references as version 2 writes them."""
    if all_of := schema.get("allOf"):
        return {**definition(all_of[0]), **{key: value for key, value in schema.items() if key != "allOf"}}
    return {key: _convert(key, value, _custom) for key, value in schema.items() if key != "default"}


def _convert(key: str, value: Any, convert: Callable[[Document], Document]) -> Any:
    if key == "$ref":
        return value.replace("#/components/schemas/", "#/definitions/")
    if key in NAMES:
        return {name: convert(child) for name, child in value.items()}
    if key in ("items", "additionalProperties") and isinstance(value, dict):
        return convert(value)
    return value


class _Paths:
    """Path items as version 2 says them, and the parameters they share.

    `names` are what shared parameters are called: by place and name, and where there are several by `@` and the method or
    the last parts of the path."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self.items: Document = {}
        self.shared: Document = {}
        self._names = names

    def add(self, path: str, item: Document, *, custom: bool) -> None:
        words = [part for part in path.split("/") if part and not part.startswith("{")]
        here = "/".join(words[-2:])
        self.items[path] = {
            key: self._parameters(value, here) if key == "parameters" else self._operation(key, value, custom)
            for key, value in item.items()
        }

    def _operation(self, method: str, operation: Document, custom: bool) -> Document:
        body, responses = operation.get("requestBody"), operation["responses"]
        rows = [{"name": "body", "in": "body", **_required(body), "schema": _schema(body)}] if body else []
        produced = sorted(responses["200"].get("content", ()), key=PRODUCED.index)
        parameters = self._parameters(operation.get("parameters", ()), method)
        return {
            **_consumed(operation, produced, custom),
            "produces": produced,
            "schemes": ["https"],
            "tags": operation["tags"],
            **({"description": operation["description"]} if "description" in operation else {}),
            "operationId": operation["operationId"],
            **(
                {"parameters": [*(self._shared(row, method) for row in rows), *parameters]}
                if rows or parameters
                else {}
            ),
            "responses": {code: _response(response) for code, response in responses.items()},
            **{key: value for key, value in operation.items() if key.startswith("x-")},
        }

    def _parameters(self, rows: Iterable[Document], here: str) -> list[Document]:
        flat = ({**row["schema"], **{key: value for key, value in row.items() if key != "schema"}} for row in rows)
        return [self._shared(row, here) for row in flat]

    def _shared(self, row: Document, here: str) -> Document:
        """A reference to the parameter, or itself where it says something of one kind only or clients look for it in place."""
        body = row["in"] == "body" and not row["schema"].get("$ref", "").startswith(GENERIC)
        if body or row["name"] in ("name", "dryRun", "fieldValidation"):
            return row
        key = f"{row['in']}/{row['name']}"
        name = self._names.get(f"{key}@{here}") or self._names.get(key) or self._names[f"{key}@put"]
        self.shared.setdefault(name, row)
        return {"$ref": f"#/parameters/{name}"}


def _consumed(operation: Document, produced: list[str], custom: bool) -> Document:
    """Returns what a route consumes. Routes without a resource consume what they produce, if they have media types."""
    types: Iterable[str] = JSON_YAML if custom else ("*/*",)
    if "x-kubernetes-action" not in operation:
        if "$ref" not in _schema(operation["responses"]["200"]):
            return {}
        types = produced
    elif operation["x-kubernetes-action"] == "patch":
        types = [media_type for media_type in PATCHES if media_type in operation["requestBody"]["content"]]
    return {"consumes": list(types)}


def _response(response: Document) -> Document:
    schema = {"schema": _schema(response)} if "content" in response else {}
    return {"description": response["description"], **schema}


def _required(body: Document) -> Document:
    return {"required": True} if body.get("required") else {}


def _schema(holder: Document) -> Document:
    return definition(next(iter(holder["content"].values()))["schema"])
