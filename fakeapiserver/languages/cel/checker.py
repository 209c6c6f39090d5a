"""The type checker: gives every expression its type and every call its overloads.

Upstream: github.com/google/cel-go/checker/{checker,errors}.go
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from fakeapiserver.languages.cel import types
from fakeapiserver.languages.cel.assignability import ANYTHING, Substitutions, is_assignable, most_general, substituted
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
from fakeapiserver.languages.cel.errors import Issue
from fakeapiserver.languages.cel.escaping import RESERVED
from fakeapiserver.languages.cel.types import BOOL, DYN, ERROR, Type
from fakeapiserver.languages.cel.validators import literal_issues
from fakeapiserver.languages.cel.values import type_of
from fakeapiserver.languages.cel.versions import NEWEST, V1_37


@dataclass(slots=True)
class Declared:
    """The names that an expression may use.

    Variables, the fields of structs by the structs' names, functions; and `makes`: names of structs that it may
    create, each with all
    names below it, with any fields if `structs` doesn't have them. binds: it may name values with cel.bind.
    version: the Kubernetes version (`v1.36`) whose cel-go compiles and runs the expression.
    """

    variables: Mapping[str, Type]
    structs: Mapping[str, Mapping[str, Type]] = field(default_factory=dict)
    functions: Mapping[str, tuple[Overload, ...]] = field(default_factory=lambda: FUNCTIONS)
    makes: frozenset[str] = frozenset()
    binds: bool = False
    version: str = NEWEST


class Checker:
    """Checks one expression.

    `issues` are its errors; `constants` the types that expressions name; `names` the variables they use.
    """

    def __init__(self, declared: Declared) -> None:
        self._structs = declared.structs
        self._functions = declared.functions
        self._makes = declared.makes
        self._removed = REMOVED if declared.version >= V1_37 else ()
        self._scopes: list[dict[str, Type]] = [dict(declared.variables)]
        self._bound: Substitutions = {}
        self._fresh = 0
        self.issues: list[Issue] = []
        self.constants: dict[Expr, Type] = {}
        self.names: set[str] = set()
        # A type whose name is no value: objects of it can be made, but not compared with it.
        self.undefined = ""
        self._nodes: dict[Expr, None] = {}

    def check(self, tree: Expr) -> Type:
        """The type of the whole, after writing that of each part into it."""
        self._check(tree)
        for node in self._nodes:
            node.type = substituted(self._bound, node.type, to_dyn=True)
        if not self.issues:
            self.issues += literal_issues(list(self._nodes))
        return tree.type

    def _issue(self, at: int, message: str) -> None:
        self.issues.append(Issue(at, message))

    def _check(self, tree: Expr) -> Type:
        self._nodes[tree] = None
        tree.type = self._RULES[type(tree)](self, tree)
        return tree.type

    # ------------------------------------------------------------- names

    def _lookup(self, name: str) -> Type | None:
        name = name.removeprefix(".")
        for scope in reversed(self._scopes):
            if name in scope:
                return scope[name]
        return None

    def _type_named(self, name: str) -> Type | None:
        """The type of the name of a type."""
        if self._is_made(name):
            return types.type_of(types.struct(name))
        return types.TYPE_NAMES.get(name)

    def _is_made(self, name: str) -> bool:
        return name in self._makes or ((first := name.partition(".")[0]) in self._makes and first not in self._structs)

    def _undeclared(self, at: int, name: str) -> Type:
        self._issue(at, f"undeclared reference to '{name}' (in container '')")
        return ERROR

    def _ident(self, tree: Ident) -> Type:
        declared = self._lookup(tree.name)
        tree_name = tree.name.removeprefix(".")
        if declared is not None:
            self.names.add(tree_name)
            return declared
        if (constant := self._type_named(tree_name)) is not None:
            self._name_type(tree, tree_name, constant)
            return constant
        return self._undeclared(tree.at, tree.name)

    def _name_type(self, tree: Expr, name: str, constant: Type) -> None:
        self.constants[tree] = constant.params[0] if constant.params else types.type_of()
        if self._is_made(name):
            self.undefined = self.undefined or name

    def _select(self, tree: Select) -> Type:
        name = qualified(tree)
        if name is not None and (constant := self._type_named(name)) is not None:
            self._name_type(tree, name, constant)
            return constant
        if name is not None and (declared := self._lookup(name)) is not None:
            self.names.add(name)
            return declared
        field_type = self._select_field(tree.at, tree.operand, tree.field)
        return BOOL if tree.is_test else substituted(self._bound, field_type)

    def _select_field(self, at: int, operand: Expr, name: str, *, optional: bool = False) -> Type:
        self._check(operand)
        target, was_optional = types.unwrap_optional(substituted(self._bound, operand.type))
        field_type = ERROR
        if target.kind == "map":
            field_type = target.params[1]
        elif target.kind == "struct":
            field_type = self._field(at, target.name, name)
        elif target.kind == "param":
            self._assigns(DYN, target)
            field_type = DYN
        else:
            if target.kind not in ANYTHING:
                self._issue(at, f"type '{target}' does not support field selection")
            field_type = DYN
        return types.optional_of(field_type) if optional or was_optional else field_type

    def _field(self, at: int, struct: str, name: str) -> Type:
        fields = self._structs.get(struct)
        if fields is None and struct.partition(".")[0] in self._makes:
            return DYN
        if fields is None:
            self._issue(at, f"unexpected failed resolution of '{struct}'")
            return ERROR
        field_type = fields.get(name)
        if field_type is None and name in RESERVED:
            field_type = fields.get(f"__{name}__")
        if field_type is None:
            self._issue(at, f"undefined field '{name}'")
            return ERROR
        return field_type

    # ------------------------------------------------------------- calls

    def _call(self, tree: Call) -> Type:
        if tree.function == "_?._":
            return substituted(self._bound, self._optional_select(tree))
        for arg in tree.args:
            self._check(arg)
        if tree.target is not None:
            prefix = qualified(tree.target)
            if prefix is not None and f"{prefix}.{tree.function}" in self._functions:
                tree.function, tree.target = f"{prefix}.{tree.function}", None
            else:
                self._check(tree.target)
        name = tree.function.removeprefix(".")
        overloads = self._functions.get(name)
        if overloads is None:
            return self._undeclared(tree.at, tree.function)
        tree.function = name
        if name in ("_&&_", "_||_"):
            return self._logical(tree)
        return self._resolve(tree, overloads)

    def _optional_select(self, tree: Call) -> Type:
        name = tree.args[1]
        assert isinstance(name, Literal)
        tree.overloads = ("select_optional_field",)
        return self._select_field(tree.at, tree.args[0], str(name.value), optional=True)

    def _logical(self, tree: Call) -> Type:
        wrong = False
        for arg in tree.args:
            if not self._assigns(arg.type, BOOL):
                self._mismatch(arg.at, BOOL, arg.type)
                wrong = True
        tree.overloads = ("logical_and" if tree.function == "_&&_" else "logical_or",)
        return ERROR if wrong else BOOL

    def _resolve(self, tree: Call, overloads: tuple[Overload, ...]) -> Type:
        args = [arg.type for arg in tree.all_args]
        result: Type | None = None
        chosen: list[str] = []
        for overload in overloads:
            if overload.is_method != (tree.target is not None) or len(overload.args) != len(args):
                continue
            if overload.id in self._removed:
                continue
            fresh = {types.param(name): self._variable() for name in sorted(overload.params)}
            wanted = [substituted(fresh, arg) for arg in overload.args]
            bound = dict(self._bound)
            if not all(is_assignable(bound, arg, want) for arg, want in zip(args, wanted, strict=True)):
                continue
            self._bound = bound
            chosen.append(overload.id)
            resolved = substituted(self._bound, substituted(fresh, overload.result))
            if result is None:
                result = resolved
            elif result.kind != "dyn" and resolved != result:
                result = DYN
        if result is None:
            shown = [str(substituted(self._bound, arg, to_dyn=True)) for arg in args]
            signature = f"{shown[0]}.({', '.join(shown[1:])})" if tree.target is not None else f"({', '.join(shown)})"
            self._issue(tree.at, f"found no matching overload for '{tree.function}' applied to '{signature}'")
            return ERROR
        tree.overloads = tuple(chosen)
        return result

    # ---------------------------------------------------------- literals

    def _literal(self, tree: Literal) -> Type:
        return type_of(tree.value)

    def _list(self, tree: ListExpr) -> Type:
        joined: Type | None = None
        for i, element in enumerate(tree.elements):
            joined = self._join(joined, self._element(element, i in tree.optionals))
        return types.list_of(joined or self._variable())

    def _element(self, tree: Expr, optional: bool) -> Type:
        element = self._check(tree)
        if not optional:
            return element
        inner, was_optional = types.unwrap_optional(element)
        if not was_optional and inner.kind != "dyn":
            self._mismatch(tree.at, types.optional_of(inner), inner)
        return inner

    def _map(self, tree: MapExpr) -> Type:
        key: Type | None = None
        value: Type | None = None
        for entry in tree.entries:
            key = self._join(key, self._check(entry.key))
            value = self._join(value, self._element(entry.value, entry.is_optional))
        return types.map_of(key or self._variable(), value or self._variable())

    def _struct(self, tree: Struct) -> Type:
        name = tree.name.removeprefix(".")
        constant = self._type_named(name)
        variable = self._lookup(name)
        if variable is not None:
            self._issue(tree.at, f"'{variable}' is not a type")
        elif constant is None:
            return self._undeclared(tree.at, tree.name)
        elif self._is_made(name):
            return self._made(tree, types.struct(name))
        else:
            self._issue(tree.at, f"'{name}' is not a message type")
        for entry in tree.entries:
            if constant is None:
                self._issue(entry.at, f"unexpected failed resolution of '{name}'")
            self._check(entry.value)
        return ERROR

    def _made(self, tree: Struct, made: Type) -> Type:
        fields = self._structs.get(made.name)
        for entry in tree.entries:
            assert isinstance(entry.key, Literal)
            given = self._element(entry.value, entry.is_optional)
            wanted = DYN if fields is None else fields.get(str(entry.key.value))
            if wanted is None or not self._assigns(given, wanted):
                shown = f"is '{wanted or ''}' but provided type is '{given}'"
                self._issue(entry.at, f"expected type of field '{entry.key.value}' {shown}")
        return made

    def _join(self, before: Type | None, other: Type) -> Type:
        if before is None:
            return other
        if self._assigns(before, other):
            return most_general(before, other)
        # Literals of several types are complained about when all else is right.
        return DYN

    # ---------------------------------------------------- comprehensions

    def _comprehension(self, tree: Comprehension) -> Type:
        self._check(tree.range)
        accumulated = self._check(tree.init)
        over = substituted(self._bound, tree.range.type)
        first, second = self._ranged(tree, over)
        self._scopes.append({tree.accumulator: accumulated})
        self._scopes.append({tree.variable: first, **({tree.second: second} if tree.second else {})})
        self._check(tree.condition)
        self._asserts(tree.condition, BOOL)
        self._check(tree.step)
        self._asserts(tree.step, accumulated)
        self._scopes.pop()
        self._check(tree.result)
        self._scopes.pop()
        return substituted(self._bound, tree.result.type)

    def _ranged(self, tree: Comprehension, over: Type) -> tuple[Type, Type]:
        if over.kind == "list":
            return (types.INT, over.params[0]) if tree.second else (over.params[0], ERROR)
        if over.kind == "map":
            return over.params[0], over.params[1]
        if over.kind in ("dyn", "error", "param"):
            self._assigns(DYN, over)
            return DYN, DYN
        message = f"expression of type '{over}' cannot be range of a comprehension (must be list, map, or dynamic)"
        self._issue(tree.range.at, message)
        return ERROR, ERROR

    # ------------------------------------------------------- assignments

    def _variable(self) -> Type:
        self._fresh += 1
        return types.param(f"_var{self._fresh - 1}")

    def _assigns(self, given: Type, wanted: Type) -> bool:
        bound = dict(self._bound)
        if not is_assignable(bound, given, wanted):
            return False
        self._bound = bound
        return True

    def _asserts(self, tree: Expr, wanted: Type) -> None:
        if not self._assigns(wanted, tree.type):
            self._mismatch(tree.at, wanted, tree.type)

    def _mismatch(self, at: int, expected: Type, actual: Type) -> None:
        self._issue(at, f"expected type '{expected}' but found '{actual}'")

    _RULES: Final[dict[type[Expr], Callable[["Checker", Any], Type]]] = {
        Literal: _literal,
        Ident: _ident,
        Select: _select,
        Call: _call,
        ListExpr: _list,
        MapExpr: _map,
        Struct: _struct,
        Comprehension: _comprehension,
    }
