"""Checked syntax trees to Python functions that evaluate them.

Upstream: github.com/google/cel-go/interpreter

Each expression becomes a closure over its parts. Closures and not Python source, since every step has a cost, which decides
whether a rule may go on: counting is part of the work, so there is no faster twin without it.

Errors are exceptions; && and || and the macros built on them absorb them, as the specification says.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from fakeapiserver.languages.cel import authorizer
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
from fakeapiserver.languages.cel.declarations import FUNCTIONS, REMOVED, Overload
from fakeapiserver.languages.cel.errors import Aborted, CelError
from fakeapiserver.languages.cel.escaping import unescape
from fakeapiserver.languages.cel.functions.containers import index, optional_index
from fakeapiserver.languages.cel.functions.table import FUNCTIONS as STANDARD
from fakeapiserver.languages.cel.interpreter.attributes import (
    Dynamic,
    Field,
    OptionalField,
    chained,
    field_link,
    variable_step,
)
from fakeapiserver.languages.cel.interpreter.calls import (
    ABORTING,
    NO_LIST,
    call_step,
    costly_call_step,
    dispatched,
    member_of,
    of_objects,
)
from fakeapiserver.languages.cel.interpreter.comprehensions import (
    collected,
    each_item,
    each_pair,
    exactly_one_step,
    mapped,
    quantified_step,
)
from fakeapiserver.languages.cel.interpreter.operators import conditional_step, logical_step, or_step
from fakeapiserver.languages.cel.interpreter.steps import Constant, Frame, Function, Step
from fakeapiserver.languages.cel.kubernetes.table import FUNCTIONS as KUBERNETES
from fakeapiserver.languages.cel.runtime_cost import LIST_CREATE, MAP_CREATE, STRUCT_CREATE, cost_of
from fakeapiserver.languages.cel.text import compile_pattern
from fakeapiserver.languages.cel.types import Type, unwrap_optional
from fakeapiserver.languages.cel.values import JSONPatch, Lazy, Optional, StructValue, go_type, type_of
from fakeapiserver.languages.cel.versions import NEWEST, V1_37

_IMPLEMENTED: Final[dict[str, Function]] = {
    **STANDARD,
    **KUBERNETES,
    **authorizer.FUNCTIONS,
}
_CONVERSIONS: Final = frozenset(
    {"bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"}
)
_UNCERTAIN: Final = frozenset({"dyn", "any", "null", "param", "error"})


class Evaluator:
    """Turns one checked tree into a step. `names` are the variables that Frame.variables begins with."""

    def __init__(
        self,
        names: Sequence[str],
        constants: dict[Expr, Type],
        functions: Mapping[str, tuple[Overload, ...]] = FUNCTIONS,
        *,
        version: str = NEWEST,
    ) -> None:
        """`version`: Kubernetes's; since 1.37, alternatives to a value that isn't an optional are an error."""
        self._functions = functions
        self._is_newest = version >= V1_37
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
                return variable_step(base, cost)
            return base
        return chained(base, path, cost)

    def _path(self, tree: Expr) -> tuple[int | Step, list[Step | Field], int]:
        """Returns the start of a chain of selections, its steps, and its cost."""
        if isinstance(tree, Ident) and tree not in self._constants:
            return self._scope[tree.name.removeprefix(".")], [], 1
        link: Step | Field
        if isinstance(tree, Select) and not tree.is_test and tree not in self._constants:
            if (number := self._scope.get(qualified(tree) or "")) is not None:
                return number, [], 1
            operand, link = tree.operand, field_link(tree.operand.type, tree.field)
        elif isinstance(tree, Call) and tree.function in ("_[_]", "_[?_]", "_?._"):
            operand = tree.args[0]
            link = self._index_link(tree)
        else:
            base = self.build(tree)
            return base, [], 0 if isinstance(tree, Call) and tree.function == "_?_:_" else 1
        start, path, cost = self._path(operand)
        return start, [*path, link], cost + 1

    def _index_link(self, tree: Call) -> Step | Field:
        container, key = tree.args
        optional = tree.function != "_[_]"
        if isinstance(key, Literal):
            if key.value is None or isinstance(key.value, bytes):
                raise CelError(f"invalid qualifier type: {go_type(key.value)}")
            if tree.function == "_?._" and unwrap_optional(container.type)[0].kind == "struct":
                return OptionalField(unescape(str(key.value)), is_struct=True)
            return OptionalField(key.value, is_struct=False) if optional else Field(key.value, is_struct=False)
        inner = self._inner(key)
        return Dynamic(inner, optional_index if optional else index, optional)

    def _inner(self, tree: Expr) -> Step:
        """An expression inside an attribute's own evaluation, where upstream counts attributes one less."""
        is_index = isinstance(tree, Call) and tree.function in ("_[_]", "_[?_]", "_?._")
        is_field = isinstance(tree, Select) and not tree.is_test
        if tree in self._constants or not (is_index or is_field or isinstance(tree, Ident)):
            return self.build(tree)
        base, path, cost = self._path(tree)
        if isinstance(base, int) and not path:
            return variable_step(base, cost - 1)
        return chained(base, path, cost - 1)

    def _test(self, tree: Select) -> Step:
        base, path, cost = self._path(tree.operand)
        operand = variable_step(base, 0) if isinstance(base, int) else base
        holder = chained(base, path, 0) if path else operand
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
                return logical_step([self.build(arg) for arg in tree.args], stop=False)
            case "_||_":
                return logical_step([self.build(arg) for arg in tree.args], stop=True)
            case "_?_:_":
                condition, then, otherwise = tree.args
                return conditional_step(self.build(condition), self._inner(then), self._inner(otherwise))
            case "_[_]" | "_[?_]" | "_?._":
                base, path, cost = self._path(tree)
                return chained(base, path, cost)
            case "or" | "orValue" if tree.target is not None:
                return or_step(
                    *[self.build(arg) for arg in tree.all_args], whole=tree.function == "or", strict=self._is_newest
                )
        args = [self.build(arg) for arg in tree.all_args]
        if tree.function == "@in" and isinstance(args[1], Constant) and _is_plain_list(args[1].value):
            return member_of(args[0], args[1].value)
        is_pattern = tree.function in _SEARCHES and isinstance(args[1], Constant)
        function = self._function(tree, is_plain=is_pattern or tree.function in _PLAIN)
        if tree.function in _CONVERSIONS and isinstance(args[0], Constant):
            return Constant(function(args[0].value))
        if is_pattern and isinstance(args[1], Constant):
            compile_pattern(args[1].value)
        if tree.function == "_==_" and _is_stored(tree.args[0]):
            function = of_objects(function)
        only = tree.overloads[0] if len(tree.overloads) == 1 else ""
        if (own := cost_of(tree.function, only)) is not None:
            # For a list of unknown element type, upstream finds no overload that accepts an error value.
            is_known = tree.function != "sort" or all(_is_certain(arg.type) for arg in tree.all_args)
            return costly_call_step(function, args, own, aborts=tree.function in ABORTING and is_known)
        return call_step(function, args)

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
            and not (self._is_newest and overload.id in REMOVED)
            and (function := _IMPLEMENTED.get(overload.id)) is not None
        ]
        return dispatched(overloads, "" if is_plain else tree.function)

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
        loop = each_pair if tree.second else each_item
        match tree.kind:
            case "all":
                return quantified_step(over, loop, numbers, body, stop=False)
            case "exists":
                return quantified_step(over, loop, numbers, body, stop=True)
            case "exists_one":
                return exactly_one_step(over, loop, numbers, body)
            case "list":
                return collected(over, loop, numbers, (body, only))
        return mapped(over, numbers, (body, only), entries=tree.kind == "entries")

    def _bind(self, tree: Comprehension) -> Step:
        value = self.build(tree.init)
        (number,), (within,) = self._bound((tree.accumulator,), (tree.result,))
        assert within is not None
        inner: Step = within
        aborts = isinstance(tree.result, Call) and tree.result.function in ABORTING

        def bind(frame: Frame) -> Any:
            try:
                frame.variables[number] = value(frame)
            except CelError:
                if aborts:
                    raise Aborted(NO_LIST) from None
                raise
            return inner(frame)

        return bind


def _is_certain(t: Type) -> bool:
    return t.kind not in _UNCERTAIN


# Functions that upstream leaves to the values' own types, whose errors don't say what was called, and those that say no more.
_PLAIN: Final = frozenset({"contains", "startsWith", "endsWith", "@in", "!_"})
# Their patterns are compiled ahead where they are constants.
_SEARCHES: Final = frozenset({"matches", "find", "findAll"})


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


def _is_plain_list(value: Any) -> bool:
    return isinstance(value, list) and not any(isinstance(item, list | dict) for item in value)


def _listed(steps: list[Step]) -> Step:
    def build(frame: Frame) -> list[Any]:
        elements = [step(frame) for step in steps]
        frame.cost += LIST_CREATE
        return elements

    return build
