"""Reads the values of Go's basic types from CBOR, and of those types that decode themselves."""

import base64
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from msgspec import Struct

from fakeapiserver.apimachinery.schema.scalars import canonical_base64
from fakeapiserver.apimachinery.serializer.cbor.read import Reader, decode_map
from fakeapiserver.apimachinery.serializer.cbor.wire import (
    ARRAY,
    BYTES,
    FALSE,
    FLOAT_FORMATS,
    NEGATIVE,
    NULL,
    PRIMITIVE,
    TAG,
    TRUE,
    TYPE_NAMES,
    UNSIGNED,
    DecodeError,
    Mismatch,
)

_INT32: Final = 2**31 - 1
_IS_NULL: Final = 0xF6  # the first byte of the item
# The first bytes of items that can be a set of fields.
_FIELDS_FIRST: Final = frozenset((*range(0xA0, 0xC0), *range(0xC6, 0xDC)))


class TypedReader(Reader):
    """`strict`: unknown fields end a struct. `raw` are values kept as they are until everything else is read."""

    __slots__ = ("raw_values", "strict")

    def __init__(self, data: bytes, *, strict: bool) -> None:
        super().__init__(data)
        self.strict = strict
        self.raw_values: list[RawValue] = []


class RawValue:
    """A value of any type. Its bytes become JSON when the object around them is whole."""

    def __init__(self, data: bytes, *, fields: bool) -> None:
        self.data, self._fields = data, fields

    def json(self) -> Any:
        """DecodeError in the words of upstream's transcoding."""
        try:
            if not self._fields:
                return _as_any(self.data)
            # Upstream keeps what neither is a map nor tagged, which is no set of fields in any encoding.
            return decode_map(self.data) if self.data[0] in _FIELDS_FIRST else []
        except DecodeError as error:
            raise DecodeError(
                f"failed to transcode FieldsV1 to JSON: metav1.FieldsV1 cbor invalid: {error}"
                if self._fields
                else f"failed to transcode RawExtension to JSON: failed to parse RawExtension bytes as CBOR: {error}"
            ) from None


Read = Callable[[TypedReader], Any]


class GoType(Struct):
    """A Go type: `read` takes the next item, whose tags were checked. `pointer`: null and undefined are nil, without a look at the
    type. `custom`: an UnmarshalCBOR of its own, which gets the item with its tags."""

    read: Read
    pointer: bool = False
    custom: bool = False


def read_value(reader: TypedReader, wanted: GoType) -> Any:
    if wanted.pointer and reader.is_null():
        reader.skip()
        return None
    reader.enter()
    if reader.data[reader.at] >> 5 == TAG and not wanted.custom:
        return reader.tagged(lambda: wanted.read(reader))
    return wanted.read(reader)


def takes_null(reader: TypedReader) -> bool:
    """Passes a null: Go leaves what is there. Undefined is refused."""
    if reader.data[reader.at] == _IS_NULL:
        reader.at += 1
        return True
    return False


def text_type(go_type: str) -> GoType:
    return GoType(lambda reader: reader.text(go_type))


def read_boolean(reader: TypedReader) -> Any:
    major, info, _, at = reader.head()
    if major == PRIMITIVE and info in (FALSE, TRUE, NULL):
        reader.at = at
        return None if info == NULL else info == TRUE
    raise reader.mismatch("bool")


def integer_type(go_type: str, size: str) -> GoType:
    limit = _INT32 if size == "int32" else 2**63 - 1

    def read(reader: TypedReader) -> Any:
        major, _, _, _ = reader.head()
        if major in (UNSIGNED, NEGATIVE):
            return reader.integer(go_type, limit, go_type)
        if takes_null(reader):
            return None
        raise reader.mismatch(go_type)

    return GoType(read)


def number_type(go_type: str) -> GoType:
    def read(reader: TypedReader) -> Any:
        major, info, argument, _ = reader.head()
        if major == UNSIGNED or (major == NEGATIVE and argument < 2**63):
            reader.skip()
            return float(argument if major == UNSIGNED else -1 - argument)
        if major == NEGATIVE:
            return reader.integer(go_type)
        if major == PRIMITIVE and (info in FLOAT_FORMATS or info == NULL):
            return reader.any()
        raise reader.mismatch(go_type)

    return GoType(read)


def read_bytes(reader: TypedReader) -> Any:
    """Decodes a []byte to base64, as JSON has it.

    A byte string with a tag for binary data holds the bytes, another one their base64.
    """
    major, _, _, _ = reader.head()
    if major == BYTES:
        raw = reader.content()
        if reader.later:
            return base64.b64encode(raw).decode()
        try:
            return canonical_base64(raw.decode("latin-1"))
        except ValueError as error:
            raise DecodeError(f"cbor: failed to decode base64 from byte string: {error}") from None
    if major == ARRAY:
        return base64.b64encode(bytes(item or 0 for item in reader.array(partial(read_value, reader, _BYTE)))).decode()
    if takes_null(reader):
        return None
    raise reader.mismatch("[]uint8")


def _byte(reader: TypedReader) -> Any:
    major, _, argument, _ = reader.head()
    if major == UNSIGNED:
        reader.skip()
        if argument > 255:
            raise Mismatch(TYPE_NAMES[major], "uint8", f"{argument} overflows uint8")
        return argument
    if takes_null(reader):
        return None
    raise reader.mismatch("uint8")


_BYTE: Final = GoType(_byte)
_STRING: Final = GoType(lambda reader: reader.text("string"), pointer=True)


def _inner(reader: TypedReader, wanted: GoType) -> Any:
    """Decodes an item by a type's own Unmarshal: a reading of its own, and a strict one."""
    return read_value(TypedReader(reader.raw(), strict=True), wanted)


def parsed_type(parse: Callable[[str], str]) -> GoType:
    """A time or a quantity, which takes texts only."""

    def read(reader: TypedReader) -> Any:
        text = _inner(reader, _STRING)
        if text is None:
            return None
        try:
            return parse(text)
        except ValueError as error:
            raise DecodeError(str(error)) from None

    return GoType(read, custom=True)


def read_int_or_string(reader: TypedReader) -> Any:
    raw = reader.raw()
    try:
        text = read_value(TypedReader(raw, strict=True), text_type("string"))
    except DecodeError:
        return read_value(TypedReader(raw, strict=True), integer_type("int32", "int32"))
    # A null fits a text, which stays empty.
    return text or ""


def read_raw(reader: TypedReader, *, fields: bool) -> Any:
    raw = reader.raw()
    if raw[0] == _IS_NULL:
        return None
    raw_value = RawValue(raw, fields=fields)
    reader.raw_values.append(raw_value)
    return raw_value


def read_json(reader: TypedReader) -> Any:
    return _as_any(reader.raw())


def _as_any(raw: bytes) -> Any:
    return Reader(raw).any()
