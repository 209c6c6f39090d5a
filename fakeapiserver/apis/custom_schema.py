"""The schemas of CustomResourceDefinitions in a compact form, until they are used.

Upstream: k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1/types_jsonschema.go
"""

import hashlib

import msgspec

from fakeapiserver.apimachinery.schema.resolve import Schema


class CustomSchema:
    """A version's openAPIV3Schema, packed. `digest` identifies it.

    A thousand operators' schemas are 90 MB as text and five times that as dicts, which the garbage collector
    walks again and again; most of
    them are never used.
    """

    __slots__ = ("_packed", "digest")

    def __init__(self, schema: Schema | None) -> None:
        self._packed = msgspec.msgpack.encode(schema)
        self.digest = hashlib.sha256(self._packed).hexdigest()

    def unpacked(self) -> Schema:
        """A fresh copy; empty where there is no schema."""
        schema: Schema | None = msgspec.msgpack.decode(self._packed)
        return schema or {}
