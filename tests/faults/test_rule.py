"""Faults as callers describe them: what is read, and one sentence for everything that can't be."""

from typing import Any

import pytest

from fakeapiserver.faults.fields import Fields
from fakeapiserver.faults.matching import Matcher
from fakeapiserver.faults.readers import FIELDS, Cause
from fakeapiserver.faults.rule import Fault, fault
from fakeapiserver.faults.schedule import Schedule
from tests.faults.bad_rules import BAD_RULES


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"verb": "read", "status": 503}, {"verb": ("get", "list", "watch"), "status": 503}),
        ({"verb": "*", "status": 503}, {"verb": ()}),
        ({"verb": ["create", "update"], "hang": True}, {"verb": ("create", "update"), "hang": True}),
        ({"resource": "pods/status", "status": 409}, {"resource": ("pods/status",)}),
        ({"resource": "leases.coordination.k8s.io", "status": 409}, {"resource": ("leases.coordination.k8s.io",)}),
        ({"group": "", "status": 409}, {"group": ("",)}),
        ({"latency": "1m30s"}, {"latency": (90.0, 90.0)}),
        ({"latency": [0.1, "2s"]}, {"latency": (0.1, 2.0)}),
        ({"stale": True}, {"stale": 0}),
        ({"stale": 10, "verb": "get"}, {"stale": 10}),
        ({"stop_after": 0, "end": "cut"}, {"stop_after": 0, "end": "cut"}),
        ({"status": 409, "name": None}, {"name": ()}),
        ({"status": 422, "causes": [{"field": "spec.x", "message": "no"}]}, {"causes": (Cause("spec.x", "", "no"),)}),
        ({"status": 409, "times": 3, "after": "1s"}, {"schedule": Schedule(times=3, after=1.0)}),
    ],
)
def test_what_is_read(fields: dict[str, Any], expected: dict[str, Any]) -> None:
    read = fault(fields)
    assert {name: getattr(read, name) for name in expected} == expected


@pytest.mark.parametrize(("fields", "sentence"), BAD_RULES)
def test_what_can_not_be_read(fields: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=r"^[^\n]*$") as refused:
        fault(fields)
    assert str(refused.value).startswith(sentence)


def test_a_fault_that_is_no_object() -> None:
    with pytest.raises(
        ValueError, match="a fault is described by fields such as verb, resource and status, not by 'hang'"
    ):
        fault("hang")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("expression", "problem"),
    [("object.x >", "<input>:1:11: Syntax error"), ("size(1, 2)", "undeclared"), ("1", "must evaluate to bool")],
)
def test_an_expression_that_can_not_be_compiled(expression: str, problem: str) -> None:
    with pytest.raises(ValueError, match=r"^object is a CEL expression such as object.spec.replicas > 3, not [^\n]*$"):
        Matcher(Fault(object=expression, status=409))


def test_types_and_readers_know_the_same_fields() -> None:
    assert list(Fields.__annotations__) == list(FIELDS)
    assert set(FIELDS) == {*Fault.__struct_fields__, *Schedule.__struct_fields__} - {"schedule", "text"}
