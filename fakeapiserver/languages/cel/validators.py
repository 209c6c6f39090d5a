"""Checks beyond types: literal arguments and mixed lists.

Upstream: github.com/google/cel-go/cel/validator.go
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from fakeapiserver.languages.cel import text, types
from fakeapiserver.languages.cel.ast import Call, Comprehension, Expr, ListExpr, Literal, MapExpr, Select
from fakeapiserver.languages.cel.errors import CelError, Issue
from fakeapiserver.languages.cel.functions import conversions
from fakeapiserver.languages.cel.types import Type


def literal_issues(nodes: list[Expr]) -> list[Issue]:
    """Durations, timestamps, patterns and templates that can't be read; lists and maps of several types."""
    free: set[Expr] = set()
    for node in nodes:
        if isinstance(node, Call) and node.function == "format":
            free.update(_inside(node))
    return [
        *_argument_issues(nodes),
        *_mixed_issues([node for node in nodes if node not in free]),
        *_format_issues(nodes),
    ]


def _inside(node: Expr) -> Iterator[Expr]:
    """An expression and all in it."""
    yield node
    match node:
        case Select():
            below = [node.operand]
        case Call():
            below = node.all_args
        case ListExpr():
            below = node.elements
        case MapExpr():
            below = [part for entry in node.entries for part in (entry.key, entry.value)]
        case Comprehension():
            below = [node.range, node.init, node.condition, node.step, node.result]
        case _:
            below = []
    for part in below:
        yield from _inside(part)


def _format_issues(nodes: list[Expr]) -> Iterator[Issue]:
    for node in nodes:
        if isinstance(node, Call) and node.function == "format" and isinstance(node.target, Literal) and node.args:
            args = node.args[0]
            if isinstance(args, ListExpr):
                given = [list(_written(element)) for element in args.elements]
                for at, message in text.template_issues(str(node.target.value), given):
                    yield Issue(node.at if at is None else at, message)


def _written(node: Expr) -> Iterator[tuple[int, Type]]:
    """Yields the place and type of an expression, and of the elements of a list or map literal."""
    yield node.at, node.type
    if isinstance(node, ListExpr):
        for element in node.elements:
            yield from _written(element)
    elif isinstance(node, MapExpr):
        for entry in node.entries:
            yield from _written(entry.key)
            yield from _written(entry.value)


def _argument_issues(nodes: list[Expr]) -> Iterator[Issue]:
    checks: dict[str, Callable[[Any], object]] = {
        "duration": conversions.LITERAL_CONVERSIONS["duration"],
        "timestamp": conversions.LITERAL_CONVERSIONS["timestamp"],
        "matches": text.compile_pattern,
    }
    for node in nodes:
        if not isinstance(node, Call) or node.function not in checks or not node.args:
            continue
        arg = node.args[0]
        if not isinstance(arg, Literal):
            continue
        with suppress(CelError):
            checks[node.function](arg.value)
            continue
        yield Issue(arg.at, f"invalid {node.function} argument")


def _mixed_issues(nodes: list[Expr]) -> Iterator[Issue]:
    for node in nodes:
        if isinstance(node, ListExpr):
            issues = [
                (e.at, types.unwrap_optional(e.type)[0] if i in node.optionals else e.type)
                for i, e in enumerate(node.elements)
            ]
            yield from _first_mixed(issues)
        elif isinstance(node, MapExpr) and node.entries:
            first = node.entries[0]
            for entry in node.entries[1:]:
                for one, other in ((first.key, entry.key), (first.value, entry.value)):
                    expected = (
                        types.unwrap_optional(one.type)[0] if first.is_optional and one is first.value else one.type
                    )
                    t = (
                        types.unwrap_optional(other.type)[0]
                        if entry.is_optional and other is entry.value
                        else other.type
                    )
                    if expected != t:
                        yield Issue(other.at, f"expected type '{expected}' but found '{t}'")


def _first_mixed(elements: list[tuple[int, Type]]) -> Iterator[Issue]:
    for at, t in elements[1:]:
        if elements[0][1] != t:
            yield Issue(at, f"expected type '{elements[0][1]}' but found '{t}'")
            return
