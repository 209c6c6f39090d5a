"""Answers as CBOR, from the JSON that is stored.

Upstream: k8s.io/apimachinery/pkg/runtime/serializer/cbor/cbor.go.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from fakeapiserver.apimachinery.schema.cbor import shapes
from fakeapiserver.apimachinery.serializer import cbor


class CBORForm:
    """Encodes one kind's stored objects.

    shape: as CBOR shapes objects, or None for maps.
    served: returns stored bytes as an object in JSON, with its type.
    """

    def __init__(self, shape: Any, served: Callable[[bytes], bytes]) -> None:
        self._served = served
        self._shape = shape
        self._list_shape = shapes.list_shape(self._shape)

    def object(self, value: bytes) -> bytes:
        return cbor.encode(msgspec.json.decode(self._served(value)), self._shape)

    def list(self, listing: bytes) -> bytes:
        """The bytes of a list in JSON as CBOR."""
        return cbor.encode(msgspec.json.decode(listing), self._list_shape)
