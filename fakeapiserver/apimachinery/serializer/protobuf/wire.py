r"""The bytes that protobuf is made of, and the two frames Kubernetes puts around a message.

Upstream: k8s.io/apimachinery/pkg/runtime/serializer/protobuf/protobuf.go, pkg/util/framer/framer.go.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

Field = tuple[str, str, str]
Messages = Mapping[str, Mapping[int, Field]]

MAGIC: Final = b"k8s\x00"
VARINT: Final = 0
DELIMITED: Final = 2
# Messages with a list of texts and nothing else, which JSON shows as that list.
STRING_LISTS: Final = (
    *(f"k8s.io.api.{group}.v1.ExtraValue" for group in ("authentication", "authorization", "certificates")),
    "k8s.io.api.authentication.v1.AttestationValue",
)
_BYTES: Final = tuple(bytes([byte]) for byte in range(256))
_MASK: Final = (1 << 64) - 1


class DecodeError(ValueError):
    """Bytes that are no message; the text is for a 400."""


def varint(value: int) -> bytes:
    """Seven bits a byte; a negative number as its 64-bit complement."""
    if 0 <= value < 128:
        return _BYTES[value]
    value &= _MASK
    encoded = bytearray()
    while value > 127:
        encoded.append(value & 127 | 128)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def tag(number: int, wire: int) -> bytes:
    return varint(number << 3 | wire)


def delimited(number: int) -> Callable[[bytes], bytes]:
    """The writer of a field of text, bytes or a message."""
    start = tag(number, DELIMITED)
    short = tuple(start + byte for byte in _BYTES[:128])

    def write(data: bytes) -> bytes:
        size = len(data)
        return (short[size] if size < 128 else start + varint(size)) + data

    return write


_first, _second = delimited(1), delimited(2)
# Unknown's contentEncoding and contentType: never set, always written.
_NO_CONTENT: Final = delimited(3)(b"") + delimited(4)(b"")


def envelope(api_version: str, kind: str, messages: Iterable[bytes]) -> bytes:
    """A runtime.Unknown around a message, which comes in parts."""
    raw = b"".join(messages)
    type_meta = _first(_first(api_version.encode()) + _second(kind.encode()))
    return b"".join((MAGIC, type_meta, tag(2, DELIMITED), varint(len(raw)), raw, _NO_CONTENT))


def watch_frame(event_type: str, enveloped: bytes) -> bytes:
    """Returns an event of a watch:

    a metav1.WatchEvent without an envelope, after its length (four bytes, big endian).
    """
    event = _first(event_type.encode()) + _second(_first(enveloped))
    return len(event).to_bytes(4, "big") + event
