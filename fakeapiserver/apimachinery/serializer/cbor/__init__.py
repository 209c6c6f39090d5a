r"""application/cbor (RFC 8949) with Kubernetes' rules: which documents are read, what they mean, and upstream's words for the others.

A body is one data item, after the tag that says so (55799) or without it. Texts are written as byte strings, as upstream writes them.

Upstream: k8s.io/apimachinery/pkg/runtime/serializer/cbor, github.com/fxamacker/cbor/v2.
"""

from fakeapiserver.apimachinery.serializer.cbor.diagnose import diagnose
from fakeapiserver.apimachinery.serializer.cbor.encode import Shape, encode, encode_item, watch_frame
from fakeapiserver.apimachinery.serializer.cbor.read import Reader, decode_map
from fakeapiserver.apimachinery.serializer.cbor.wire import (
    MAX_DEPTH,
    DecodeError,
    DuplicateKey,
    Mismatch,
    UnknownField,
)

__all__ = [
    "MAX_DEPTH",
    "DecodeError",
    "DuplicateKey",
    "Mismatch",
    "Reader",
    "Shape",
    "UnknownField",
    "decode_map",
    "diagnose",
    "encode",
    "encode_item",
    "watch_frame",
]
