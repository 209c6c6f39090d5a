"""The stored form of objects: JSON bytes without kind and apiVersion, whose keys are in the order in which Go writes them.

`{"metadata":{"name":...,"uid":"...","resourceVersion":"7",...},...}`: the revision is spliced in when it is known, at an offset that is
kept beside the bytes, and the type is added when the object is served, in whichever version was asked for. The keys of a built-in kind's
structs are in the order of their declaration, those of its maps and of custom resources are sorted. They are put in order here, when an
object is written, so that nothing has to be when it is read.
"""

import re
from collections.abc import Callable
from typing import Final

import msgspec
from msgspec import Raw, Struct

from fakeapiserver.apimachinery.gvk import GroupVersionKind
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.schema.key_order import Arrange
from fakeapiserver.apimachinery.serializer import json

_TYPE: Final = ("kind", "apiVersion")
_METADATA: Final = b'{"metadata":'
_UID: Final = b'"uid":"'
# How floats beyond int64 end, written as integers: they have 17 digits at most, and zeroes then. So may others end.
_may_have_long_float: Final = re.compile(rb"00[,}\]]").search
_decode_members: Final = msgspec.json.Decoder(dict[str, Raw]).decode
_encode_members: Final = msgspec.json.Encoder(order="sorted").encode


class Encoded(Struct, frozen=True):
    """An object's stored form without its revision, which goes to `offset`."""

    value: bytes
    offset: int

    def with_revision(self, revision: str) -> bytes:
        at = self.offset
        return self.value[:at] + b'"resourceVersion":' + msgspec.json.encode(revision) + b"," + self.value[at:]


# Gives an object, with or without a resourceVersion, its stored form.
Encode = Callable[[Object], Encoded]


def built_in_encoder(arrange: Arrange) -> Encode:
    """Returns the encoder of a built-in kind, whose keys `arrange` brings into order."""

    def encode(obj: Object) -> Encoded:
        arranged = arrange(obj)
        rest = {key: value for key, value in arranged.items() if key not in _TYPE and key != "metadata"}
        value = json.encode({"metadata": _unversioned(arranged["metadata"]), **rest})
        # Behind the uid, in front of which are texts only: in a text, the quotes would be escaped.
        at = value.find(_UID)
        end = value.find(b'",', at + len(_UID)) + 2
        return Encoded(value, end if at >= 0 and end > 1 else len(_METADATA) + 1)

    return encode


def encode_custom(obj: Object) -> Encoded:
    """The stored form of a custom resource, whose keys are all sorted."""
    members = {key: value for key, value in obj.items() if key not in _TYPE}
    meta = members.pop("metadata")
    before = {key: value for key, value in members.items() if key < "metadata"}
    encoded = json.encode_sorted(_unversioned(meta))
    start = _METADATA
    if before:
        start = json.encode_sorted(before)[:-1] + b"," + _METADATA[1:]
        members = {key: value for key, value in members.items() if key not in before}
    rest = json.encode_sorted(members)
    value = b"".join((start, encoded, b"," if members else b"", rest[1:]))
    # In front of the uid, which is the last key of metadata.
    at = encoded.rfind(_UID) if "uid" in meta else 1
    return Encoded(value, len(start) + at)


def _unversioned(meta: Object) -> Object:
    if "resourceVersion" not in meta:
        return meta
    return {key: value for key, value in meta.items() if key != "resourceVersion"}


def decode(value: bytes, gvk: GroupVersionKind) -> Object:
    """A new object from its stored form, with kind, apiVersion and resourceVersion."""
    members: Object = json.decode(value) if _may_have_long_float(value) else json.decode_plainly(value)
    return {"kind": gvk.kind, "apiVersion": gvk.api_version, **members}


class TypePrefix:
    """Adds the type to stored forms. `custom`: of custom resources, whose keys are all sorted."""

    __slots__ = ("_custom", "_members", "prefix")

    def __init__(self, gvk: GroupVersionKind, *, custom: bool) -> None:
        self._custom = custom
        self._members = {"kind": gvk.kind, "apiVersion": gvk.api_version}
        # Replaces the first brace of an object whose first key is metadata.
        self.prefix = json.encode(dict(sorted(self._members.items())) if custom else self._members)[:-1] + b","

    def added(self, value: bytes) -> bytes:
        """The object as it is served."""
        if not self._custom or value.startswith(_METADATA):
            return self.prefix + value[1:]
        # A key of the object's own is in front of metadata, and maybe of the type.
        return _encode_members({**_decode_members(value), **self._members})

    def added_to_all(self, values: list[bytes]) -> bytes:
        """The objects as items of a list, without the brackets."""
        return b",".join(map(self.added, values))
