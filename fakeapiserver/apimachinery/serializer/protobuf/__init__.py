r"""application/vnd.kubernetes.protobuf: built-in kinds as bytes, from and to the same objects that their JSON gives.

A body is `k8s\0` and a runtime.Unknown envelope (type, raw object). The messages come from a recorded table, `Messages`: full name
-> field number -> (JSON name, type, label); an empty JSON name marks a struct whose fields JSON shows inline, an empty label what
Go always writes, zero or not.

Upstream: k8s.io/apimachinery/pkg/runtime/serializer/protobuf/protobuf.go.
"""

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.serializer.protobuf.decode import MAX_DEPTH, MAX_ITEMS, Decoder, decode, unwrap
from fakeapiserver.apimachinery.serializer.protobuf.encode import Encoder
from fakeapiserver.apimachinery.serializer.protobuf.wire import (
    MAGIC,
    DecodeError,
    Field,
    Messages,
    envelope,
    watch_frame,
)

__all__ = [
    "MAGIC",
    "MAX_DEPTH",
    "MAX_ITEMS",
    "DecodeError",
    "Decoder",
    "Encoder",
    "Field",
    "Messages",
    "Object",
    "decode",
    "envelope",
    "unwrap",
    "watch_frame",
]
