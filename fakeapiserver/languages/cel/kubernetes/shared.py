"""Helpers that several of Kubernetes' libraries share."""

from collections.abc import Callable
from typing import Any

from fakeapiserver.languages.cel.errors import CelError

Function = Callable[..., Any]


def is_parsable(parse: Callable[..., Any]) -> Function:
    def is_valid(*args: Any) -> bool:
        try:
            parse(*args)
        except CelError:
            return False
        return True

    return is_valid


def order(a: Any, b: Any) -> int:
    return int(a > b) - int(a < b)
