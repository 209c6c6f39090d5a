"""A custom resource's Table: its name, and the columns its CustomResourceDefinition adds.

Upstream: k8s.io/apiextensions-apiserver/pkg/registry/customresource/tableconvertor/tableconvertor.go.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from fakeapiserver.apimachinery.go.strconv import to_int64
from fakeapiserver.apimachinery.jsonpath import compile_path
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.apimachinery.patch.go_format import go_value
from fakeapiserver.apimachinery.schema.validate_value import sorted_value
from fakeapiserver.apimachinery.serializer import json
from fakeapiserver.apimachinery.timestamp import seconds_of
from fakeapiserver.registry.generic.printing import duration_since

_AGE: Final = {"type": "date", "jsonPath": ".metadata.creationTimestamp"}
_NOTHING: Final = object()
# Go escapes HTML in JSON.
_ESCAPES: Final = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
_ESCAPED: Final = re.compile("[<>&\u2028\u2029]")


def row_printer(declared: Sequence[Mapping[str, Any]]) -> Callable[[Object, float], list[object]]:
    """Prints the cells of the declared columns behind the name; without any there is an age, as upstream has it. The first
    column with an invalid path ends the row."""
    readers = []
    for column in list(declared) or [_AGE]:
        try:
            readers.append((column["type"], compile_path(column["jsonPath"])))
        except ValueError:
            break

    def row(obj: Object, now: float) -> list[object]:
        return [metadata(obj).get("name", ""), *(_cell(kind, _first(read, obj), now) for kind, read in readers)]

    return row


def _first(read: Callable[[Any], list[Any]], obj: Object) -> Any:
    """The first value that a path finds."""
    try:
        values = read(obj)
    except ValueError:
        return _NOTHING
    return values[0] if values else _NOTHING


def _cell(kind: str, value: Any, now: float) -> object:
    """The value in its column's type; null for a missing value and for a value of another type."""
    if value is _NOTHING:
        return None
    if kind == "string":
        return _text(value)
    if kind == "date":
        return _age(value, now) if isinstance(value, str) else None
    if kind == "boolean":
        return value if isinstance(value, bool) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    # A column of numbers holds floats, of which whole ones look like integers.
    return to_int64(value) if kind == "integer" else int(float(value)) if isinstance(value, int) else value


def _age(text: str, now: float) -> str:
    if text in ("", "null"):
        return "<unknown>"
    seconds = seconds_of(text)
    return "<invalid>" if seconds is None else duration_since(seconds, now)


def _text(value: Any) -> str:
    """A JSON value as Go prints it without a format."""
    if value is None:
        return "<no value>"
    if not isinstance(value, dict | list):
        return go_value(value)

    text = json.encode(sorted_value(value)).decode()
    return "".join(_ESCAPES.get(character, character) for character in text) if _ESCAPED.search(text) else text
