"""Comparing quantities (`1Gi`, `500m`, `2e3`), for plugins that ask which is larger.

Upstream: k8s.io/apimachinery/pkg/api/resource/quantity.go.
"""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Final

_SUFFIXES: Final = {
    **{suffix: Fraction(1024**i) for i, suffix in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"), 1)},
    **{suffix: Fraction(1000**i) for i, suffix in enumerate(("k", "M", "G", "T", "P", "E"), 1)},
    "m": Fraction(1, 1000),
    "u": Fraction(1, 10**6),
    "n": Fraction(1, 10**9),
}


def amount(quantity: Any) -> Fraction:
    """The exact value of a quantity that has passed validation; an absent one is 0."""
    text = str(quantity or "0")
    for suffix in (text[-2:], text[-1:]):
        if suffix in _SUFFIXES:
            return Fraction(text[: -len(suffix)]) * _SUFFIXES[suffix]
    return Fraction(text)


def same_amounts(left: Mapping[str, Any], right: Mapping[str, Any]) -> bool:
    """Whether two resource lists hold the same, however written."""
    return left.keys() == right.keys() and all(amount(left[key]) == amount(right[key]) for key in left)
