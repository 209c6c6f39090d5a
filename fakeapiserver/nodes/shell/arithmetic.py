"""`$((…))` of a shell script: whole numbers of 64 bits, variables, brackets and the usual operators. Pure."""

import re
from collections.abc import Mapping
from typing import Final

from fakeapiserver.nodes.shell.tree import NotFollowed

_TOKEN: Final = re.compile(r"\s*(?:(\d{1,18})|\$?\{?([A-Za-z_]\w*)\}?|(\|\||&&|[<>=!]=|[-+*/%<>()!]))")
# Operators by how tightly they bind, the loosest first.
_LEVELS: Final = (("||",), ("&&",), ("==", "!="), ("<", ">", "<=", ">="), ("+", "-"), ("*", "/", "%"))
_MAX_DEPTH: Final = 40


def evaluate(expression: str, variables: Mapping[str, str]) -> int:
    """The value of an expression; a variable that is unset or empty counts as 0. NotFollowed for what isn't understood."""
    evaluation = _Evaluation(expression, variables)
    value = evaluation.level(0)
    if evaluation.token:
        raise NotFollowed(f"the arithmetic {expression!r}")
    return value


class _Evaluation:
    def __init__(self, expression: str, variables: Mapping[str, str]) -> None:
        self._expression = expression
        self._variables = variables
        self._at = 0
        self._depth = 0
        self.token = ""
        self._advance()

    def level(self, number: int) -> int:
        """The value of operators that bind at least as tightly as those of _LEVELS[number]."""
        if number == len(_LEVELS):
            return self._factor()
        value = self.level(number + 1)
        while self.token in _LEVELS[number]:
            operator = self.token
            self._advance()
            value = _wrapped(self._apply(operator, value, self.level(number + 1)))
        return value

    def _factor(self) -> int:
        token = self.token
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise NotFollowed("arithmetic that is nested too deep")
        self._advance()
        if token == "(":
            value = self.level(0)
            if self.token != ")":
                raise NotFollowed(f"the arithmetic {self._expression!r}")
            self._advance()
        elif token in ("-", "+", "!"):
            operand = self._factor()
            value = {"-": -operand, "+": operand, "!": int(not operand)}[token]
        elif token.isdigit():
            value = int(token)
        elif token.isidentifier():
            value = self._variable(token)
        else:
            raise NotFollowed(f"the arithmetic {self._expression!r}")
        self._depth -= 1
        return value

    def _variable(self, name: str) -> int:
        text = self._variables.get(name, "").strip() or "0"
        if name == "RANDOM" or not re.fullmatch(r"-?\d{1,19}", text):
            raise NotFollowed(f"the number {name}")
        return int(text)

    def _apply(self, operator: str, left: int, right: int) -> int:
        match operator:
            case "+":
                return left + right
            case "-":
                return left - right
            case "*":
                return left * right
            case "/" | "%":
                if right == 0:
                    raise NotFollowed("a division by 0")
                quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
                return quotient if operator == "/" else left - quotient * right
            case "&&":
                return int(bool(left and right))
            case "||":
                return int(bool(left or right))
        compared = {
            "==": left == right,
            "!=": left != right,
            "<": left < right,
            ">": left > right,
            "<=": left <= right,
            ">=": left >= right,
        }
        return int(compared[operator])

    def _advance(self) -> None:
        match = _TOKEN.match(self._expression, self._at)
        if match is None:
            if self._expression[self._at :].strip():
                raise NotFollowed(f"the arithmetic {self._expression!r}")
            self.token = ""
            return
        self._at = match.end()
        self.token = match[1] or match[2] or match[3]


def _wrapped(value: int) -> int:
    """Returns the number after an overflow of 64 bits."""
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)
