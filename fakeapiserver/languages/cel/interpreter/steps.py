"""The parts that all steps of an evaluation share: the frame, the type of a step, and constants."""

from collections.abc import Callable
from typing import Any


class Frame:
    """The state of one evaluation: variables by their number, and the cost so far."""

    __slots__ = ("cost", "limit", "variables")

    def __init__(self, variables: list[Any], limit: int) -> None:
        self.variables = variables
        self.cost = 0
        self.limit = limit


Step = Callable[[Frame], Any]
Function = Callable[..., Any]


class Constant:
    """A step that is always the same value."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __call__(self, _: Frame) -> Any:
        return self.value
