"""Checks the types of functions' arguments."""

from collections.abc import Callable
from typing import Any

from fakeapiserver.languages.jq.errors import JqError
from fakeapiserver.languages.jq.values import kind, shown

Function = Callable[..., Any]


def refusal(name: str, value: Any) -> JqError:
    return JqError(f"{name} cannot be applied to: {shown(value)}")


def text_of(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise refusal(name, value)
    return value


def number_of(name: str, value: Any) -> float:
    if kind(value) != "number":
        raise refusal(name, value)
    number: float = value
    return number


def array_of(name: str, value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise refusal(name, value)
    return value
