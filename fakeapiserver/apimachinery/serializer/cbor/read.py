"""From a well-formed document's items to JSON's values, as upstream decodes into `interface{}`, and Go's scalars on the way.

Upstream: github.com/fxamacker/cbor/v2/decode.go. Go reads on after an error and reports the first one, but a repeated
key in a map takes precedence over errors inside that map; so
does an unknown field in a struct.
"""

import base64
import re
import struct
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeVar

import fakeapiserver.apimachinery.serializer.go_json  # noqa: F401  # registers the way with bad bytes
from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.apimachinery.schema.scalars import parse_time
from fakeapiserver.apimachinery.serializer.cbor.wire import (
    ARRAY,
    BREAK,
    BYTES,
    FALSE,
    FLOAT_FORMATS,
    INDEFINITE,
    MAP,
    NEGATIVE,
    NULL,
    PRIMITIVE,
    SELF_DESCRIBED,
    TAG,
    TEXT,
    TRUE,
    TYPE_NAMES,
    UNSIGNED,
    DecodeError,
    DuplicateKey,
    Mismatch,
    check_well_formed,
    end_of,
    head,
    unacceptable,
)

_MAX_INT: Final = 2**63 - 1
_RFC3339_PARTS: Final = re.compile(r"(\d{4}-\d\d-\d\dT)(\d\d?)(:\d\d:\d\d)(?:[.,](\d{1,9})\d*)?(.*)", re.A)
# The first bytes of null and undefined.
_NULL, _UNDEFINED = 0xF6, 0xF7
_DAY: Final = 86400
_YEARS: Final = (-62167219200, 253402300799)  # seconds since 1970 of the years 0 to 9999
_BASE64URL, _BASE64, _BASE16 = 21, 22, 23
# What becomes of a byte string that is expected to be text, by the tag nearest to it.
_TEXT_OF: Final[dict[int, Callable[[bytes], bytes]]] = {
    _BASE64URL: lambda raw: base64.urlsafe_b64encode(raw).rstrip(b"="),
    _BASE64: base64.b64encode,
    _BASE16: lambda raw: raw.hex().encode(),
}
_ONE_BAD_BYTE: Final = "fakeapiserver-go"
T = TypeVar("T")


def decode_map(data: bytes) -> dict[str, Any] | None:
    """A document that is a map (or null) as JSON's values. DecodeError."""
    check_well_formed(data)
    reader = Reader(data)
    reader.enter()
    document = reader.tagged(lambda: _map(reader))
    assert not isinstance(document, str)
    return document


def _map(reader: "Reader") -> dict[str, Any] | None:
    if reader.data[reader.at] >> 5 == MAP:
        return reader.map(reader.any)
    if reader.data[reader.at] == _NULL:
        return None
    raise reader.mismatch("map[string]interface {}")


class Reader:
    """The decoder's position in a well-formed document.

    `later` is the number of the nearest enclosing tag that says how bytes are to be written as text (0: none).
    """

    __slots__ = ("at", "data", "later")

    def __init__(self, data: bytes, at: int = 0) -> None:
        self.data = data
        self.at = at
        self.later = 0

    def head(self) -> tuple[int, int, int, int]:
        return head(self.data, self.at)

    def is_null(self) -> bool:
        """Null or undefined."""
        return self.data[self.at] in (_NULL, _UNDEFINED)

    def skip(self) -> None:
        self.at = end_of(self.data, self.at)

    def raw(self) -> bytes:
        """The bytes of the next item."""
        start = self.at
        self.skip()
        return self.data[start : self.at]

    def enter(self) -> None:
        """Passes the tags that only say that this is CBOR; checks what other tags enclose."""
        while self.data[self.at] >> 5 == TAG:
            _, _, number, at = self.head()
            if number != SELF_DESCRIBED:
                self._check_tags()
                return
            self.at = at

    def _check_tags(self) -> None:
        start = self.at
        while self.data[self.at] >> 5 == TAG:
            _, _, number, self.at = self.head()
            if problem := _inadmissible(number, self.data[self.at]):
                self.skip()
                raise DecodeError(problem)
        self.at = start

    # ------------------------------------------------------------ any value

    def any(self) -> Any:
        """The next item as a value of JSON's."""
        self.enter()
        if self.data[self.at] >> 5 == TAG:
            return self.tagged(self._any, times=True)
        return self._any()

    def _any(self) -> Any:
        major, info, argument, at = self.head()
        if major in (BYTES, TEXT):
            return self.string()
        if major in (UNSIGNED, NEGATIVE):
            return self.integer("int64")
        if major == MAP:
            return self.map(self.any)
        if major == ARRAY:
            return self.array(self.any)
        self.at = at
        return _primitive(info, argument, self.data, at)

    def tagged(self, read: Callable[[], T], *, times: bool = False) -> T | str:
        """Returns what `read` makes of the content of tags, or with `times` a tagged time as text."""
        before = self.later
        try:
            while self.data[self.at] >> 5 == TAG:
                _, _, number, at = self.head()
                if times and number in (0, 1):
                    return self._time()
                self.at = at
                if number in _TEXT_OF:
                    self.later = number
            return read()
        finally:
            self.later = before

    def array(self, read: Callable[[], T]) -> list[T | None]:
        items: list[T | None] = []
        first: DecodeError | None = None
        for _ in self.members():
            at = self.at
            try:
                items.append(read())
            except DecodeError as error:
                first = first or error
                self.pass_item(at)
        if first is not None:
            raise first
        return items

    def map(self, read: Callable[[], T], key_type: str = "string", *, keeps: bool = False) -> dict[str, T | None]:
        """A map with text keys. Go reads keys into one variable, so that a null is the key before; with `keeps` values too."""
        entries: dict[str, T | None] = {}
        key, value = "", None
        first: DecodeError | None = None
        members = self.members()
        for index, _ in enumerate(members):
            at = self.at
            try:
                named = self.key(key_type)
            except DecodeError as error:
                first = first or error
                self.pass_item(at)
                self.skip()
                continue
            key, at = key if named is None else named, self.at
            try:
                got = read()
            except DecodeError as error:
                first = first or error
                self.pass_item(at)
                continue
            value = value if keeps and got is None else got
            if key in entries:
                self.to_end(members)
                raise duplicate(key, index)
            entries[key] = value
        if first is not None:
            raise first
        return entries

    def key(self, go_type: str) -> str | None:
        """A text as a map's key; None for null."""
        self.enter()
        return self.text(go_type)

    def pass_item(self, at: int) -> None:
        """Goes on behind the item at `at`, which couldn't be read."""
        self.at = end_of(self.data, at)

    def members(self) -> Iterator[None]:
        """Steps through an array's items or a map's pairs: the caller reads them."""
        _, info, count, self.at = self.head()
        if info == INDEFINITE:
            while self.data[self.at] != BREAK:
                yield
            self.at += 1
            return
        for _ in range(count):
            yield

    def to_end(self, members: Iterator[None], *, value_pending: bool = False) -> None:
        """Passes what is left of a map, which may be the value of a key that was read."""
        if value_pending:
            self.skip()
        for _ in members:
            self.skip()
            self.skip()

    # -------------------------------------------------------------- scalars

    def text(self, go_type: str) -> str | None:
        """The next item, whose tags were checked, as a Go string; None for null."""
        major, info, _, at = self.head()
        if major in (BYTES, TEXT):
            return self.string()
        if major == TAG:
            return self.tagged(lambda: self.text(go_type))
        if major == PRIMITIVE and info == NULL:
            self.at = at
            return None
        raise self.mismatch(go_type)

    def string(self) -> str:
        """Reads a byte string or text as text; bytes that are invalid UTF-8 become U+FFFD, as JSON would show them."""
        is_text = self.data[self.at] >> 5 == TEXT
        if is_text:
            chunks = list(self._chunks())
            try:
                return "".join(chunk.decode() for chunk in chunks)
            except UnicodeDecodeError:
                raise DecodeError("cbor: invalid UTF-8 string") from None
        raw = self.content()
        if self.later:
            raw = _TEXT_OF[self.later](raw)
        return raw.decode("utf-8", _ONE_BAD_BYTE)

    def content(self) -> bytes:
        """A byte string, or a text, as it stands there."""
        return b"".join(self._chunks())

    def _chunks(self) -> Iterator[bytes]:
        _, info, length, self.at = self.head()
        if info != INDEFINITE:
            start, self.at = self.at, self.at + length
            yield self.data[start : self.at]
            return
        while self.data[self.at] != BREAK:
            _, _, length, start = self.head()
            self.at = start + length
            yield self.data[start : self.at]
        self.at += 1

    def integer(self, go_type: str, limit: int = _MAX_INT, overflows: str = "Go's int64") -> int:
        """An integer item; `limit` is the type's largest value, and `overflows` how too large a one is spoken of."""
        major, _, argument, self.at = self.head()
        value = argument if major == UNSIGNED else -1 - argument
        if not -limit - 1 <= value <= limit:
            wide = "Go's int64" if major == NEGATIVE and argument > _MAX_INT else overflows
            raise Mismatch(TYPE_NAMES[major], go_type, f"{value} overflows {wide}")
        return value

    def mismatch(self, go_type: str, detail: str = "") -> DecodeError:
        """Returns the error about the next item, which doesn't fit, and skips the item."""
        major, info, argument, at = self.head()
        start = self.at
        self.skip()
        try:
            if major == PRIMITIVE:
                _primitive(info, argument, self.data, at)
            elif major == TEXT:
                Reader(self.data, start).string()
            elif major == NEGATIVE and argument > _MAX_INT:
                detail = f"{-1 - argument} overflows Go's int64"
        except DecodeError as error:
            return error
        return Mismatch(TYPE_NAMES[major], go_type, detail)

    def _time(self) -> str:
        """A tagged time as RFC 3339 writes it."""
        _, _, number, self.at = self.head()
        if number == 0:
            text = self.string()
            try:
                parse_time(text)
            except ValueError as error:
                raise DecodeError(f"cbor: cannot set {text} for time.Time: {error}") from None
            return _canonical_time(text)
        major, info, argument, at = self.head()
        if major in (UNSIGNED, NEGATIVE):
            return _time_of(self.integer("time.Time"), 0)
        self.at = at
        value = _primitive(info, argument, self.data, at)
        seconds = int(value)
        return _time_of(seconds, int((value - seconds) * 1e9))


def duplicate(key: object, index: int) -> DuplicateKey:
    shown = go_quote(key) if isinstance(key, str) else "<nil>" if key is None else str(key)
    return DuplicateKey(f"cbor: found duplicate map key {shown} at map element index {index}")


def _primitive(info: int, argument: int, data: bytes, end: int) -> Any:
    if info in FLOAT_FORMATS:
        kind = FLOAT_FORMATS[info]
        return struct.unpack(kind, data[end - struct.calcsize(kind) : end])[0]
    if info in (FALSE, TRUE):
        return info == TRUE
    if info == NULL:
        return None
    raise unacceptable(PRIMITIVE, f"simple value {argument} is not recognized")


def _inadmissible(tag: int, content: int) -> str:
    """Returns the error of a tag around an item with this first byte, or ""."""
    major = content >> 5
    if tag == 0 and major != TEXT:
        return f"cbor: tag number 0 must be followed by text string, got {TYPE_NAMES[major]}"
    if tag == 1 and major not in (UNSIGNED, NEGATIVE) and not 0xF9 <= content <= 0xFB:
        return f"cbor: tag number 1 must be followed by integer or floating-point number, got {TYPE_NAMES[major]}"
    return ""


def _canonical_time(text: str) -> str:
    match = _RFC3339_PARTS.fullmatch(text)
    assert match is not None  # parse_time has read it
    date, hour, rest, fraction, zone = match.groups()
    digits = (fraction or "").rstrip("0")
    zone = "Z" if zone in ("+00:00", "-00:00") else zone
    return f"{date}{hour:0>2}{rest}{'.' + digits if digits else ''}{zone}"


def _time_of(seconds: int, nanoseconds: int) -> str:
    """The instant in UTC. DecodeError for years that RFC 3339 can't write."""
    seconds, nanoseconds = seconds + nanoseconds // 1_000_000_000, nanoseconds % 1_000_000_000
    if not _YEARS[0] <= seconds <= _YEARS[1]:
        why = "Time.MarshalText: year outside of range [0,9999]"
        raise DecodeError(
            f"cbor: decoded time cannot be represented in RFC3339 format with sub-second precision: {why}"
        )
    days, rest = divmod(seconds, _DAY)
    year, month, day = _civil(days)
    digits = f"{nanoseconds:09d}".rstrip("0")
    clock = f"{rest // 3600:02d}:{rest // 60 % 60:02d}:{rest % 60:02d}"
    return f"{year:04d}-{month:02d}-{day:02d}T{clock}{'.' + digits if digits else ''}Z"


def _civil(days: int) -> tuple[int, int, int]:
    """Days since 1970 as a date of the Gregorian calendar, the year 0 included, which Python's own dates don't have."""
    era, of_era = divmod(days + 719468, 146097)
    year = (of_era - of_era // 1460 + of_era // 36524 - of_era // 146096) // 365
    of_year = of_era - (365 * year + year // 4 - year // 100)
    shifted = (5 * of_year + 2) // 153
    month = shifted + 3 if shifted < 10 else shifted - 9
    return year + 400 * era + (month <= 2), month, of_year - (153 * shifted + 2) // 5 + 1
