"""The errors of queries."""

from typing import Any


class JqSyntaxError(ValueError):
    """The query can't be parsed; the message names the place."""


class JqError(Exception):
    """A query failed. `value`: what `catch` gets."""

    def __init__(self, value: Any) -> None:
        super().__init__(value if isinstance(value, str) else repr(value))
        self.value = value


class Break(Exception):
    """`break $label`: on its way to the label that was made as `mark`."""

    def __init__(self, mark: object) -> None:
        super().__init__("break")
        self.mark = mark
