"""Steps for macros that loop: all, exists, exists_one, filter, map and others."""

from collections.abc import Callable, Iterable
from typing import Any

from fakeapiserver.languages.cel.errors import CelError, CostLimitError, no_such_overload
from fakeapiserver.languages.cel.functions.containers import insert
from fakeapiserver.languages.cel.interpreter.steps import Constant, Frame, Step
from fakeapiserver.languages.cel.runtime_cost import LIST_CREATE
from fakeapiserver.languages.cel.values import go_type

_Loop = Callable[[Any, Frame, list[int]], Iterable[None]]


def each_item(values: Any, frame: Frame, numbers: list[int]) -> Iterable[None]:
    """Sets the variable to each item of a list, or key of a map."""
    if not isinstance(values, list | dict):
        raise CelError(f"got '{go_type(values)}', expected iterable type")
    number = numbers[0]
    for value in values:
        if frame.cost > frame.limit:
            raise CostLimitError
        frame.variables[number] = value
        yield


def each_pair(values: Any, frame: Frame, numbers: list[int]) -> Iterable[None]:
    """Sets two variables: index and item, or key and value."""
    if not isinstance(values, list | dict):
        raise CelError(f"unsupported comprehension range type: {go_type(values)}")
    first, second = numbers
    for key, value in values.items() if isinstance(values, dict) else enumerate(values):
        if frame.cost > frame.limit:
            raise CostLimitError
        frame.variables[first], frame.variables[second] = key, value
        yield


def quantified_step(over: Step, loop: _Loop, numbers: list[int], body: Step, *, stop: bool) -> Step:
    # The accumulator is read and tested before each element, `exists` negates it, and is read for the result.
    each = 4 if stop else 3

    def quantified(frame: Frame) -> bool:
        failure: CelError | None = None
        stopped = False
        for _ in loop(over(frame), frame, numbers):
            if stopped:
                # The condition is read once more before it ends the loop.
                frame.cost += each - 1
                break
            frame.cost += each
            try:
                value = body(frame)
            except CelError as error:
                failure = failure or error
                continue
            if value is stop:
                stopped = True
            elif type(value) is not bool:
                failure = failure or no_such_overload()
        frame.cost += 1
        if stopped:
            return stop
        if failure is not None:
            raise failure
        return not stop

    return quantified


def _holds(value: Any) -> bool:
    if value is True or value is False:
        return bool(value)
    raise no_such_overload()


def exactly_one_step(over: Step, loop: _Loop, numbers: list[int], body: Step) -> Step:
    def exactly_one(frame: Frame) -> bool:
        count = 0
        for _ in loop(over(frame), frame, numbers):
            if _holds(body(frame)):
                count += 1
                frame.cost += 2
        frame.cost += 2
        return count == 1

    return exactly_one


def collected(over: Step, loop: _Loop, numbers: list[int], steps: tuple[Step, Step | None]) -> Step:
    body, only = steps
    each = 2 if isinstance(body, Constant) else 2 + LIST_CREATE

    def collect(frame: Frame) -> list[Any]:
        collected = []
        for _ in loop(over(frame), frame, numbers):
            if only is None or _holds(only(frame)):
                collected.append(body(frame))
                frame.cost += each
        frame.cost += 1
        return collected

    return collect


def mapped(over: Step, numbers: list[int], steps: tuple[Step, Step | None], *, entries: bool) -> Step:
    body, only = steps

    def build(frame: Frame) -> dict[Any, Any]:
        mapped: dict[Any, Any] = {}
        for _ in each_pair(over(frame), frame, numbers):
            if only is not None and not _holds(only(frame)):
                continue
            value = body(frame)
            frame.cost += 2 if entries else 3
            for key, item in value.items() if entries else ((frame.variables[numbers[0]], value),):
                if key in mapped:
                    insert(mapped, key, item)
                mapped[key] = item
        frame.cost += 1
        return mapped

    return build
