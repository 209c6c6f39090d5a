"""Objects of any kind, as plain dicts in wire case.

pods = DynamicClient(rest).resource(GroupVersionResource("", "v1", "pods"))
await pods.namespaced("default").get("nginx")

Upstream: k8s.io/client-go/dynamic/{interface,simple}.go, k8s.io/apimachinery/pkg/apis/meta/v1/types.go (the options).
"""

from collections.abc import AsyncGenerator, Sequence
from typing import Any, Final, Self, TypedDict, Unpack

import msgspec

from fakeapiserver.apimachinery.gvk import GroupVersionResource
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.serializer import json
from fakeapiserver.client.rest import JSON, OnAnswer, RESTClient, WatchEvent, encode_body, resource_path

JSON_PATCH: Final = "application/json-patch+json"
MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH: Final = "application/strategic-merge-patch+json"
APPLY_PATCH: Final = "application/apply-patch+yaml"
METADATA: Final = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
METADATA_LIST: Final = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"


class ListOptions(TypedDict, total=False):
    """The selection of objects and how recent they must be.

    `limit` 0 is all; `timeout_seconds` ends a watch. `on_answer` is not sent: it is called with the headers of a watch's answer.
    """

    label_selector: str
    field_selector: str
    limit: int
    continue_: str
    resource_version: str
    resource_version_match: str
    timeout_seconds: int
    allow_watch_bookmarks: bool
    send_initial_events: bool | None
    on_answer: OnAnswer


class WriteOptions(TypedDict, total=False):
    """`dry_run`: nothing is stored. `field_manager`: who owns the fields written. `field_validation`: Ignore, Warn or Strict."""

    dry_run: bool
    field_manager: str
    field_validation: str


class DeleteOptions(TypedDict, total=False):
    """`propagation_policy`: Background, Foreground or Orphan. `uid` and `resource_version` must be the object's."""

    grace_period_seconds: int
    propagation_policy: str
    uid: str
    resource_version: str
    dry_run: bool


_NAMES: Final = {
    "label_selector": "labelSelector",
    "field_selector": "fieldSelector",
    "continue_": "continue",
    "resource_version": "resourceVersion",
    "resource_version_match": "resourceVersionMatch",
    "timeout_seconds": "timeoutSeconds",
    "allow_watch_bookmarks": "allowWatchBookmarks",
    "field_manager": "fieldManager",
    "field_validation": "fieldValidation",
}


class ResourceClient:
    """The objects of one resource, in one namespace or in all ("" also stands for cluster-scoped ones).

    Every method raises what RESTClient.request raises: StatusError, TransportError, TimeoutError.
    `metadata_only`: get, list and watch ask for PartialObjectMetadata.
    """

    def __init__(
        self, rest: RESTClient, gvr: GroupVersionResource, namespace: str = "", *, metadata_only: bool = False
    ) -> None:
        self.gvr = gvr
        self.namespace = namespace
        self._rest = rest
        self._metadata_only = metadata_only
        self._one = METADATA if metadata_only else JSON
        self._many = METADATA_LIST if metadata_only else JSON

    def namespaced(self, namespace: str) -> Self:
        """The same resource in a namespace."""
        return type(self)(self._rest, self.gvr, namespace, metadata_only=self._metadata_only)

    async def get(self, name: str, *subresources: str, resource_version: str = "") -> Object:
        """Returns one object. `resource_version` "0" accepts a cached state."""
        path = self._path(_named(name), *subresources)
        params = {"resourceVersion": resource_version}
        return (await self._rest.request("GET", path, params=params, accept=self._one)).json()

    async def list(self, **options: Unpack[ListOptions]) -> Object:
        """The list object: `items`, and `metadata` with resourceVersion and continue."""
        return (await self.list_raw(**options)).json()

    async def list_raw(self, **options: Unpack[ListOptions]) -> "RawList":
        """The list with its items not decoded yet."""
        response = await self._rest.request("GET", self._path(), params=_query(options), accept=self._many)
        return RawList(response.body)

    def watch(self, **options: Unpack[ListOptions]) -> AsyncGenerator[WatchEvent, None]:
        """Events from `resource_version` on; see RESTClient.watch."""
        return self._rest.watch(self._path(), _query(options), accept=self._one, on_answer=options.get("on_answer"))

    async def create(self, obj: Object, *subresources: str, **options: Unpack[WriteOptions]) -> Object:
        """A new object; a subresource (eviction, binding, token) is that of the object named."""
        name = obj["metadata"]["name"] if subresources else ""
        return await self._write("POST", self._path(name, *subresources), obj, JSON, options)

    async def update(self, obj: Object, *subresources: str, **options: Unpack[WriteOptions]) -> Object:
        """Replaces the object named; its resourceVersion must be the stored one's, unless it has none."""
        path = self._path(_named(obj["metadata"].get("name", "")), *subresources)
        return await self._write("PUT", path, obj, JSON, options)

    async def update_status(self, obj: Object, **options: Unpack[WriteOptions]) -> Object:
        """`update` of the status subresource."""
        return await self.update(obj, "status", **options)

    async def patch(
        self,
        name: str,
        patch: Object | Sequence[Object],
        *subresources: str,
        patch_type: str = MERGE_PATCH,
        **options: Unpack[WriteOptions],
    ) -> Object:
        """The patched object. `patch_type` is one of this module's media types; JSON_PATCH takes a list."""
        path = self._path(_named(name), *subresources)
        return await self._write("PATCH", path, patch, patch_type, options)

    async def apply(
        self, obj: Object, *subresources: str, force: bool = False, **options: Unpack[WriteOptions]
    ) -> Object:
        """Server-side apply of the fields in `obj`, which names its apiVersion, kind and name. `field_manager` is needed;
        `force` takes fields from other managers."""
        path = self._path(_named(obj["metadata"].get("name", "")), *subresources)
        params = {**_write_query(options), "force": force}
        response = await self._rest.request("PATCH", path, params=params, body=obj, content_type=APPLY_PATCH)
        return response.json()

    async def apply_status(self, obj: Object, *, force: bool = False, **options: Unpack[WriteOptions]) -> Object:
        """`apply` of the status subresource."""
        return await self.apply(obj, "status", force=force, **options)

    async def delete(self, name: str, *subresources: str, **options: Unpack[DeleteOptions]) -> Object:
        """The object, if finalizers or grace keep it for now, else a Status."""
        path = self._path(_named(name), *subresources)
        return (await self._rest.request("DELETE", path, body=_delete_body(options))).json()

    async def delete_collection(self, selection: ListOptions | None = None, **options: Unpack[DeleteOptions]) -> Object:
        """Deletes all that `selection` selects, everything without one."""
        params = _query(selection or {})
        return (await self._rest.request("DELETE", self._path(), params=params, body=_delete_body(options))).json()

    def _path(self, name: str = "", *subresources: str) -> str:
        group, version, resource = self.gvr
        return resource_path(group, version, resource, self.namespace, name, *subresources)

    async def _write(
        self, method: str, path: str, obj: Object | Sequence[Object], content_type: str, options: WriteOptions
    ) -> Object:
        body = encode_body(obj)
        params = _write_query(options)
        return (await self._rest.request(method, path, params=params, body=body, content_type=content_type)).json()


class DynamicClient:
    """Clients of resources, by their GroupVersionResource."""

    def __init__(self, rest: RESTClient) -> None:
        self.rest = rest

    def resource(
        self, gvr: GroupVersionResource, namespace: str = "", *, metadata_only: bool = False
    ) -> ResourceClient:
        """No request is made for it."""
        return ResourceClient(self.rest, gvr, namespace, metadata_only=metadata_only)


class RawList:
    """A list whose items are decoded one at a time: most of a long list's cost is that of its dicts."""

    __slots__ = ("body",)

    def __init__(self, body: bytes) -> None:
        self.body = body

    def json(self) -> Object:
        """The whole list object. ValueError if it isn't a list."""
        document: Object = _decoded(self.body, json.decode_plainly)
        return document

    def split(self) -> "ListShape":
        """Its parts. ValueError."""
        try:
            shape: ListShape = _decoded(self.body, _decode_shape)
        except RecursionError:
            document = self.json()
            items = document.pop("items", None)
            shape = msgspec.convert(document, ListShape)
            shape.items = items and [msgspec.Raw(json.encode_plainly(item)) for item in items]
        return shape


class ListMeta(msgspec.Struct, rename="camel"):
    """A list's revision, and the token for its next page."""

    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")
    remaining_item_count: int | None = None


class ListShape(msgspec.Struct, rename="camel"):
    """A list object with items as JSON."""

    api_version: str = ""
    kind: str = ""
    metadata: ListMeta = msgspec.field(default_factory=ListMeta)
    items: Sequence[msgspec.Raw] | None = None


_decode_shape: Final = msgspec.json.Decoder(ListShape).decode


def _decoded(body: bytes, decode: Any) -> Any:
    try:
        return decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"the server's answer is no list: {error}") from None


def _named(name: str) -> str:
    if not name:
        raise ValueError("name is required")
    return name


def _query(options: ListOptions) -> dict[str, str | int | bool | None]:
    query: dict[str, str | int | bool | None] = {
        _NAMES.get(key, key): value  # type: ignore[misc]
        for key, value in options.items()
        if key not in ("send_initial_events", "limit", "on_answer")
    }
    if options.get("limit"):
        query["limit"] = options["limit"]
    if (initial := options.get("send_initial_events")) is not None:
        query["sendInitialEvents"] = "true" if initial else "false"
    return query


def _write_query(options: WriteOptions) -> dict[str, str | int | bool | None]:
    return {
        "dryRun": "All" if options.get("dry_run") else None,
        "fieldManager": options.get("field_manager"),
        "fieldValidation": options.get("field_validation"),
    }


def _delete_body(options: DeleteOptions) -> Object:
    preconditions = {
        key: value
        for key, value in (("uid", options.get("uid")), ("resourceVersion", options.get("resource_version")))
        if value
    }
    body: Object = {"kind": "DeleteOptions", "apiVersion": "v1"}
    if (grace := options.get("grace_period_seconds")) is not None:
        body["gracePeriodSeconds"] = grace
    if preconditions:
        body["preconditions"] = preconditions
    if policy := options.get("propagation_policy"):
        body["propagationPolicy"] = policy
    if options.get("dry_run"):
        body["dryRun"] = ["All"]
    return body


__all__: Sequence[str] = (
    "APPLY_PATCH",
    "JSON_PATCH",
    "MERGE_PATCH",
    "METADATA",
    "STRATEGIC_MERGE_PATCH",
    "DeleteOptions",
    "DynamicClient",
    "ListOptions",
    "ListShape",
    "RawList",
    "ResourceClient",
    "WriteOptions",
)
