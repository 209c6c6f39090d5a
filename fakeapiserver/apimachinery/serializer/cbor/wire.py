"""CBOR's data items: their heads, which documents are well-formed, and where an item ends.

Upstream: github.com/fxamacker/cbor/v2 (valid.go, common.go) with the limits of k8s.io/apimachinery's modes/decode.go. Nothing here
calls itself, and no length is believed before its bytes are there: a hostile document costs a walk over its bytes.
"""

import math
import re
import struct
from typing import Final

UNSIGNED, NEGATIVE, BYTES, TEXT, ARRAY, MAP, TAG, PRIMITIVE = range(8)
TYPE_NAMES: Final = (
    "positive integer",
    "negative integer",
    "byte string",
    "UTF-8 text string",
    "array",
    "map",
    "tag",
    "primitives",
)
FALSE, TRUE, NULL, UNDEFINED = 20, 21, 22, 23
FLOAT_FORMATS: Final = {25: ">e", 26: ">f", 27: ">d"}
INDEFINITE: Final = 31
BREAK: Final = 0xFF
SELF_DESCRIBED: Final = 55799
MAX_DEPTH: Final = 10_000
_MAX_ARRAY: Final = 2**31 - 1
_MAX_PAIRS: Final = 2_097_152
_MAX_INT: Final = 2**63 - 1
_ENDLESS: Final = -1
# Items of one byte: small numbers, simple values, empty strings and containers.
_WHOLE: Final = re.compile(rb"[\x00-\x17\x20-\x37\x40\x60\x80\xa0\xe0-\xf7]*")


class DecodeError(ValueError):
    """A document that can't be read; the text is upstream's."""


class Mismatch(DecodeError):
    """A value that doesn't fit its Go type (upstream: UnmarshalTypeError). Structs put the name of their field on it."""

    def __init__(self, cbor_type: str, go_type: str, detail: str = "") -> None:
        super().__init__(cbor_type)
        self.cbor_type, self.go_type, self.detail = cbor_type, go_type, detail
        self.struct_field = ""

    def __str__(self) -> str:
        where = f"struct field {self.struct_field}" if self.struct_field else "value"
        detail = f" ({self.detail})" if self.detail else ""
        return f"cbor: cannot unmarshal {self.cbor_type} into Go {where} of type {self.go_type}{detail}"


class DuplicateKey(DecodeError):
    """A map with a repeated key, which is invalid CBOR for all readers."""


class UnknownField(DecodeError):
    """A struct's first unknown field, which only strict decoding minds."""


def unacceptable(item: int, what: str) -> DecodeError:
    return DecodeError(f"cbor: data item of cbor type {TYPE_NAMES[item]} is not accepted by protocol: {what}")


def unexpected_end() -> DecodeError:
    return DecodeError("unexpected EOF")


def head(data: bytes, at: int) -> tuple[int, int, int, int]:
    """(major type, additional information, argument, where the content starts) of a well-formed document's item."""
    first = data[at]
    info = first & 31
    if info < 24 or info == INDEFINITE:
        return first >> 5, info, info, at + 1
    end = at + 1 + (1 << (info - 24))
    return first >> 5, info, int.from_bytes(data[at + 1 : end], "big"), end


def _whole_items(data: bytes, at: int, end: int) -> re.Match[bytes]:
    """The items of one byte each from `at` on, at most up to `end`."""
    match = _WHOLE.match(data, at, end)
    assert match is not None  # none are some
    return match


def end_of(data: bytes, at: int) -> int:
    """Returns the end of a well-formed document's item."""
    # How many items are still to come, here and in the containers around; _ENDLESS: up to a break.
    left, around = 1, list[int]()
    while True:
        if left > 0:
            end = _whole_items(data, at, at + left).end()
            left -= end - at
            at = end
        while left == 0 or (left < 0 and data[at] == BREAK):
            at += left < 0
            if not around:
                return at
            left = around.pop()
        major, info, argument, at = head(data, at)
        if left > 0 and major != TAG:
            left -= 1  # a tag is nothing without its content
        if info == INDEFINITE:
            around.append(left)
            left = _ENDLESS
        elif major in (BYTES, TEXT):
            at += argument
        elif major in (ARRAY, MAP):
            around.append(left)
            left = argument * 2 if major == MAP else argument


def check_well_formed(data: bytes) -> None:
    """DecodeError for what isn't one whole data item within the limits."""
    if not data:
        raise DecodeError("EOF")
    end = _Scanner(data).scan()
    if end < len(data):
        raise DecodeError(f"cbor: {len(data) - end} bytes of extraneous data starting at index {end}")


class _Scanner:
    """Walks over the bytes.

    `stack`: (major type, items to come or _ENDLESS, items seen, depth) of the open containers.
    """

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def scan(self) -> int:
        data, stack = self.data, list[list[int]]()
        opened = self._item(0)
        while opened is not None or stack:
            if opened is not None:
                stack.append(opened)
            frame = stack[-1]
            if frame[1] > 0:
                end = _whole_items(data, self.at, self.at + frame[1]).end()
                frame[1] -= end - self.at
                self.at = end
            elif frame[1] == _ENDLESS and frame[0] in (ARRAY, MAP):
                end = _whole_items(data, self.at, len(data)).end()
                frame[2] += end - self.at
                self.at = end
            if frame[1] == 0:
                stack.pop()
                opened = None
                continue
            if frame[1] > 0:
                frame[1] -= 1
            elif self.at < len(data) and data[self.at] == BREAK:
                self._close(frame)
                stack.pop()
                opened = None
                continue
            else:
                self._check_member(frame)
            opened = self._item(frame[3])
        return self.at

    def _close(self, frame: list[int]) -> None:
        self.at += 1
        if frame[0] == MAP and frame[2] % 2:
            raise DecodeError('cbor: unexpected "break" code')

    def _check_member(self, frame: list[int]) -> None:
        """Checks the next item inside one without a given length."""
        major, _, seen, _ = frame
        if self.at >= len(self.data):
            raise unexpected_end()
        if major in (BYTES, TEXT):
            first = self.data[self.at]
            if first >> 5 != major:
                raise DecodeError(
                    f"cbor: wrong element type {TYPE_NAMES[first >> 5]} for indefinite-length {TYPE_NAMES[major]}"
                )
            if first & 31 == INDEFINITE:
                raise DecodeError(f"cbor: indefinite-length {TYPE_NAMES[major]} chunk is not definite-length")
        elif major == MAP and seen // 2 > _MAX_PAIRS:
            raise _too_many_pairs()
        frame[2] += 1

    def _item(self, depth: int) -> list[int] | None:
        """Reads one item, of a container the head only: its frame."""
        major, info, argument = self._head()
        if major in (BYTES, TEXT):
            if info == INDEFINITE:
                return [major, _ENDLESS, 0, depth]
            if argument > _MAX_INT:
                raise DecodeError(f"cbor: {TYPE_NAMES[major]} length {argument} is too large, causing integer overflow")
            if len(self.data) - self.at < argument:
                raise unexpected_end()
            self.at += argument
            return None
        if major in (ARRAY, MAP):
            return self._container(major, info, argument, depth + 1)
        if major == TAG:
            return self._item(self._tags(argument, depth))
        return None

    def _container(self, major: int, info: int, length: int, depth: int) -> list[int]:
        _check_depth(depth)
        if info == INDEFINITE:
            return [major, _ENDLESS, 0, depth]
        if length > _MAX_INT:
            raise DecodeError(
                f"cbor: {TYPE_NAMES[major]} length {length} is too large, it would cause integer overflow"
            )
        if major == ARRAY and length > _MAX_ARRAY:
            raise DecodeError(f"cbor: exceeded max number of elements {_MAX_ARRAY} for CBOR array")
        if major == MAP and length > _MAX_PAIRS:
            raise _too_many_pairs()
        return [major, length * (2 if major == MAP else 1), 0, depth]

    def _tags(self, number: int, depth: int) -> int:
        """Returns the depth of the content of a chain of tags; each tag inside another is a level."""
        while True:
            if self.at >= len(self.data):
                raise unexpected_end()
            if number in (2, 3):
                raise unacceptable(TAG, "bignum")
            if self.data[self.at] >> 5 != TAG:
                return depth
            _, _, number = self._head()
            depth += 1
            _check_depth(depth)

    def _head(self) -> tuple[int, int, int]:
        if self.at >= len(self.data):
            raise unexpected_end()
        first = self.data[self.at]
        major, info = first >> 5, first & 31
        self.at += 1
        if info < 24:
            return major, info, info
        if info < 28:
            size = 1 << (info - 24)
            raw = self.data[self.at : self.at + size]
            if len(raw) < size:
                raise unexpected_end()
            self.at += size
            argument = int.from_bytes(raw, "big")
            if major == PRIMITIVE:
                _check_primitive(info, argument, raw)
            return major, info, argument
        if info == INDEFINITE and BYTES <= major <= MAP:
            return major, info, info
        if info == INDEFINITE and major == PRIMITIVE:
            raise DecodeError('cbor: unexpected "break" code')
        raise DecodeError(f"cbor: invalid additional information {info} for type {TYPE_NAMES[major]}")


def _check_primitive(info: int, argument: int, raw: bytes) -> None:
    if info == 24:
        if argument < 32:
            raise DecodeError(f"cbor: invalid simple value {argument} for type {TYPE_NAMES[PRIMITIVE]}")
        return
    value = struct.unpack(FLOAT_FORMATS[info], raw)[0]
    if math.isnan(value):
        raise unacceptable(PRIMITIVE, "floating-point NaN")
    if math.isinf(value):
        raise unacceptable(PRIMITIVE, "floating-point infinity")


def _check_depth(depth: int) -> None:
    if depth > MAX_DEPTH:
        raise DecodeError(f"cbor: exceeded max nested level {MAX_DEPTH}")


def _too_many_pairs() -> DecodeError:
    return DecodeError(f"cbor: exceeded max number of key-value pairs {_MAX_PAIRS} for CBOR map")
