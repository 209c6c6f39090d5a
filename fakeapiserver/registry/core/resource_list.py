"""Lists of quantities by resource: compared, summed, rounded.

Upstream: pkg/apis/core/v1/defaults.go (SetDefaults_ResourceList), k8s.io/apimachinery/pkg/api/resource/quantity.go.
"""

import re
from collections.abc import Iterable
from decimal import ROUND_CEILING, ROUND_UP, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from math import ceil
from typing import Final

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.quantity import Quantity, parse

_NUMBER: Final = re.compile(r"([+-]?[0-9.]+)(.*)")
_BINARY: Final = ("Ei", "Pi", "Ti", "Gi", "Mi", "Ki")
_DECIMAL: Final = ("E", "P", "T", "G", "M", "k", "", "m", "u", "n")
_POWERS: Final = {
    **{suffix: Decimal(1024) ** (6 - i) for i, suffix in enumerate(_BINARY)},
    **{suffix: Decimal(1000) ** (6 - i) for i, suffix in enumerate(_DECIMAL)},
}
_FINE: Final = ("n", "u")
_INT64: Final = 2**63
_SMALL_DIGITS: Final = 18
_IN_ONE_STEP: Final = (0, 1, 2, 3, 6, 9)
# No amount that is let in has more digits, so that what is computed here is exact.
_EXACT: Final = Context(prec=4000)


@lru_cache(maxsize=4096)
def quantity(text: str) -> Decimal:
    """The number in a quantity's text; 0 if it isn't a quantity."""
    match = _NUMBER.fullmatch(text)
    if not match:
        return Decimal(0)
    power = _POWERS.get(match[2])
    return _EXACT.multiply(Decimal(match[1]), power) if power is not None else Decimal(f"{match[1]}{match[2]}")


def is_whole(text: str) -> bool:
    """Reports whether a quantity is a whole number, as upstream asks: of its thousandths in 64 bits."""
    return int64_value(text, 1000) % 1000 == 0


def int64_value(text: str, factor: int = 1) -> int:
    """A quantity, or its thousandths, rounded away from zero (Quantity.ScaledValue). What doesn't fit into 64 bits wraps around, but
    where Go multiplies by ten until it notices: there it is 0."""
    whole = int(_EXACT.multiply(quantity(text), factor).to_integral_value(ROUND_UP))
    if -_INT64 <= whole < _INT64:
        return whole
    return 0 if _multiplies_by_ten(text, factor) else (whole + _INT64) % (2 * _INT64) - _INT64


def _multiplies_by_ten(text: str, factor: int) -> bool:
    """Reports whether Go keeps a quantity as a 64-bit integer and a power of ten (math.go, positiveScaleInt64)."""
    match = _NUMBER.fullmatch(text)
    if not match or match[2] in _BINARY:
        return False
    whole, _, fraction = match[1].lstrip("+-").partition(".")
    exponent = 18 - 3 * _DECIMAL.index(match[2]) if match[2] in _DECIMAL else int(match[2][1:])
    shift = exponent - len(fraction) + (3 if factor == 1000 else 0)
    return len(whole + fraction) <= _SMALL_DIGITS and shift not in _IN_ONE_STEP


def total(quantities: Iterable[str]) -> str:
    """The sum, written in the family of suffixes of the first one that isn't zero."""
    texts = list(quantities)
    amount_sum = Decimal(0)
    for text in texts:
        amount_sum = _EXACT.add(amount_sum, quantity(text))
    first = next((text for text in texts if quantity(text)), "")
    if first.endswith("i") and amount_sum == int(amount_sum):
        kibi = int(amount_sum)
        suffix = next((s for s in _BINARY if kibi % int(_POWERS[s]) == 0), "")
        return f"{kibi // int(_POWERS[suffix])}{suffix}"
    return _milli(int(_EXACT.multiply(amount_sum, 1000).to_integral_value(ROUND_CEILING)))


def _whole(number: int) -> str:
    for suffix in _DECIMAL[:6]:
        if number and number % int(_POWERS[suffix]) == 0:
            return f"{number // int(_POWERS[suffix])}{suffix}"
    return str(number)


def round_up_resources(owner: Object | None, names: Iterable[str] = ("limits", "requests")) -> None:
    """Quantities below a thousandth are rounded up to one, in place, in the lists of these names."""
    for name in names if owner else ():
        quantities = (owner or {}).get(name)
        if quantities:
            round_up(quantities)


def round_up(quantities: dict[str, str]) -> None:
    """Rounds the quantities of one list up to thousandths, in place."""
    for name, text in quantities.items():
        if "e-" in text or "E-" in text:
            exact = parse(text)
            quantities[name] = str(Quantity(Fraction(ceil(exact.amount * 1000), 1000), exact.family))
        elif text.endswith(_FINE):
            quantities[name] = _milli(int(_EXACT.multiply(quantity(text), 1000).to_integral_value(ROUND_CEILING)))


def _milli(milli: int) -> str:
    return f"{milli}m" if milli % 1000 else _whole(milli // 1000)
