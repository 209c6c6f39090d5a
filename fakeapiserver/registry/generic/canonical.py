"""The stored form of objects: canonical JSON bytes without kind and apiVersion, metadata first.

`{"metadata":{"resourceVersion":"7","name":...},...}`: the revision is spliced in at a fixed offset when it is known, and the
type is put in front when the object is served, in whichever version was asked for.
"""

from typing import Final

import msgspec

from fakeapiserver.apimachinery.gvk import GroupVersionKind
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.serializer import json

REVISION_OFFSET: Final = len(b'{"metadata":{')
_TYPE: Final = ("kind", "apiVersion")
# How floats beyond int64 end, written as integers: they have 17 digits at most, and zeroes then. So may others end.
_LONG_FLOAT_ENDS: Final = (b"00,", b"00}", b"00]")


def encode(obj: Object) -> bytes:
    """The stored form of an object, without resourceVersion."""
    meta = obj["metadata"]
    if "resourceVersion" in meta:
        meta = {key: value for key, value in meta.items() if key != "resourceVersion"}
    return json.encode(
        {"metadata": meta, **{key: v for key, v in obj.items() if key not in _TYPE and key != "metadata"}}
    )


def decode(value: bytes, gvk: GroupVersionKind) -> Object:
    """A new object from its stored form, with kind, apiVersion and resourceVersion."""
    may_have_long_float = any(end in value for end in _LONG_FLOAT_ENDS)
    found: Object = json.decode(value) if may_have_long_float else msgspec.json.decode(value)
    return {"kind": gvk.kind, "apiVersion": str(gvk.group_version), **found}


def type_prefix(gvk: GroupVersionKind) -> bytes:
    """What replaces the first brace of a stored object's bytes when it is served."""
    return f'{{"kind":"{gvk.kind}","apiVersion":"{gvk.group_version}",'.encode()
