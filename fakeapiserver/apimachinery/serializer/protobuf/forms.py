"""The JSON forms of protobuf values: scalars, and messages that JSON doesn't show field by field.

Upstream: the Unmarshal and MarshalJSON methods of k8s.io/apimachinery's Time, Quantity, IntOrString and others.
"""

import struct
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from typing import Any, Final

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.serializer import json
from fakeapiserver.apimachinery.serializer.protobuf.wire import STRING_LISTS, DecodeError
from fakeapiserver.apimachinery.timestamp import rfc3339

_META: Final = "k8s.io.apimachinery.pkg.apis.meta.v1."
_CRD: Final = "k8s.io.apiextensions_apiserver.pkg.apis.apiextensions.v1."


def text(value: bytes) -> str:
    return value.decode("utf-8", "replace")


def _signed(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value


def signed32(value: int) -> int:
    low = value & 0xFFFFFFFF
    return low - (1 << 32) if low >= 1 << 31 else low


def _real(form: str) -> Callable[[bytes], float]:
    unpack = struct.Struct(form).unpack

    def read(value: bytes) -> float:
        number: float = unpack(value)[0]
        return int(number) if number.is_integer() else number

    return read


SCALARS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "string": text,
    "as it is": bytes,
    "bytes": lambda value: b64encode(value).decode(),
    "bool": bool,
    "int32": signed32,
    "int64": _signed,
    "uint32": _signed,
    "uint64": _signed,
    "double": _real("<d"),
    "float": _real("<f"),
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


TIMESTAMPS: Final = {_META + "Time": "Timestamp", _META + "MicroTime": "Timestamp"}
SPECIAL: Final[Mapping[str, Callable[[Object, bytes], Any]]] = {
    _META + "Time": _time,
    _META + "MicroTime": _micro_time,
    _META + "Duration": _duration,
    _META + "FieldsV1": _owned_fields,
    _META + "Verbs": _items,
    "k8s.io.apimachinery.pkg.api.resource.Quantity": _quantity,
    "k8s.io.apimachinery.pkg.util.intstr.IntOrString": _int_or_string,
    "k8s.io.apimachinery.pkg.runtime.RawExtension": _raw_json,
    **dict.fromkeys(STRING_LISTS, _items),
    _CRD + "JSON": _raw_json,
    _CRD + "JSONSchemaPropsOrBool": _schema_or("allows", False),
    _CRD + "JSONSchemaPropsOrArray": _schema_or("jSONSchemas", []),
    _CRD + "JSONSchemaPropsOrStringArray": _schema_or("property", []),
}
# Messages whose form is a text or a number.
CONSTANT: Final = frozenset(
    (
        _META + "Time",
        _META + "MicroTime",
        _META + "Duration",
        "k8s.io.apimachinery.pkg.api.resource.Quantity",
        "k8s.io.apimachinery.pkg.util.intstr.IntOrString",
    )
)
