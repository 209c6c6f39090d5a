"""Checked syntax trees to Python functions that evaluate them.

Upstream: github.com/google/cel-go/interpreter

Each expression becomes a closure over its parts. Closures and not Python source, since every step has a cost, which decides
whether a rule may go on: counting is part of the work, so there is no faster twin without it.

Errors are exceptions; && and || and the macros built on them absorb them, as the specification says.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from fakeapiserver.languages.cel import authorizer, kubernetes
from fakeapiserver.languages.cel.ast import (
    Call,
    Comprehension,
    Expr,
    Ident,
    ListExpr,
    Literal,
    MapExpr,
    Select,
    Struct,
    qualified,
)
from fakeapiserver.languages.cel.declarations import FUNCTIONS, Overload
from fakeapiserver.languages.cel.errors import Aborted, CelError, CostLimitError, no_such_overload
from fakeapiserver.languages.cel.escaping import escape, unescape
from fakeapiserver.languages.cel.functions import FUNCTIONS as STANDARD
from fakeapiserver.languages.cel.functions import contains, fits, index, insert, optional_index
from fakeapiserver.languages.cel.runtime_cost import LIST_CREATE, MAP_CREATE, STRUCT_CREATE, Cost, cost_of
from fakeapiserver.languages.cel.text import compile_pattern
from fakeapiserver.languages.cel.types import Type, unwrap_optional
from fakeapiserver.languages.cel.values import (
    NONE,
    BadField,
    Duration,
    JSONPatch,
    Lazy,
    Optional,
    StructValue,
    Timestamp,
    found_in,
    go_type,
    key_text,
    type_of,
)


class Frame:
    """The state of one evaluation: variables by their number, and the cost so far."""

    __slots__ = ("cost", "limit", "variables")

    def __init__(self, variables: list[Any], limit: int) -> None:
        self.variables = variables
        self.cost = 0
        self.limit = limit


Step = Callable[[Frame], Any]
Function = Callable[..., Any]
_IMPLEMENTED: Final[dict[str, Function]] = {
    **STANDARD,
    **kubernetes.FUNCTIONS,
    **authorizer.FUNCTIONS,
}
_CONVERSIONS: Final = frozenset(
    {"bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"}
)
_UNCERTAIN: Final = frozenset({"dyn", "any", "null", "param", "error"})


class Constant:
    """A step that is always the same value."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __call__(self, _: Frame) -> Any:
        return self.value


class _Field:
    """A selection by a name or constant; `is_struct`: a null is absent."""

    __slots__ = ("is_struct", "key")

    def __init__(self, key: Any, is_struct: bool) -> None:
        self.key = key
        self.is_struct = is_struct


class _OptionalField(_Field):
    """`.?name`, `[?constant]`."""

    __slots__ = ()


class _Dynamic:
    """An index that is computed."""

    __slots__ = ("_find", "_key", "is_optional")

    def __init__(self, key: Step, find: Function, is_optional: bool) -> None:
        self._key = key
        self._find = find
        self.is_optional = is_optional

    def __call__(self, frame: Frame) -> Any:
        return (self._find, self._key(frame))


class Evaluator:
    """Turns one checked tree into a step. `names` are the variables that Frame.variables begins with."""

    def __init__(
        self,
        names: Sequence[str],
        constants: dict[Expr, Type],
        functions: Mapping[str, tuple[Overload, ...]] = FUNCTIONS,
    ) -> None:
        self._functions = functions
        self._scope = {name: i for i, name in enumerate(names)}
        self._constants = constants
        self.size = len(names)

    def build(self, tree: Expr) -> Step:
        """CelError where upstream evaluates in advance and fails."""
        if tree in self._constants:
            return Constant(self._constants[tree])
        match tree:
            case Literal():
                return Constant(tree.value)
            case Ident() | Select():
                return self._attribute(tree)
            case Call():
                return self._call(tree)
            case ListExpr():
                return self._list(tree)
            case MapExpr():
                return self._map(tree)
            case Comprehension():
                return self._comprehension(tree)
            case Struct():
                return self._struct(tree)
        raise CelError(f"unsupported expression: {type(tree).__name__}")

    # -------------------------------------------------------- attributes

    def _attribute(self, tree: Expr) -> Step:
        if isinstance(tree, Select) and tree.is_test:
            return self._test(tree)
        base, path, cost = self._path(tree)
        if not path:
            if isinstance(base, int):
                return _variable(base, cost)
            return base
        return _chained(base, path, cost)

    def _path(self, tree: Expr) -> tuple[int | Step, list[Step | _Field], int]:
        """Returns the start of a chain of selections, its steps, and its cost."""
        if isinstance(tree, Ident) and tree not in self._constants:
            return self._scope[tree.name.removeprefix(".")], [], 1
        link: Step | _Field
        if isinstance(tree, Select) and not tree.is_test and tree not in self._constants:
            if (number := self._scope.get(qualified(tree) or "")) is not None:
                return number, [], 1
            operand, link = tree.operand, _field(tree.operand.type, tree.field)
        elif isinstance(tree, Call) and tree.function in ("_[_]", "_[?_]", "_?._"):
            operand = tree.args[0]
            link = self._index_link(tree)
        else:
            base = self.build(tree)
            return base, [], 0 if isinstance(tree, Call) and tree.function == "_?_:_" else 1
        start, path, cost = self._path(operand)
        return start, [*path, link], cost + 1

    def _index_link(self, tree: Call) -> Step | _Field:
        container, key = tree.args
        optional = tree.function != "_[_]"
        if isinstance(key, Literal):
            if key.value is None or isinstance(key.value, bytes):
                raise CelError(f"invalid qualifier type: {go_type(key.value)}")
            if tree.function == "_?._" and unwrap_optional(container.type)[0].kind == "struct":
                return _OptionalField(unescape(str(key.value)), is_struct=True)
            return _OptionalField(key.value, is_struct=False) if optional else _Field(key.value, is_struct=False)
        inner = self._inner(key)
        return _Dynamic(inner, optional_index if optional else index, optional)

    def _inner(self, tree: Expr) -> Step:
        """An expression inside an attribute's own evaluation, where upstream counts attributes one less."""
        is_index = isinstance(tree, Call) and tree.function in ("_[_]", "_[?_]", "_?._")
        is_field = isinstance(tree, Select) and not tree.is_test
        if tree in self._constants or not (is_index or is_field or isinstance(tree, Ident)):
            return self.build(tree)
        base, path, cost = self._path(tree)
        if isinstance(base, int) and not path:
            return _variable(base, cost - 1)
        return _chained(base, path, cost - 1)

    def _test(self, tree: Select) -> Step:
        base, path, cost = self._path(tree.operand)
        operand = _variable(base, 0) if isinstance(base, int) else base
        holder = _chained(base, path, 0) if path else operand
        is_struct = unwrap_optional(tree.operand.type)[0].kind == "struct"
        name = unescape(tree.field) if is_struct else tree.field

        def test(frame: Frame) -> bool:
            frame.cost += cost
            value = holder(frame)
            if isinstance(value, Optional):
                if not value.has_value:
                    return False
                value = value.value
            if isinstance(value, Lazy | JSONPatch):
                return value.has(name)
            if isinstance(value, list):
                index(value, name)
            if type(value) is not dict:
                return False
            if is_struct:
                return value.get(name) is not None
            return name in value

        return test

    # ------------------------------------------------------------- calls

    def _call(self, tree: Call) -> Step:
        match tree.function:
            case "_&&_":
                return _logical([self.build(arg) for arg in tree.args], stop=False)
            case "_||_":
                return _logical([self.build(arg) for arg in tree.args], stop=True)
            case "_?_:_":
                condition, then, otherwise = tree.args
                return _conditional(self.build(condition), self._inner(then), self._inner(otherwise))
            case "_[_]" | "_[?_]" | "_?._":
                base, path, cost = self._path(tree)
                return _chained(base, path, cost)
            case "or" | "orValue" if tree.target is not None:
                return _or(*[self.build(arg) for arg in tree.all_args], whole=tree.function == "or")
        args = [self.build(arg) for arg in tree.all_args]
        if tree.function == "@in" and isinstance(args[1], Constant) and _is_plain_list(args[1].value):
            return _member_of(args[0], args[1].value)
        is_pattern = tree.function in _SEARCHES and isinstance(args[1], Constant)
        function = self._function(tree, is_plain=is_pattern or tree.function in _PLAIN)
        if tree.function in _CONVERSIONS and isinstance(args[0], Constant):
            return Constant(function(args[0].value))
        if is_pattern and isinstance(args[1], Constant):
            compile_pattern(args[1].value)
        if tree.function == "_==_" and _is_stored(tree.args[0]):
            function = _of_objects(function)
        only = tree.overloads[0] if len(tree.overloads) == 1 else ""
        if (own := cost_of(tree.function, only)) is not None:
            # For a list of unknown element type, upstream finds no overload that accepts an error value.
            is_known = tree.function != "sort" or all(_is_certain(arg.type) for arg in tree.all_args)
            return _costly(function, args, own, aborts=tree.function in _ABORTING and is_known)
        return _called(function, args)

    def _function(self, tree: Call, *, is_plain: bool) -> Function:
        certain = all(_is_certain(arg.type) for arg in tree.all_args)
        if len(tree.overloads) == 1 and (
            certain or tree.overloads[0] in ("equals", "not_equals", "optional_of", "type")
        ):
            function = _IMPLEMENTED.get(tree.overloads[0])
            if function is not None:
                return function
        overloads = [
            (overload, function)
            for overload in self._functions[tree.function]
            if overload.is_method == (tree.target is not None)
            and len(overload.args) == len(tree.all_args)
            and (function := _IMPLEMENTED.get(overload.id)) is not None
        ]
        return _dispatched(overloads, "" if is_plain else tree.function)

    # ---------------------------------------------------------- literals

    def _list(self, tree: ListExpr) -> Step:
        steps = [self.build(element) for element in tree.elements]
        if not tree.optionals:
            if all(isinstance(step, Constant) for step in steps):
                return Constant([step.value for step in steps if isinstance(step, Constant)])
            return _listed(steps)
        optionals = tree.optionals

        def build(frame: Frame) -> list[Any]:
            elements = []
            for i, step in enumerate(steps):
                value = step(frame)
                if i not in optionals:
                    elements.append(value)
                elif not isinstance(value, Optional):
                    raise CelError(f"cannot initialize optional list element from non-optional value {value}")
                elif value.has_value:
                    elements.append(value.value)
            frame.cost += LIST_CREATE
            return elements

        return build

    def _map(self, tree: MapExpr) -> Step:
        steps = [(self.build(e.key), self.build(e.value), e.is_optional) for e in tree.entries]

        def build(frame: Frame) -> dict[Any, Any]:
            entries: dict[Any, Any] = {}
            for key_step, value_step, optional in steps:
                key, value = key_step(frame), value_step(frame)
                if optional:
                    if not isinstance(value, Optional):
                        raise CelError(f"cannot initialize optional entry '{key}' from non-optional value {value}")
                    if not value.has_value:
                        entries.pop(key, None)
                        continue
                    value = value.value
                if not isinstance(key, bool | int | str):
                    raise CelError(f"unsupported key type: {type_of(key).full_name}")
                entries[key] = value
            frame.cost += MAP_CREATE
            return entries

        if all(isinstance(k, Constant) and isinstance(v, Constant) and not o for k, v, o in steps):
            return Constant(build(Frame([], 0)))
        return build

    def _struct(self, tree: Struct) -> Step:
        entries = [(entry, entry.key) for entry in tree.entries if isinstance(entry.key, Literal)]
        steps = [(str(key.value), self.build(entry.value), entry.is_optional) for entry, key in entries]
        made = tree.type
        make = JSONPatch if made.name == "JSONPatch" else StructValue

        def build(frame: Frame) -> StructValue:
            fields: dict[str, Any] = {}
            for name, step, optional in steps:
                value = step(frame)
                if optional:
                    if not isinstance(value, Optional):
                        raise CelError(f"cannot initialize optional entry '{name}' from non-optional value {value}")
                    if not value.has_value:
                        continue
                    value = value.value
                fields[name] = value
            frame.cost += STRUCT_CREATE
            return make(made, fields)

        return build

    # ---------------------------------------------------- comprehensions

    def _bound(self, names: Iterable[str | None], tree: Sequence[Expr | None]) -> tuple[list[int], list[Step | None]]:
        """The numbers of new variables, and steps that know them."""
        outer = self._scope
        self._scope = dict(outer)
        numbers = []
        for name in names:
            if name is None:
                continue
            self._scope[name] = self.size
            numbers.append(self.size)
            self.size += 1
        steps = [None if part is None else self.build(part) for part in tree]
        self._scope = outer
        return numbers, steps

    def _comprehension(self, tree: Comprehension) -> Step:
        if tree.kind == "bind":
            return self._bind(tree)
        over = self.build(tree.range)
        numbers, (body, only) = self._bound((tree.variable, tree.second), (tree.body, tree.filter))
        assert body is not None
        loop = _pairs if tree.second else _items
        match tree.kind:
            case "all":
                return _quantified(over, loop, numbers, body, stop=False)
            case "exists":
                return _quantified(over, loop, numbers, body, stop=True)
            case "exists_one":
                return _exactly_one(over, loop, numbers, body)
            case "list":
                return _collected(over, loop, numbers, (body, only))
        return _mapped(over, numbers, (body, only), entries=tree.kind == "entries")

    def _bind(self, tree: Comprehension) -> Step:
        value = self.build(tree.init)
        (number,), (within,) = self._bound((tree.accumulator,), (tree.result,))
        assert within is not None
        inner: Step = within
        aborts = isinstance(tree.result, Call) and tree.result.function in _ABORTING

        def bind(frame: Frame) -> Any:
            try:
                frame.variables[number] = value(frame)
            except CelError:
                if aborts:
                    raise Aborted(_NO_LIST) from None
                raise
            return inner(frame)

        return bind


# ------------------------------------------------------------- attributes


def _field(operand: Type, name: str) -> _Field:
    is_struct = unwrap_optional(operand)[0].kind == "struct"
    return _Field(unescape(name) if is_struct else name, is_struct)


def _variable(number: int, cost: int) -> Step:
    def variable(frame: Frame) -> Any:
        frame.cost += cost
        value = frame.variables[number]
        if type(value) is BadField:
            raise CelError(value.message)
        return value

    return variable


def _get(value: Any, link: Any, frame: Frame) -> Any:
    """Evaluates one step of a chain."""
    if isinstance(link, _Field):
        if type(value) is dict:
            is_there, item = found_in(value, link.key)
            if not is_there or (item is None and link.is_struct):
                raise CelError(f"no such key: {escape(link.key) if link.is_struct else key_text(link.key)}")
        else:
            item = index(value, link.key)
    else:
        find, key = link(frame)
        item = find(value, key)
    if type(item) is BadField:
        raise CelError(item.message)
    return item


def _chained(base: int | Step, path: Sequence[Step | _Field], cost: int) -> Step:
    links = list(path)
    names = [link.key for link in links if type(link) is _Field and link.is_struct]
    if isinstance(base, int) and len(names) == len(links):
        return _fields_of(base, names, cost)
    if any(isinstance(link, _OptionalField) or (isinstance(link, _Dynamic) and link.is_optional) for link in links):
        return _optional_chain(base, links, cost)

    def chain(frame: Frame) -> Any:
        frame.cost += cost
        value = frame.variables[base] if isinstance(base, int) else base(frame)
        for link in links:
            value = _get(value, link, frame)
        return value

    return chain


def _optional_chain(base: int | Step, links: list[Any], cost: int) -> Step:
    """From its first optional step on a chain has an optional value; steps behind an absent one cost nothing."""

    def chain(frame: Frame) -> Any:
        frame.cost += cost
        value = frame.variables[base] if isinstance(base, int) else base(frame)
        optional = False
        for i, link in enumerate(links):
            is_dynamic = isinstance(link, _Dynamic)
            optional = optional or isinstance(link, _OptionalField) or (is_dynamic and link.is_optional)
            if not optional:
                value = _get(value, link, frame)
                continue
            key = link(frame)[1] if is_dynamic else link.key
            item = optional_index(value, key)
            if not item.has_value or (item.value is None and not is_dynamic and link.is_struct):
                frame.cost -= len(links) - i
                return NONE
            value = item.value
            if type(value) is BadField:
                raise CelError(value.message)
        return Optional(True, value)

    return chain


def _field_of(number: int, name: str, cost: int) -> Step:
    missing = f"no such key: {escape(name)}"

    def field(frame: Frame) -> Any:
        frame.cost += cost
        value = frame.variables[number]
        if type(value) is not dict:
            if isinstance(value, Lazy | JSONPatch | Optional) or value is None:
                return index(value, name)
            raise no_such_overload()
        value = value.get(name)
        if value is None:
            raise CelError(missing)
        if type(value) is BadField:
            raise CelError(value.message)
        return value

    return field


def _fields_of(number: int, names: list[str], cost: int) -> Step:
    """The commonest chain: fields of a variable."""

    if len(names) == 1:
        return _field_of(number, names[0], cost)
    escaped = {name: escape(name) for name in names}

    def fields(frame: Frame) -> Any:
        frame.cost += cost
        value = frame.variables[number]
        for name in names:
            if type(value) is not dict:
                if isinstance(value, Lazy | Optional) or value is None:
                    value = index(value, name)
                    continue
                raise no_such_overload()
            value = value.get(name)
            if value is None:
                raise CelError(f"no such key: {escaped[name]}")
        if type(value) is BadField:
            raise CelError(value.message)
        return value

    return fields


# ------------------------------------------------------------------ calls


def _is_certain(t: Type) -> bool:
    return t.kind not in _UNCERTAIN


# Functions that upstream leaves to the values' own types, whose errors don't say what was called, and those that say no more.
_PLAIN: Final = frozenset({"contains", "startsWith", "endsWith", "@in", "!_"})
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
# Their patterns are compiled ahead where they are constants.
_SEARCHES: Final = frozenset({"matches", "find", "findAll"})


def _dispatched(overloads: list[tuple[Overload, Function]], name: str) -> Function:
    """Returns a function that calls the first overload that accepts its arguments.

    `name` is the function's in errors, or empty if they don't name it.
    """

    def dispatch(*args: Any) -> Any:
        for overload, function in overloads:
            if all(map(fits, args, overload.args)):
                return function(*args)
        raise _unfit(name, args)

    return dispatch


def _is_stored(tree: Expr) -> bool:
    """A part of the object itself, not of a value that the expression has made."""
    while True:
        match tree:
            case Ident():
                return tree.name in ("self", "oldSelf", "object", "oldObject", "params")
            case Select() if not tree.is_test:
                tree = tree.operand
            case Call() if tree.function in ("_[_]", "dyn") and tree.args:
                tree = tree.args[0]
            case _:
                return False


def _of_objects(function: Function) -> Function:
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


def _called(function: Function, args: list[Step]) -> Step:
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
_ABORTING: Final = frozenset({"sort", "distinct", "@sortByAssociatedKeys"})
_NO_LIST: Final = "internal error: interface conversion: *types.Err is not traits.Lister: missing method Add"


def _costly(function: Function, args: list[Step], cost: Cost, *, aborts: bool) -> Step:
    def call(frame: Frame) -> Any:
        values: list[Any] = []
        try:
            for arg in args:
                values.append(arg(frame))
        except CelError:
            _only_pay(args[1:] if len(args) == 2 and not values else [], frame)
            if aborts:
                raise Aborted(_NO_LIST) from None
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


def _is_plain_list(value: Any) -> bool:
    return isinstance(value, list) and not any(isinstance(item, list | dict) for item in value)


def _member_of(item: Step, items: list[Any]) -> Step:
    """`in` a list of constants, which costs nothing."""
    return lambda frame: contains(items, item(frame))


def _logical(terms: list[Step], *, stop: bool) -> Step:
    def logical(frame: Frame) -> bool:
        failure: CelError | None = None
        for term in terms:
            try:
                value = term(frame)
            except CelError as error:
                failure = failure or error
                continue
            if value is stop:
                return bool(value)
            if type(value) is not bool:
                failure = failure or no_such_overload()
        if failure is not None:
            raise failure
        return not stop

    return logical


def _conditional(condition: Step, then: Step, otherwise: Step) -> Step:
    def conditional(frame: Frame) -> Any:
        value = condition(frame)
        if value is True:
            return then(frame)
        if value is False:
            return otherwise(frame)
        raise no_such_overload()

    return conditional


def _or(optional: Step, other: Step, *, whole: bool) -> Step:
    def either(frame: Frame) -> Any:
        value = optional(frame)
        if not isinstance(value, Optional):
            return value
        if value.has_value:
            return value if whole else value.value
        return other(frame)

    return either


def _listed(steps: list[Step]) -> Step:
    def build(frame: Frame) -> list[Any]:
        elements = [step(frame) for step in steps]
        frame.cost += LIST_CREATE
        return elements

    return build


# --------------------------------------------------------- comprehensions

_Loop = Callable[[Any, Frame, list[int]], Iterable[None]]


def _items(values: Any, frame: Frame, numbers: list[int]) -> Iterable[None]:
    """Sets the variable to each item of a list, or key of a map."""
    if not isinstance(values, list | dict):
        raise CelError(f"got '{go_type(values)}', expected iterable type")
    number = numbers[0]
    for value in values:
        if frame.cost > frame.limit:
            raise CostLimitError
        frame.variables[number] = value
        yield


def _pairs(values: Any, frame: Frame, numbers: list[int]) -> Iterable[None]:
    """Sets two variables: index and item, or key and value."""
    if not isinstance(values, list | dict):
        raise CelError(f"unsupported comprehension range type: {go_type(values)}")
    first, second = numbers
    for key, value in values.items() if isinstance(values, dict) else enumerate(values):
        if frame.cost > frame.limit:
            raise CostLimitError
        frame.variables[first], frame.variables[second] = key, value
        yield


def _quantified(over: Step, loop: _Loop, numbers: list[int], body: Step, *, stop: bool) -> Step:
    # The accumulator is read and tested before each element, `exists` negates it, and is read for the result.
    each = 4 if stop else 3

    def quantified(frame: Frame) -> bool:
        failure: CelError | None = None
        stopped = False
        for _ in loop(over(frame), frame, numbers):
            if stopped:
                # The condition is read once more before it ends the loop.
                frame.cost += each - 1
                break
            frame.cost += each
            try:
                value = body(frame)
            except CelError as error:
                failure = failure or error
                continue
            if value is stop:
                stopped = True
            elif type(value) is not bool:
                failure = failure or no_such_overload()
        frame.cost += 1
        if stopped:
            return stop
        if failure is not None:
            raise failure
        return not stop

    return quantified


def _holds(value: Any) -> bool:
    if value is True or value is False:
        return bool(value)
    raise no_such_overload()


def _exactly_one(over: Step, loop: _Loop, numbers: list[int], body: Step) -> Step:
    def exactly_one(frame: Frame) -> bool:
        count = 0
        for _ in loop(over(frame), frame, numbers):
            if _holds(body(frame)):
                count += 1
                frame.cost += 2
        frame.cost += 2
        return count == 1

    return exactly_one


def _collected(over: Step, loop: _Loop, numbers: list[int], steps: tuple[Step, Step | None]) -> Step:
    body, only = steps
    each = 2 if isinstance(body, Constant) else 2 + LIST_CREATE

    def collect(frame: Frame) -> list[Any]:
        collected = []
        for _ in loop(over(frame), frame, numbers):
            if only is None or _holds(only(frame)):
                collected.append(body(frame))
                frame.cost += each
        frame.cost += 1
        return collected

    return collect


def _mapped(over: Step, numbers: list[int], steps: tuple[Step, Step | None], *, entries: bool) -> Step:
    body, only = steps

    def build(frame: Frame) -> dict[Any, Any]:
        mapped: dict[Any, Any] = {}
        for _ in _pairs(over(frame), frame, numbers):
            if only is not None and not _holds(only(frame)):
                continue
            value = body(frame)
            frame.cost += 2 if entries else 3
            for key, item in value.items() if entries else ((frame.variables[numbers[0]], value),):
                if key in mapped:
                    insert(mapped, key, item)
                mapped[key] = item
        frame.cost += 1
        return mapped

    return build
