"""Operators that compare values."""

from contextlib import suppress
from typing import Any

from fakeapiserver.languages.cel.errors import CelError
from fakeapiserver.languages.cel.functions.function import Function
from fakeapiserver.languages.cel.values import compared, equal


def comparisons() -> dict[str, Function]:
    tests: dict[str, Function] = {
        "less": lambda a, b: a < b,
        "less_equals": lambda a, b: a <= b,
        "greater": lambda a, b: a > b,
        "greater_equals": lambda a, b: a >= b,
    }

    def ordered(test: Function) -> Function:
        return lambda a, b: test(compared(a, b), 0)

    functions: dict[str, Function] = {}
    for name, test in tests.items():
        for kind in (
            "bool",
            "int64",
            "int64_uint64",
            "uint64",
            "uint64_int64",
            "string",
            "bytes",
            "timestamp",
            "duration",
        ):
            functions[f"{name}_{kind}"] = test
        for kind in ("int64_double", "uint64_double", "double", "double_int64", "double_uint64"):
            functions[f"{name}_{kind}"] = ordered(test)
    return functions


def not_equal(one: Any, other: Any) -> bool:
    """Reports whether two values differ; values that can't be compared differ."""
    with suppress(CelError):
        return not equal(one, other)
    return True
