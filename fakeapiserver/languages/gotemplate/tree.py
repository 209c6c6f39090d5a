"""Nodes of a template's syntax tree (upstream: text/template/parse/node.go)."""

from collections.abc import Sequence
from typing import Any

from msgspec import Struct, field

from fakeapiserver.languages.gotemplate.values import Function


class Literal(Struct, frozen=True):
    """A constant; `is_nil` for the word nil."""

    value: Any
    is_nil: bool = False


class Dot(Struct, frozen=True):
    """`.`"""


class Call(Struct, frozen=True):
    """A function's name."""

    function: Function


class Variable(Struct, frozen=True):
    """`$name`"""

    name: str


class Fields(Struct, frozen=True):
    """`.a.b` of a term."""

    of: "Term"
    names: Sequence[str]


class Pipe(Struct, frozen=True):
    """`$x, $y := command | command`. `assigns`: with =."""

    commands: Sequence[Sequence["Term"]]
    variables: Sequence[str] = ()
    assigns: bool = False
    line: int = 0


Term = Literal | Dot | Call | Variable | Fields | Pipe


class Text(Struct, frozen=True):
    """Outside of actions."""

    text: str


class Action(Struct, frozen=True):
    """Writes a pipeline's value, unless it sets variables."""

    pipe: Pipe


class Branch(Struct, frozen=True):
    """if, with and range."""

    word: str
    pipe: Pipe
    body: Sequence["Node"]
    otherwise: Sequence["Node"]


class Include(Struct, frozen=True):
    """{{template "name" pipe}}"""

    name: str
    pipe: Pipe | None
    line: int


class Leave(Struct, frozen=True):
    """break and continue."""

    word: str


Node = Text | Action | Branch | Include | Leave


class Tree(Struct):
    """`defined`: by {{define}} and {{block}}."""

    body: Sequence[Node]
    defined: dict[str, Sequence[Node]] = field(default_factory=dict)
