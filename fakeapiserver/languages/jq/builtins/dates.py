"""Functions of dates: from seconds to a broken-down time and to text, and back."""

import calendar
import math
import time
from typing import Any

from fakeapiserver.languages.jq.builtins.arguments import array_of, number_of, refusal, text_of
from fakeapiserver.languages.jq.errors import JqError
from fakeapiserver.languages.jq.values import kind, shown


def epoch(value: Any) -> Any:
    text = text_of("fromdateiso8601", value)
    try:
        seconds = calendar.timegm(time.strptime(text, "%Y-%m-%dT%H:%M:%SZ"))
    except ValueError:
        raise JqError(f"fromdateiso8601 cannot be applied to: {shown(value)}") from None
    return seconds


def broken_down(value: Any) -> list[Any]:
    seconds = number_of("gmtime", value)
    try:
        at = time.gmtime(math.floor(seconds))
    except (OverflowError, OSError, ValueError):
        raise refusal("gmtime", value) from None
    fraction = seconds - math.floor(seconds)
    second = at.tm_sec + fraction if fraction else at.tm_sec
    return [at.tm_year, at.tm_mon - 1, at.tm_mday, at.tm_hour, at.tm_min, second, (at.tm_wday + 1) % 7, at.tm_yday - 1]


def seconds_of(value: Any) -> int:
    parts = array_of("mktime", value)
    if len(parts) < 6 or any(kind(part) != "number" for part in parts[:6]):
        raise refusal("mktime", value)
    year, month, day, hour, minute, second = (math.floor(part) for part in parts[:6])
    try:
        return calendar.timegm((year, month + 1, day, hour, minute, second))
    except (ValueError, OverflowError):
        raise refusal("mktime", value) from None


def strftime(value: Any, form: Any) -> str:
    parts = broken_down(value) if kind(value) == "number" else value
    moment = time.gmtime(seconds_of(parts))
    return time.strftime(text_of("strftime", form), moment)


def strptime(value: Any, form: Any) -> list[Any]:
    try:
        moment = time.strptime(text_of("strptime", value), text_of("strptime", form))
    except ValueError:
        raise refusal("strptime", value) from None
    return broken_down(calendar.timegm(moment))
