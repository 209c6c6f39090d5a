"""From JSON's values to CBOR: texts as byte strings, the shortest float that is exact, bytes under the tag that says base64.

Upstream: k8s.io/apimachinery/pkg/runtime/serializer/cbor/internal/modes/encode.go.
"""

import base64
import struct
from collections.abc import Mapping
from typing import Any, Final, Protocol

from fakeapiserver.apimachinery.serializer.cbor.wire import ARRAY, BYTES, MAP, NEGATIVE, SELF_DESCRIBED, TAG, UNSIGNED

_FALSE, _TRUE, _NULL = b"\xf4", b"\xf5", b"\xf6"
_BASE64: Final = 22
_FLOATS: Final = ((b"\xf9", ">e"), (b"\xfa", ">f"))


class Shape(Protocol):
    """The parts of a value's Go type that JSON lacks:

    which texts are bytes in base64, and which whole numbers are floats.
    """

    is_bytes: bool
    is_float: bool

    @property
    def fields(self) -> Mapping[str, "Shape"]:
        """The members that have a shape."""

    @property
    def values(self) -> "Shape | None":
        """The shape of a list's items, or of a map's other members."""


def head(major: int, argument: int) -> bytes:
    """An item's type and its argument in as few bytes as will do."""
    if argument < 24:
        return bytes((major << 5 | argument,))
    for info, size in ((24, 1), (25, 2), (26, 4)):
        if argument < 1 << (8 * size):
            return bytes((major << 5 | info,)) + argument.to_bytes(size, "big")
    return bytes((major << 5 | 27,)) + argument.to_bytes(8, "big")


_SELF_DESCRIBED: Final = head(TAG, SELF_DESCRIBED)


def encode(obj: Any, shape: Shape | None = None) -> bytes:
    """A document: the tag that says that it is CBOR, then the value."""
    return _SELF_DESCRIBED + encode_item(obj, shape)


def encode_item(value: Any, shape: Shape | None = None) -> bytes:
    out: list[bytes] = []
    _write(value, shape, out)
    return b"".join(out)


def watch_frame(kind: str, obj: bytes) -> bytes:
    """Returns an event of a watch, around the document of its object."""
    return b"".join((_SELF_DESCRIBED, head(MAP, 2), _text("type"), _text(kind), _text("object"), obj))


def _text(text: str) -> bytes:
    raw = text.encode()
    return head(BYTES, len(raw)) + raw


def _write(value: Any, shape: Shape | None, out: list[bytes]) -> None:
    kind = type(value)
    if kind is str:
        out.append(_bytes(value) if shape is not None and shape.is_bytes else _text(value))
    elif kind is dict:
        out.append(head(MAP, len(value)))
        for key, item in value.items():
            out.append(_text(key))
            _write(item, None if shape is None else shape.fields.get(key, shape.values), out)
    elif kind is list:
        out.append(head(ARRAY, len(value)))
        inner = None if shape is None else shape.values
        for item in value:
            _write(item, inner, out)
    elif kind is bool:
        out.append(_TRUE if value else _FALSE)
    elif value is None:
        out.append(_NULL)
    elif kind is int and not (shape is not None and shape.is_float):
        out.append(head(UNSIGNED, value) if value >= 0 else head(NEGATIVE, -1 - value))
    else:
        out.append(_float(float(value)))


def _bytes(text: str) -> bytes:
    raw = base64.b64decode(text)
    return head(TAG, _BASE64) + head(BYTES, len(raw)) + raw


def _float(value: float) -> bytes:
    for first, kind in _FLOATS:
        try:
            packed = struct.pack(kind, value)
        except OverflowError:
            continue
        if struct.unpack(kind, packed)[0] == value:
            return first + packed
    return b"\xfb" + struct.pack(">d", value)
