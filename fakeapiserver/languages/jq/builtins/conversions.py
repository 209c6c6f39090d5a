"""Conversions of values to numbers, strings and JSON."""

import json
from typing import Any

from fakeapiserver.languages.jq.builtins.arguments import refusal, text_of
from fakeapiserver.languages.jq.errors import JqError
from fakeapiserver.languages.jq.values import kind, shown, to_json


def to_number(value: Any) -> Any:
    if kind(value) == "number":
        return value
    if not isinstance(value, str):
        raise refusal("tonumber", value)
    try:
        number = json.loads(value.strip())
    except ValueError:
        number = None
    if value != value.strip() or kind(number) != "number":
        raise JqError(f"tonumber cannot be applied to: {shown(value)}: invalid number")
    return number


def to_string(value: Any) -> str:
    return value if isinstance(value, str) else to_json(value)


def from_json(value: Any) -> Any:
    try:
        return json.loads(text_of("fromjson", value))
    except ValueError as error:
        raise JqError(f"fromjson cannot be applied to: {shown(value)}: {error}") from None
