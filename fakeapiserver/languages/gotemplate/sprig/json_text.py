"""JSON text from values and back, as Go's encoding/json writes and reads it."""

import json
from typing import Any, Final

from fakeapiserver.apimachinery.serializer.json import encode
from fakeapiserver.languages.gotemplate.values import Number, TemplateError


def _json(value: Any) -> Any:
    """Returns the value as an encoder accepts it."""
    if isinstance(value, Number):
        return json.loads(value)
    if isinstance(value, dict):
        return {key: _json(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        return [*map(_json, value)]
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e21:
        return int(value)
    return value


_ESCAPED: Final = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def _escaped(text: str) -> str:
    for char, escape in _ESCAPED.items():
        text = text.replace(char, escape)
    return text


def to_json(value: Any) -> str:
    """Encodes as Go's json.Marshal does: keys sorted, &, < and > escaped."""
    return _escaped(encode(_json(value)).decode())


def to_raw_json(value: Any) -> str:
    return encode(_json(value)).decode()


def to_pretty_json(value: Any) -> str:
    return _escaped(json.dumps(_json(value), indent=2, ensure_ascii=False))


def from_json(text: str) -> Any:
    try:
        return _go_numbers(json.loads(text))
    except ValueError:
        return None


def must_from_json(text: str) -> Any:
    try:
        return _go_numbers(json.loads(text))
    except ValueError as error:
        raise TemplateError(str(error)) from None


def _go_numbers(value: Any) -> Any:
    """Every number is a float64."""
    if isinstance(value, dict):
        return {key: _go_numbers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [*map(_go_numbers, value)]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value
