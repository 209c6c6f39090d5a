"""Checks of single values (text, numbers, enums) and the errors they find.

Upstream: k8s.io/kube-openapi/pkg/validation/validate/{validator,values,formats,result}.go,
k8s.io/apiextensions-apiserver/pkg/apiserver/validation/validation.go (how errors become field errors)
"""

import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

import msgspec

from fakeapiserver.apimachinery.errors import MOST_TEXT
from fakeapiserver.apimachinery.field import Error, invalid, not_supported_text, too_long, too_many, type_invalid
from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.apimachinery.go.strconv import to_int64
from fakeapiserver.apimachinery.schema.formats import FORMATS, is_known_format
from fakeapiserver.apimachinery.schema.patterns import TextTooLong, matches
from fakeapiserver.apimachinery.schema.resolve import Schema
from fakeapiserver.apimachinery.serializer import json
from fakeapiserver.languages.cel.versions import V1_37

_MAX_JSON_INTEGER: Final = float((1 << 53) - 1)
_EPSILON: Final = 1e-9
_MAX_FLOAT32: Final = 3.4028235677973366e38
_EXPONENT_FROM: Final = 6
_INT64: Final = 1 << 63
_INT_RANGES: Final = {"int32": 1 << 31}


class Findings:
    """Errors by their text (upstream reports each text once) and how much matched."""

    __slots__ = ("_size", "errors", "matches")

    def __init__(self) -> None:
        self.errors: dict[str, Error] = {}
        self.matches = 0
        self._size = 0

    def merge(self, other: "Findings") -> None:
        self.matches += other.matches
        for text, error in other.errors.items():
            self.add(text, error)

    @property
    def is_full(self) -> bool:
        return self._size > MOST_TEXT

    def add(self, text: str, error: Error) -> None:
        """Adds an error; an answer has no room for more of them than MOST_TEXT characters."""
        if not self.is_full:
            self._size += len(text)
            self.errors.setdefault(text, error)

    def invalid(self, path: str, value: Any, text: str) -> None:
        self.add(text, invalid(field_name(path), shown_value(value), text))

    def too_many(self, path: str, size: int, most: int, text: str) -> None:
        self.add(text, too_many(field_name(path), size, most))

    def message(self, text: str) -> None:
        """An error that upstream knows no field of."""
        self.add(text, invalid("<nil>", "", text))


Check = Callable[[Any, str, Findings, Any], None]


def field_name(path: str) -> str:
    """A path as field errors show it: fields at the root and keys of additionalProperties have a dot too many."""
    return path.removeprefix(".") or "<nil>"


def format_of(schema: Schema, types: list[str]) -> str:
    """The schema's format if upstream knows it for the type, else empty."""
    name: str = schema.get("format", "")
    return name if is_known_format(name, types[0] if len(types) == 1 else "") else ""


def is_json_integer(number: float, version: str) -> bool:
    """Reports whether a Kubernetes version takes a float for an integer. It forgives a relative error of 1e-9: since 1.37 also of
    numbers that are a little smaller than an integer, and of negative ones."""
    if not abs(number) <= _MAX_JSON_INTEGER:
        return False
    if version >= V1_37:
        nearest = round(number)
        return number == nearest or abs(number - nearest) < _EPSILON * abs(nearest)
    whole = math.trunc(number)
    if number == whole:
        return True
    if whole <= 0:
        return False
    return (number - whole) / (number + whole) < _EPSILON


def string_check(schema: Schema, value_format: str) -> tuple[list[Check], bool]:
    """The checks of a text, and whether one of them is a format."""
    longest, shortest, pattern = schema.get("maxLength"), schema.get("minLength"), schema.get("pattern", "")

    def check_text(value: str, path: str, findings: Findings, _: Any) -> None:
        if longest is not None and len(value) > longest:
            text = f"{path} in body should be at most {longest} chars long"
            findings.add(text, too_long(field_name(path), longest))
        elif shortest is not None and len(value) < shortest:
            findings.invalid(path, value, f"{path} in body should be at least {shortest} chars long")
        elif pattern:
            try:
                if not matches(pattern, value):
                    findings.invalid(path, value, f"{path} in body should match '{pattern}'")
            except TextTooLong as problem:
                findings.invalid(path, value, f"{path} in body: {problem}")

    is_valid = FORMATS.get(value_format.replace("-", ""))

    def check_format(value: str, path: str, findings: Findings, _: Any) -> None:
        if is_valid is not None and not is_valid(value):
            text = f"{path} in body must be of type {value_format}: {go_quote(value)}"
            findings.add(text, type_invalid(field_name(path), value, text))

    checks: list[Check] = [check_text] if pattern or longest is not None or shortest is not None else []
    return ([*checks, check_format], True) if is_valid else (checks, False)


def value_checks(schema: Schema) -> list[Check]:
    """The check of an enum."""
    # What doesn't fit int64 is a float to Go.
    allowed: list[Any] = [float(v) if type(v) is int and not _fits_int64(v) else v for v in schema["enum"]]
    shown = [v if isinstance(v, str) else json.encode(v).decode() for v in allowed]
    every = " ".join(shown)
    is_allowed = _membership(allowed)

    def check_enum(value: Any, path: str, findings: Findings, _: Any) -> None:
        if not is_allowed(value) and not findings.is_full:
            text = f"{path} in body should be one of [{every}]"
            # In the schema's order, and numbers quoted too.
            findings.add(text, not_supported_text(field_name(path), shown_value(value), shown))

    return [check_enum]


def _membership(allowed: list[Any]) -> Callable[[Any], bool]:
    """Returns a function that reports whether a value equals an allowed one after Go's conversion to the allowed one's type. Null equals
    nothing. Its time doesn't depend on the number of allowed values."""
    known = {_identity(value) for value in allowed if value is not None}

    def is_allowed(value: Any) -> bool:
        if value is None:
            return False
        if _identity(value) in known:
            return True
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        if isinstance(value, float):
            return (int, to_int64(value)) in known
        return (float, float(value)) in known or (0 < value < 0xD800 and (str, chr(value)) in known)

    return is_allowed


def _identity(value: Any) -> tuple[type, Any]:
    """Returns what is equal for equal values of one type."""
    if isinstance(value, dict | list):
        return type(value), json.encode_plainly_sorted(value)
    return type(value), value


def _fits_int64(number: int) -> bool:
    return -(1 << 63) <= number < 1 << 63


def go_number(number: float) -> str:
    """Go's %v of an integer or float64: with an exponent from 1e+06 on and below 1e-04."""
    if isinstance(number, int):
        return str(number)
    sign, digits, exponent = Decimal(repr(number)).normalize().as_tuple()
    power = len(digits) + int(exponent) - 1
    if -4 <= power < _EXPONENT_FROM:
        return format(number, ".0f") if number == int(number) else format(Decimal(repr(number)), "f")
    mantissa = "".join(map(str, digits))
    mantissa = mantissa[0] + ("." + mantissa[1:] if len(mantissa) > 1 else "")
    return f"{'-' if sign else ''}{mantissa}e{'-' if power < 0 else '+'}{abs(power):02d}"


def shown_value(value: Any) -> Any:
    """A value such that it is shown as Go shows it: a float in Go's own way, which JSON's is not, and keys sorted."""
    return msgspec.Raw(go_number(value).encode()) if isinstance(value, float) else sorted_value(value)


def sorted_value(value: Any) -> Any:
    """With all keys sorted, as Go prints its maps."""
    if isinstance(value, dict):
        return {key: sorted_value(value[key]) for key in sorted(value)}
    return [sorted_value(item) for item in value] if isinstance(value, list) else value


def number_check(schema: Schema, types: list[str], value_format: str, version: str) -> list[Check]:
    """The checks of a number: range of its type, multipleOf, minimum, maximum."""
    kind = types[0] if len(types) == 1 and types[0] in ("integer", "number") else ""
    number_format = value_format if kind else ""

    def fits(number: float, prefix: str, path: str, findings: Findings) -> bool:
        if _in_range(number, kind, number_format):
            return True
        of = f"with format {number_format}" if number_format else "(default format)"
        findings.message(f"{prefix} value must be of type {kind} {of} in {path}")
        return False

    def check_range(value: float, path: str, findings: Findings, _: Any) -> None:
        fits(value, "Checked", path, findings)

    checks: list[Check] = [check_range] if kind == "integer" or number_format == "float" else []
    if (factor := schema.get("multipleOf")) is not None:
        checks.append(_multiple_check(factor, fits, version))
    for bound, prefix, sign in (("minimum", "Minimum boundary", -1), ("maximum", "Maximum boundary", 1)):
        if (limit := schema.get(bound)) is not None:
            exclusive = bool(schema.get("exclusive" + bound.capitalize()))
            checks.append(_bound_check(limit, prefix, sign, exclusive, fits))
    return checks


_Fits = Callable[[float, str, str, Findings], bool]


def _bound_check(limit: float, prefix: str, sign: int, exclusive: bool, fits: _Fits) -> Check:
    words = {1: ("less than", "less than or equal to"), -1: ("greater than", "greater than or equal to")}[sign]
    whole, real = int(limit), float(limit)
    limit_fits = fits(real, prefix, "", Findings())

    def check_bound(value: float, path: str, findings: Findings, _: Any) -> None:
        # An integer is held against the limit's whole part, where the limit's type is right.
        native = (limit_fits or fits(real, prefix, path, findings)) and isinstance(value, int)
        number, bound = (value, whole) if native else (float(value), real)
        beyond = (number > bound) - (number < bound) if sign > 0 else (number < bound) - (number > bound)
        if beyond > 0 or (exclusive and beyond == 0):
            text = f"{path} in body should be {words[not exclusive]} {go_number(bound)}"
            findings.invalid(path, number, text)

    return check_bound


def _multiple_check(factor: float, fits: _Fits, version: str) -> Check:
    def check_multiple(value: float, path: str, findings: Findings, _: Any) -> None:
        native = fits(float(factor), "MultipleOf", path, findings) and isinstance(value, int)
        divisor: float = int(factor) if native else float(factor)
        number: float = value if native else float(value)
        if divisor <= 0:
            text = f"factor MultipleOf declared for {path} must be positive: {go_number(divisor)}"
            findings.invalid(path, divisor, text)
        elif not _is_multiple(number, divisor, version):
            findings.invalid(path, number, f"{path} in body should be a multiple of {go_number(divisor)}")

    return check_multiple


def _is_multiple(number: float, divisor: float, version: str) -> bool:
    if isinstance(number, int) and isinstance(divisor, int):
        return number % divisor == 0
    return is_json_integer(1 / divisor * number if divisor < 1 else number / divisor, version)


def _in_range(number: float, kind: str, number_format: str) -> bool:
    if kind == "integer":
        limit = _INT_RANGES.get(number_format, _INT64)
        if type(number) is int:
            return -limit <= number < limit
        # Upstream parses the digits of a float again; -2**63 has more of them than int64.
        return number == int(number) and -limit <= Decimal(repr(number)) < limit
    return number_format != "float" or abs(number) < _MAX_FLOAT32
