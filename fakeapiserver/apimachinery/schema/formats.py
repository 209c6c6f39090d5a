"""String formats a custom resource's schema may ask for.

Upstream: k8s.io/kube-openapi/pkg/validation/strfmt, k8s.io/apiextensions-apiserver/pkg/apiserver/validation/formats.go
"""

import re
import unicodedata
from collections.abc import Callable
from datetime import date
from typing import Final

from fakeapiserver.apimachinery.duration import parse_nanoseconds
from fakeapiserver.apimachinery.go.address import is_ip
from fakeapiserver.apimachinery.go.url import request_uri_problem
from fakeapiserver.apimachinery.schema.email import is_email

_HEX4: Final = "[0-9a-fA-F]{4}"
_CREDIT_CARD: Final = (
    r"4\d{12}(?:\d{3})?|5[1-5]\d{14}|6(?:011|5\d\d)\d{12}|3[47]\d{13}"
    r"|3(?:0[0-5]|[68]\d)\d{11}|(?:2131|1800|35\d{3})\d{11}"
)
_TIME_OF_DAY: Final = re.compile(r"(\d\d):(\d\d):(\d\d)(.\d+)?(z|[+-]\d\d:\d\d)", re.A)
# No part of this can match the same text in two ways, so that the time is linear.
_SCALA_DURATION: Final = re.compile(r"(?<!\d)(\d++)[\t\n\f\r ]*+([A-Za-zµ]+)", re.A)
# What Go's \s takes.
_SPACES: Final = re.compile(r"[\t\n\f\r -]+")
# Names of units, of which the last may go on (`days`), and their nanoseconds.
_LENGTHS: Final[tuple[tuple[tuple[str, ...], int], ...]] = (
    (("ns", "nano"), 1),
    (("us", "µs", "micro"), 1_000),
    (("ms", "milli"), 1_000_000),
    (("s", "sec"), 1_000_000_000),
    (("m", "min"), 60 * 1_000_000_000),
    (("h", "hr", "hour"), 3600 * 1_000_000_000),
    (("d", "day"), 86_400 * 1_000_000_000),
    (("w", "wk", "week"), 7 * 86_400 * 1_000_000_000),
)
_MAC: Final = re.compile(
    r"(?:[0-9a-fA-F]{2}([:-])(?:[0-9a-fA-F]{2}\1){4}(?:(?:[0-9a-fA-F]{2}\1){2}|(?:[0-9a-fA-F]{2}\1){14})?[0-9a-fA-F]{2})"
    r"|(?:[0-9a-fA-F]{12}|[0-9a-fA-F]{16}|[0-9a-fA-F]{40})"
    r"|(?:[0-9a-fA-F]{4}\.){2}(?:[0-9a-fA-F]{4}\.(?:(?:[0-9a-fA-F]{4}\.){6})?)?[0-9a-fA-F]{4}"
)


def _matches(pattern: str) -> Callable[[str], bool]:
    compiled: list[re.Pattern[str]] = []

    def is_valid(text: str) -> bool:
        if not compiled:
            compiled.append(re.compile(pattern, re.A))
        return compiled[0].fullmatch(text) is not None

    return is_valid


def _uuid(version: str, variant: str) -> Callable[[str], bool]:
    return _matches(rf"(?i:[0-9a-f]{{8}}-?[0-9a-f]{{4}}-?{version}-?{variant}-?[0-9a-f]{{12}})")


def _is_date(text: str) -> bool:
    match = re.fullmatch(r"(\d{4})-(\d\d)-(\d\d)", text, re.A)
    if not match:
        return False
    try:
        # A leap year stands in for year 0, which Go knows and Python doesn't.
        date(int(match[1]) or 4, int(match[2]), int(match[3]))
    except ValueError:
        return False
    return True


def _is_date_time(text: str) -> bool:
    day, _, rest = text.lower().partition("t")
    match = _TIME_OF_DAY.fullmatch(rest.partition("t")[0])
    return _is_date(day) and match is not None and match[1] <= "23" and match[2] <= "59" and match[3] <= "59"


def _is_duration(text: str) -> bool:
    return _go_nanoseconds(text) is not None or _is_scala_duration(text)


def _go_nanoseconds(text: str) -> int | None:
    """Returns the nanoseconds of a duration in Go's notation, None for any other text."""
    try:
        return parse_nanoseconds(text)
    except ValueError:
        return None


def _is_scala_duration(text: str) -> bool:
    numbers = _SCALA_DURATION.findall(text)
    return all(_is_at_most(number, 2**63 - 1) for number, _ in numbers) and any(
        _scala_unit(unit.lower()) for _, unit in numbers
    )


def nanoseconds(text: str) -> int:
    """Parses a value of format duration: Go's own notation, else the sum of its parts such as `3 days` and `2 h`.

    Raises ValueError in Go's words. Upstream: k8s.io/kube-openapi/pkg/validation/strfmt/duration.go (ParseDuration).
    """
    count = _go_nanoseconds(text)
    if count is not None:
        return count
    if not _is_scala_duration(text):
        raise ValueError(f"unable to parse {text} as duration")
    total = sum(int(number) * _scala_unit(unit.lower()) for number, unit in _SCALA_DURATION.findall(text))
    return (total + 2**63) % 2**64 - 2**63


def _scala_unit(unit: str) -> int:
    """In nanoseconds, 0 for none."""
    return next((length for names, length in _LENGTHS if unit in names or unit.startswith(names[-1])), 0)


def _is_at_most(digits: str, limit: int) -> bool:
    digits = digits.lstrip("0")
    return len(digits) < 20 and int(digits or "0") <= limit


def _without_leading_zeros(text: str) -> str:
    return re.sub(r"(?<![0-9a-fA-F])0+(?=[0-9a-fA-F])", "", text)


def _is_cidr(text: str) -> bool:
    address, slash, bits = text.partition("/")
    if not slash or not re.fullmatch(r"\d{1,3}", bits, re.A) or not is_ip(_without_leading_zeros(address)):
        return False
    return int(bits) <= (128 if ":" in address else 32)


def _is_hostname(text: str) -> bool:
    """A single label with a dash at most after its first character, or labels before a top level of letters only."""
    if len(text.encode()) > 255 or any(len(label.encode()) > 63 for label in text.split(".")):
        return False
    *labels, last = text.split(".")
    if labels:
        return (
            all(map(_is_host_label, labels)) and len(last) >= 2 and all(unicodedata.category(c)[0] == "L" for c in last)
        )
    return _are_host_characters(last[:1]) and (
        len(last) == 1 or last[1:] == "-" or _are_host_characters(last[1:].removeprefix("-"))
    )


def _is_host_label(label: str) -> bool:
    return _are_host_characters(label[:1] + label[-1:]) and _are_host_characters(label.replace("-", ""))


def _are_host_characters(text: str) -> bool:
    """Letters and symbols of any script, and digits."""
    return bool(text) and all(c in "0123456789" or unicodedata.category(c)[0] in "LS" for c in text)


def _is_credit_card(text: str) -> bool:
    digits = re.sub(r"[^0-9]+", "", text)
    if not re.fullmatch(_CREDIT_CARD, digits, re.A):
        return False
    doubled = (int(d) * (1 + i % 2) for i, d in enumerate(reversed(digits)))
    return sum(n - 9 if n > 9 else n for n in doubled) % 10 == 0


def _is_isbn10(text: str) -> bool:
    digits = _SPACES.sub("", text)
    if not re.fullmatch(r"\d{9}[\dX]", digits, re.A):
        return False
    return sum((i + 1) * (10 if d == "X" else int(d)) for i, d in enumerate(digits)) % 11 == 0


def _is_isbn13(text: str) -> bool:
    digits = _SPACES.sub("", text)
    return (
        bool(re.fullmatch(r"\d{13}", digits, re.A))
        and sum(int(d) * (1 + 2 * (i % 2)) for i, d in enumerate(digits)) % 10 == 0
    )


_LABEL: Final = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_COLOR: Final = r"[\t\n\f\r ]*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])[\t\n\f\r ]*"

# Format without its dashes -> whether a text has it.
FORMATS: Final[dict[str, Callable[[str], bool]]] = {
    "bsonobjectid": _matches("[0-9a-fA-F]{24}"),
    "byte": _matches("(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})"),
    "cidr": _is_cidr,
    "creditcard": _is_credit_card,
    "date": _is_date,
    "datetime": _is_date_time,
    "duration": _is_duration,
    "email": is_email,
    "hexcolor": _matches("#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})"),
    "hostname": _is_hostname,
    "ipv4": lambda text: "." in text and is_ip(_without_leading_zeros(text)),
    "ipv6": lambda text: ":" in text and is_ip(text),
    "isbn": lambda text: _is_isbn10(text) or _is_isbn13(text),
    "isbn10": _is_isbn10,
    "isbn13": _is_isbn13,
    "k8slongname": lambda text: len(text) <= 253 and re.fullmatch(rf"{_LABEL}(?:\.{_LABEL})*", text) is not None,
    "k8sshortname": lambda text: len(text) <= 63 and re.fullmatch(_LABEL, text) is not None,
    "mac": lambda text: _MAC.fullmatch(text) is not None,
    "password": lambda _: True,
    "rgbcolor": _matches(rf"rgb\({_COLOR},{_COLOR},{_COLOR}\)"),
    "ssn": lambda text: len(text) == 11 and re.fullmatch(r"\d{3}[- ]?\d{2}[- ]?\d{4}", text, re.A) is not None,
    "uri": lambda text: not request_uri_problem(text),
    "uuid": _uuid(_HEX4, _HEX4),
    "uuid3": _uuid("3[0-9a-f]{3}", _HEX4),
    "uuid4": _uuid("4[0-9a-f]{3}", "[89ab][0-9a-f]{3}"),
    "uuid5": _uuid("5[0-9a-f]{3}", "[89ab][0-9a-f]{3}"),
}


def is_known_format(name: str, kind: str) -> bool:
    """Reports whether a format is checked for values of a JSON type, "" for any; others are ignored."""
    known = {"integer": ("int32", "int64"), "number": ("float", "double")}
    return name.replace("-", "") in FORMATS if kind in ("", "string") else name in known.get(kind, ())
