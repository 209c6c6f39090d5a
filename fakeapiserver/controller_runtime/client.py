"""Reads from the cache, writes to the server, of dicts or typed objects.

Upstream: sigs.k8s.io/controller-runtime/pkg/client (client.go, dryrun.go, fieldowner.go, fieldvalidation.go, namespaced_client.go,
interceptor/).
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar, overload

from fakeapiserver.apimachinery.gvk import GroupVersionKind
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.client.dynamic import (
    MERGE_PATCH,
    DeleteOptions,
    DynamicClient,
    ListOptions,
    ResourceClient,
    WriteOptions,
)
from fakeapiserver.client.errors import StatusError, is_not_found
from fakeapiserver.client.pager import decode_items, each_item
from fakeapiserver.client.rest_mapper import RESTMapper
from fakeapiserver.controller_runtime.scheme import Kind, from_object, gvk_for, to_object

__all__ = [
    "APIReader",
    "Client",
    "Interceptor",
    "Reader",
]

T = TypeVar("T")


class Reader(Protocol):
    """A source of objects: a cache or a client."""

    async def get(self, kind: GroupVersionKind, name: str, namespace: str = "") -> Object:
        """StatusError (404) when it isn't there."""

    async def list(
        self,
        kind: GroupVersionKind,
        *,
        namespace: str = "",
        label_selector: str = "",
        fields: Mapping[str, str] | None = None,
        limit: int = 0,
    ) -> Sequence[Object]:
        """Returns the objects that match.

        `fields`: wanted values, all of which must match. `limit`: at most so many objects, 0 is all. Raises
        ValueError for a field that
        can't be selected by, and for an invalid selector.
        """


class APIReader:
    """Reads from the server itself, a page of 500 at a time; `fields` are its field selectors. StatusError."""

    def __init__(self, client: DynamicClient, mapper: RESTMapper) -> None:
        self._client = client
        self._mapper = mapper

    async def get(self, kind: GroupVersionKind, name: str, namespace: str = "") -> Object:
        return await (await self._source(kind, namespace)).get(name)

    async def list(
        self,
        kind: GroupVersionKind,
        *,
        namespace: str = "",
        label_selector: str = "",
        fields: Mapping[str, str] | None = None,
        limit: int = 0,
    ) -> Sequence[Object]:
        source = await self._source(kind, namespace)
        selector = ",".join(f"{key}={_escaped(value)}" for key, value in (fields or {}).items())
        selection = ListOptions(label_selector=label_selector, field_selector=selector)
        if limit:
            selection["limit"] = limit
            return decode_items((await source.list_raw(**selection)).split())[:limit]
        return [obj async for obj in each_item(source, **selection)]

    async def _source(self, kind: GroupVersionKind, namespace: str) -> ResourceClient:
        mapping = await self._mapper.mapping_of(kind)
        return self._client.resource(mapping.gvr, namespace if mapping.namespaced else "")


class Interceptor(Protocol):
    """Intercepts every write: it may inspect or change it, refuse it by raising, or do something else instead.

    `write` does the write; `verb` is create, update, patch, apply, delete or deletecollection. To intercept reads, give the client
    another Reader: `client.with_options(reader=Mine(client.reader))`."""

    async def __call__(
        self, verb: str, obj: Object, subresource: str, write: Callable[[Object], Awaitable[Object]]
    ) -> Object: ...


class Client:
    """Reads and writes objects. They are dicts, or of types that `scheme.kind` decorates; answers have the type of the argument.

    reader: the manager's cache, or an APIReader. The cache shows a write only a moment later.
    namespace: the only namespace that it works in, which objects needn't name; "": any.
    field_owner: the fieldManager of every write.
    field_validation: Strict, Warn or Ignore, for every write.
    dry_run: nothing is stored.
    """

    def __init__(
        self,
        client: DynamicClient,
        mapper: RESTMapper,
        reader: Reader | None = None,
        *,
        namespace: str = "",
        field_owner: str = "",
        field_validation: str = "",
        dry_run: bool = False,
        interceptor: Interceptor | None = None,
    ) -> None:
        self._client = client
        self._mapper = mapper
        self._reader = reader or APIReader(client, mapper)
        self._namespace = namespace
        self._field_owner = field_owner
        self._field_validation = field_validation
        self._dry_run = dry_run
        self._interceptor = interceptor

    def with_options(
        self,
        *,
        namespace: str | None = None,
        field_owner: str | None = None,
        field_validation: str | None = None,
        dry_run: bool | None = None,
        interceptor: Interceptor | None = None,
        reader: Reader | None = None,
    ) -> "Client":
        """The same client with some of its options changed."""
        return Client(
            self._client,
            self._mapper,
            reader or self._reader,
            namespace=self._namespace if namespace is None else namespace,
            field_owner=self._field_owner if field_owner is None else field_owner,
            field_validation=self._field_validation if field_validation is None else field_validation,
            dry_run=self._dry_run if dry_run is None else dry_run,
            interceptor=interceptor or self._interceptor,
        )

    @property
    def reader(self) -> Reader:
        """The reader behind reads."""
        return self._reader

    # ------------------------------------------------------------------------- reads

    @overload
    async def get(self, kind: GroupVersionKind, name: str, namespace: str = "") -> Object: ...

    @overload
    async def get(self, kind: type[T], name: str, namespace: str = "") -> T: ...

    async def get(self, kind: Kind, name: str, namespace: str = "") -> Any:
        """StatusError (404) when it isn't there, ValueError for what doesn't fit the kind's type or isn't in the client's namespace,
        NoMatchError (a LookupError) for a kind that isn't served."""
        obj = await self._reader.get(gvk_for(kind), name, self._within(namespace))
        return _typed(obj, kind)

    @overload
    async def find(self, kind: GroupVersionKind, name: str, namespace: str = "") -> Object | None: ...

    @overload
    async def find(self, kind: type[T], name: str, namespace: str = "") -> T | None: ...

    async def find(self, kind: Kind, name: str, namespace: str = "") -> Any:
        """`get`, but None when it isn't there. Raises as `get`."""
        try:
            return await self.get(kind, name, namespace)
        except StatusError as error:
            if is_not_found(error):
                return None
            raise

    @overload
    async def list(
        self,
        kind: GroupVersionKind,
        *,
        namespace: str = "",
        labels: str | Mapping[str, str] = "",
        fields: Mapping[str, str] | None = None,
        limit: int = 0,
    ) -> Sequence[Object]: ...

    @overload
    async def list(
        self,
        kind: type[T],
        *,
        namespace: str = "",
        labels: str | Mapping[str, str] = "",
        fields: Mapping[str, str] | None = None,
        limit: int = 0,
    ) -> Sequence[T]: ...

    async def list(
        self,
        kind: Kind,
        *,
        namespace: str = "",
        labels: str | Mapping[str, str] = "",
        fields: Mapping[str, str] | None = None,
        limit: int = 0,
    ) -> Any:
        """`labels`: a selector such as `app in (a,b)`, or labels that must be there. `fields`: by field indexes where reads come
        from the cache. `limit`: not more than so many, 0 is all. StatusError, ValueError."""
        objects = await self._reader.list(
            gvk_for(kind),
            namespace=self._within(namespace),
            label_selector=_selector(labels),
            fields=fields,
            limit=limit,
        )
        return [_typed(obj, kind) for obj in objects]

    # ------------------------------------------------------------------------ writes

    async def create(self, obj: T) -> T:
        """Creates an object and returns what was stored. StatusError."""

        async def created(source: ResourceClient, sent: Object, options: WriteOptions) -> Object:
            return await source.create(sent, **options)

        return await self._write("create", obj, "", created)

    async def update(self, obj: T, subresource: str = "") -> T:
        """Replaces it, or its `subresource` (status). StatusError (409) when it changed since it was read."""

        async def updated(source: ResourceClient, sent: Object, options: WriteOptions) -> Object:
            return await source.update(sent, *_parts(subresource), **options)

        return await self._write("update", obj, subresource, updated)

    async def patch(
        self, obj: T, patch: Object | Sequence[Object], subresource: str = "", *, patch_type: str = MERGE_PATCH
    ) -> T:
        """Patches the object that `obj` names, or its `subresource`. `patch_type` as in client.dynamic. StatusError."""

        async def patched(source: ResourceClient, sent: Object, options: WriteOptions) -> Object:
            name = sent["metadata"]["name"]
            return await source.patch(name, patch, *_parts(subresource), patch_type=patch_type, **options)

        return await self._write("patch", obj, subresource, patched)

    async def apply(self, obj: T, subresource: str = "", *, force: bool = False) -> T:
        """Server-side apply: of `obj` only what the field owner is to own. `force` takes fields from others (ForceOwnership).
        StatusError (409 when others own fields that differ), ValueError when there is no field owner."""
        if not self._field_owner:
            raise ValueError("apply needs a field owner: client.with_options(field_owner=…)")

        async def applied(source: ResourceClient, sent: Object, options: WriteOptions) -> Object:
            return await source.apply(sent, *_parts(subresource), force=force, **options)

        return await self._write("apply", obj, subresource, applied)

    async def update_status(self, obj: T) -> T:
        """`update` of the status subresource."""
        return await self.update(obj, "status")

    async def patch_status(self, obj: T, patch: Object) -> T:
        """`patch` of the status subresource: `{"status": …}`."""
        return await self.patch(obj, patch, "status")

    async def get_subresource(self, obj: Any, subresource: str) -> Object:
        """`scale`, say. StatusError."""
        parent = to_object(obj)
        source = await self._source(parent)
        return await source.get(parent["metadata"]["name"], subresource)

    async def create_subresource(self, obj: Any, subresource: str, body: Object) -> Object:
        """Posts `body` to a subresource of the object that `obj` names (eviction, binding, token): what the server answers.
        StatusError."""

        async def created(source: ResourceClient, sent: Object, options: WriteOptions) -> Object:
            return await source.create(sent, subresource, **options)

        return await self._sent("create", to_object(obj), _named_as(obj, body), subresource, created)

    async def update_subresource(self, obj: Any, subresource: str, body: Object) -> Object:
        """Replaces a subresource that is an object of another kind (scale). StatusError."""

        async def updated(source: ResourceClient, sent: Object, options: WriteOptions) -> Object:
            return await source.update(sent, subresource, **options)

        return await self._sent("update", to_object(obj), _named_as(obj, body), subresource, updated)

    async def delete(self, obj: Any, *, propagation_policy: str = "", grace_period_seconds: int | None = None) -> None:
        """Deletes the object that `obj` names; if it has a uid, only that one. `propagation_policy`: Background, Foreground or
        Orphan, the kind's own without. `grace_period_seconds` None: the kind's own. StatusError (404; 409 for another uid)."""
        metadata = to_object(obj)["metadata"]

        async def deleted(source: ResourceClient, sent: Object, options: WriteOptions) -> Object:
            wanted = DeleteOptions(dry_run=self._dry_run)
            if metadata.get("uid"):
                wanted["uid"] = metadata["uid"]
            if propagation_policy:
                wanted["propagation_policy"] = propagation_policy
            if grace_period_seconds is not None:
                wanted["grace_period_seconds"] = grace_period_seconds
            await source.delete(metadata["name"], **wanted)
            return sent

        await self._write("delete", to_object(obj), "", deleted)

    async def delete_all_of(self, kind: Kind, *, namespace: str = "", labels: str | Mapping[str, str] = "") -> None:
        """Deletes everything that `labels` select, in one namespace. StatusError, ValueError for a namespaced kind without a
        namespace."""
        gvk = gvk_for(kind)
        metadata = {"namespace": namespace} if namespace else {}
        named = {"apiVersion": str(gvk.group_version), "kind": gvk.kind, "metadata": metadata}

        async def deleted(source: ResourceClient, obj: Object, options: WriteOptions) -> Object:
            await source.delete_collection(ListOptions(label_selector=_selector(labels)), dry_run=self._dry_run)
            return obj

        await self._write("deletecollection", named, "", deleted)

    async def _write(self, verb: str, obj: T, subresource: str, write: "_Write") -> T:
        converted = to_object(obj)
        stored = await self._sent(verb, converted, converted, subresource, write)
        return stored if isinstance(obj, dict) else from_object(stored, type(obj))  # type: ignore[return-value]

    async def _sent(self, verb: str, obj: Object, content: Object, subresource: str, write: "_Write") -> Object:
        """Writes `content` where `obj` is."""
        source = await self._source(obj)
        options = WriteOptions(
            dry_run=self._dry_run, field_manager=self._field_owner, field_validation=self._field_validation
        )

        async def written(sent: Object) -> Object:
            return await write(source, sent, options)

        if self._interceptor is None:
            return await written(content)
        return await self._interceptor(verb, content, subresource, written)

    async def _source(self, obj: Object) -> ResourceClient:
        mapping = await self._mapper.mapping_of(gvk_for(obj))
        metadata = obj.setdefault("metadata", {})
        if not mapping.namespaced:
            return self._client.resource(mapping.gvr)
        namespace = self._within(metadata.get("namespace") or "")
        if not namespace:
            raise ValueError(f"{obj['kind']} {metadata.get('name')!r} names no namespace")
        return self._client.resource(mapping.gvr, namespace)

    def _within(self, namespace: str) -> str:
        """The namespace that is meant. ValueError: it isn't the client's."""
        if self._namespace and namespace not in ("", self._namespace):
            raise ValueError(f"namespace {namespace} does not match the namespace {self._namespace} on the client")
        return namespace or self._namespace


_Write = Callable[[ResourceClient, Object, WriteOptions], Awaitable[Object]]


def _parts(subresource: str) -> tuple[str, ...]:
    return (subresource,) if subresource else ()


def _named_as(obj: Any, body: Object) -> Object:
    """A subresource's object has the name of the one it belongs to."""
    name = to_object(obj)["metadata"]["name"]
    return {**body, "metadata": {**(body.get("metadata") or {}), "name": name}}


def _selector(labels: str | Mapping[str, str]) -> str:
    return labels if isinstance(labels, str) else ",".join(f"{key}={value}" for key, value in labels.items())


def _escaped(value: str) -> str:
    """A field's value as a selector has it (upstream: apimachinery/pkg/fields, EscapeValue)."""
    return value.replace("\\", "\\\\").replace(",", "\\,").replace("=", "\\=")


def _typed(obj: Object, kind: Kind) -> Any:
    return obj if isinstance(kind, GroupVersionKind) else from_object(obj, kind)
