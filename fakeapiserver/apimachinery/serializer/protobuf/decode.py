"""Protobuf messages to the objects that their JSON gives.

What Go holds by value is always on the wire: zeros of it are left out again, as absence means them in JSON.
Upstream: the generated.pb.go files, and the Unmarshal methods of k8s.io/apimachinery's Time, Quantity, IntOrString.
"""

import re
import struct
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.serializer import json
from fakeapiserver.apimachinery.serializer.protobuf.wire import MAGIC, Field, Messages
from fakeapiserver.apimachinery.timestamp import rfc3339

MAX_DEPTH: Final = 200
_META: Final = "k8s.io.apimachinery.pkg.apis.meta.v1."
_CRD: Final = "k8s.io.apiextensions_apiserver.pkg.apis.apiextensions.v1."
_VARINT, _FIXED64, _DELIMITED, _START_GROUP, _END_GROUP, _FIXED32 = range(6)
_ENVELOPE: Final[Mapping[int, Field]] = {
    1: ("typeMeta", "TypeMeta", ""),
    2: ("raw", "message", ""),
    3: ("contentEncoding", "string", ""),
    4: ("contentType", "string", ""),
}
_TYPE_META: Final[Mapping[int, Field]] = {1: ("apiVersion", "string", ""), 2: ("kind", "string", "")}


class DecodeError(ValueError):
    """Bytes that are no message; the text is for a 400."""


def decode(data: bytes, message_of: Callable[[str, str], str | None], messages: Messages) -> Object:
    """Decodes an enveloped object, with the envelope's apiVersion and kind. `message_of(apiVersion, kind)` names its message.

    Raises DecodeError for invalid bytes and for a kind without a message.
    """
    api_version, kind, raw = unwrap(data)
    name = message_of(api_version, kind)
    if name is None:
        raise DecodeError(f'no kind "{kind}" is registered for version "{api_version}"')
    return {"apiVersion": api_version, "kind": kind, **decode_message(raw, name, messages)}


def unwrap(data: bytes) -> tuple[str, str, bytes]:
    """Returns an envelope's apiVersion, kind and message. Raises DecodeError for an invalid one."""
    if not data:
        raise DecodeError("empty data")
    if not data.startswith(MAGIC):
        raise DecodeError("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")
    if len(data) == len(MAGIC):
        raise DecodeError("empty body")
    parts: dict[str, bytes] = {}
    for (name, _, _), value in _fields(data[len(MAGIC) :], _ENVELOPE, "Unknown"):
        if name == "typeMeta":
            parts |= {part: text for (part, _, _), text in _fields(value, _TYPE_META, "TypeMeta")}
        else:
            parts[name] = value
    return _text(parts.get("apiVersion", b"")), _text(parts.get("kind", b"")), parts.get("raw", b"")


def decode_message(raw: bytes, name: str, messages: Messages) -> Object:
    """The object whose message `raw` is; DecodeError."""
    return _plain(raw, name, messages, 0, {})


# -------------------------------------------------------------------------- wire


def _fields(data: bytes, table: Mapping[int, Field], message: str) -> Iterator[tuple[Field, Any]]:
    """The known fields with their values: a number, or bytes; where a map's entry is. Those of a later version are skipped."""
    at, end = 0, len(data)
    while at < end:
        tag = data[at]
        if tag < 128:
            at += 1
        else:
            tag, at = _varint(data, at)
        wire = tag & 7
        field = table.get(_number(tag))
        if field is None:
            at = _skip_unknown(data, at, tag, message)
            continue
        name, kind, label = field
        if wire != (_DELIMITED if label == "map" else _WIRES.get(kind, _DELIMITED)):
            raise _wrong_wire(tag, message, _go_name(name, kind))
        value, at = _read(data, at, wire)
        yield field, (data, at - len(value), at) if label == "map" else value


def _number(tag: int) -> int:
    """A field's number is an int32."""
    return tag >> 3 if tag < 1 << 34 else _signed32(tag >> 3)


def _skip_unknown(data: bytes, at: int, tag: int, message: str) -> int:
    if tag & 7 == _END_GROUP or _number(tag) <= 0:
        raise _wrong_wire(tag, message, "")
    return _skip(data, at, tag & 7)


def _wrong_wire(tag: int, message: str, go_name: str) -> DecodeError:
    """Returns the error of a tag, checked in gogo's order."""
    if tag & 7 == _END_GROUP:
        return DecodeError(f"proto: {message}: wiretype end group for non-group")
    if _number(tag) <= 0:
        return DecodeError(f"proto: {message}: illegal tag {_number(tag)} (wire type {tag})")
    return DecodeError(f"proto: wrong wireType = {tag & 7} for field {go_name}")


def _read(data: bytes, at: int, wire: int) -> tuple[Any, int]:
    first = data[at] if at < len(data) else 128
    if wire == _VARINT:
        return (first, at + 1) if first < 128 else _varint(data, at)
    if wire == _DELIMITED:
        size, at = (first, at + 1) if first < 128 else _varint(data, at)
        if size >= 1 << 63:
            raise DecodeError("proto: negative length found during unmarshaling")
    else:
        size = 8 if wire == _FIXED64 else 4
    if at + size > len(data):
        raise DecodeError("unexpected EOF")
    return data[at : at + size], at + size


def _skip(data: bytes, at: int, wire: int) -> int:
    """Returns the end of a field of unknown number; groups, which nothing uses, may nest."""
    depth = 0
    while True:
        if wire == _START_GROUP:
            depth += 1
        elif wire == _END_GROUP:
            if not depth:
                raise DecodeError("proto: unexpected end of group")
            depth -= 1
        elif wire > _FIXED32:
            raise DecodeError(f"proto: illegal wireType {wire}")
        else:
            _, at = _read(data, at, wire)
        if not depth:
            return at
        tag, at = _varint(data, at)
        wire = tag & 7


def _varint(data: bytes, at: int) -> tuple[int, int]:
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


_INITIALS: Final = re.compile(r"^(uid|ip|url|api|id|fs|tls|dns|http|tcp|ttl)(?=[A-Z]|s?$)")


def _go_name(json_name: str, kind: str) -> str:
    """Returns Go's name of a field: embedded structs go by their type."""
    if json_name in ("", "metadata"):
        return kind.rpartition(".")[2]
    if json_name == "-":
        return "Raw"
    name = _INITIALS.sub(lambda match: match[0].upper(), json_name)
    return name[0].upper() + name[1:]


# ---------------------------------------------------------------------- messages


def _message(data: bytes, name: str, messages: Messages, depth: int, fields: Object) -> Any:
    special = _SPECIAL.get(name)
    if special is None:
        return _plain(data, name, messages, depth, fields)
    return special(_plain(data, name, messages, depth, {}, keep_zeros=True), data)


def _plain(
    data: bytes, name: str, messages: Messages, depth: int, fields: Object, *, keep_zeros: bool = False
) -> Object:
    """A message by its table, put into `fields`: a field that comes twice is merged, as protobuf has it."""
    if depth > MAX_DEPTH:
        raise DecodeError("the message is nested too deeply")
    short = _TIMESTAMPS.get(name) or name.rpartition(".")[2]
    for (json_name, kind, label), value in _fields(data, messages[name], short):
        scalar = _SCALARS.get(kind)
        if label == "map":
            within, start, end = value
            key, item = _map_entry(within, start, end, kind, messages, depth)
            fields.setdefault(json_name, {})[key] = item
        elif label == "repeated":
            item = scalar(value) if scalar else _message(value, kind, messages, depth + 1, {})
            fields.setdefault(json_name, []).append(item)
        elif not json_name:
            _plain(value, kind, messages, depth + 1, fields)
        else:
            if scalar and not value and not (label or keep_zeros):
                fields.pop(json_name, None)  # a zero by value
                continue
            before = fields.get(json_name)
            into = before if isinstance(before, dict) else {}
            item = scalar(value) if scalar else _message(value, kind, messages, depth + 1, into)
            if label or item or keep_zeros or (not scalar and (item == "" or (value and item is not None))):
                fields[json_name] = item
            else:
                fields.pop(json_name, None)
    return fields


def _map_entry(data: bytes, at: int, end: int, kind: str, messages: Messages, depth: int) -> tuple[str, Any]:
    """A key and its value, read as what they must be whatever the tags say; gogo lets them go on behind the entry's end."""
    scalar = _SCALARS.get(kind)
    wire = _WIRES.get(kind, _DELIMITED)
    key, item = b"", 0 if wire == _VARINT else b""
    while at < end:
        tag, at = _varint(data, at)
        if tag >> 3 == 1:
            key, at = _read(data, at, _DELIMITED)
        elif tag >> 3 == 2:
            item, at = _read(data, at, wire)
        else:
            at = _skip(data, at, tag & 7)
            if at > end:
                raise DecodeError("unexpected EOF")
    return _text(key), scalar(item) if scalar else _message(bytes(item), kind, messages, depth + 1, {})


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")


def _signed(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value


def _signed32(value: int) -> int:
    low = value & 0xFFFFFFFF
    return low - (1 << 32) if low >= 1 << 31 else low


def _real(form: str) -> Callable[[bytes], float]:
    unpack = struct.Struct(form).unpack

    def read(value: bytes) -> float:
        number: float = unpack(value)[0]
        return int(number) if number.is_integer() else number

    return read


_SCALARS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "string": _text,
    "bytes": lambda value: b64encode(value).decode(),
    "bool": bool,
    "int32": _signed32,
    "int64": _signed,
    "uint32": _signed,
    "uint64": _signed,
    "double": _real("<d"),
    "float": _real("<f"),
}
# How scalars are written; everything else is delimited.
_WIRES: Final[Mapping[str, int]] = {
    **dict.fromkeys(("bool", "int32", "int64", "uint32", "uint64"), _VARINT),
    "double": _FIXED64,
    "float": _FIXED32,
}


# ------------------------------- messages with a JSON form of their own, from their fields and bytes


def _time(fields: Object, data: bytes) -> str | None:
    """Go's zero time is written as an empty message, and is null in JSON."""
    return f"{_clock(fields)}Z" if data else None


def _micro_time(fields: Object, data: bytes) -> str | None:
    return f"{_clock(fields)}.{fields.get('nanos', 0) // 1000 % 10**6:06d}Z" if data else None


def _clock(fields: Object) -> str:
    """`2026-01-02T15:04:05`, of a Timestamp's seconds."""
    try:
        return rfc3339(fields.get("seconds", 0)).removesuffix("Z")
    except (ValueError, OverflowError, OSError):
        raise DecodeError("Time.MarshalJSON: year outside of range [0,9999]") from None


def _duration(fields: Object, data: bytes) -> str:
    """Go's time.Duration text, from nanoseconds."""
    nanoseconds = fields.get("duration", 0)
    seconds, rest = divmod(abs(nanoseconds), 10**9)
    fraction = f".{rest:09d}".rstrip("0") if rest else ""
    hours, minutes = seconds // 3600, seconds // 60 % 60
    text = f"{seconds % 60}{fraction}s"
    if seconds >= 60:
        text = f"{minutes}m{text}"
    if hours:
        text = f"{hours}h{text}"
    return f"-{text}" if nanoseconds < 0 else text


def _quantity(fields: Object, data: bytes) -> str:
    text: str = fields.get("string", "0")
    return text


def _int_or_string(fields: Object, data: bytes) -> int | str:
    value: int | str = fields.get("strVal", "") if fields.get("type") == 1 else fields.get("intVal", 0)
    return value


def _owned_fields(fields: Object, data: bytes) -> Any:
    """Returns a manager's fields; a text that isn't JSON becomes an empty list, which later steps refuse or ignore."""
    try:
        return _raw_json(fields, data)
    except ValueError:
        return []


def _raw_json(fields: Object, data: bytes) -> Any:
    raw = b64decode(next(iter(fields.values()), ""))
    return json.decode(raw) if raw else None


def _items(fields: Object, data: bytes) -> list[str]:
    return list(fields.get("items", ()))


def _schema_or(alternative: str, absent: Any) -> Callable[[Object, bytes], Any]:
    """A JSON schema where there is one."""
    return lambda fields, data: fields["schema"] if "schema" in fields else fields.get(alternative, absent)


_TIMESTAMPS: Final = {_META + "Time": "Timestamp", _META + "MicroTime": "Timestamp"}
_SPECIAL: Final[Mapping[str, Callable[[Object, bytes], Any]]] = {
    _META + "Time": _time,
    _META + "MicroTime": _micro_time,
    _META + "Duration": _duration,
    _META + "FieldsV1": _owned_fields,
    _META + "Verbs": _items,
    "k8s.io.apimachinery.pkg.api.resource.Quantity": _quantity,
    "k8s.io.apimachinery.pkg.util.intstr.IntOrString": _int_or_string,
    "k8s.io.apimachinery.pkg.runtime.RawExtension": _raw_json,
    **{f"k8s.io.api.{group}.v1.ExtraValue": _items for group in ("authentication", "authorization", "certificates")},
    _CRD + "JSON": _raw_json,
    _CRD + "JSONSchemaPropsOrBool": _schema_or("allows", False),
    _CRD + "JSONSchemaPropsOrArray": _schema_or("jSONSchemas", []),
    _CRD + "JSONSchemaPropsOrStringArray": _schema_or("property", []),
}
