"""The tree of a shell script, as `syntax.py` makes it and `interpreter.py` runs it. Pure."""

from msgspec import Struct


class NotFollowed(Exception):
    """The simulator can't follow something; the text names it."""


class Literal(Struct, frozen=True):
    text: str
    quoted: bool = False


class Variable(Struct, frozen=True):
    """`$NAME`, or `${NAME:-operand}` with its operator; "#": the length."""

    name: str
    quoted: bool
    operator: str = ""
    operand: "Word | None" = None


class Substitution(Struct, frozen=True):
    """`$(commands)`"""

    body: "Node"
    quoted: bool


class Arithmetic(Struct, frozen=True):
    """`$((expression))`"""

    expression: str
    quoted: bool


Part = Literal | Variable | Substitution | Arithmetic


class Word(Struct, frozen=True):
    parts: tuple[Part, ...]

    @property
    def plain(self) -> str:
        """The text of a word without quotes and expansions, else ""."""
        parts = self.parts
        return parts[0].text if len(parts) == 1 and isinstance(parts[0], Literal) and not parts[0].quoted else ""


class Redirect(Struct, frozen=True):
    """`2> target`: the descriptor, the operator (`>`, `>>`, `<`, `>&`, `&>`), and where it leads."""

    descriptor: int
    operator: str
    target: Word


class Simple(Struct, frozen=True):
    """`NAME=value program argument`"""

    assignments: tuple[tuple[str, Word], ...]
    words: tuple[Word, ...]


class Sequence(Struct, frozen=True):
    items: tuple["Node", ...]


class AndOr(Struct, frozen=True):
    """`first && second || third`: the others with the operator in front of each."""

    first: "Node"
    others: tuple[tuple[str, "Node"], ...]


class Not(Struct, frozen=True):
    body: "Node"


class If(Struct, frozen=True):
    """Each condition with what follows from it; `otherwise` if none holds."""

    branches: tuple[tuple["Node", "Node"], ...]
    otherwise: "Node | None"


class Loop(Struct, frozen=True):
    """while, or `until`"""

    condition: "Node"
    body: "Node"
    until: bool


class For(Struct, frozen=True):
    """`words` None: the positional parameters."""

    name: str
    words: tuple[Word, ...] | None
    body: "Node"


class Subshell(Struct, frozen=True):
    """`(commands)`, whose variables stay its own."""

    body: "Node"


class Redirected(Struct, frozen=True):
    body: "Node"
    redirects: tuple[Redirect, ...]


Node = Simple | Sequence | AndOr | Not | If | Loop | For | Subshell | Redirected
