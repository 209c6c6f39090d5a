"""Expressions that cel-go 0.29, of Kubernetes 1.37, compiles or evaluates differently from earlier ones."""

import pytest

from fakeapiserver.apimachinery.schema.structural import compile_structural
from fakeapiserver.languages.cel.checker import Declared
from fakeapiserver.languages.cel.errors import CelError, CompileError
from fakeapiserver.languages.cel.program import compile_expression
from fakeapiserver.languages.cel.types import INT


def evaluated(expression: str, version: str) -> str:
    """The value as text, or the first line of the error."""
    try:
        result = compile_expression(expression, Declared({"self": INT}, version=version)).evaluate({"self": 5})
    except (CompileError, CelError) as error:
        return str(error).splitlines()[0]
    return result.error or str(result.value)


@pytest.mark.parametrize(
    ("expression", "before", "now"),
    [
        (
            "duration(self)",
            "type conversion error from 'int' to 'google.protobuf.Duration'",
            "ERROR: <input>:1:9: found no matching overload for 'duration' applied to '(int)'",
        ),
        (
            "duration(dyn(7))",
            "type conversion error from 'int' to 'google.protobuf.Duration'",
            "no such overload: duration(int)",
        ),
        ("dyn(self).orValue(1)", "5", "no such overload"),
        ("dyn(self).or(optional.of(1))", "5", "no such overload"),
        ("dyn(optional.of(2)).orValue(1)", "2", "2"),
        ("{'a-b': 3}.`a-b`", "ERROR: <input>:1:12: unsupported syntax: '`'", "3"),
        ("has({'a-b': 3}.`a-b`)", "ERROR: <input>:1:16: unsupported syntax: '`'", "True"),
        ("{'a': 3}.?`b`.orValue(4)", "ERROR: <input>:1:11: unsupported syntax: '`'", "4"),
    ],
)
def test_what_a_version_makes_of_an_expression(expression: str, before: str, now: str) -> None:
    assert (evaluated(expression, "v1.36"), evaluated(expression, "v1.37")) == (before, now)


@pytest.mark.parametrize(
    ("factor", "value", "before", "now"),
    [
        (0.01, 4.35, False, True),
        (0.01, -4.35, False, True),
        (0.01, 4.36, True, True),
        (0.01, 4.355, False, False),
        (0.1, 1e-20, False, False),
    ],
)
def test_multiples_of_a_fraction(factor: float, value: float, before: bool, now: bool) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "number", "multipleOf": factor}}}
    fits = [not compile_structural(schema, version=version).validate({"a": value}) for version in ("v1.36", "v1.37")]
    assert fits == [before, now]
