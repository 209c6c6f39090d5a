"""Expressions, against what kube-apiserver 1.36.3's own library makes of them (recorded in expressions.json)."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from fakeapiserver.apimachinery.cel import schema as schemas
from fakeapiserver.languages.cel.checker import Declared
from fakeapiserver.languages.cel.errors import CelError, CompileError
from fakeapiserver.languages.cel.program import Program, compile_expression
from fakeapiserver.languages.cel.text import double_text
from fakeapiserver.languages.cel.times import duration_text, timestamp_text
from fakeapiserver.languages.cel.types import Type
from fakeapiserver.languages.cel.values import Duration, Optional, Timestamp, UInt

RECORDED = json.loads(Path(__file__).with_name("expressions.json").read_text())
DECL = schemas.declare(RECORDED["schema"], is_resource=False, name="selfType")
assert DECL is not None
CONVERT = schemas.converter(RECORDED["schema"])
assert CONVERT is not None
SELF = CONVERT(RECORDED["self"])


def compiled(rule: str) -> Program:
    assert DECL is not None
    return compile_expression(rule, Declared({"self": DECL.type, "oldSelf": DECL.type}, schemas.structs_of(DECL)))


def shown(value: Any) -> str:
    """A value as the recording has it."""
    match value:
        case Optional():
            return f"optional({shown(value.value)})" if value.has_value else "optional.none"
        case bool() | None | str():
            text = json.dumps(value, ensure_ascii=False)
            return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
        case UInt():
            return f"{int(value)}u"
        case int():
            return str(value)
        case float():
            return f"double({double_text(value)})"
        case bytes():
            return f"bytes({value.hex()})"
        case list():
            return f"[{', '.join(map(shown, value))}]"
        case dict():
            return "{" + ", ".join(sorted(f"{shown(key)}: {shown(item)}" for key, item in value.items())) + "}"
        case Duration():
            return f"google.protobuf.Duration({duration_text(value)})"
        case Timestamp():
            return f"google.protobuf.Timestamp({timestamp_text(value)})"
        case Type():
            return f"type({value.full_name})"
    name: str = value.cel_type.name
    return name


@pytest.mark.parametrize(("rule", "value", "cost"), RECORDED["values"])
def test_values_and_costs(rule: str, value: str, cost: int) -> None:
    result = compiled(rule).evaluate({"self": SELF, "oldSelf": SELF})
    assert (shown(result.value), result.error) == (value, "")
    assert result.cost == cost


@pytest.mark.parametrize(("rule", "error"), RECORDED["errors"])
def test_evaluation_errors(rule: str, error: str) -> None:
    assert compiled(rule).evaluate({"self": SELF, "oldSelf": SELF}).error == error


@pytest.mark.parametrize(("rule", "error"), RECORDED["refused"])
def test_compile_errors(rule: str, error: str) -> None:
    with pytest.raises((CompileError, CelError)) as caught:
        compiled(rule)
    kind = "compilation" if caught.type is CompileError else "program instantiation"
    assert re.sub(r"selfType\d+", "selfType", f"{kind} failed: {caught.value}") == error


# Arguments whose types are unknown until evaluation: recorded in whole in conformance/exchanges/customresources/expressions-*.json.
@pytest.mark.parametrize(
    ("rule", "error"),
    [
        ("dyn(self.a)[0]", "no such key: 0"),
        ("dyn(self.l)['a']", "unsupported index type 'string' in list"),
        ("has(dyn(self.l).a)", "unsupported index type 'string' in list"),
        ("dyn(self.l)[1.5]", "unsupported index value 1.5 in list"),
        ("string(dyn(self.l))", "no such overload: string(list)"),
        ("dyn(self.a).size()", "no such overload: size"),
        ("dyn(self.a).contains('a')", "no such overload"),
        ("dyn(self.a).flatten()", "no such overload: int.flatten()"),
        ("dyn(self.l).join(',')", "no such overload: join(list, string)"),
        ("dyn(self.a).sort()", "no such overload: sort"),
        ("dyn(self.a).map(x, x)", "got 'types.Int', expected iterable type"),
        ("dyn(self.a).transformList(x, y, x)", "unsupported comprehension range type: types.Int"),
        ("self.m == dyn(1)", "no such overload"),
        (
            "'%s'.format([[b'\\xff']])",
            'error during formatting: could not convert argument "invalid UTF-8 in bytes, cannot convert to string" to string',
        ),
        (
            "'%b'.format([dyn(1.0)])",
            "error during formatting: only integers and bools can be formatted as binary, was given double",
        ),
        ("timestamp(0).getHours('1_0:00')", 'strconv.Atoi: parsing "1_0": invalid syntax'),
        ("timestamp(0).getHours('/etc/passwd')", "time: invalid location name"),
        ("timestamp('9999-12-31T23:59:59Z') - timestamp('0001-01-01T00:00:00Z')", "integer overflow"),
        ("quantity('1.5Mi').asInteger()", "cannot convert value to integer"),
    ],
)
def test_errors_of_values_that_do_not_fit(rule: str, error: str) -> None:
    assert compiled(rule).evaluate({"self": SELF, "oldSelf": SELF}).error == error


@pytest.mark.parametrize(
    ("rule", "value"),
    [
        ("{1: 'a', 2: 'b', 1: 'c'}[1]", '"c"'),
        ("{dyn(1): 'a', dyn(false): 'c'}[1]", '"a"'),
        ("has(dyn(self.a).b)", "false"),
        ("self.o == dyn(null)", "false"),
        ("dyn([dyn(1), dyn('a')]).max()", "1"),
        ("[1.0, double('NaN')].isSorted()", "true"),
        ("string(duration('3600s') + duration('1ns'))", '"3600.000000001s"'),
        ("string(duration('1704067200.999999999s'))", '"1704067201s"'),
        ("timestamp('0001-01-01T00:00:00Z').getFullYear('-08:00')", "0"),
        ("timestamp('9999-12-31T23:59:59Z').getFullYear('+05:30')", "10000"),
        ("timestamp(0).getHours('+25:00')", "1"),
        ("timestamp(0).getHours('Local')", "0"),
        ("[quantity('1Gi'), quantity('1.5k'), quantity('7E')].all(q, q.isInteger())", "true"),
        ("[quantity('1.0'), quantity('2000m'), quantity('1.0Mi'), quantity('1Ei')].exists(q, q.isInteger())", "false"),
        ("quantity('100Ei').asApproximateFloat() == 9223372036854775807.0", "true"),
    ],
)
def test_odd_values(rule: str, value: str) -> None:
    result = compiled(rule).evaluate({"self": SELF, "oldSelf": SELF})
    assert (shown(result.value), result.error) == (value, "")


@pytest.mark.parametrize(
    "rule",
    [
        "(" * 2000 + "1" + ")" * 2000,
        "1" + " + 1" * 20000,
        "!" * 5000 + "true",
        "[" * 3000,
        "a" + ".a" * 5000,
        "'" + "\\" * 999,
    ],
)
def test_what_nests_too_deeply_is_refused(rule: str) -> None:
    with pytest.raises(CompileError):
        compiled(f"{rule} == self")


def test_an_evaluation_ends_when_it_costs_too_much() -> None:
    many = {"l": list(range(1000))}
    result = compiled("self.l.all(x, self.l.all(y, self.l.all(z, x + y + z >= 0)))").evaluate({"self": many})
    assert result.error == "operation cancelled: actual cost limit exceeded"
