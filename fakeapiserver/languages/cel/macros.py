"""Macros: calls that the parser expands.

Upstream: github.com/google/cel-go/parser/macro.go, cel/library.go (optMap), ext/{comprehensions,bindings}.go, ext/lists.go (sortBy)
"""

from collections.abc import Callable
from typing import Final

from fakeapiserver.languages.cel.ast import Call, Comprehension, Expr, Ident, ListExpr, Literal, MapExpr, Select

ACCUMULATOR: Final = "@result"
UNUSED: Final = "#unused"


class MacroError(Exception):
    def __init__(self, at: int, message: str) -> None:
        super().__init__(message)
        self.at = at


_Expander = Callable[[int, Expr, list[Expr]], Expr]


def expand(at: int, function: str, target: Expr | None, args: list[Expr], *, binds: bool = False) -> Expr | None:
    """Returns the expansion of a macro's call, or None for a plain call.

    `at` is the place of the call's bracket; `binds`: cel.bind is allowed.
    """
    if target is None:
        return _has(at, args[0]) if function == "has" and len(args) == 1 else None
    if binds and function == "bind" and len(args) == 3 and isinstance(target, Ident) and target.name == "cel":
        if not isinstance(args[0], Ident):
            raise MacroError(args[0].at, "cel.bind() variable names must be simple identifiers")
        return bound(at, args[0].name, args[1], args[2])
    expander = _MACROS.get((function, len(args)))
    return None if expander is None else expander(at, target, args)


def _has(at: int, arg: Expr) -> Expr:
    if not isinstance(arg, Select) or arg.is_test:
        raise MacroError(arg.at, "invalid argument to has() macro")
    return Select(at, arg.operand, arg.field, is_test=True)


def _variable(arg: Expr, message: str) -> str:
    if not isinstance(arg, Ident):
        raise MacroError(arg.at, message)
    if arg.name in (ACCUMULATOR, "__result__"):
        raise MacroError(arg.at, "iteration variable overwrites accumulator variable")
    return arg.name


def _two(first: Expr, second: Expr) -> tuple[str, str]:
    for arg in (first, second):
        if not isinstance(arg, Ident):
            raise MacroError(arg.at, "argument must be a simple name")
    name = _variable(first, "")
    if isinstance(second, Ident) and second.name == name:
        raise MacroError(second.at, f"duplicate variable name: {name}")
    return name, _variable(second, "")


def _call(at: int, function: str, *args: Expr) -> Call:
    return Call(at, function, None, list(args))


def _result(at: int) -> Ident:
    return Ident(at, ACCUMULATOR)


_Parts = tuple[Expr, Expr, Expr, Expr]
_Names = tuple[str, str | None]


def _fold(
    at: int, target: Expr, names: _Names, parts: _Parts, kind: str, body: Expr, only: Expr | None = None
) -> Comprehension:
    init, condition, step, result = parts
    return Comprehension(at, target, *names, ACCUMULATOR, init, condition, step, result, kind, body, only)


def _quantifier(kind: str, names: int) -> _Expander:
    def expander(at: int, target: Expr, args: list[Expr]) -> Expr:
        variables = (
            _two(args[0], args[1]) if names == 2 else (_variable(args[0], "argument must be a simple name"), None)
        )
        return _fold(
            at,
            target,
            variables,
            _quantified(at, kind, args[names]),
            kind.replace("existsOne", "exists_one"),
            args[names],
        )

    return expander


def _quantified(at: int, kind: str, predicate: Expr) -> tuple[Expr, Expr, Expr, Expr]:
    if kind == "all":
        condition = _call(at, "@not_strictly_false", _result(at))
        return Literal(at, True), condition, _call(at, "_&&_", _result(at), predicate), _result(at)
    if kind == "exists":
        condition = _call(at, "@not_strictly_false", _call(at, "!_", _result(at)))
        return Literal(at, False), condition, _call(at, "_||_", _result(at), predicate), _result(at)
    step = _call(at, "_?_:_", predicate, _call(at, "_+_", _result(at), Literal(at, 1)), _result(at))
    return Literal(at, 0), Literal(at, True), step, _call(at, "_==_", _result(at), Literal(at, 1))


def _collected(at: int, init: Expr, step: Expr, predicate: Expr | None) -> tuple[Expr, Expr, Expr, Expr]:
    if predicate is not None:
        step = _call(at, "_?_:_", predicate, step, _result(at))
    return init, Literal(at, True), step, _result(at)


def _appended(at: int, element: Expr) -> Expr:
    return _call(at, "_+_", _result(at), ListExpr(at, [element], frozenset()))


def _none(at: int) -> ListExpr:
    return ListExpr(at, [], frozenset())


def _map(at: int, target: Expr, args: list[Expr]) -> Expr:
    name = _variable(args[0], "argument is not an identifier")
    only = args[1] if len(args) == 3 else None
    parts = _collected(at, _none(at), _appended(at, args[-1]), only)
    return _fold(at, target, (name, None), parts, "list", args[-1], only)


def _filter(at: int, target: Expr, args: list[Expr]) -> Expr:
    name = _variable(args[0], "argument is not an identifier")
    parts = _collected(at, _none(at), _appended(at, args[0]), args[1])
    return _fold(at, target, (name, None), parts, "list", args[0], args[1])


def _transform_list(at: int, target: Expr, args: list[Expr]) -> Expr:
    names = _two(args[0], args[1])
    only = args[2] if len(args) == 4 else None
    return _fold(at, target, names, _collected(at, _none(at), _appended(at, args[-1]), only), "list", args[-1], only)


def _transform_map(at: int, target: Expr, args: list[Expr]) -> Expr:
    names = _two(args[0], args[1])
    step = _call(at, "cel.@mapInsert", _result(at), Ident(at, names[0]), args[-1])
    only = args[2] if len(args) == 4 else None
    return _fold(at, target, names, _collected(at, MapExpr(at, []), step, only), "map", args[-1], only)


def _transform_map_entry(at: int, target: Expr, args: list[Expr]) -> Expr:
    names = _two(args[0], args[1])
    step = _call(at, "cel.@mapInsert", _result(at), args[-1])
    only = args[2] if len(args) == 4 else None
    return _fold(at, target, names, _collected(at, MapExpr(at, []), step, only), "entries", args[-1], only)


def bound(at: int, name: str, value: Expr, within: Expr) -> Comprehension:
    """`within` with `name` for `value`: a loop over nothing."""
    step = Ident(at, name)
    return Comprehension(at, _none(at), UNUSED, None, name, value, Literal(at, False), step, within, "bind", within)


def _opt_map(function: str) -> _Expander:
    def expander(at: int, target: Expr, args: list[Expr]) -> Expr:
        if not isinstance(args[0], Ident):
            raise MacroError(args[0].at, f"{function}() variable name must be a simple identifier")
        inner: Expr = bound(at, args[0].name, Call(at, "value", target, []), args[1])
        if function == "optMap":
            inner = _call(at, "optional.of", inner)
        return _call(at, "_?_:_", Call(at, "hasValue", target, []), inner, _call(at, "optional.none"))

    return expander


def _sort_by(at: int, target: Expr, args: list[Expr]) -> Expr:
    if not isinstance(target, Ident | Select | ListExpr | Comprehension | Call):
        raise MacroError(
            target.at, "sortBy can only be applied to a list, identifier, comprehension, call or select expression"
        )
    name = "@__sortBy_input__"
    keys = _map(at, Ident(at, name), args)
    return bound(at, name, target, Call(at, "@sortByAssociatedKeys", Ident(at, name), [keys]))


_MACROS: Final[dict[tuple[str, int], _Expander]] = {
    ("map", 2): _map,
    ("map", 3): _map,
    ("filter", 2): _filter,
    ("optMap", 2): _opt_map("optMap"),
    ("optFlatMap", 2): _opt_map("optFlatMap"),
    ("transformList", 3): _transform_list,
    ("transformList", 4): _transform_list,
    ("transformMap", 3): _transform_map,
    ("transformMap", 4): _transform_map,
    ("transformMapEntry", 3): _transform_map_entry,
    ("transformMapEntry", 4): _transform_map_entry,
    ("sortBy", 2): _sort_by,
    **{(kind, names + 1): _quantifier(kind, names) for kind in ("all", "exists", "exists_one") for names in (1, 2)},
    ("existsOne", 3): _quantifier("existsOne", 2),
}
