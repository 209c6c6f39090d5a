"""The operations of an OpenAPI v3 document, generated from the rows of the resource table.

Upstream: k8s.io/apiserver/pkg/endpoints/installer.go, k8s.io/kube-openapi/pkg/builder3/openapi.go,
k8s.io/apiextensions-apiserver/pkg/controller/openapi/builder/builder.go
"""

from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from fakeapiserver.apimachinery.gvk import GroupVersion, GroupVersionKind
from fakeapiserver.apis.scheme import APIResource, Subresource
from fakeapiserver.endpoints.openapi import words

Document = dict[str, Any]

REFERENCE: Final = "#/components/schemas/"
META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1."
JSON_YAML: Final = ("application/json", "application/yaml")
OBJECT_TYPES: Final = ("application/json", "application/vnd.kubernetes.protobuf", "application/yaml")
STREAM_TYPES: Final = (
    "application/json",
    "application/json;stream=watch",
    "application/vnd.kubernetes.protobuf",
    "application/vnd.kubernetes.protobuf;stream=watch",
    "application/yaml",
)
# Where the server speaks CBOR: a built-in kind's media type -> the one that stands beside it.
_CBOR_BESIDE: Final = {
    "application/vnd.kubernetes.protobuf": "application/cbor",
    "application/json;stream=watch": "application/cbor-seq",
    "application/apply-patch+yaml": "application/apply-patch+cbor",
}
PATCH_TYPES: Final = ("application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json")
STRATEGIC_TYPE: Final = "application/strategic-merge-patch+json"
DESCRIPTIONS: Final = {"200": "OK", "201": "Created", "202": "Accepted", "401": "Unauthorized"}

PRETTY: Final = {"pretty": "string"}
WRITE: Final = {"dryRun": "string", "fieldManager": "string", "fieldValidation": "string"}
PATCH: Final = {**WRITE, "force": "boolean"}
DELETE: Final = {
    "dryRun": "string",
    "gracePeriodSeconds": "integer",
    "ignoreStoreReadErrorWithClusterBreakingPotential": "boolean",
    "orphanDependents": "boolean",
    "propagationPolicy": "string",
}
SELECT: Final = {
    "continue": "string",
    "fieldSelector": "string",
    "labelSelector": "string",
    "limit": "integer",
    "resourceVersion": "string",
    "resourceVersionMatch": "string",
    "sendInitialEvents": "boolean",
    "shardSelector": "string",
    "timeoutSeconds": "integer",
}
LIST: Final = {**SELECT, "allowWatchBookmarks": "boolean", "watch": "boolean"}

# HTTP methods in the order documents list them, and what a connecting subresource's verbs allow.
METHODS: Final = ("get", "put", "post", "delete", "options", "head", "patch")
CONNECT_VERBS: Final = {"get": "get", "update": "put", "create": "post", "delete": "delete", "patch": "patch"}
# verb -> (method, action, first word of the operation's id)
COLLECTION_VERBS: Final = {
    "create": ("post", "post", "create"),
    "deletecollection": ("delete", "deletecollection", "delete"),
}
ITEM_VERBS: Final = {
    "get": ("get", "get", "read"),
    "update": ("put", "put", "replace"),
    "delete": ("delete", "delete", "delete"),
    "patch": ("patch", "patch", "patch"),
}


def camel_group(group: str) -> str:
    """A group as operation ids spell it: `Core`, `Apps`, `RbacAuthorization`, `StableExampleCom`."""
    words = (group.removesuffix(".k8s.io") or "core").replace("-", ".").split(".")
    return "".join(word[:1].upper() + word[1:] for word in words)


def group_tag(group: str) -> str:
    """A group as tags spell it: `core`, `rbacAuthorization`."""
    camel = camel_group(group)
    return camel[:1].lower() + camel[1:]


def paths_of(resource: APIResource, unknown: Container[str] = ()) -> Iterator[tuple[str, Document]]:
    """Yields the paths of a resource with their path items; custom resources have no paths under /watch.

    `unknown` are query parameters that the server's version doesn't have yet.
    """
    return _Paths(resource, unknown).build()


def fixed_operation(tag: str, operation_id: str, definition: str) -> Document:
    """The path item of a discovery document: a plain GET without parameters."""
    responses = {"200": _content(OBJECT_TYPES, definition), "401": {}}
    operation = {"tags": [tag], "operationId": operation_id, "responses": _described(responses)}
    return with_words({"get": operation})


def with_words(item: Document) -> Document:
    """The path item of a path that belongs to no resource, with descriptions of its operations."""
    return {
        method: {"tags": operation["tags"], **_description(words.fixed(operation["operationId"])), **operation}
        for method, operation in item.items()
    }


def _reference(definition: str) -> Document:
    return {"$ref": REFERENCE + definition} if definition else {"type": "string"}


def _content(types: tuple[str, ...], definition: str) -> Document:
    return {"content": {media_type: {"schema": _reference(definition)} for media_type in types}}


def _described(responses: Mapping[str, Document]) -> Document:
    return {code: {"description": DESCRIPTIONS[code], **response} for code, response in responses.items()}


def _description(text: str) -> Document:
    return {"description": text} if text else {}


def _parameter(name: str, place: str, json_type: str, kind: str) -> Document:
    described = _description(words.parameter(name, kind))
    required = {"required": True} if place == "path" else {}
    return {"name": name, "in": place, **described, **required, "schema": {"type": json_type, "uniqueItems": True}}


class Rules(Struct, frozen=True):
    """The differences between documents of built-in and of custom resources, which upstream builds in different places.

    watches: the deprecated paths of watches are listed. subresource_kinds: operations on a subresource name its own kind.
    delete_options: verbs with DeleteOptions as a body. queries, codes: by verb.
    """

    object_types: tuple[str, ...]
    stream_types: tuple[str, ...]
    body_types: tuple[str, ...]
    patch_types: tuple[str, ...]
    watches: bool
    subresource_kinds: bool
    delete_options: Container[str]
    queries: Mapping[str, Mapping[str, str]]
    codes: Mapping[str, Sequence[str]]


_QUERIES: Final = {"create": WRITE, "update": WRITE, "patch": PATCH, "delete": DELETE}
_CODES: Final = {"create": ("200", "201", "202"), "update": ("200", "201"), "delete": ("200", "202")}
BUILT_IN: Final = Rules(
    object_types=OBJECT_TYPES,
    stream_types=STREAM_TYPES,
    body_types=("*/*",),
    patch_types=(*PATCH_TYPES, STRATEGIC_TYPE),
    watches=True,
    subresource_kinds=True,
    delete_options=("delete", "deletecollection"),
    queries={**_QUERIES, "deletecollection": {**SELECT, **DELETE}},
    codes={**_CODES, "patch": ("200", "201")},
)
CUSTOM: Final = Rules(
    object_types=JSON_YAML,
    stream_types=JSON_YAML,
    body_types=JSON_YAML,
    patch_types=PATCH_TYPES,
    watches=False,
    subresource_kinds=False,
    delete_options=("delete",),
    queries={**_QUERIES, "deletecollection": LIST, "get": {"resourceVersion": "string"}},
    codes=_CODES,
)


class _Paths:
    """Builds the path items of one resource."""

    def __init__(self, resource: APIResource, unknown: Container[str]) -> None:
        self.resource = resource
        self.unknown = unknown
        gv = resource.gvr.group_version
        self.gv = gv
        self.root = f"/apis/{gv}" if gv.group else f"/api/{gv.version}"
        self.plural = resource.gvr.resource
        self.scope = ("namespace",) if resource.namespaced else ()
        self.namespaces = "/namespaces/{namespace}" if resource.namespaced else ""
        self.rules = CUSTOM if resource.custom else BUILT_IN

    def build(self) -> Iterator[tuple[str, Document]]:
        collection = f"{self.root}{self.namespaces}/{self.plural}"
        item = f"{collection}/{{name}}"
        yield collection, self._item(self.scope, {**PRETTY}, self._collection())
        yield item, self._item(("name", *self.scope), {**PRETTY}, self._named())
        for subresource in self.resource.subresources.values():
            yield from self._subresource(f"{item}/{subresource.name}", subresource)
        if self.resource.namespaced and "list" in self.resource.verbs:
            operations = {"get": self._list("ForAllNamespaces")}
            yield f"{self.root}/{self.plural}", self._item((), {**PRETTY}, operations)
        if "watch" in self.resource.verbs and self.rules.watches:
            yield from self._watches()

    def _collection(self) -> dict[str, Document]:
        operations: dict[str, Document] = {}
        if "list" in self.resource.verbs:
            operations["get"] = self._list("")
        for verb in COLLECTION_VERBS:
            if verb in self.resource.verbs:
                operations[COLLECTION_VERBS[verb][0]] = self._verb(verb, COLLECTION_VERBS[verb], None)
        return operations

    def _named(self) -> dict[str, Document]:
        served = [verb for verb in ITEM_VERBS if verb in self.resource.verbs]
        return {ITEM_VERBS[verb][0]: self._verb(verb, ITEM_VERBS[verb], None) for verb in served}

    def _subresource(self, path: str, subresource: Subresource) -> Iterator[tuple[str, Document]]:
        names = ("name", *self.scope)
        if not subresource.definition:
            query, kind = subresource.query_parameters, subresource.gvk.kind
            yield path, self._item(names, query, self._connects(subresource, ""), kind)
            if subresource.name == "proxy":
                operations = self._connects(subresource, "WithPath")
                yield f"{path}/{{path}}", self._item((*names, "path"), query, operations, kind)
            return
        table = {**ITEM_VERBS, **COLLECTION_VERBS}
        served = [verb for verb in table if verb in subresource.verbs]
        operations = {table[verb][0]: self._verb(verb, table[verb], subresource) for verb in served}
        kind = subresource.gvk.kind if self.rules.subresource_kinds else ""
        yield path, self._item(names, {**PRETTY, **subresource.query_parameters}, operations, kind)

    def _connects(self, subresource: Subresource, suffix: str) -> dict[str, Document]:
        methods = {CONNECT_VERBS[verb] for verb in subresource.verbs}
        if "delete" in methods:
            methods |= {"options", "head"}
        return {method: self._connect(method, subresource, suffix) for method in METHODS if method in methods}

    def _connect(self, method: str, subresource: Subresource, suffix: str) -> Document:
        name = f"{method.capitalize()}{self._name()}{_title(subresource.name)}{suffix}"
        responses = {"200": _content(("*/*",), ""), "401": {}}
        description = words.connect(method, subresource.name, self.resource.gvk.kind)
        return self._operation(
            "connect", f"connect{self._prefix()}{name}", description, {}, responses, gvk=subresource.gvk
        )

    def _watches(self) -> Iterator[tuple[str, Document]]:
        collection = f"{self.root}/watch{self.namespaces}/{self.plural}"
        query = {**PRETTY, **LIST}
        watch_list = {"get": self._watch("watchlist", f"{self._name()}List")}
        yield collection, self._item(self.scope, query, watch_list)
        if "get" in self.resource.verbs:
            yield (
                f"{collection}/{{name}}",
                self._item(("name", *self.scope), query, {"get": self._watch("watch", self._name())}),
            )
        if self.resource.namespaced:
            name = f"{self.resource.gvk.kind}ListForAllNamespaces"
            yield f"{self.root}/watch/{self.plural}", self._item((), query, {"get": self._watch("watchlist", name)})

    def _watch(self, action: str, name: str) -> Document:
        responses = {"200": _content(STREAM_TYPES, META + "WatchEvent"), "401": {}}
        description = words.operation(action, self.resource.gvk.kind)
        return self._operation(action, f"watch{self._prefix()}{name}", description, {}, responses)

    def _list(self, suffix: str) -> Document:
        name = f"{self.resource.gvk.kind}{suffix}" if suffix else self._name()
        responses = {"200": _content(self.rules.stream_types, self._list_definition()), "401": {}}
        can_watch = "watch" in self.resource.verbs and self.rules.watches
        description = words.operation("list or watch" if can_watch else "list", self.resource.gvk.kind)
        return self._operation("list", f"list{self._prefix()}{name}", description, LIST, responses)

    def _list_definition(self) -> str:
        return self.resource.definition.removesuffix(self.resource.gvk.kind) + self.resource.list_kind

    def _verb(self, verb: str, row: tuple[str, str, str], subresource: Subresource | None) -> Document:
        _, action, word = row
        definition = subresource.definition if subresource else self.resource.definition
        collection = "Collection" if verb == "deletecollection" else ""
        name = self._name() + (_title(subresource.name) if subresource else "")
        return self._operation(
            action,
            f"{word}{self._prefix()}{collection}{name}",
            words.operation(action, self.resource.gvk.kind, subresource.name if subresource else ""),
            self.rules.queries.get(verb, {}),
            self._responses(verb, definition, subresource),
            body=self._body(verb, definition),
            gvk=subresource.gvk if subresource and self.rules.subresource_kinds else None,
        )

    def _body(self, verb: str, definition: str) -> Document | None:
        types = self.rules.body_types
        if verb in ("create", "update"):
            return {**_content(types, definition), "required": True}
        if verb == "patch":
            return {**_content(self.rules.patch_types, META + "Patch"), "required": True}
        if verb in self.rules.delete_options:
            return _content(types, META + "DeleteOptions")
        return None

    def _responses(self, verb: str, definition: str, subresource: Subresource | None) -> Mapping[str, Document]:
        if verb in ("delete", "deletecollection"):
            own = verb == "delete" and self.resource.returns_deleted
            definition = definition if own else META + "Status"
        types = self.rules.object_types
        if subresource is not None and subresource.name == "log":
            definition, types = "", (*types, "text/plain")
        codes = self.rules.codes.get(verb, ("200",))
        return {**{code: _content(types, definition) for code in codes}, "401": {}}

    def _prefix(self) -> str:
        version = self.gv.version
        return f"{camel_group(self.gv.group)}{version[:1].upper()}{version[1:]}"

    def _name(self) -> str:
        return ("Namespaced" if self.resource.namespaced else "") + self.resource.gvk.kind

    def _operation(
        self,
        action: str,
        operation_id: str,
        description: str,
        query: Mapping[str, str],
        responses: Mapping[str, Document],
        *,
        body: Document | None = None,
        gvk: GroupVersionKind | None = None,
    ) -> Document:
        kind = gvk or self.resource.gvk
        return {
            "tags": [f"{group_tag(self.gv.group)}_{self.gv.version}"],
            **_description(description),
            "operationId": operation_id,
            "parameters": [
                _parameter(name, "query", query[name], "") for name in sorted(query) if name not in self.unknown
            ],
            **({"requestBody": body} if body else {}),
            "responses": _described(responses),
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": {"group": kind.group, "version": kind.version, "kind": kind.kind},
        }

    def _item(
        self, places: tuple[str, ...], query: Mapping[str, str], operations: dict[str, Document], kind: str = ""
    ) -> Document:
        """Parameters that all operations share move to the path item, whose own are path parameters and `query`. `kind` is what the
        operations exchange, by default the resource's."""
        shared = [_parameter(name, "path", "string", kind or self.resource.gvk.kind) for name in places]
        shared += [_parameter(name, "query", query[name], "") for name in query if name not in self.unknown]
        lists = [operation["parameters"] for operation in operations.values()]
        common = [row for row in lists[0] if all(row in other for other in lists)] if lists else []
        for operation in operations.values():
            operation["parameters"] = [row for row in operation["parameters"] if row not in common]
            if not operation["parameters"]:
                del operation["parameters"]
        ordered: Document = {method: operations[method] for method in METHODS if method in operations}
        parameters = sorted(shared + common, key=lambda row: (row["name"], row["in"]))
        return {**ordered, "parameters": parameters} if ordered else {}


def _title(name: str) -> str:
    return name[:1].upper() + name[1:]


def discovery_item(gv: GroupVersion) -> Document:
    """The path item of a group version's own APIResourceList."""
    version = gv.version[:1].upper() + gv.version[1:]
    tag = f"{group_tag(gv.group)}_{gv.version}"
    return fixed_operation(tag, f"get{camel_group(gv.group)}{version}APIResources", META + "APIResourceList")


def with_cbor(item: Document) -> Document:
    """A path of a built-in group version as a server with CBOR shows it."""
    return {key: _content_with_cbor(value) if key == "content" else _beside(value) for key, value in item.items()}


def _beside(value: Any) -> Any:
    if isinstance(value, dict):
        return with_cbor(value)
    return [_beside(item) for item in value] if isinstance(value, list) else value


def _content_with_cbor(content: Document) -> Document:
    added = {_CBOR_BESIDE[media_type]: value for media_type, value in content.items() if media_type in _CBOR_BESIDE}
    return dict(sorted({**content, **added}.items()))
