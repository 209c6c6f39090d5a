"""Decodes the bytes of a body into a document, whatever it describes.

Upstream: k8s.io/apimachinery/pkg/runtime/serializer/{json,yaml}.
"""

import re
from typing import Any, Final

from fakeapiserver.apimachinery.serializer import json, protobuf, yaml
from fakeapiserver.apis import protobuf as protobuf_messages
from fakeapiserver.endpoints.negotiation.media_types import PROTOBUF, YAML

_FRACTION: Final = re.compile(rb"\d[.eE]")
_LONG_NUMBER: Final = re.compile(rb"\d{19}")
# What JSON accepts, but YAML refuses or reads differently: a leading tab, some characters, plain or escaped, and long keys.
_NO_YAML: Final = re.compile(rb"^\s*\t|\x7f|\\u[dD][89a-fA-F]|\"[^\"]{1024,}\"\s*:")
_NO_YAML_TEXT: Final = re.compile("[\x80-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


def decode_document(data: bytes, media_type: str, *, exactly: bool = False) -> tuple[Any, list[str]]:
    """Returns the document and the texts of its duplicate fields. Raises DecodeError in the words of Go's decoders.

    exactly: YAML's integers beyond int64 stay what they are.
    """
    if media_type == YAML:
        return _decode_yaml(data, exactly=exactly and has_long_number(data))
    if media_type == PROTOBUF:
        return protobuf.decode(data, protobuf_messages.message_finder(), protobuf_messages.decoder()), []
    document = json.decode(data)
    return document, json.duplicate_fields(data, document)


def has_long_number(data: bytes) -> bool:
    """Reports whether a number may be beyond int64."""
    return bool(_LONG_NUMBER.search(data))


def _decode_yaml(data: bytes, *, exactly: bool) -> tuple[Any, list[str]]:
    """Clients send JSON as YAML: a body that begins like an object is first tried as JSON, which is much faster."""
    if not exactly and data.lstrip().startswith(b"{") and _is_yaml_too(data):
        try:
            document = json.decode(data)
        except ValueError:
            return yaml.decode_with_duplicates(data)
        if not json.duplicate_fields(data, document):
            ordered = json.sorted_keys(document)
            return (_whole_numbers(ordered) if _FRACTION.search(data) else ordered), []
    return yaml.decode_with_duplicates(data, exactly=exactly)


def _is_yaml_too(data: bytes) -> bool:
    """Reports whether a body, if it is JSON, means the same as YAML."""
    if _NO_YAML.search(data):
        return False
    try:
        return data.isascii() or not _NO_YAML_TEXT.search(data.decode())
    except UnicodeDecodeError:
        return False


def _whole_numbers(value: Any) -> Any:
    """Upstream turns YAML into JSON without exponents and zero fractions, so that 1.0 becomes 1."""
    if isinstance(value, dict):
        return {key: _whole_numbers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_whole_numbers(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 2**63 else value
