"""x-kubernetes-validations: the rules of one schema, compiled.

Upstream: k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/compilation.go
"""

import zlib
from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from fakeapiserver.apimachinery.cel import schema as schemas
from fakeapiserver.apimachinery.cel import static_cost
from fakeapiserver.apimachinery.cel.field_path import normalized
from fakeapiserver.apimachinery.cel.schema import Decl
from fakeapiserver.apimachinery.schema.resolve import Schema
from fakeapiserver.languages.cel.checker import Declared
from fakeapiserver.languages.cel.errors import CelError, CompileError
from fakeapiserver.languages.cel.program import Program, check
from fakeapiserver.languages.cel.types import optional_of
from fakeapiserver.languages.cel.versions import NEWEST

RULES: Final = "x-kubernetes-validations"


class Rule(Struct):
    """A rule as written, and compiled as far as that went; `error` and `message_error` say what is wrong."""

    source: Mapping[str, Any]
    program: Program | None = None
    error: str = ""
    message: Program | None = None
    message_error: str = ""
    field_path: str = ""
    uses_old_self: bool = False
    max_cost: int = 0
    message_max_cost: int = 0

    @property
    def optional_old_self(self) -> bool:
        return bool(self.source.get("optionalOldSelf"))

    @property
    def shown(self) -> str:
        """The rule's text in errors."""
        return str(self.source.get("message") or self.source.get("rule", "")).strip()


def declare_self(schema: Schema, *, is_resource: bool) -> Decl | None:
    """Returns the declaration of `self`.

    Upstream gives its type another name each time, so that rules can't depend on it.
    """
    texts = "".join(str(rule.get("rule", "")) for rule in schema.get(RULES) or ())
    return schemas.declare(schema, is_resource=is_resource, name=f"selfType{zlib.crc32(texts.encode())}")


def compile_rules(schema: Schema, decl: Decl, version: str = NEWEST, *, with_costs: bool = False) -> list[Rule]:
    """The rules of a schema itself, in order, as the Kubernetes version compiles them. Costs are estimated only if asked for."""
    structs = schemas.structs_of(decl)
    plain = Declared({"self": decl.type, "oldSelf": decl.type}, structs, version=version)
    optional = Declared({"self": decl.type, "oldSelf": optional_of(decl.type)}, structs, version=version)
    return [
        _compiled(source, optional if source.get("optionalOldSelf") else plain, schema, decl if with_costs else None)
        for source in schema.get(RULES) or ()
    ]


def _compiled(source: Mapping[str, Any], declared: Declared, schema: Schema, costs: Decl | None) -> Rule:
    rule = Rule(source)
    text = source.get("rule", "")
    if not text.strip():
        return rule
    rule.program, rule.error = _program(text, declared, "bool")
    if rule.program is None:
        return rule
    rule.uses_old_self = "oldSelf" in rule.program.names
    rule.max_cost = _cost(rule.program, costs)
    if expression := source.get("messageExpression"):
        rule.message, error = _program(expression, declared, "string")
        rule.message_error = f"messageExpression {error}" if error else ""
        if rule.message is None:
            return rule
        rule.message_max_cost = _cost(rule.message, costs)
    if path := source.get("fieldPath"):
        rule.field_path = normalized(path, schema) or ""
    return rule


def _program(text: str, declared: Declared, wanted: str) -> tuple[Program | None, str]:
    try:
        tree, checker = check(text, declared)
    except CompileError as error:
        return None, f"compilation failed: {error}"
    if tree.type.kind != wanted:
        return None, "cel expression must evaluate to a bool" if wanted == "bool" else "must evaluate to a string"
    try:
        return Program(tree, checker, declared), ""
    except CelError as error:
        return None, f"{'program instantiation' if wanted == 'bool' else 'instantiation'} failed: {error}"


def _cost(program: Program, costs: Decl | None) -> int:
    if costs is None:
        return 0

    return static_cost.estimate(program.tree, costs)
