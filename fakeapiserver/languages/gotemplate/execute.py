"""Carries templates out (upstream: text/template/exec.go)."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from fakeapiserver.languages.gotemplate import tree
from fakeapiserver.languages.gotemplate.functions import BUILTINS, SHORT_CIRCUITS
from fakeapiserver.languages.gotemplate.parser import parse_tree
from fakeapiserver.languages.gotemplate.times import METHODS
from fakeapiserver.languages.gotemplate.values import (
    MAX_OUTPUT,
    MISSING,
    Function,
    Number,
    TemplateError,
    Time,
    shown,
    truth,
    type_name,
)

_MAX_STEPS: Final = 1_000_000
_MAX_INCLUDES: Final = 50
_ABSENT: Final = object()


class Template:
    """A template that was understood."""

    def __init__(self, parsed: tree.Tree) -> None:
        self._tree = parsed

    def execute(self, data: Any, functions: Mapping[str, Function] | None = None) -> str:
        """`functions`: in place of those of the same names it was parsed with. TemplateError."""
        run = _Run(self._tree, functions or {})
        try:
            run.walk(self._tree.body, data, [["$", data]])
        except RecursionError:
            raise TemplateError("the template goes too deep") from None
        return "".join(run.out)


def parse(text: str, functions: Mapping[str, Function]) -> Template:
    """`functions` beside Go's own. TemplateError."""
    return Template(parse_tree(text, {**BUILTINS, **functions}))


class _Break(Exception):
    pass


class _Continue(Exception):
    pass


Variables = list[list[Any]]


class _Run:
    def __init__(self, parsed: tree.Tree, functions: Mapping[str, Function]) -> None:
        self._tree = parsed
        self._functions = functions
        self._steps = _MAX_STEPS
        self._size = 0
        self._includes = 0
        self._line = 0
        self.out: list[str] = []

    def walk(self, nodes: Sequence[tree.Node], dot: Any, variables: Variables) -> None:
        mark = len(variables)
        for node in nodes:
            self._take()
            match node:
                case tree.Text(text):
                    self._write(text)
                case tree.Action(pipe):
                    value = self._pipe(pipe, dot, variables)
                    if not pipe.variables:
                        self._write("<no value>" if value is None else shown(value))
                case tree.Branch():
                    self._branch(node, dot, variables)
                case tree.Include():
                    self._include(node, dot, variables)
                case tree.Leave(word):
                    raise _Break if word == "break" else _Continue
        del variables[mark:]

    def _take(self) -> None:
        self._steps -= 1
        if self._steps < 0:
            raise TemplateError(f"the template takes more than {_MAX_STEPS} steps")

    def _write(self, text: str) -> None:
        self._size += len(text)
        if self._size > MAX_OUTPUT:
            raise TemplateError("the template writes too much")
        self.out.append(text)

    def _error(self, message: str) -> TemplateError:
        return TemplateError(f"template: _:{self._line}: {message}")

    # ------------------------------------------------------------------ actions

    def _branch(self, node: tree.Branch, dot: Any, variables: Variables) -> None:
        mark = len(variables)
        value = self._pipe(node.pipe, dot, variables)
        if node.word == "range":
            self._range(node, value, dot, variables)
        elif truth(value):
            self.walk(node.body, value if node.word == "with" else dot, variables)
        else:
            self.walk(node.otherwise, dot, variables)
        del variables[mark:]

    def _range(self, node: tree.Branch, value: Any, dot: Any, variables: Variables) -> None:
        names = node.pipe.variables
        mark = len(variables)
        items = self._items(value, names)
        ran = False
        try:
            for key, item in items:
                ran = True
                self._take()
                if names:
                    self._set_range(node.pipe, key, item, variables)
                with suppress(_Continue):
                    self.walk(node.body, item, variables)
                del variables[mark:]
        except _Break:
            pass
        if not ran:
            self.walk(node.otherwise, dot, variables)

    def _items(self, value: Any, names: Sequence[str]) -> Any:
        if value is None or value is MISSING:
            return ()
        if isinstance(value, list):
            return enumerate(value)
        if isinstance(value, dict):
            return [(key, value[key]) for key in sorted(value)]
        if isinstance(value, int) and not isinstance(value, bool):
            if len(names) > 1:
                raise self._error(f"can't use {value} to iterate over more than one variable")
            return ((MISSING, at) for at in range(value))
        raise self._error(f"range can't iterate over {shown(value)}")

    def _set_range(self, pipe: tree.Pipe, key: Any, item: Any, variables: Variables) -> None:
        given = (key, item) if len(pipe.variables) > 1 else (item,)
        for at, (name, value) in enumerate(zip(pipe.variables, given, strict=True)):
            if pipe.assigns:
                self._assign(name, value, variables)
            else:
                variables[len(variables) - len(pipe.variables) + at][1] = value

    def _assign(self, name: str, value: Any, variables: Variables) -> None:
        for entry in reversed(variables):
            if entry[0] == name:
                entry[1] = value
                return
        raise self._error(f"undefined variable: {name}")

    def _include(self, node: tree.Include, dot: Any, variables: Variables) -> None:
        body = self._tree.defined.get(node.name)
        self._line = node.line
        if body is None:
            raise self._error(f'template "{node.name}" not defined')
        if self._includes >= _MAX_INCLUDES:
            raise self._error(f"exceeded maximum template depth ({_MAX_INCLUDES})")
        given = None if node.pipe is None else self._pipe(node.pipe, dot, variables)
        self._includes += 1
        self.walk(body, given, [["$", given]])
        self._includes -= 1

    # ---------------------------------------------------------------- pipelines

    def _pipe(self, pipe: tree.Pipe, dot: Any, variables: Variables) -> Any:
        self._line = pipe.line
        value: Any = _ABSENT
        for command in pipe.commands:
            value = self._command(command, dot, variables, value)
        for name in pipe.variables:
            if pipe.assigns:
                self._assign(name, value, variables)
            else:
                variables.append([name, value])
        return value

    def _command(self, command: Sequence[tree.Term], dot: Any, variables: Variables, final: Any) -> Any:
        first = command[0]
        if isinstance(first, tree.Call):
            return self._call(first.function, command[1:], dot, variables, final)
        if isinstance(first, tree.Fields):
            return self._fields(first, command[1:], dot, variables, final)
        if len(command) > 1 or final is not _ABSENT:
            if isinstance(first, tree.Pipe):
                raise self._error("can't give argument to non-function parenthesized pipeline")
            raise self._error(f"can't give argument to non-function {_named(first)}")
        if isinstance(first, tree.Literal) and first.is_nil:
            raise self._error("nil is not a command")
        return self._term(first, dot, variables)

    def _term(self, term: tree.Term, dot: Any, variables: Variables) -> Any:
        self._take()
        match term:
            case tree.Literal(value):
                return value
            case tree.Dot():
                return dot
            case tree.Variable(name):
                return next(entry[1] for entry in reversed(variables) if entry[0] == name)
            case tree.Fields():
                return self._fields(term, (), dot, variables, _ABSENT)
            case tree.Pipe():
                return self._pipe(term, dot, variables)
            case tree.Call(function):
                return self._call(function, (), dot, variables, _ABSENT)

    def _fields(
        self, term: tree.Fields, arguments: Sequence[tree.Term], dot: Any, variables: Variables, final: Any
    ) -> Any:
        value = self._term(term.of, dot, variables)
        for at, name in enumerate(term.names):
            last = at == len(term.names) - 1
            given = [self._term(argument, dot, variables) for argument in arguments] if last else []
            if last and final is not _ABSENT:
                given.append(final)
            value = self._field(value, name, given)
        return value

    def _field(self, value: Any, name: str, given: Sequence[Any]) -> Any:
        if value is MISSING:
            return MISSING
        if value is None:
            raise self._error(f"nil pointer evaluating interface {{}}.{name}")
        if isinstance(value, Time) and name in METHODS:
            return METHODS[name](value, *given)
        if isinstance(value, dict):
            if given:
                raise self._error(f"{name} is not a method but has arguments")
            return value.get(name, MISSING)
        if isinstance(value, Number) and name in ("String", "Int64", "Float64") and not given:
            return str(value) if name == "String" else int(float(value)) if name == "Int64" else float(value)
        raise self._error(f"can't evaluate field {name} in type {type_name(value)}")

    def _call(
        self, function: Function, arguments: Sequence[tree.Term], dot: Any, variables: Variables, final: Any
    ) -> Any:
        self._take()
        count = len(arguments) + (final is not _ABSENT)
        function = self._functions.get(function.name, function)
        least = len(function.kinds)
        if count < least or (count > least and not function.more):
            wanted = f"at least {least}" if function.more else str(least)
            raise self._error(f"wrong number of args for {function.name}: want {wanted} got {count}")
        if function.name in SHORT_CIRCUITS:
            return self._short_circuit(function.name == "and", arguments, dot, variables, final)
        values = [
            self._argument(argument, _kind(function, at), dot, variables) for at, argument in enumerate(arguments)
        ]
        if final is not _ABSENT:
            values.append(self._checked(final, _kind(function, count - 1)))
        try:
            return function.call(*values)
        except TemplateError as error:
            raise self._error(f"error calling {function.name}: {error}") from None
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, RecursionError) as error:
            raise self._error(f"error calling {function.name}: {error}") from error

    def _short_circuit(
        self, is_and: bool, arguments: Sequence[tree.Term], dot: Any, variables: Variables, final: Any
    ) -> Any:
        result: Any = MISSING
        for argument in arguments:
            result = self._argument(argument, "raw", dot, variables)
            if truth(result) != is_and:
                return result
        return result if final is _ABSENT else final

    def _argument(self, argument: tree.Term, kind: str, dot: Any, variables: Variables) -> Any:
        if isinstance(argument, tree.Literal):
            return self._constant(argument, kind)
        return self._checked(self._term(argument, dot, variables), kind)

    def _constant(self, literal: tree.Literal, kind: str) -> Any:
        value = literal.value
        if literal.is_nil:
            if kind in ("string", "int", "float64", "bool", "time.Time"):
                raise self._error(f"cannot assign nil to {kind}")
            return None
        if kind in ("any", "raw"):
            return value
        if kind == "float64" and isinstance(value, int) and not isinstance(value, bool):
            return float(value)
        if kind == "int" and isinstance(value, float) and value.is_integer():
            return int(value)
        if type_name(value) != kind:
            raise self._error(f"expected {kind}; found {shown(value)}")
        return value

    def _checked(self, value: Any, kind: str) -> Any:
        if kind == "raw":
            return value
        if value is MISSING:
            value = None
        if kind == "any":
            return value
        if value is None:
            if kind in ("string", "int", "float64", "bool", "time.Time"):
                raise self._error(f"invalid value; expected {kind}")
            return {} if kind.startswith("map") else []
        if type_name(value) != kind:
            raise self._error(f"wrong type for value; expected {kind}; got {type_name(value)}")
        return value


def _kind(function: Function, at: int) -> str:
    return function.kinds[at] if at < len(function.kinds) else function.more


def _named(term: tree.Term) -> str:
    match term:
        case tree.Literal(value):
            return shown(value)
        case tree.Variable(name):
            return name
    return "."
