"""NaCl's secretbox: XSalsa20 for secrecy and Poly1305 for integrity. Pure but for the latter, which `cryptography` has.

Upstream: golang.org/x/crypto/{salsa20/salsa,nacl/secretbox}; D. J. Bernstein, "Extending the Salsa20 nonce".
"""

import struct
from typing import Final

NONCE_SIZE: Final = 24
TAG_SIZE: Final = 16
_BLOCK: Final = 64
_MASK: Final = 0xFFFFFFFF
_CONSTANTS: Final = struct.unpack("<4I", b"expand 32-byte k")
_WORDS: Final = struct.Struct("<16I")
# The indices of a double round's quarter rounds: the columns, then the rows.
_QUARTERS: Final = (
    *((0, 4, 8, 12), (5, 9, 13, 1), (10, 14, 2, 6), (15, 3, 7, 11)),
    *((0, 1, 2, 3), (5, 6, 7, 4), (10, 11, 8, 9), (15, 12, 13, 14)),
)


class Forged(ValueError):
    """The box wasn't made with this key, or was changed."""


def seal(key: bytes, nonce: bytes, message: bytes) -> bytes:
    """The tag and the encrypted message. `key` has 32 bytes, `nonce` 24."""
    stream = _stream(key, nonce, 32 + len(message))
    sealed = _xor(message, stream[32:])
    return _tag(stream[:32], sealed) + sealed


def open_box(key: bytes, nonce: bytes, box: bytes) -> bytes:
    """The message in a box. Raises Forged."""
    tag, sealed = box[:TAG_SIZE], box[TAG_SIZE:]
    stream = _stream(key, nonce, 32 + len(sealed))
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.poly1305 import Poly1305

    try:
        Poly1305.verify_tag(stream[:32], sealed, tag)
    except InvalidSignature:
        raise Forged("the key is another one, or the value was changed") from None
    return _xor(sealed, stream[32:])


def _tag(key: bytes, data: bytes) -> bytes:
    from cryptography.hazmat.primitives.poly1305 import Poly1305

    return Poly1305.generate_tag(key, data)


def _xor(data: bytes, stream: bytes) -> bytes:
    size = len(data)
    return (int.from_bytes(data, "little") ^ int.from_bytes(stream[:size], "little")).to_bytes(size, "little")


def _stream(key: bytes, nonce: bytes, size: int) -> bytes:
    """The beginning of XSalsa20's key stream, of `size` bytes."""
    words = _hsalsa20(struct.unpack("<8I", key), struct.unpack("<4I", nonce[:16]))
    rest = struct.unpack("<2I", nonce[16:])
    blocks = []
    for number in range(-(-size // _BLOCK)):
        state = _state(words, (*rest, number & _MASK, number >> 32))
        mixed = _rounds(state)
        blocks.append(_WORDS.pack(*((a + b) & _MASK for a, b in zip(mixed, state, strict=True))))
    return b"".join(blocks)[:size]


def _hsalsa20(key: tuple[int, ...], nonce: tuple[int, ...]) -> tuple[int, ...]:
    """The key for a nonce's rest, derived from its beginning."""
    mixed = _rounds(_state(key, nonce))
    return tuple(mixed[i] for i in (0, 5, 10, 15, 6, 7, 8, 9))


def _state(key: tuple[int, ...], nonce: tuple[int, ...]) -> list[int]:
    a, b, c, d = _CONSTANTS
    return [a, *key[:4], b, *nonce, c, *key[4:], d]


def _rounds(state: list[int]) -> list[int]:
    x = [*state]
    for _ in range(10):
        for a, b, c, d in _QUARTERS:
            t = (x[a] + x[d]) & _MASK
            x[b] ^= (t << 7 | t >> 25) & _MASK
            t = (x[b] + x[a]) & _MASK
            x[c] ^= (t << 9 | t >> 23) & _MASK
            t = (x[c] + x[b]) & _MASK
            x[d] ^= (t << 13 | t >> 19) & _MASK
            t = (x[d] + x[c]) & _MASK
            x[a] ^= (t << 18 | t >> 14) & _MASK
    return x
