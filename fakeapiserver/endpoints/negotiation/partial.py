"""Stored objects as PartialObjectMetadata, made from nothing but their metadata.

Garbage collectors and quotas watch every kind like this. Upstream: k8s.io/apiserver/pkg/endpoints/handlers/response.go.
"""

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from fakeapiserver.apimachinery.gvk import GroupVersionKind
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.apimachinery.schema.key_order import Arrange
from fakeapiserver.apimachinery.serializer import json
from fakeapiserver.endpoints.negotiation.protobuf import StoredForm

_KIND: Final = "PartialObjectMetadata"


class _Metadata(msgspec.Struct):
    metadata: msgspec.Raw


_decode: Final = msgspec.json.Decoder(_Metadata).decode


class PartialForm:
    """Encodes one kind's objects as one version of PartialObjectMetadata.

    `restored` returns stored bytes in the version whose metadata is shown, `converted_annotations` is the
    strategy's. `arrange` sorts stored
    metadata into the order of Go's struct; None if it is sorted.
    """

    def __init__(
        self,
        version: str,
        restored: Callable[[bytes], bytes],
        converted_annotations: Mapping[str, str],
        arrange: Arrange | None = None,
    ) -> None:
        self._type = {"kind": _KIND, "apiVersion": f"meta.k8s.io/{version}"}
        self._head = f'{{"kind":"{_KIND}","apiVersion":"meta.k8s.io/{version}","metadata":'.encode()
        self._list_head = f'{{"kind":"{_KIND}List","apiVersion":"meta.k8s.io/{version}","metadata":'.encode()
        self._restored = restored
        self._internal = converted_annotations
        self._arrange = arrange
        self.protobuf = StoredForm(GroupVersionKind("meta.k8s.io", version, _KIND), _KIND + "List", self.object)

    def of(self, obj: Object) -> Object:
        """A decoded object's metadata."""
        meta = metadata(obj)
        if self._internal and "annotations" in meta:
            kept = {key: value for key, value in meta["annotations"].items() if key not in self._internal}
            meta = {key: value for key, value in meta.items() if key != "annotations"}
            if kept:
                meta["annotations"] = kept
        return {**self._type, "metadata": meta if self._arrange is None else self._arrange(meta)}

    def object(self, value: bytes) -> bytes:
        """A stored object's metadata, as JSON."""
        restored = self._restored(value)
        if self._internal or self._arrange is not None:
            return json.encode(self.of(msgspec.json.decode(restored)))
        return b"".join((self._head, _decode(restored).metadata, b"}"))

    def list(self, values: list[bytes], list_meta: Object) -> bytes:
        """Stored objects' metadata, as a list in JSON."""
        # Upstream's list of none is no list.
        items = b"".join((b"[", b",".join(map(self.object, values)), b"]")) if values else b"null"
        return b"".join((self._list_head, json.encode(list_meta), b',"items":', items, b"}"))
