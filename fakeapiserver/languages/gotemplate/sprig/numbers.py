"""Integer and float arithmetic, and sequences of integers."""

import math
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Any

from fakeapiserver.languages.gotemplate.sprig.conversions import to_float, to_int
from fakeapiserver.languages.gotemplate.values import MAX_OUTPUT, TemplateError


def until(count: int) -> list[Any]:
    return until_step(0, count, -1 if count < 0 else 1)


def until_step(start: int, stop: int, step: int) -> list[Any]:
    if (stop < start and step >= 0) or (stop >= start and step <= 0):
        return []
    numbers = range(start, stop, step)
    if len(numbers) > MAX_OUTPUT:
        raise TemplateError("until: the list becomes too long")
    return [*numbers]


def seq(*bounds: int) -> str:
    if len(bounds) == 3:
        start, step, end = bounds
        if end < start and step > 0:
            return ""
    elif len(bounds) in (1, 2):
        start, end = bounds if len(bounds) == 2 else (1, bounds[0])
        step = -1 if end < start else 1
    else:
        return ""
    return " ".join(map(str, until_step(start, end + (-1 if end < start else 1), step)))


def wrapped(value: int) -> int:
    """Returns the int64 after an overflow."""
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)


def add(*values: Any) -> int:
    return wrapped(sum(map(to_int, values)))


def sub(one: Any, other: Any) -> int:
    return wrapped(to_int(one) - to_int(other))


def mul(first: Any, *more: Any) -> int:
    product = to_int(first)
    for value in more:
        product = wrapped(product * to_int(value))
    return product


def div(one: Any, other: Any) -> int:
    left, right = to_int(one), to_int(other)
    if right == 0:
        raise TemplateError("runtime error: integer divide by zero")
    return abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)


def mod(one: Any, other: Any) -> int:
    left, right = to_int(one), to_int(other)
    if right == 0:
        raise TemplateError("runtime error: integer divide by zero")
    return abs(left) % abs(right) * (-1 if left < 0 else 1)


def extreme(choose: Callable[..., Any], convert: Callable[[Any], Any]) -> Callable[..., Any]:
    def run(first: Any, *more: Any) -> Any:
        return choose(map(convert, (first, *more)))

    return run


def rounded(value: Any, places: int, *on: float) -> float:
    power = 10.0 ** max(min(places, 300), -300)
    digit = power * to_float(value)
    fraction = math.fmod(digit, 1)
    return (math.ceil(digit) if fraction >= (on[0] if on else 0.5) else math.floor(digit)) / power


def decimals(operation: Callable[[Decimal, Decimal], Decimal]) -> Callable[..., Any]:
    def run(first: Any, *more: Any) -> float:
        number = Decimal(repr(to_float(first)))
        for value in more:
            try:
                number = operation(number, Decimal(repr(to_float(value))))
            except (InvalidOperation, ZeroDivisionError):
                raise TemplateError("decimal division by 0") from None
        return float(number)

    return run


def addf(*values: Any) -> float:
    total: float = decimals(Decimal.__add__)(0, *values)
    return total
