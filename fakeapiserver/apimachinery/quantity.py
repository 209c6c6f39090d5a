"""resource.Quantity: amounts such as `1Gi`, `500m`, `2e3`, written as few digits as their suffixes allow.

Upstream: k8s.io/apimachinery/pkg/api/resource/quantity.go.

    str(parse("1500m") + parse("500m"))   # "2"
    parse("1Gi") > parse("1G")            # True
"""

import re
from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache, total_ordering
from typing import Any, Final, Literal

_QUANTITY: Final = re.compile(r"([+-]?)0*(\d*)(?:\.(\d*))?([eEinumkKMGTP]*[-+]?\d*)", re.A)
_PLAIN_QUANTITY: Final = re.compile(r"[1-9]\d?(?:[mkMG]|[KMG]i)?|0", re.A)
_EXPONENT_SUFFIX: Final = re.compile(r"[eE][+-]?\d{1,9}", re.A)
# Suffixes: the powers of 1024 in order, and those of ten with their exponents.
BINARY: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_DECIMAL: Final = {-9: "n", -6: "u", -3: "m", 0: "", 3: "k", 6: "M", 9: "G", 12: "T", 15: "P", 18: "E"}
EXPONENT: Final = {suffix: power for power, suffix in _DECIMAL.items()}
_WRONG_QUANTITY: Final = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_WRONG_SUFFIX: Final = "unable to parse quantity's suffix"
_NANO: Final = -9
_MAX_DIGITS: Final = 18
_MAX_LENGTH: Final = 3000
_MAX_BINARY: Final = (1 << 63) - 1
_MAX_EXPONENT: Final = len("e-999")


def canonical_quantity(text: str) -> str:
    """A resource.Quantity: as few digits as its suffix family (binary, decimal, exponent) allows, nothing below nano.

    A text upstream finds canonical enough (`1500m`, `+5`, `1.500`) is kept as it is.
    """
    if _PLAIN_QUANTITY.fullmatch(text):
        return text
    text = text.strip(" ")  # other spaces are escapes in the JSON text that Go trims
    match = _QUANTITY.fullmatch(text)
    if not text or not match:
        raise ValueError(_WRONG_QUANTITY)
    negative, whole, fraction, suffix = match[1] == "-", match[2] or "0", match[3] or "", match[4]
    digits = whole + fraction
    if len(digits) > _MAX_LENGTH:
        # Upstream takes millions, and then computes with them for minutes.
        raise ValueError(_WRONG_QUANTITY)
    if suffix and suffix in BINARY:
        step = BINARY.index(suffix)
        if not fraction and 14 - len(whole) - 3 * step >= 0 and int(whole) & 7:
            return text
        return _binary(int(digits) * 1024**step, len(fraction), negative)
    if suffix in EXPONENT:
        exponent = EXPONENT[suffix]
    elif _EXPONENT_SUFFIX.fullmatch(suffix) and len(suffix) <= _MAX_EXPONENT:
        # Upstream takes longer ones, and then computes with that many digits for minutes.
        exponent = int(suffix[1:])
    else:
        raise ValueError(_WRONG_SUFFIX)
    scale = exponent - len(fraction)
    short = len(digits) <= _MAX_DIGITS and scale >= _NANO
    if short and scale % 3 == 0 and not digits.endswith("000") and digits[0] != "0":
        return text
    return _decimal(int(digits), scale, negative, with_exponent=len(suffix) > 1)


def _decimal(mantissa: int, power: int, negative: bool, *, with_exponent: bool) -> str:
    """mantissa * 10**power, rounded up to nanos, with as few digits as a power of 1000 allows."""
    if power < _NANO:
        shift = min(_NANO - power, len(str(mantissa)) + 1)
        mantissa, power = -(-mantissa // 10**shift), _NANO
    if not mantissa:
        return "0"
    mantissa, power = mantissa * 10 ** (power % 3), power - power % 3
    while mantissa % 1000 == 0:
        mantissa, power = mantissa // 1000, power + 3
    # Beyond exa upstream has no suffix left to write.
    suffix = (f"e{power}" if power else "") if with_exponent else _DECIMAL.get(power, "")
    return f"{'-' if negative else ''}{mantissa}{suffix}"


def _binary(mantissa: int, places: int, negative: bool) -> str:
    """mantissa / 10**places in powers of 1024; what is small or no whole number, in decimal."""
    number, rest = divmod(mantissa, 10**places)
    if number >= _MAX_BINARY:
        number, rest = _MAX_BINARY, 0
    if rest or number < 1024:
        return _decimal(mantissa, -places, negative, with_exponent=False)
    step = 0
    while number % 1024 == 0 and step < len(BINARY) - 1:
        number, step = number // 1024, step + 1
    return f"{'-' if negative else ''}{number}{BINARY[step]}"


Family = Literal["DecimalSI", "BinarySI", "DecimalExponent"]


@total_ordering
class Quantity:
    """An exact amount, and the family of suffixes that it is shown in."""

    __slots__ = ("_text", "amount", "family")

    def __init__(self, amount: Fraction, family: Family = "DecimalSI", text: str | None = None) -> None:
        self.amount = amount
        self.family: Family = family
        self._text = text

    def __str__(self) -> str:
        if self._text is None:
            self._text = _shown(self.amount, self.family)
        return self._text

    def __repr__(self) -> str:
        return f"Quantity({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quantity) and self.amount == other.amount

    def __lt__(self, other: "Quantity") -> bool:
        return self.amount < other.amount

    def __hash__(self) -> int:
        return hash(self.amount)

    def __add__(self, other: "Quantity") -> "Quantity":
        """In the family of the first one, unless that is zero."""
        return Quantity(self.amount + other.amount, self.family if self.amount else other.family)

    def __sub__(self, other: "Quantity") -> "Quantity":
        return Quantity(self.amount - other.amount, self.family if self.amount else other.family)

    @property
    def value(self) -> int:
        """Rounded up."""
        return -(-self.amount.numerator // self.amount.denominator)


ZERO: Final = Quantity(Fraction(0), text="0")


@lru_cache(maxsize=4096)  # a cluster writes few amounts, and often
def parse(text: str) -> Quantity:
    """ValueError in upstream's words."""
    shown = canonical_quantity(text)
    match = _QUANTITY.fullmatch(text.strip())
    assert match is not None
    suffix = match[4]
    number = Fraction(f"{match[1]}{match[2] or '0'}.{match[3] or '0'}")
    if suffix and suffix in BINARY:
        return Quantity(number * 1024 ** BINARY.index(suffix), "BinarySI", shown)
    if suffix in EXPONENT:
        return Quantity(number * Fraction(10) ** EXPONENT[suffix], "DecimalSI", shown)
    return Quantity(number * Fraction(10) ** int(suffix[1:]), "DecimalExponent", shown)


def milli_value(quantity: Quantity) -> int:
    """In thousandths, rounded up."""
    return -(-quantity.amount.numerator * 1000 // quantity.amount.denominator)


def amount(quantity: Any) -> Fraction:
    """The exact value of a quantity that has passed validation; an absent one is 0."""
    return parse(str(quantity)).amount if quantity else Fraction(0)


def same_amounts(left: Mapping[str, Any], right: Mapping[str, Any]) -> bool:
    """Reports whether two resource lists hold the same, however written."""
    return left.keys() == right.keys() and all(amount(left[key]) == amount(right[key]) for key in left)


def _shown(amount: Fraction, family: Family) -> str:
    negative, size = amount < 0, abs(amount)
    nanos = -(-size.numerator * 10**9 // size.denominator)  # nothing below nano
    if family == "BinarySI":
        return _binary(nanos, 9, negative)
    return _decimal(nanos, _NANO, negative, with_exponent=family == "DecimalExponent")
