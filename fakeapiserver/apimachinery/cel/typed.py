"""Expressions that must have a certain type, and the errors for other types.

Upstream: k8s.io/apiserver/pkg/admission/plugin/cel/compile.go, k8s.io/apiserver/pkg/authorization/cel/compile.go
"""

from fakeapiserver.languages.cel.checker import Declared
from fakeapiserver.languages.cel.errors import CelError, CompileError
from fakeapiserver.languages.cel.program import Program, check
from fakeapiserver.languages.cel.types import Type


class InstantiationError(ValueError):
    """An expression has the right types, but a part that is always the same fails."""


def compile_typed(expression: str, declared: Declared, *wanted: Type) -> Program:
    """An expression of one of these types, or of any if none is given. ValueError with upstream's text."""
    try:
        tree, checker = check(expression, declared)
    except CompileError as error:
        raise ValueError(f"compilation failed: {error}") from None
    if wanted and tree.type not in wanted and not checker.undefined:
        shown = wanted[0].declared_name if len(wanted) == 1 else f"one of [{' '.join(t.full_name for t in wanted)}]"
        raise ValueError(f"must evaluate to {shown} but got {tree.type.declared_name}")
    try:
        return Program(tree, checker, declared)
    except CelError as error:
        raise InstantiationError(f"program instantiation failed: {error}") from None
