"""Functions that choose by whether values are empty."""

from typing import Any

from fakeapiserver.languages.gotemplate.values import TemplateError, truth


def empty(value: Any) -> bool:
    return not truth(value)


def default(default: Any, *given: Any) -> Any:
    return default if not given or empty(given[0]) else given[0]


def coalesce(*values: Any) -> Any:
    return next((value for value in values if not empty(value)), None)


def all_filled(*values: Any) -> bool:
    return not any(map(empty, values))


def any_filled(*values: Any) -> bool:
    return not all(map(empty, values))


def ternary(yes: Any, no: Any, test: bool) -> Any:
    return yes if test else no


def fail(message: str) -> str:
    raise TemplateError(message)
