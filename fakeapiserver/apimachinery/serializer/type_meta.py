"""A document of any kind as upstream first looks at it: JSON or YAML, an object, its kind and apiVersion.

Upstream: k8s.io/apimachinery/pkg/runtime/serializer/{recognizer/recognizer,json/json,json/meta}.go.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from fakeapiserver.apimachinery.gvk import GroupVersion
from fakeapiserver.apimachinery.serializer import json, yaml

_GO_TYPE: Final = (
    'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
)
_GO_KINDS: Final = {str: "string", bool: "bool", int: "number", float: "number", list: "array", dict: "object"}


class Document(NamedTuple):
    """`version` and `kind` are empty where the document has none."""

    content: dict[str, Any]
    version: str
    kind: str
    is_json: bool


def read(data: bytes) -> Document:
    """Reads an object's type. Raises ValueError in Go's words if the data is no object, or its type is no text."""
    is_json = data.lstrip().startswith(b"{")
    document = None if is_json else yaml.decode(data)
    try:
        if is_json:
            document = json.decode(data)
        if document is None:
            document = {}
        if not isinstance(document, dict):
            raise ValueError(f"json: cannot unmarshal {_GO_KINDS[type(document)]} into Go value of type {_GO_TYPE}")
        version, kind = (_type_field(document, name) for name in ("apiVersion", "kind"))
    except ValueError as error:
        raise ValueError(f"couldn't get version/kind; json parse error: {error}") from None
    GroupVersion.parse(version)
    return Document(document, version, kind, is_json)


def _type_field(document: Mapping[str, Any], name: str) -> str:
    """Go finds these two in any case, and the last one counts."""
    place = f"Go struct field .{name} of type string"
    keys = [key for key in document if key.lower() == name.lower() and document[key] is not None]
    return [text_field(document, key, place) for key in keys][-1] if keys else ""


def text_field(document: Mapping[str, Any], name: str, place: str) -> str:
    """A field that must be text; `place` is what Go calls it. ValueError."""
    return str(_field(document, name, str, place) or "")


def boolean_field(document: Mapping[str, Any], name: str, place: str) -> bool:
    return bool(_field(document, name, bool, place))


def object_field(document: Mapping[str, Any], name: str, place: str) -> dict[str, Any]:
    value: dict[str, Any] | None = _field(document, name, dict, place)
    return value or {}


def _field(document: Mapping[str, Any], name: str, wanted: type, place: str) -> Any:
    value = document.get(name)
    if value is not None and type(value) is not wanted:
        raise ValueError(f"json: cannot unmarshal {_GO_KINDS[type(value)]} into {place}")
    return value
