"""Quantities (upstream: k8s.io/apiserver/pkg/cel/library/quantity.go)."""

import re
from fractions import Fraction
from typing import ClassVar, Final

from msgspec import Struct
from msgspec.structs import replace

from fakeapiserver.apimachinery.quantity import parse as parse_quantity
from fakeapiserver.languages.cel.errors import CelError, no_such_overload
from fakeapiserver.languages.cel.kubernetes.shared import Function, is_parsable, order
from fakeapiserver.languages.cel.types import Type, struct


class Quantity(Struct, frozen=True, eq=False):
    """`value` times ten to the `exponent`. `is_small`: upstream keeps it in 64 bits, which is what makes an integer of it.
    `is_sum`: a result of adding, which upstream has another Go type for, and finds no way to compare with."""

    cel_type: ClassVar[Type] = struct("kubernetes.Quantity")
    value: int
    exponent: int = 0
    is_small: bool = True
    is_sum: bool = False

    @property
    def amount(self) -> Fraction:
        return self.value * Fraction(10) ** self.exponent

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Quantity) and other.is_sum:
            raise no_such_overload()
        return isinstance(other, Quantity) and self.amount == other.amount

    def __hash__(self) -> int:
        return hash(self.amount)

    @property
    def whole(self) -> int | None:
        """Returns upstream's AsInt64, or None."""
        if not self.is_small or self.exponent < 0:
            return None
        number = self.value * 10**self.exponent
        return number if _is_int64(number) else None

    def plus(self, other: "Quantity", sign: int) -> "Quantity":
        added = other.value * sign
        if self.is_small and other.is_small:
            if added == 1 << 63:
                added = -added  # of all integers the least is its own negative
            if not added:
                return self
            if not self.value:
                return Quantity(added, other.exponent)
        exponent = min(self.exponent, other.exponent)
        parts = self.value * 10 ** (self.exponent - exponent), added * 10 ** (other.exponent - exponent)
        fits_in = self.is_small and other.is_small and all(map(_is_int64, (*parts, sum(parts))))
        return Quantity(sum(parts), exponent, fits_in)


def _is_int64(number: int) -> bool:
    return -(1 << 63) <= number < 1 << 63


_WRITTEN: Final = re.compile(r"[+-]?0*(\d*)(?:\.(\d*))?(.*)", re.A | re.S)
_BINARY: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_NANO: Final = -9
_BELOW: Final = {"n": -9, "u": -6, "m": -3}
# Digits that upstream takes to fit into 64 bits.
_DIGITS: Final = 18
_BINARY_DIGITS: Final = 14


def _quantity(text: str) -> Quantity:
    try:
        quantity = parse_quantity(text)
    except ValueError as error:
        raise CelError(str(error)) from None
    match = _WRITTEN.fullmatch(text.strip())
    assert match is not None
    whole, fraction, suffix = match[1] or "0", match[2] or "", match[3]
    if quantity.family == "BinarySI":
        step = _BINARY.index(suffix)
        if not fraction and len(whole) + 3 * step <= _BINARY_DIGITS:
            return Quantity(int(quantity.amount))
        capped = min(abs(quantity.amount), Fraction((1 << 63) - 1))
        return _in_nanos(capped if quantity.amount > 0 else -capped)
    # How many digits stand behind the last one that is written.
    digits = int(whole + fraction)
    exponent = _BELOW.get(suffix, 0) - len(fraction)
    if digits:
        size = abs(quantity.amount) / digits
        exponent = len(str(size.numerator)) - len(str(size.denominator))
    if len(whole) + len(fraction) <= _DIGITS and exponent >= _NANO:
        return Quantity(digits if quantity.amount > 0 else -digits, exponent)
    return _in_nanos(quantity.amount)


def _in_nanos(amount: Fraction) -> Quantity:
    """Rounded away from zero."""
    size = -(-abs(amount.numerator) * 10**-_NANO // amount.denominator)
    return Quantity(size if amount > 0 else -size, _NANO, is_small=False)


def _quantity_int(quantity: Quantity) -> int:
    if quantity.whole is None:
        raise CelError("cannot convert value to integer")
    return quantity.whole


def _summed(sign: int) -> Function:
    def add(a: Quantity, b: Quantity | int) -> Quantity:
        return replace(a.plus(b if isinstance(b, Quantity) else Quantity(b), sign), is_sum=True)

    return add


QUANTITIES: Final[dict[str, Function]] = {
    "string_to_quantity": _quantity,
    "is_quantity_string": is_parsable(_quantity),
    "quantity_sign": lambda a: order(a.amount, 0),
    "quantity_is_integer": lambda a: a.whole is not None,
    "quantity_get_int": _quantity_int,
    "quantity_get_float": lambda a: float(a.value) * 10.0**a.exponent if a.exponent else float(a.value),
    "quantity_is_greater_than": lambda a, b: a.amount > b.amount,
    "quantity_is_less_than": lambda a, b: a.amount < b.amount,
    "quantity_compare_to": lambda a, b: order(a.amount, b.amount),
    "quantity_add": _summed(1),
    "quantity_add_int": _summed(1),
    "quantity_sub": _summed(-1),
    "quantity_sub_int": _summed(-1),
}
