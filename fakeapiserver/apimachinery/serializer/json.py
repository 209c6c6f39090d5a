"""JSON as the API server reads and writes it: msgspec on the fast path, Go's rules and Go's words on the slow one.

Upstream: sigs.k8s.io/json and Go's encoding/json, used by k8s.io/apimachinery/pkg/runtime/serializer/json/json.go.
"""

import json
import math
import re
import sys
from collections.abc import Callable
from operator import itemgetter
from typing import Any, Final

import msgspec

from fakeapiserver.apimachinery.depth import continued
from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.apimachinery.serializer import deep_json
from fakeapiserver.apimachinery.serializer.go_json import (
    MAX_DEPTH,
    DecodeError,
    JSONParser,
    NumberTooLarge,
    Repeated,
    Written,
)

__all__ = [
    "DecodeError",
    "NumberTooLarge",
    "Repeated",
    "Written",
    "decode",
    "decode_as_written",
    "decode_exactly",
    "decode_plainly",
    "duplicate_fields",
    "encode",
    "encode_plainly",
    "encode_plainly_sorted",
    "encode_pretty",
    "encode_sorted",
    "has_unusual_numbers",
    "rounded",
    "sorted_keys",
    "with_duplicates",
]

# Before, msgspec ends with a RecursionError after fewer levels than Go's MAX_DEPTH.
_GOES_DEEPER: Final = sys.version_info >= (3, 14)
_decode: Final = msgspec.json.Decoder().decode
_encoder: Final = msgspec.json.Encoder()
_sorting_encoder: Final = msgspec.json.Encoder(order="deterministic")
# Questions that every body is asked. Text that only looks so costs a walk and nothing else. One pattern for each first byte,
# since `re` finds a known byte five times faster than one of several.
# Does it hold an integer of 19 digits or more, which may not fit int64?
_long_member, _long_item, _long_first_item, _is_long = (
    re.compile(first + rb"\s*-?[0-9]{19}").search for first in (rb":", rb",", rb"\[", rb"\A")
)
# Does an object in it have a member 1.5, 1e3 or one that may not fit int64?
# Only behind a key: the tag of an image, `"web:1.2"`, is no number.
has_unusual_numbers: Final = re.compile(rb":(?<=[\"\s]:)\s*-?(?:[0-9]{19}|[0-9]+[.eE])").search
# Does it hold 1.0 or 1e16, as msgspec writes, where Go writes 1 and 10000000000000000?
_whole_float, _exponent = (re.compile(digits + rb"(?:[,\]}]|\Z)").search for digits in (rb"\.0", rb"e[-+]?[0-9]+"))


def decode(data: bytes) -> Any:
    """The value `data` holds. Integers outside int64 become floats, floats stay floats, bad text becomes U+FFFD.

    Raises DecodeError with encoding/json's text.
    """
    try:
        value = _decode(data)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return JSONParser(data).parse()
    if (
        _GOES_DEEPER
        and len(data) > 2 * MAX_DEPTH
        and data.count(b"{") + data.count(b"[") > MAX_DEPTH
        and _is_too_deep(value)
    ):
        return JSONParser(data).parse()
    has_long_number = _long_member(data) or _long_item(data) or _long_first_item(data) or _is_long(data)
    return _go_numbers(value) if has_long_number else value


def _is_too_deep(value: Any) -> bool:
    """Goes through the containers of each level."""
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [
            item
            for container in level
            for item in (container.values() if type(container) is dict else container)
            if type(item) in (dict, list)
        ]
        if not level:
            return False
    return True


def decode_exactly(data: bytes) -> Any:
    """Does what `decode` does, with integers of any size and other numbers as `Written`.

    Raises DecodeError, not in Go's words.
    """
    try:
        return _decode_written(data)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise DecodeError(str(error)) from None


def decode_as_written(data: bytes) -> Any:
    """Does what `decode` does, slowly: objects with repeated keys are `Repeated`, and floats `Written`."""
    return JSONParser(data, merge=True, written=True).parse()


def rounded(value: Any) -> Any:
    """Converts a result of decode_exactly to plain numbers, as `decode` returns them."""
    return _go_numbers(value)


def sorted_keys(value: Any) -> Any:
    """A copy with the members of its objects in the order of their names, as they come out of Go's maps."""
    return decode_plainly(encode_plainly_sorted(value))


_decode_written: Final = msgspec.json.Decoder(float_hook=Written).decode


def _go_numbers(value: Any) -> Any:
    try:
        if isinstance(value, dict):
            return {key: _go_numbers(item) for key, item in value.items()}
        if isinstance(value, list):
            return [_go_numbers(item) for item in value]
    except RecursionError:
        return continued(_go_numbers, value)
    if type(value) is Written or (type(value) is int and not -(2**63) <= value < 2**63):
        return _float64(value)
    return value


def _float64(value: float) -> float:
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if math.isinf(number):
        raise NumberTooLarge(str(value))
    return number


def duplicate_fields(data: bytes, decoded: Any) -> list[str]:
    """Returns texts such as `duplicate field "metadata.name"` in upstream's order; `decoded` is decode(data)."""
    if not _has_duplicates(data, decoded):
        return []
    parser = JSONParser(data)
    parser.parse()
    return [f"duplicate field {go_quote(path)}" for path in parser.duplicates]


def with_duplicates(data: bytes) -> tuple[Any, Callable[[list[str]], list[str]]]:
    """A body with repeated keys: objects that have some are `Repeated`, and floats `Written`. Beside it a function that puts
    `unknown field "x"` texts and those of the repeated keys that are known into the order of the body."""
    parser = JSONParser(data, merge=True, written=True)
    value = parser.parse()

    def in_order(unknown: list[str]) -> list[str]:
        fields = [_path_of(text) for text in unknown]
        within = tuple(field + end for field in fields for end in ".[")
        repeated = [path for path in parser.duplicates if path not in fields and not path.startswith(within)]
        complaints = [(parser.repeated_at[path], f"duplicate field {go_quote(path)}") for path in repeated]
        complaints += [(parser.first_at.get(_path_of(text), len(data)), text) for text in unknown]
        return [text for _, text in sorted(complaints, key=itemgetter(0))]

    return value, in_order


def _path_of(text: str) -> str:
    """`unknown field "spec.foo"` -> `spec.foo`."""
    return text.partition('"')[2][:-1]


# The characters that Go escapes, and their escapes. `\\u003c` after another backslash is no escape; then the text only compares as unequal.
_GO_ESCAPES: Final = ((b"\\u003c", b"<"), (b"\\u003e", b">"), (b"\\u0026", b"&"))


def _has_duplicates(data: bytes, decoded: Any) -> bool:
    try:
        encoded = encode_plainly(decoded)
        if encoded == data.rstrip():
            return False
        # A text without blanks and escapes that equals the encoded value has no more members than the value.
        compact = msgspec.json.format(data, indent=-1)
        for escape, character in _GO_ESCAPES:
            compact = compact.replace(escape, character)
        if encoded == compact:
            return False
        seen: list[bool] = []

        def pairs_hook(pairs: list[tuple[str, Any]]) -> None:
            if len({key for key, _ in pairs}) != len(pairs):
                seen.append(True)

        json.loads(data, object_pairs_hook=pairs_hook)
        return bool(seen)
    except (ValueError, RecursionError):
        return True  # Text only the slow parser reads: let it decide.


def encode_plainly(obj: Any) -> bytes:
    """Compact JSON of any depth, numbers as msgspec writes them."""
    try:
        return _encoder.encode(obj)
    except RecursionError:
        return deep_json.encode(obj, order=None)


def encode_plainly_sorted(obj: Any) -> bytes:
    """Does what `encode_plainly` does, with the keys of all objects sorted."""
    try:
        return _sorting_encoder.encode(obj)
    except RecursionError:
        return deep_json.encode(obj, order="deterministic")


def decode_plainly(data: bytes) -> Any:
    """The value of JSON that this server wrote, of any depth, without a look at its numbers."""
    try:
        return _decode(data)
    except RecursionError:
        return JSONParser(data).parse()


def encode(obj: Any) -> bytes:
    """Compact JSON, keys in the order of `obj`, numbers as Go prints them, no newline at the end."""
    encoded = encode_plainly(obj)
    return encode_plainly(_raw_floats(obj)) if _whole_float(encoded) or _exponent(encoded) else encoded


def encode_sorted(obj: Any) -> bytes:
    """Does what `encode` does, with the keys of all objects sorted, as Go writes its maps."""
    encoded = encode_plainly_sorted(obj)
    return encode_plainly_sorted(_raw_floats(obj)) if _whole_float(encoded) or _exponent(encoded) else encoded


def encode_pretty(obj: Any) -> bytes:
    """Indented by two spaces, as the server answers `?pretty=true`."""
    return msgspec.json.format(encode(obj), indent=2)


def _raw_floats(value: Any) -> Any:
    try:
        if isinstance(value, dict):
            return {key: _raw_floats(item) for key, item in value.items()}
        if isinstance(value, list):
            return [_raw_floats(item) for item in value]
    except RecursionError:
        return continued(_raw_floats, value)
    if isinstance(value, float) and math.isfinite(value):
        return msgspec.Raw(go_float(value).encode())
    return value


def go_float(value: float) -> str:
    """A float as encoding/json writes it: shortest digits, an exponent only below 1e-6 and from 1e21 on."""
    if value == 0:
        return "-0" if math.copysign(1, value) < 0 else "0"
    text = repr(value)
    sign, text = ("-", text[1:]) if text[0] == "-" else ("", text)
    mantissa, _, exponent = text.partition("e")
    whole, _, fraction = mantissa.partition(".")
    point = len(whole) + int(exponent or 0)
    digits = whole + fraction
    leading = len(digits) - len(digits.lstrip("0"))
    digits, point = digits.strip("0"), point - leading
    if not 1e-6 <= abs(value) < 1e21:
        tail = f".{digits[1:]}" if len(digits) > 1 else ""
        return f"{sign}{digits[0]}{tail}e{'+' if point > 0 else '-'}{abs(point - 1)}"
    if point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    if point >= len(digits):
        return sign + digits + "0" * (point - len(digits))
    return f"{sign}{digits[:point]}.{digits[point:]}"
