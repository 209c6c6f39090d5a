"""Names for pod templates, and whether two are the same (upstream: pkg/controller/controller_utils.go, ComputeHash)."""

import zlib
from typing import Any, Final

import msgspec

from fakeapiserver.apimachinery import quantity
from fakeapiserver.apimachinery.meta import Object

_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
_QUANTITIES: Final = ("limits", "requests", "capacity", "overhead")
_encode: Final = msgspec.json.Encoder(order="deterministic").encode


def safe_encoded(number: int) -> str:
    """Its digits as letters that make no words (upstream: k8s.io/apimachinery/pkg/util/rand, SafeEncodeString)."""
    return "".join(_ALPHABET[ord(digit) % len(_ALPHABET)] for digit in str(number))


def content_hash(content: object, probe: str = "") -> str:
    """A short name for a JSON value; another one for each `probe`."""
    return safe_encoded(zlib.crc32(probe.encode(), zlib.crc32(_encode(content))))


def compute_hash(template: Object, collision_count: int | None) -> str:
    """A template's name; another one for each number of collisions."""
    return content_hash(template, "" if collision_count is None else str(collision_count))


def same_templates(left: Object, right: Object, ignored_label: str) -> bool:
    """Reports whether pods of both would be alike, whatever the label `ignored_label` says. Nothing and what is empty are the same, and so
    are two ways to write an amount (upstream: Semantic.DeepEqual).
    """
    one, other = left.get("metadata") or {}, right.get("metadata") or {}
    return (
        without(one.get("labels") or {}, ignored_label) == without(other.get("labels") or {}, ignored_label)
        and semantically_equal(left.get("spec"), right.get("spec"))
        and semantically_equal(without(one, "labels"), without(other, "labels"))
    )


def without(mapping: dict[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in mapping.items() if name != key}


def semantically_equal(left: Any, right: Any, *, amounts: bool = False) -> bool:
    """Two JSON values. `amounts`: they hold quantities."""
    if left == right or (left in (None, [], {}) and right in (None, [], {})):
        return True
    if isinstance(left, dict) and isinstance(right, dict):
        return all(
            semantically_equal(left.get(key), right.get(key), amounts=amounts or key in _QUANTITIES)
            for key in left.keys() | right.keys()
        )
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(
            semantically_equal(one, other, amounts=amounts) for one, other in zip(left, right, strict=True)
        )
    if amounts and isinstance(left, str) and isinstance(right, str):
        try:
            return quantity.amount(left) == quantity.amount(right)
        except ValueError:
            return False
    return False
