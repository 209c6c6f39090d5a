"""Expressions, against what kube-apiserver 1.36.3's own library makes of them (recorded in expressions.json)."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from fakeapiserver.apimachinery.cel import schema as schemas
from fakeapiserver.apimachinery.cel.checker import Declared
from fakeapiserver.apimachinery.cel.errors import CelError, CompileError
from fakeapiserver.apimachinery.cel.program import Program, compile_expression
from fakeapiserver.apimachinery.cel.text import double_text
from fakeapiserver.apimachinery.cel.times import duration_text, timestamp_text
from fakeapiserver.apimachinery.cel.types import Type
from fakeapiserver.apimachinery.cel.values import Duration, Optional, Timestamp, UInt

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
