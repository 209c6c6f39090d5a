"""The syntax tree, after macros are expanded.

Upstream: github.com/google/cel-go/common/ast

The checker writes `type` and, for calls, `overloads` into the nodes. `at` is the offset in code points that errors point to.
"""

from dataclasses import dataclass, field
from typing import Any

from fakeapiserver.languages.cel.types import DYN, Type


@dataclass(slots=True, eq=False)
class Expr:
    at: int
    type: Type = field(default=DYN, init=False)


@dataclass(slots=True, eq=False)
class Literal(Expr):
    """bool, int, UInt, float, str, bytes or None."""

    value: Any


@dataclass(slots=True, eq=False)
class Ident(Expr):
    name: str


@dataclass(slots=True, eq=False)
class Select(Expr):
    operand: Expr
    field: str
    is_test: bool = False


@dataclass(slots=True, eq=False)
class Call(Expr):
    function: str
    target: Expr | None
    args: list[Expr]
    overloads: tuple[str, ...] = field(default=(), init=False)

    @property
    def all_args(self) -> list[Expr]:
        return self.args if self.target is None else [self.target, *self.args]


@dataclass(slots=True, eq=False)
class ListExpr(Expr):
    elements: list[Expr]
    optionals: frozenset[int]


@dataclass(slots=True, eq=False)
class Entry:
    """An entry of a map or struct; a struct's key is its field as a literal."""

    at: int
    key: Expr
    value: Expr
    is_optional: bool


@dataclass(slots=True, eq=False)
class MapExpr(Expr):
    entries: list[Entry]


@dataclass(slots=True, eq=False)
class Struct(Expr):
    name: str
    entries: list[Entry]


@dataclass(slots=True, eq=False)
class Comprehension(Expr):
    """`for variable[, second] in range: accumulator = step while condition`, then `result`.

    `kind` is the macro (all, exists, exists_one, list, map, or bind for a variable), `body` the expression for an
    element and `filter` its
    condition, so that they need not be derived from the rest.
    """

    range: Expr
    variable: str
    second: str | None
    accumulator: str
    init: Expr
    condition: Expr
    step: Expr
    result: Expr
    kind: str
    body: Expr
    filter: Expr | None = None


def qualified(tree: Expr) -> str | None:
    """`a.b.c` as a name."""
    if isinstance(tree, Ident):
        return tree.name.removeprefix(".")
    if isinstance(tree, Select) and not tree.is_test:
        prefix = qualified(tree.operand)
        return None if prefix is None else f"{prefix}.{tree.field}"
    return None
