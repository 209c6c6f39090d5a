"""The Kubernetes objects in a file of etcd.

>>> snapshot = objects_of("backup.db")                                     # doctest: +SKIP
>>> objects = {key: obj["metadata"]["name"] for key, obj in snapshot.objects}  # doctest: +SKIP
>>> reasons = dict(snapshot.untaken)                                       # doctest: +SKIP

Built-in kinds are stored as protobuf, custom resources, CustomResourceDefinitions and APIServices as JSON (or CBOR). Each object keeps the
version that it is stored in; only CustomResourceDefinitions, which are stored in v1beta1, are converted to v1. Encrypted values are
listed, unless the transformers of an EncryptionConfiguration read them.

Upstream: k8s.io/apiserver/pkg/storage/etcd3, pkg/storage/value, pkg/registry/core/service/allocator/storage.
"""

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from msgspec import Struct

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.serializer import cbor, json, protobuf
from fakeapiserver.apis import protobuf as protobuf_messages
from fakeapiserver.apis.recorded import NEWEST
from fakeapiserver.effort import without_collections
from fakeapiserver.state.etcd import definitions, snapshot
from fakeapiserver.storage.encryption.transformers import ENCRYPTED, NO_ENCRYPTION, ResourceTransformers
from fakeapiserver.storage.keys import ROOT

_CBOR: Final = b"\xd9\xd9\xf7"
# Keys of API servers below the prefix that are not objects of the API.
_OWN_KEYS: Final[Mapping[str, str]] = {
    "ranges": "is a record of allocated addresses or ports, which API servers keep for themselves",
    "masterleases": "is the record by which an API server announces its address to the others",
    "peerserverleases": "is the record by which an API server announces its address to the others",
    "health": "is a key that checks of etcd's health read",
}


class LoadedSnapshot(Struct, frozen=True):
    """The objects in a file of etcd.

    - `revision`, `compacted`: the store's revision, and the one up to which its history is gone.
    - `objects`: key and object, in the order of the keys. An object has its stored apiVersion, and the revision of its last write as
      its resourceVersion. Zero values of built-in kinds are left out: decoding them as that kind adds what JSON shows.
    - `untaken`: the other keys, each with the reason as the rest of a sentence.
    """

    revision: int
    compacted: int
    objects: Sequence[tuple[str, Object]]
    untaken: Sequence[tuple[str, str]]


def objects_of(
    source: str | os.PathLike[str] | bytes,
    prefix: str = ROOT,
    *,
    version: str = NEWEST,
    name: str = "",
    encryption: ResourceTransformers = NO_ENCRYPTION,
) -> LoadedSnapshot:
    """The objects in a file of `etcdctl snapshot save`, in a member's `member/snap/db`, or in the bytes of such a file.

    `prefix` is the API server's --etcd-prefix, `version` the Kubernetes version whose kinds are known, `encryption` decrypts values.
    Messages begin with `name`, by
    default the file's. Raises OSError, and ValueError with one sentence if the content is damaged or not from etcd.
    """
    keyspace = snapshot.read(source, name)
    below = f"/{prefix.strip('/')}/" if prefix.strip("/") else "/"
    objects: list[tuple[str, Object]] = []
    untaken: list[tuple[str, str]] = []
    with without_collections():
        for raw_key, stored in keyspace.keys.items():
            key = raw_key.decode(errors="backslashreplace")
            try:
                obj = _object_at(key, stored.value, below, version, encryption)
            except (ValueError, RecursionError) as error:
                untaken.append((key, str(error)))
                continue
            obj["metadata"]["resourceVersion"] = str(stored.mod_revision)
            objects.append((key, obj))
    return LoadedSnapshot(keyspace.revision, keyspace.compacted, objects, untaken)


def is_own_key(key: str) -> bool:
    """Reports whether a key below `/registry` is one that API servers keep for themselves."""
    return key[len(ROOT) + 1 :].partition("/")[0] in _OWN_KEYS


def _object_at(key: str, value: bytes, below: str, version: str, encryption: ResourceTransformers) -> Object:
    """Raises ValueError with the reason for which a key is no object of the API."""
    if not key.startswith(below):
        raise ValueError(f"is not below {below}, where the API server keeps its objects")
    own = _OWN_KEYS.get(key[len(below) :].partition("/")[0])
    if own:
        raise ValueError(own)
    if value.startswith(ENCRYPTED):
        for plain in encryption.readings(value, key.encode()):
            with suppress(ValueError):
                return decode_value(plain, version)
    return decode_value(value, version)


def decode_value(value: bytes, version: str) -> Object:
    """The object in a value. Raises ValueError with the rest of a sentence whose subject is the key."""
    if value.startswith(ENCRYPTED):
        raise ValueError(_encrypted(value))
    obj = _message(value, version) if value.startswith(protobuf.MAGIC) else _document(value)
    if not isinstance(obj, dict) or not all(isinstance(obj.get(part), str) for part in ("apiVersion", "kind")):
        raise ValueError("is not an object: it has no apiVersion and kind")
    if not isinstance(obj.get("metadata"), dict) or not obj["metadata"].get("name"):
        raise ValueError("is not an object: it has no metadata with a name")
    return definitions.to_v1(obj) if (obj["apiVersion"], obj["kind"]) == definitions.STORED else obj


def _message(value: bytes, version: str) -> Object:
    try:
        api_version, kind, raw = protobuf.unwrap(value)
    except ValueError as error:
        raise ValueError(f"is not valid protobuf: {error}") from None
    message = protobuf_messages.message_finder(version)(api_version, kind)
    if message is None:
        raise ValueError(f"is a {kind} of {api_version}, which Kubernetes {version} doesn't have")
    try:
        fields = protobuf_messages.decoder(version).message(message)(raw)
    except ValueError as error:
        raise ValueError(f"is not a valid {kind} of {api_version}: {error}") from None
    return {"apiVersion": api_version, "kind": kind, **fields}


def _document(value: bytes) -> Any:
    """JSON or CBOR."""
    if not value.startswith((_CBOR, b"{")):
        begin = f"it begins with {value[:8].hex()}" if value else "it is empty"
        raise ValueError(f"is neither protobuf, JSON, CBOR nor encrypted: {begin}")
    form = "CBOR" if value.startswith(_CBOR) else "JSON"
    try:
        return cbor.decode_map(value) if form == "CBOR" else json.decode(value)
    except ValueError as error:
        raise ValueError(f"is not valid {form}: {error}") from None


def _encrypted(value: bytes) -> str:
    """`k8s:enc:aescbc:v1:key1:…` -> the provider's name and the key's."""
    provider, _, rest = value[len(ENCRYPTED) :][:256].partition(b":")
    key = rest.partition(b":")[2].partition(b":")[0]
    return (
        f"is encrypted by the provider {provider.decode(errors='backslashreplace')}"
        f" with the key {key.decode(errors='backslashreplace')}; "
        "load it with its --encryption-provider-config, or save a snapshot of it with the provider identity"
    )
