"""Protobuf messages to the objects that their JSON gives.

What Go holds by value is always on the wire: zeros of it are left out again, as absence means them in JSON.
Upstream: the generated.pb.go files, and the Unmarshal methods of k8s.io/apimachinery's Time, Quantity, IntOrString.
"""

import struct
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from fakeapiserver.apimachinery.serializer import json
from fakeapiserver.apimachinery.serializer.protobuf.wire import MAGIC, Messages, Object
from fakeapiserver.apimachinery.timestamp import rfc3339

MAX_DEPTH: Final = 200
_META: Final = "k8s.io.apimachinery.pkg.apis.meta.v1."
_CRD: Final = "k8s.io.apiextensions_apiserver.pkg.apis.apiextensions.v1."


class DecodeError(ValueError):
    """Bytes that are no message; the text is for a 400."""


def decode(data: bytes, message_of: Callable[[str, str], str | None], messages: Messages) -> Object:
    """The enveloped object, with the envelope's apiVersion and kind. `message_of(apiVersion, kind)` names its message.
    DecodeError for bytes that are none, or of a kind without a message."""
    api_version, kind, raw = unwrap(data)
    name = message_of(api_version, kind)
    if name is None:
        raise DecodeError(f'no kind "{kind}" is registered for version "{api_version}"')
    return {"apiVersion": api_version, "kind": kind, **decode_message(raw, name, messages)}


def unwrap(data: bytes) -> tuple[str, str, memoryview]:
    """An envelope's apiVersion, kind and message; DecodeError for what is none."""
    if not data:
        raise DecodeError("empty data")
    if not data.startswith(MAGIC):
        raise DecodeError("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")
    if len(data) == len(MAGIC):
        raise DecodeError("empty body")
    names = {1: "", 2: ""}
    raw = memoryview(b"")
    for number, wire, value in _fields(memoryview(data)[len(MAGIC) :]):
        _check_wire(wire, 2, _ENVELOPE.get(number, ""))
        if number == 1:
            names |= {part: _text(text) for part, _, text in _fields(value)}
        elif number == 2:
            raw = _delimited(value)
    return names[1], names[2], raw


def decode_message(raw: memoryview, name: str, messages: Messages) -> Object:
    """The object whose message `raw` is; DecodeError."""
    found: Object = _message(raw, name, messages, 0)
    return found


_ENVELOPE: Final = {1: "TypeMeta", 2: "Raw", 3: "ContentEncoding", 4: "ContentType"}


def _check_wire(wire: int, expected: int, go_name: str) -> None:
    if go_name and wire != expected:
        raise DecodeError(f"proto: wrong wireType = {wire} for field {go_name}")


def _fields(data: Any) -> Iterator[tuple[int, int, Any]]:
    """(number, wire type, value) of each field: an int, or the bytes of a length-delimited one. DecodeError where `data` is
    itself a number instead of a message."""
    data = _delimited(data)
    at, end = 0, len(data)
    while at < end:
        tag, at = _varint(data, at)
        number, wire = tag >> 3, tag & 7
        value: Any
        if wire == 0:
            value, at = _varint(data, at)
        elif wire == 2:
            length, at = _varint(data, at)
            if at + length > end:
                raise DecodeError("unexpected EOF")
            value, at = data[at : at + length], at + length
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
            if at + size > end:
                raise DecodeError("unexpected EOF")
            value, at = bytes(data[at : at + size]), at + size
        else:
            raise DecodeError(f"proto: illegal wireType {wire}")
        if number == 0:
            raise DecodeError("proto: illegal tag 0")
        yield number, wire, value


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(data):
            raise DecodeError("unexpected EOF")
        if shift > 63:
            raise DecodeError("proto: integer overflow")
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not byte & 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, at


def _delimited(value: Any) -> memoryview:
    """The bytes of a field. A number must never reach bytes(), which would allocate that many."""
    if isinstance(value, int):
        raise DecodeError("proto: wrong wireType = 0")
    return memoryview(value)


def _text(value: Any) -> str:
    return bytes(_delimited(value)).decode("utf-8", "replace")


def _message(data: memoryview, name: str, messages: Messages, depth: int) -> Any:
    if depth > MAX_DEPTH:
        raise DecodeError("the message is nested too deeply")
    special = _SPECIAL.get(name)
    if special is not None:
        return special(data, messages, depth)
    table = messages[name]
    found: Object = {}
    for number, wire, value in _fields(data):
        field = table.get(number)
        if field is None:
            continue  # a field of a later version
        json_name, kind, label = field
        _check_wire(wire, 2 if label == "map" else _WIRES.get(kind, 2), _go_name(json_name, kind))
        if label == "map":
            key, item = _map_entry(value, kind, messages, depth)
            found.setdefault(json_name, {})[key] = item
        elif label == "repeated":
            found.setdefault(json_name, []).append(_value(value, kind, messages, depth))
        else:
            item = _value(value, kind, messages, depth)
            if not json_name:
                found.update(item)
            elif label or item or (item == "" and kind not in _SCALARS):
                found[json_name] = item
    return found


def _go_name(json_name: str, kind: str) -> str:
    """What Go calls a field: embedded structs go by their type."""
    if json_name in ("", "metadata"):
        return kind.rpartition(".")[2]
    return json_name[0].upper() + json_name[1:]


def _map_entry(data: memoryview, kind: str, messages: Messages, depth: int) -> tuple[str, Any]:
    key, item = "", _value(b"", kind, messages, depth) if kind in _SCALARS else None
    for number, _, value in _fields(data):
        if number == 1:
            key = _text(value)
        elif number == 2:
            item = _value(value, kind, messages, depth)
    return key, item


def _value(value: Any, kind: str, messages: Messages, depth: int) -> Any:
    scalar = _SCALARS.get(kind)
    if scalar is not None:
        return scalar(value)
    if isinstance(value, int):
        raise DecodeError(f"proto: wrong wireType = 0 for field of type {kind}")
    return _message(_delimited(value), kind, messages, depth + 1)


def _signed(value: Any) -> int:
    number = value if isinstance(value, int) else 0
    if number != value and len(value):
        raise DecodeError("proto: wrong wireType = 2")
    return number - (1 << 64) if number >= 1 << 63 else number


def _signed32(value: Any) -> int:
    number = _signed(value) & 0xFFFFFFFF
    return number - (1 << 32) if number >= 1 << 31 else number


def _double(value: Any) -> float:
    return _real("<d", value)


def _float(value: Any) -> float:
    return _real("<f", value)


def _real(form: str, value: Any) -> float:
    data = _delimited(value)
    if not len(data):
        return 0
    if len(data) != struct.calcsize(form):
        raise DecodeError("proto: wrong wireType = 2")
    found: float = struct.unpack(form, data)[0]
    return int(found) if found.is_integer() else found


_SCALARS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "string": _text,
    "bytes": lambda value: b64encode(_delimited(value)).decode(),
    "bool": lambda value: bool(_signed(value)),
    "int32": _signed32,
    "int64": _signed,
    "uint32": _signed,
    "uint64": _signed,
    "double": _double,
    "float": _float,
}


# How scalars are written; everything else is delimited.
_WIRES: Final[Mapping[str, int]] = {
    **dict.fromkeys(("bool", "int32", "int64", "uint32", "uint64"), 0),
    "double": 1,
    "float": 5,
}


# ----------------------------------------------- messages with a JSON form of their own


def _numbered(data: memoryview) -> dict[int, Any]:
    return {number: value for number, _, value in _fields(data)}


def _time(data: memoryview, messages: Messages, depth: int) -> str | None:
    """Go's zero time is written as an empty message, and is null in JSON."""
    return f"{_clock(data)}Z" if len(data) else None


def _micro_time(data: memoryview, messages: Messages, depth: int) -> str | None:
    if not len(data):
        return None
    nanoseconds = _signed32(_numbered(data).get(2, 0))
    return f"{_clock(data)}.{nanoseconds // 1000 % 10**6:06d}Z"


def _clock(data: memoryview) -> str:
    """`2026-01-02T15:04:05`, of a Timestamp's seconds."""
    try:
        return rfc3339(_signed(_numbered(data).get(1, 0))).removesuffix("Z")
    except (ValueError, OverflowError, OSError):
        raise DecodeError("Time.MarshalJSON: year outside of range [0,9999]") from None


def _duration(data: memoryview, messages: Messages, depth: int) -> str:
    """Go's time.Duration text, from nanoseconds."""
    nanoseconds = _signed(_numbered(data).get(1, 0))
    seconds, rest = divmod(abs(nanoseconds), 10**9)
    fraction = f".{rest:09d}".rstrip("0") if rest else ""
    hours, minutes = seconds // 3600, seconds // 60 % 60
    text = f"{seconds % 60}{fraction}s"
    if seconds >= 60:
        text = f"{minutes}m{text}"
    if hours:
        text = f"{hours}h{text}"
    return f"-{text}" if nanoseconds < 0 else text


def _quantity(data: memoryview, messages: Messages, depth: int) -> str:
    return _text(_numbered(data).get(1, b""))


def _int_or_string(data: memoryview, messages: Messages, depth: int) -> int | str:
    parts = _numbered(data)
    return _text(parts.get(3, b"")) if parts.get(1, 0) == 1 else _signed32(parts.get(2, 0))


def _raw_json(data: memoryview, messages: Messages, depth: int) -> Any:
    raw = bytes(_delimited(_numbered(data).get(1, b"")))
    return json.decode(raw) if raw else None


def _items(data: memoryview, messages: Messages, depth: int) -> list[str]:
    return [_text(value) for number, _, value in _fields(data) if number == 1]


def _schema_or_bool(data: memoryview, messages: Messages, depth: int) -> Any:
    parts = _numbered(data)
    if 2 in parts:
        return _message(_delimited(parts[2]), _CRD + "JSONSchemaProps", messages, depth + 1)
    return bool(parts.get(1, 0))


def _schema_or_list(data: memoryview, messages: Messages, depth: int) -> Any:
    schemas = [value for number, _, value in _fields(data) if number == 2]
    one = _numbered(data).get(1)
    kind = _CRD + "JSONSchemaProps"
    if one is not None:
        return _message(_delimited(one), kind, messages, depth + 1)
    return [_message(_delimited(value), kind, messages, depth + 1) for value in schemas]


def _schema_or_strings(data: memoryview, messages: Messages, depth: int) -> Any:
    one = _numbered(data).get(1)
    if one is not None:
        return _message(_delimited(one), _CRD + "JSONSchemaProps", messages, depth + 1)
    return [_text(value) for number, _, value in _fields(data) if number == 2]


_SPECIAL: Final[Mapping[str, Callable[[memoryview, Messages, int], Any]]] = {
    _META + "Time": _time,
    _META + "MicroTime": _micro_time,
    _META + "Duration": _duration,
    _META + "FieldsV1": _raw_json,
    _META + "Verbs": _items,
    "k8s.io.apimachinery.pkg.api.resource.Quantity": _quantity,
    "k8s.io.apimachinery.pkg.util.intstr.IntOrString": _int_or_string,
    "k8s.io.apimachinery.pkg.runtime.RawExtension": _raw_json,
    "k8s.io.api.authentication.v1.ExtraValue": _items,
    "k8s.io.api.authorization.v1.ExtraValue": _items,
    "k8s.io.api.certificates.v1.ExtraValue": _items,
    _CRD + "JSON": _raw_json,
    _CRD + "JSONSchemaPropsOrBool": _schema_or_bool,
    _CRD + "JSONSchemaPropsOrArray": _schema_or_list,
    _CRD + "JSONSchemaPropsOrStringArray": _schema_or_strings,
}
