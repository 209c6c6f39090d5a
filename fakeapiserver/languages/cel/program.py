"""Compiling and running expressions.

Upstream: github.com/google/cel-go/cel/{env,program}.go, k8s.io/apiserver/pkg/apis/cel/config.go
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from fakeapiserver.apimachinery.allowance import TooExpensive, affordable, spend
from fakeapiserver.languages.cel.ast import Expr
from fakeapiserver.languages.cel.checker import Checker, Declared
from fakeapiserver.languages.cel.errors import Aborted, CelError, CompileError, CostLimitError, Issue
from fakeapiserver.languages.cel.interpreter.evaluator import Evaluator
from fakeapiserver.languages.cel.interpreter.steps import Frame
from fakeapiserver.languages.cel.parser import parse
from fakeapiserver.languages.cel.types import Type
from fakeapiserver.languages.cel.versions import V1_37

PER_CALL_LIMIT: Final = 1_000_000
LIMIT_MESSAGE: Final = "operation cancelled: actual cost limit exceeded"


class Result(NamedTuple):
    """A value or, where `error` is not empty, none; and what it cost."""

    value: Any
    cost: int
    error: str = ""


class Program:
    """A compiled expression. `names` are the variables it uses; `tree` is checked."""

    __slots__ = ("_declared", "_rest", "_step", "names", "tree", "type")

    def __init__(self, tree: Expr, checker: Checker, declared: Declared) -> None:
        """CelError where a part that is always the same fails."""
        if checker.undefined:
            raise CelError(f"reference to undefined type: {checker.undefined}")
        evaluator = Evaluator(
            tuple(declared.variables),
            checker.constants,
            declared.functions,
            version=declared.version,
        )
        self._declared = tuple(declared.variables)
        self._step = evaluator.build(tree)
        self._rest = (None,) * (evaluator.size - len(self._declared))
        self.tree = tree
        self.type: Type = tree.type
        self.names = frozenset(checker.names)

    def evaluate(self, variables: Mapping[str, Any], limit: int = PER_CALL_LIMIT) -> Result:
        allowed = affordable(limit)
        frame = Frame([*map(variables.get, self._declared), *self._rest], allowed)
        try:
            value = self._step(frame)
            spend(frame.cost)
        except CostLimitError:
            if allowed < limit:
                raise TooExpensive from None
            return Result(None, frame.cost, LIMIT_MESSAGE)
        except (CelError, Aborted) as error:
            return Result(None, frame.cost, str(error))
        except RecursionError:
            return Result(None, frame.cost, "evaluation recursion limit exceeded")
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            # Upstream survives unforeseen errors, too.
            return Result(None, frame.cost, f"internal error: {error}")
        return Result(value, frame.cost) if frame.cost <= limit else Result(None, frame.cost, LIMIT_MESSAGE)


def check(source: str, declared: Declared) -> tuple[Expr, Checker]:
    """Parses and checks an expression. Raises CompileError with its errors."""
    tree = parse(source, binds=declared.binds, escapes=declared.version >= V1_37)
    checker = Checker(declared)
    try:
        checker.check(tree)
    except RecursionError:
        raise CompileError(source, [Issue(None, "expression recursion limit exceeded")]) from None
    if checker.issues:
        raise CompileError(source, checker.issues)
    return tree, checker


def compile_expression(source: str, declared: Declared) -> Program:
    """CompileError, or CelError where a part that is always the same fails."""
    return Program(*check(source, declared), declared)
