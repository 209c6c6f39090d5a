"""Reads DER as strictly as Go does: lengths in their shortest form, integers too.

Upstream: golang.org/x/crypto/cryptobyte/asn1.go.
"""

import re
from typing import Final

BOOLEAN: Final = 0x01
INTEGER: Final = 0x02
BIT_STRING: Final = 0x03
OCTET_STRING: Final = 0x04
NULL: Final = 0x05
OBJECT_IDENTIFIER: Final = 0x06
UTC_TIME: Final = 0x17
GENERALIZED_TIME: Final = 0x18
SEQUENCE: Final = 0x30
SET: Final = 0x31

_UTC: Final = re.compile(rb"(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)?(Z|[+-]\d{4})")
_GENERALIZED: Final = re.compile(rb"(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)(Z|[+-]\d{4})")
_DAYS: Final = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


class Malformed(ValueError):
    """The bytes are no certificate, as far as Go is concerned."""


class Reader:
    """The rest of some DER. Each method takes an element from it, and raises Malformed if it is another one or broken."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._start = 0

    def __bool__(self) -> bool:
        return self._start < len(self._data)

    def next_is(self, tag: int) -> bool:
        return bool(self) and self._data[self._start] == tag

    def any(self) -> tuple[int, bytes]:
        """Returns the tag and the content of the next element."""
        data, start = self._data, self._start
        head = data[start : start + 2]
        if len(head) < 2 or head[0] & 0x1F == 0x1F:
            raise Malformed("x509: malformed certificate")
        size, start = head[1], start + 2
        if size >= 0x80:
            count = size & 0x7F
            digits = data[start : start + count]
            size, start = int.from_bytes(digits), start + count
            if not 1 <= count <= 4 or len(digits) < count or digits[0] == 0 or size < 0x80:
                raise Malformed("x509: malformed certificate")
        end = start + size
        if end > len(data):
            raise Malformed("x509: malformed certificate")
        self._start = end
        return head[0], data[start:end]

    def whole(self, tag: int) -> bytes:
        """Returns the next element with its head."""
        start = self._start
        if self.any()[0] != tag:
            raise Malformed("x509: malformed certificate")
        return self._data[start : self._start]

    def content(self, tag: int) -> bytes:
        found, content = self.any()
        if found != tag:
            raise Malformed("x509: malformed certificate")
        return content

    def inner(self, tag: int = SEQUENCE) -> "Reader":
        return Reader(self.content(tag))

    def optional(self, tag: int) -> bytes | None:
        return self.content(tag) if self.next_is(tag) else None

    def boolean(self) -> bool:
        content = self.content(BOOLEAN)
        if content not in (b"\0", b"\xff"):
            raise Malformed("x509: invalid boolean")
        return content == b"\xff"

    def integer(self, tag: int = INTEGER) -> int:
        content = self.content(tag)
        if not content or (len(content) > 1 and content[0] in (0, 0xFF) and (content[0] ^ content[1]) & 0x80 == 0):
            raise Malformed("x509: invalid integer")
        return int.from_bytes(content, signed=True)

    def int64(self, tag: int = INTEGER) -> int:
        value = self.integer(tag)
        if not -(1 << 63) <= value < 1 << 63:
            raise Malformed("x509: integer out of range")
        return value

    def bits(self) -> bytes:
        """Returns the bytes of a bit string; bits that are unused must be zero."""
        content = self.content(BIT_STRING)
        unused = content[0] if content else 8
        if unused > 7 or (len(content) == 1 and unused) or (unused and content[-1] & ((1 << unused) - 1)):
            raise Malformed("x509: invalid bit string")
        return content[1:]

    def oid(self) -> str:
        content = self.content(OBJECT_IDENTIFIER)
        if not content or content[-1] & 0x80:
            raise Malformed("x509: malformed OID")
        arcs: list[int] = []
        value, begins = 0, True
        for byte in content:
            if begins and byte == 0x80:
                raise Malformed("x509: malformed OID")
            value, begins = value << 7 | byte & 0x7F, not byte & 0x80
            if begins:
                arcs.append(value)
                value = 0
        first = min(arcs[0] // 40, 2)
        return ".".join(map(str, (first, arcs[0] - 40 * first, *arcs[1:])))

    def time(self) -> int:
        """Returns seconds since the epoch."""
        tag, content = self.any()
        pattern = {UTC_TIME: _UTC, GENERALIZED_TIME: _GENERALIZED}.get(tag)
        match = pattern.fullmatch(content) if pattern else None
        if match is None:
            raise Malformed("x509: malformed time")
        *digits, zone = match.groups()
        year, month, day, hour, minute, second = (int(item or 0) for item in digits)
        if tag == UTC_TIME:
            year += 1900 if year >= 50 else 2000
        return _seconds(year, month, day, hour, minute, second) - _offset(zone)


def _seconds(year: int, month: int, day: int, hour: int, minute: int, second: int) -> int:
    """Years from 0 on, which `datetime` hasn't."""
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    in_month = _DAYS[month - 1] + (leap and month == 2) if 1 <= month <= 12 else 0
    if not (1 <= day <= in_month and hour < 24 and minute < 60 and second < 60):
        raise Malformed("x509: malformed time")
    days = 365 * year + (year + 3) // 4 - (year + 99) // 100 + (year + 399) // 400
    days += sum(_DAYS[: month - 1]) + (leap and month > 2) + day - 1
    return ((days - 719528) * 24 + hour) * 3600 + minute * 60 + second


def _offset(zone: bytes) -> int:
    if zone == b"Z":
        return 0
    hours, minutes = int(zone[1:3]), int(zone[3:])
    seconds = (hours * 60 + minutes) * 60
    if not seconds or hours > 24 or minutes >= 60:
        raise Malformed("x509: malformed time")
    return -seconds if zone[:1] == b"-" else seconds
