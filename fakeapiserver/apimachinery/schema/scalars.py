"""Scalars Go decodes by a method of their own: times, int-or-string, bytes (quantities: apimachinery/quantity.py).

Upstream: k8s.io/apimachinery pkg/apis/meta/v1/{time,micro_time}.go; Go's time.Parse and encoding/base64.

Each function takes the text and returns its canonical text, or raises ValueError with Go's words.
"""

import base64
import re
from datetime import UTC, datetime, timedelta
from typing import Final

RFC3339: Final = "2006-01-02T15:04:05Z07:00"
RFC3339_MICRO: Final = "2006-01-02T15:04:05.000000Z07:00"
_LAYOUT_PART: Final = re.compile(r"2006|01|02|15|04|05|\.000000|Z07:00|.")
_CANONICAL_TIME: Final = re.compile(r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|1\d|2[0-8])T([01]\d|2[0-3]):[0-5]\d:[0-5]\dZ", re.A)
# Layout part -> name in range errors, least and greatest value.
_PARTS: Final[dict[str, tuple[str, int, int]]] = {
    "2006": ("year", 0, 9999),
    "01": ("month", 1, 12),
    "02": ("day", 0, 99),
    "15": ("hour", 0, 23),
    "04": ("minute", 0, 59),
    "05": ("second", 0, 59),
}


def parse_time(text: str) -> str:
    """A metav1.Time: RFC 3339 in, UTC without a fraction out."""
    if _CANONICAL_TIME.fullmatch(text):
        return text
    return _instant(text, RFC3339).strftime("%Y-%m-%dT%H:%M:%SZ").rjust(20, "0")


def parse_micro_time(text: str) -> str:
    """A metav1.MicroTime: exactly six digits of fraction in, UTC with six digits out."""
    return _instant(text, RFC3339_MICRO).strftime("%Y-%m-%dT%H:%M:%S.%fZ").rjust(27, "0")


def _instant(text: str, layout: str) -> datetime:
    rest = text
    parts = {name: 0 for name, _, _ in _PARTS.values()}
    micros, offset = 0, timedelta()
    for part in _LAYOUT_PART.findall(layout):
        if part in _PARTS:
            rest = _number(text, layout, rest, part, parts)
            if part == "05" and layout == RFC3339 and (fraction := re.match(r"[.,](\d+)", rest, re.A)):
                micros, rest = int(fraction[1][:6].ljust(6, "0")), rest[fraction.end() :]
        elif part == ".000000":
            if not (fraction := re.match(r"[.,](\d{6})", rest, re.A)):
                raise _unparsed(text, layout, rest, part)
            micros, rest = int(fraction[1]), rest[7:]
        elif part == "Z07:00":
            offset, rest = _zone(text, layout, rest)
        elif rest[:1] != part:
            raise _unparsed(text, layout, rest, part)
        else:
            rest = rest[1:]
    if rest:
        raise ValueError(f"parsing time {_quoted(text)}: extra text: {_quoted(rest)}")
    try:
        local = datetime(**parts, microsecond=micros, tzinfo=UTC)
        return local - offset
    except (ValueError, OverflowError):
        raise ValueError(f"parsing time {_quoted(text)}: day out of range") from None


def _number(text: str, layout: str, rest: str, part: str, parts: dict[str, int]) -> str:
    name, least, most = _PARTS[part]
    # Go takes an hour of one digit.
    digits = re.match(r"\d\d?" if part == "15" else rf"\d{{{len(part)}}}", rest, re.A)
    if not digits:
        raise _unparsed(text, layout, rest, part)
    parts[name] = int(digits[0])
    if not least <= parts[name] <= most:
        raise ValueError(f"parsing time {_quoted(text)}: {name} out of range")
    return rest[digits.end() :]


def _zone(text: str, layout: str, rest: str) -> tuple[timedelta, str]:
    if rest[:1] == "Z":
        return timedelta(), rest[1:]
    zone = re.match(r"([+-])(\d\d):(\d\d)", rest, re.A)
    if not zone:
        raise _unparsed(text, layout, rest, "Z07:00")
    hours, minutes = int(zone[2]), int(zone[3])
    if hours > 24:
        raise ValueError(f"parsing time {_quoted(text)}: time zone offset hour out of range")
    if minutes > 60:
        raise ValueError(f"parsing time {_quoted(text)}: time zone offset minute out of range")
    offset = timedelta(hours=hours, minutes=minutes)
    return (offset if zone[1] == "+" else -offset), rest[6:]


def _unparsed(text: str, layout: str, rest: str, part: str) -> ValueError:
    return ValueError(
        f"parsing time {_quoted(text)} as {_quoted(layout)}: cannot parse {_quoted(rest)} as {_quoted(part)}"
    )


def _quoted(text: str) -> str:
    """Quotes as Go's package time does: byte by byte."""
    shown = (chr(byte) if 0x20 <= byte < 0x80 else f"\\x{byte:02x}" for byte in text.encode())
    return '"' + "".join("\\" + sign if sign in '"\\' else sign for sign in shown) + '"'


_ALPHABET: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")


def canonical_base64(text: str) -> str:
    """Standard base64; line breaks inside are dropped."""
    if bad := _corrupt_at(text):
        raise ValueError(f"illegal base64 data at input byte {bad - 1}")
    try:
        return base64.b64encode(base64.b64decode(text)).decode()
    except ValueError:
        raise ValueError(f"illegal base64 data at input byte {len(text)}") from None


def _corrupt_at(text: str) -> int:
    """Returns the place where Go finds the text corrupt, counted from one; zero if it is valid."""
    count = 0
    for i, char in enumerate(text):
        if char in "\r\n":
            continue
        if char == "=":
            return _bad_padding(text, i, count % 4)
        if char not in _ALPHABET:
            return i + 1
        count += 1
    return len(text) - count % 4 + 1 if count % 4 else 0


def _bad_padding(text: str, i: int, filled: int) -> int:
    if filled < 2:
        return i + 1
    rest = [j for j in range(i + 1, len(text)) if text[j] not in "\r\n"]
    if filled == 2:
        if not rest:
            return len(text) + 1
        if text[rest[0]] != "=":
            return rest[0]
        rest = rest[1:]
    return rest[0] + 1 if rest else 0
