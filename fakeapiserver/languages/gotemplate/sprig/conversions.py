"""Conversions between types, and the names of types."""

import math
import re
from typing import Any

from fakeapiserver.languages.gotemplate.values import Time, shown, type_name


def to_int(value: Any) -> int:
    if isinstance(value, float):
        return 0 if math.isnan(value) or math.isinf(value) else int(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, str):
        text = re.sub(r"\.0+$", "", value) or "0"
        try:
            return int(text, 8) if re.fullmatch(r"[+-]?0[0-7]+", text) else int(text, 0)
        except ValueError:
            return 0
    return 0


def to_float(value: Any) -> float:
    if isinstance(value, int | float):
        return float(value)
    try:
        return float(value) if isinstance(value, str) and value == value.strip() else 0.0
    except ValueError:
        return 0.0


def strings(value: Any) -> list[str]:
    if isinstance(value, list):
        return [shown(item) for item in value if item is not None]
    return [] if value is None else [shown(value)]


def kind(value: Any) -> str:
    if value is None:
        return "invalid"
    if isinstance(value, Time):
        return "struct"
    name = type_name(value)
    return {"[]interface {}": "slice", "map[string]interface {}": "map", "json.Number": "string"}.get(name, name)


def to_decimal(value: Any) -> int:
    try:
        return int(shown(value), 8)
    except ValueError:
        return 0


def atoi(text: str) -> int:
    try:
        return int(text) if re.fullmatch(r"[+-]?\d+", text, re.A) else 0
    except ValueError:
        return 0


def type_is(target: str, value: Any) -> bool:
    return target == type_name(value)


def kind_is(target: str, value: Any) -> bool:
    return target == kind(value)
