"""The CEL expressions of an AuthenticationConfiguration: claims to users, and rules for both.

Upstream: k8s.io/apiserver/pkg/authentication/cel.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any, Final

from msgspec import Struct

from fakeapiserver.auth.interfaces import RefusedError, UserInfo
from fakeapiserver.languages.cel import types
from fakeapiserver.languages.cel.ast import Call, Entry, Expr, Ident, Literal, Select
from fakeapiserver.languages.cel.checker import Declared
from fakeapiserver.languages.cel.errors import CelError, CompileError
from fakeapiserver.languages.cel.program import Program, check
from fakeapiserver.languages.cel.values import StringList

_STRINGS: Final = types.list_of(types.STRING)
_USER: Final = types.struct("kubernetes.UserInfo")
_CLAIMS_DECLARED: Final = Declared({"claims": types.map_of(types.STRING, types.DYN)})
_USER_DECLARED: Final = Declared(
    {"user": _USER},
    {
        _USER.name: {
            "username": types.STRING,
            "uid": types.STRING,
            "groups": _STRINGS,
            "extra": types.map_of(types.STRING, _STRINGS),
        }
    },
)
_NO_LIST: Final = "expression must return a string or a list of strings"
_UNLIMITED: Final = (1 << 64) - 1


class Expression(Struct, frozen=True):
    """A compiled expression. `message` is what a rule says that doesn't hold."""

    text: str
    program: Program
    message: str = ""

    def evaluate(self, variables: Mapping[str, Any]) -> Any:
        """RefusedError."""
        result = self.program.evaluate(variables, _UNLIMITED)
        if result.error:
            raise RefusedError(f"expression '{self.text}' resulted in error: {result.error}")
        return result.value

    def uses_claim(self, name: str) -> bool:
        """Reports whether `claims.name` or `claims.?name` is somewhere in it."""
        return any(_selects(node, name) for node in _nodes(self.program.tree))


def of_claims(text: str, *, message: str = "", is_rule: bool = False) -> Expression:
    """Compiles an expression on claims. Raises ValueError with a sentence."""
    return _compiled(text, _CLAIMS_DECLARED, message, is_rule)


def of_user(text: str, message: str) -> Expression:
    """A rule for users. ValueError."""
    return _compiled(text, _USER_DECLARED, message, True)


def _compiled(text: str, declared: Declared, message: str, is_rule: bool) -> Expression:
    try:
        tree, checker = check(text, declared)
    except CompileError as error:
        raise ValueError(f"compilation failed: {error}") from None
    if is_rule and tree.type != types.BOOL:
        raise ValueError("must evaluate to bool")
    try:
        return Expression(text, Program(tree, checker, declared), message)
    except CelError as error:
        raise ValueError(f"program instantiation failed: {error}") from None


def check_rules(rules: Sequence[Expression], variables: Mapping[str, Any]) -> None:
    """RefusedError for the first that doesn't hold; all of them are evaluated first, as upstream does."""
    for rule, holds in [(rule, rule.evaluate(variables)) for rule in rules]:
        if not isinstance(holds, bool):
            raise RefusedError("validation expression must return a boolean")
        if not holds:
            raise RefusedError(f"validation expression '{rule.text}' failed: {rule.message}")


def strings_of(value: Any) -> tuple[str, ...]:
    """A string, a list of strings or null as the strings that aren't empty. RefusedError."""
    if value is None:
        return ()
    items = [value] if isinstance(value, str) else value
    # upstream has forgotten the lists that split and findAll make
    if not isinstance(items, list) or isinstance(items, StringList) or not all(isinstance(item, str) for item in items):
        raise RefusedError(_NO_LIST)
    return tuple(item for item in items if item)


def claims_value(claims: Mapping[str, Any]) -> Any:
    """Claims as expressions see them: every number is a double, as Go decodes numbers of no known type."""
    return {key: _cel_value(value) for key, value in claims.items()}


def _cel_value(value: Any) -> Any:
    if isinstance(value, dict):
        return claims_value(value)
    if isinstance(value, list):
        return [_cel_value(item) for item in value]
    if isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    return value


def user_value(user: UserInfo) -> Mapping[str, Any]:
    """A user as rules see it."""
    extra = {key: list(values) for key, values in user.extra.items()}
    return {"username": user.name, "uid": user.uid, "groups": list(user.groups), "extra": extra}


def _selects(node: Expr, name: str) -> bool:
    if isinstance(node, Select):
        return isinstance(node.operand, Ident) and node.operand.name == "claims" and node.field == name
    if isinstance(node, Call) and node.function == "_?._" and len(node.args) == 2:
        operand, key = node.args
        is_claims = isinstance(operand, Ident) and operand.name == "claims"
        return is_claims and isinstance(key, Literal) and key.value == name
    return False


def _nodes(tree: Any) -> Iterator[Expr]:
    """Every node of a tree."""
    if isinstance(tree, Expr):
        yield tree
    if isinstance(tree, Expr | Entry):
        for part in fields(tree):
            value = getattr(tree, part.name)
            for item in value if isinstance(value, list) else [value]:
                yield from _nodes(item)
