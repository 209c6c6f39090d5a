"""Field errors: what is wrong with which field. Validation gathers them and returns all at once.

Upstream: k8s.io/apimachinery/pkg/util/validation/field (path.go, errors.go).

    spec = Path("spec")
    errors: ErrorList = []
    errors.append(required(spec.child("containers"), ""))
    errors.append(invalid(spec.child("ports").index(0).child("port"), 0, "must be between 1 and 65535, inclusive"))
    str(errors[0])      # 'spec.containers: Required value'
    errors[1].body()    # 'Invalid value: 0: must be between 1 and 65535, inclusive'
"""

from collections.abc import Hashable, Iterable, Sequence
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

from fakeapiserver.apimachinery import origin
from fakeapiserver.apimachinery.go.quote import go_quote, html_escaped
from fakeapiserver.apimachinery.message import Message
from fakeapiserver.apimachinery.serializer import json

Reason = Literal[
    "FieldValueNotFound",
    "FieldValueRequired",
    "FieldValueDuplicate",
    "FieldValueInvalid",
    "FieldValueNotSupported",
    "FieldValueForbidden",
    "FieldValueTooLong",
    "FieldValueTooMany",
    "InternalError",
    "FieldValueTypeInvalid",
]

_SENTENCE: Final[dict[Reason, str]] = {
    "FieldValueNotFound": "Not found",
    "FieldValueRequired": "Required value",
    "FieldValueDuplicate": "Duplicate value",
    "FieldValueInvalid": "Invalid value",
    "FieldValueNotSupported": "Unsupported value",
    "FieldValueForbidden": "Forbidden",
    "FieldValueTooLong": "Too long",
    "FieldValueTooMany": "Too many",
    "InternalError": "Internal error",
    "FieldValueTypeInvalid": "Invalid value",
}
# Reasons whose errors show no value (upstream: Error.ErrorBody).
WITHOUT_VALUE: Final = frozenset({"FieldValueRequired", "FieldValueForbidden", "FieldValueTooLong", "InternalError"})


class Path(Struct, frozen=True):
    """A field's place, written as upstream writes it: `spec.ports[0].port`, `metadata.annotations[a/b]`."""

    text: str = ""

    def child(self, *names: str) -> "Path":
        tail = ".".join(names)
        return Path(f"{self.text}.{tail}" if self.text else tail)

    def index(self, i: int) -> "Path":
        return Path(f"{self.text}[{i}]")

    def key(self, key: str) -> "Path":
        return Path(f"{self.text}[{key}]")

    def __str__(self) -> str:
        return self.text or "<nil>"


class Omitted:
    """Marks an error that shows no value at all (upstream: field.OmitValueType)."""


OMIT: Final = Omitted()


class AsShown(str):
    """A value in the form in which a message shows it, quotes and all."""

    __slots__ = ()


class Error(Struct, frozen=True):
    """A field error. `value` is the JSON value to show.

    `origin` are the calls that made the error, recorded only while the logger of refusals is at DEBUG (origin.py).
    """

    reason: Reason
    field: str
    value: Any = None
    detail: str = ""
    origin: Sequence[str] = ()

    def body(self) -> str:
        """The error without its field, as in Status.details.causes[].message."""
        sentence = _SENTENCE[self.reason]
        if self.reason not in WITHOUT_VALUE and self.value is not OMIT:
            sentence += ": " + go_value(self.value)
        return f"{sentence}: {self.detail}" if self.detail else sentence

    def __str__(self) -> str:
        return f"{self.field}: {self.body()}"


ErrorList = list[Error]


def go_value(value: Any) -> str:
    """A value as upstream's messages show it: strings quoted, scalars plain, the rest as JSON."""
    if value is None:
        return "null"
    if isinstance(value, str):
        return value if type(value) is AsShown else go_quote(value)
    if isinstance(value, float):
        return go_float(value)

    return html_escaped(json.encode(value).decode())


def json_text(text: str) -> msgspec.Raw:
    """A text that messages show as JSON instead of quoting it as Go does, because upstream holds it by pointer or in a type of its
    own."""
    return msgspec.Raw(msgspec.json.encode(text))


def go_float(value: float) -> str:
    """Go's %v of a float64: the shortest digits, an exponent from 21 digits on and below 1e-4 (strconv 'g')."""
    text = repr(value)
    if value == int(value) and abs(value) < 1e6:
        return text.removesuffix(".0")
    mantissa, _, exponent = f"{value:e}".partition("e")
    if -5 < int(exponent) < 6:
        return text
    digits = text.replace("-", "").partition("e")[0].replace(".", "").strip("0") or "0"
    shown = digits[0] + ("." + digits[1:] if len(digits) > 1 else "")
    return f"{'-' if mantissa.startswith('-') else ''}{shown}e{int(exponent):+03d}"


def _error(reason: Reason, path: Path | str, value: Any = "", detail: str = "") -> Error:
    return Error(reason, str(path), value, detail, origin.here())


def not_found(path: Path | str, value: Any, detail: str = "") -> Error:
    """A value that refers to something that doesn't exist."""
    return _error("FieldValueNotFound", path, value, detail)


def required(path: Path | str, detail: str = "") -> Error:
    """A missing value."""
    return _error("FieldValueRequired", path, detail=detail)


def duplicate(path: Path | str, value: Any, detail: str = "") -> Error:
    """A value that must be unique and isn't."""
    return _error("FieldValueDuplicate", path, value, detail)


def invalid(path: Path | str, value: Any, detail: str) -> Error:
    """A value that breaks the rule in `detail`."""
    return _error("FieldValueInvalid", path, value, detail)


def type_invalid(path: Path | str, value: Any, detail: str) -> Error:
    """A value of the wrong type."""
    return _error("FieldValueTypeInvalid", path, value, detail)


def not_supported(path: Path | str, value: Any, valid: Sequence[str], *, rule: str = "") -> Error:
    """`valid` is shown in the given order; where upstream passes a set, sort it first. A text is shown as JSON, because choices usually
    have types of their own in Go, which aren't quoted with %q. `rule`: the key of the message, if older versions have other choices."""
    return not_supported_text(path, json_text(value) if isinstance(value, str) else value, valid, rule=rule)


def not_supported_text(path: Path | str, value: Any, valid: Sequence[str], *, rule: str = "") -> Error:
    """Returns what `not_supported` does, for a value that is a plain string in Go and is quoted with %q."""
    detail = "supported values: " + ", ".join(go_quote(v) for v in valid) if valid else ""
    return _error("FieldValueNotSupported", path, value, Message(detail, rule) if rule else detail)


def forbidden(path: Path | str, detail: str) -> Error:
    """A field that must not be set here."""
    return _error("FieldValueForbidden", path, detail=detail)


def too_long(path: Path | str, limit: int) -> Error:
    detail = f"may not be more than {limit} bytes" if limit >= 0 else "value is too long"
    if limit == 1:
        detail = Message("may not be more than 1 byte", "max-1-byte")
    return _error("FieldValueTooLong", path, detail=detail)


def too_many(path: Path | str, actual: int, limit: int) -> Error:
    detail = f"must have at most {limit} items" if limit >= 0 else "has too many items"
    if limit == 1:
        detail = Message("must have at most 1 item", "max-1-item")
    return _error("FieldValueTooMany", path, actual, detail)


def internal(path: Path | str, detail: str) -> Error:
    return _error("InternalError", path, None, detail)


def repetitions(values: Iterable[Hashable]) -> set[int]:
    """The places of the values that are there before as well."""
    seen: set[Hashable] = set()
    places = set()
    for place, value in enumerate(values):
        if value in seen:
            places.add(place)
        seen.add(value)
    return places
