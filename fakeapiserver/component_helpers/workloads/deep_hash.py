"""Hashes of objects that decide an order others can see (upstream: k8s.io/kubernetes/pkg/util/hash, hash/fnv).

The text that is hashed is what Go's spew shows of a struct: callers write that text, with `spew` for each member.
"""

from typing import Final

_OFFSET: Final = 0x6C62272E07BB014262B821756295C58D
_PRIME: Final = (1 << 88) + 0x13B
_MASK: Final = (1 << 128) - 1


def fnv128a(text: str) -> int:
    """FNV-1a of the text's UTF-8."""
    digest = _OFFSET
    for byte in text.encode():
        digest = (digest ^ byte) * _PRIME & _MASK
    return digest


def spew(name: str, go_type: str, value: object) -> str:
    """A member of a struct, `Port:(int32)80`; None is a nil pointer."""
    return f"{name}:({go_type}){'<nil>' if value is None else value}"
