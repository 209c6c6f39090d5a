"""Steps for calls of functions."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

from fakeapiserver.languages.cel.declarations import Overload
from fakeapiserver.languages.cel.errors import Aborted, CelError, no_such_overload
from fakeapiserver.languages.cel.functions.arguments import fits
from fakeapiserver.languages.cel.functions.containers import contains
from fakeapiserver.languages.cel.interpreter.steps import Frame, Function, Step
from fakeapiserver.languages.cel.runtime_cost import Cost
from fakeapiserver.languages.cel.values import Duration, Timestamp, type_of

_NUMERIC: Final = (int, float)
_OPERANDS: Final[dict[str, tuple[type, ...]]] = {
    "-_": (*_NUMERIC, bool),
    "_+_": (*_NUMERIC, str, bytes, list, Duration, Timestamp),
    "_-_": (*_NUMERIC, Duration, Timestamp),
    "_*_": _NUMERIC,
    "_/_": _NUMERIC,
    "_%_": (int,),
    **dict.fromkeys(("_<_", "_<=_", "_>_", "_>=_"), (*_NUMERIC, bool, str, bytes, Duration, Timestamp)),
}
_NAMED: Final = frozenset({"size", "sort"})


def dispatched(overloads: list[tuple[Overload, Function]], name: str) -> Function:
    """Returns a function that calls the first overload that accepts its arguments.

    `name` is the function's in errors, or empty if they don't name it.
    """

    def dispatch(*args: Any) -> Any:
        for overload, function in overloads:
            if all(map(fits, args, overload.args)):
                return function(*args)
        raise _unfit(name, args)

    return dispatch


def of_objects(function: Function) -> Function:
    """Upstream doesn't compare what is in an object with another kind of value."""

    def compare(one: Any, other: Any) -> Any:
        kind = dict if isinstance(one, dict) else list if isinstance(one, list) else object
        if other is not None and not isinstance(other, kind):
            raise no_such_overload()
        return function(one, other)

    return compare


def _unfit(name: str, args: Sequence[Any]) -> CelError:
    if name in _OPERANDS:
        # These are asked for whatever they have no operator for.
        is_asked = isinstance(args[0], str | Duration | Timestamp)
        knows = isinstance(args[0], _OPERANDS[name]) and (not isinstance(args[0], bool) or bool in _OPERANDS[name])
        return no_such_overload() if is_asked or knows else CelError(f"no such overload: {name}")
    if not name:
        return no_such_overload()
    if name in _NAMED:
        return CelError(f"no such overload: {name}")
    given = [type_of(arg).full_name for arg in args]
    shown = f"{given[0]}.flatten()" if name == "flatten" else f"{name}({', '.join(given)})"
    return CelError(f"no such overload: {shown}")


def call_step(function: Function, args: list[Step]) -> Step:
    if len(args) == 1:
        return _unary(function, args[0])
    if len(args) == 2:
        return _binary(function, args[0], args[1])

    def call(frame: Frame) -> Any:
        values = [arg(frame) for arg in args]
        frame.cost += 1
        try:
            return function(*values)
        except (TypeError, AttributeError):
            raise no_such_overload() from None

    return call


def _only_pay(args: Sequence[Step], frame: Frame) -> None:
    """A call of two arguments whose first failed still evaluates the second."""
    for arg in args:
        with suppress(CelError):
            arg(frame)
    frame.cost += 1


def _unary(function: Function, arg: Step) -> Step:
    def call(frame: Frame) -> Any:
        try:
            value = arg(frame)
        finally:
            frame.cost += 1
        try:
            return function(value)
        except (TypeError, AttributeError):
            raise no_such_overload() from None

    return call


def _binary(function: Function, left: Step, right: Step) -> Step:
    def call(frame: Frame) -> Any:
        try:
            one = left(frame)
        except CelError:
            _only_pay((right,), frame)
            raise
        try:
            other = right(frame)
        finally:
            frame.cost += 1
        try:
            return function(one, other)
        except (TypeError, AttributeError):
            raise no_such_overload() from None

    return call


# Upstream reckons the cost of these before it looks whether their list is an error, and gives up then.
ABORTING: Final = frozenset({"sort", "distinct", "@sortByAssociatedKeys"})
NO_LIST: Final = "internal error: interface conversion: *types.Err is not traits.Lister: missing method Add"


def costly_call_step(function: Function, args: list[Step], cost: Cost, *, aborts: bool) -> Step:
    def call(frame: Frame) -> Any:
        values: list[Any] = []
        try:
            for arg in args:
                values.append(arg(frame))
        except CelError:
            _only_pay(args[1:] if len(args) == 2 and not values else [], frame)
            if aborts:
                raise Aborted(NO_LIST) from None
            raise
        result: Any = None
        try:
            result = function(*values)
        except (TypeError, AttributeError):
            raise no_such_overload() from None
        finally:
            frame.cost += _price(cost, values, result)
        return result

    return call


def _price(cost: Cost, values: list[Any], result: Any) -> int:
    """Returns the cost; a value of type dyn may not have the type that the cost was made for."""
    try:
        return cost(values, result)
    except (TypeError, AttributeError):
        return 1


def member_of(item: Step, items: list[Any]) -> Step:
    """`in` a list of constants, which costs nothing."""
    return lambda frame: contains(items, item(frame))
