"""Objects in etcd, as a real API server keeps them.

Built-in kinds are protobuf, or JSON if --storage-media-type says so; custom resources, CustomResourceDefinitions and APIServices are JSON.
Both are read always. Each object is in the version that its apiVersion names, which needn't be served, without a resourceVersion.

Upstream: k8s.io/apiserver/pkg/server/options/encryptionconfig, pkg/storage/etcd3/store.go, pkg/server/storage/storage_factory.go.
"""

from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from msgspec import Struct

from fakeapiserver.apimachinery.gvk import GroupResource, GroupVersion, GroupVersionKind
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.serializer import protobuf
from fakeapiserver.apis import conversion
from fakeapiserver.apis import protobuf as protobuf_messages
from fakeapiserver.apis.scheme import APIResource, known_kinds
from fakeapiserver.endpoints.scopes import RequestScopes, key_name
from fakeapiserver.registry.apiextensions.custom_kind import CustomKind
from fakeapiserver.registry.generic import canonical
from fakeapiserver.registry.generic.store import Store
from fakeapiserver.server.upkeep import storage_versions
from fakeapiserver.state.etcd import objects
from fakeapiserver.storage.encryption.transformers import IDENTITY, NO_ENCRYPTION, ResourceTransformers, Transformer
from fakeapiserver.storage.etcd.values import Decoded
from fakeapiserver.storage.interface import Index
from fakeapiserver.storage.keys import ROOT, below, prefix_of, resource_of, rooted

PROTOBUF: Final = "application/vnd.kubernetes.protobuf"
_EVENTS: Final = "events"
# Resources of API servers that are built on the same storage, but always use JSON.
_ALWAYS_JSON: Final = frozenset(("apiextensions.k8s.io", "apiregistration.k8s.io"))


class _Kind(Struct, frozen=True):
    """A built-in resource: a served version of it, the store of its objects, and the version in which they are written."""

    row: APIResource
    store: Store
    written: GroupVersionKind

    @property
    def resource(self) -> GroupResource:
        return self.row.gvr.group_resource


class ServerValues:
    """The values of a server. `scopes` is set before the first object is read or written. `event_ttl`: seconds."""

    scopes: RequestScopes

    def __init__(
        self,
        media_type: str = PROTOBUF,
        event_ttl: int = 3600,
        encryption: ResourceTransformers = NO_ENCRYPTION,
        prefix: str = ROOT,
    ) -> None:
        self.encryption = encryption
        self._prefix = rooted(prefix)
        self.writes_protobuf = media_type == PROTOBUF
        self._event_ttl = event_ttl
        self._rows: dict[str, list[APIResource]] = {}
        self._kinds: dict[str, _Kind | None] = {}
        # The custom resources of which an object was read before their definition was there: their indices aren't complete.
        self._unknown: set[GroupResource] = set()

    @property
    def version(self) -> str:
        """The Kubernetes version whose kinds are known."""
        return self.scopes.table.scheme.version

    def seconds(self, key: str) -> int:
        """Events expire."""
        return self._event_ttl if resource_of(key) == _EVENTS else 0

    # ------------------------------------------------------------------ writing

    def encode(self, key: str, value: bytes, index: Index) -> bytes:
        """Raises LookupError for a key of no resource."""
        return self._transformer(key).write(self._document(key, value, index), self._place(key))

    def _document(self, key: str, value: bytes, index: Index) -> bytes:
        kind = self._builtin(key)
        if kind is None:
            return self._custom_document(key, value, index)
        gvk = kind.written
        if not self.writes_protobuf or kind.resource.group in _ALWAYS_JSON:
            return canonical.TypePrefix(gvk, custom=False).added(value) + b"\n"
        api_version = str(gvk.group_version)
        message = protobuf_messages.message_finder(self.version)(api_version, gvk.kind)
        if message is None:
            return canonical.TypePrefix(gvk, custom=False).added(value) + b"\n"
        encode = protobuf_messages.encoder(self.version).message(message)
        return protobuf.envelope(api_version, gvk.kind, (encode(canonical.decode(value, kind.store.gvk)),))

    def _custom_document(self, key: str, value: bytes, index: Index) -> bytes:
        group, _, plural = resource_of(key).partition("/")
        store = self.scopes.store_for(GroupResource(group, plural))
        if store is None:
            raise LookupError(f"{plural}.{group} is not served")
        gvk = GroupVersionKind(group, index.version or store.gvk.version, store.gvk.kind)
        return canonical.TypePrefix(gvk, custom=True).added(value) + b"\n"

    # ------------------------------------------------------------------ reading

    def decode(self, key: str, data: bytes) -> Decoded | None:
        """Raises ValueError with the rest of a sentence whose subject is the key."""
        if objects.is_own_key(key):
            return None
        plain = self._transformer(key).read(data, self._place(key))
        obj = objects.decode_value(plain.value, self.version)
        obj["metadata"].pop("resourceVersion", None)
        kind = self._builtin(key)
        return self._custom(key, obj) if kind is None else self._decoded(kind, obj)

    def can_be_stale(self, key: str) -> bool:
        """Reports whether the configuration encrypts the resource, or has keys to decrypt it."""
        return self._transformer(key) is not IDENTITY

    def is_stale(self, key: str, data: bytes) -> bool:
        """Reports whether another than the first key has encrypted the bytes."""
        return self._transformer(key).read(data, self._place(key)).is_stale

    def _transformer(self, key: str) -> Transformer:
        return self.encryption.of(self._group_resource(key))

    def _place(self, key: str) -> bytes:
        """The key in etcd, which some values are bound to."""
        return below(self._prefix, key).encode()

    def _group_resource(self, key: str) -> GroupResource:
        """The resource by which a configuration names the objects of the key."""
        name = resource_of(key)
        if name == _EVENTS:
            return GroupResource("", _EVENTS)
        kind = self._builtin(key)
        if kind is not None:
            return kind.resource
        group, _, plural = name.partition("/")
        return GroupResource(group, plural)

    def _decoded(self, kind: _Kind, obj: Object) -> Decoded:
        gvk, store = GroupVersionKind(*GroupVersion.parse(obj["apiVersion"]), obj["kind"]), kind.store
        row = self.scopes.table.for_kind(gvk)
        if row is None and self._is_version_of(gvk, kind):  # the stored version needn't be one that is served
            row = kind.row
            obj = conversion.convert(obj, row.gvk)
        scope = self.scopes.lookup(*row.gvr) if row is not None else None
        if scope is None:
            raise ValueError(f"is a {gvk.kind} of {gvk.group_version}, which isn't served")
        scope.kind.decode(obj)
        scope.kind.default(obj)
        stored = store.versions.to_storage(obj)
        encoded = store.versions.encode(stored)
        return Decoded(encoded.value, encoded.offset, store.index(stored))

    def _is_version_of(self, gvk: GroupVersionKind, kind: _Kind) -> bool:
        """Reports whether it is a version that this Kubernetes version has of the kind."""
        known = known_kinds(self.version).get(str(gvk.group_version), ())
        return gvk.kind in known and conversion.storage_gvk(gvk) == kind.store.gvk

    def _custom(self, key: str, obj: Object) -> Decoded:
        """A custom resource, in the version in which it was written."""
        group, _, plural = resource_of(key).partition("/")
        version = GroupVersion.parse(obj["apiVersion"]).version
        store = self.scopes.store_for(GroupResource(group, plural))
        meta = obj["metadata"]
        labels, uid = meta.get("labels") or {}, meta.get("uid", "")
        if store is None:
            self._unknown.add(GroupResource(group, plural))
            encoded = canonical.encode_custom(obj)
            fields = {"metadata.name": meta["name"], "metadata.namespace": meta.get("namespace", "")}
        else:
            _bring_in_line(obj, store)
            encoded = canonical.encode_custom(obj)
            fields = store.strategy.fields_of(obj)
        return Decoded(encoded.value, encoded.offset, Index(labels, fields, uid, version))

    def defined(self) -> Iterator[str]:
        """Yields the prefixes of resources of which objects were read before their definition, each once it is there."""
        for resource in [each for each in self._unknown if self.scopes.store_for(each) is not None]:
            self._unknown.remove(resource)
            yield prefix_of(resource.group, resource.resource)

    def _builtin(self, key: str) -> _Kind | None:
        """The built-in resource of a key; None if it is a custom one."""
        name = resource_of(key)
        if name not in self._kinds:
            kind = self._looked_up(name)
            if kind is None and "." not in name.partition("/")[0]:
                raise ValueError(f"is one of the {name}, which this server doesn't serve")
            self._kinds[name] = kind
        return self._kinds[name]

    def _looked_up(self, name: str) -> _Kind | None:
        if not self._rows:
            for row in self.scopes.table:
                if "get" in row.verbs and not row.custom:
                    self._rows.setdefault(key_name(row), []).append(row)
        for row in self._rows.get(name, ()):
            store = self.scopes.store_for(row.gvr.group_resource)
            if store is not None:
                return _Kind(row, store, self._written(row, store.gvk))
        return None

    def _written(self, row: APIResource, gvk: GroupVersionKind) -> GroupVersionKind:
        """The kind as which objects are written. Upstream's is often older than the newest one, so that the Kubernetes version before
        can read them."""
        version = storage_versions.encoding(self.version, row.gvr.group_resource)
        written = gvk if version is None else GroupVersionKind(*GroupVersion.parse(version), gvk.kind)
        return written if conversion.alike(gvk, written) else gvk


def _bring_in_line(obj: Object, store: Store) -> None:
    """Prunes a custom resource, adds defaults and takes empty metadata out: other servers do so whenever they read it."""
    with suppress(LookupError):  # a version that the definition doesn't have any more
        kind = store.versions.kind_in(obj["apiVersion"])
        assert isinstance(kind, CustomKind)
        kind.decode(obj)
        kind.structural.default(obj)
