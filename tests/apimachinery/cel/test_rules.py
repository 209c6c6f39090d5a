"""Rules of schemas: the errors of rules that don't compile, and the values that rules reject."""

from typing import Any

import pytest

from fakeapiserver.apimachinery.cel.rules import RULES, compile_rules, declare_self
from fakeapiserver.apimachinery.cel.validator import Validator

INTEGER: dict[str, Any] = {"type": "integer"}


def schema_with(*rules: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": {"x": INTEGER, "s": {"type": "string"}}, RULES: list(rules)}


@pytest.mark.parametrize(
    ("rule", "error", "message_error"),
    [
        ({"rule": "self.x > 0"}, "", ""),
        ({"rule": "self.x"}, "cel expression must evaluate to a bool", ""),
        ({"rule": "int('a') > 0"}, "program instantiation failed: type conversion error from 'string' to 'int'", ""),
        ({"rule": "true", "messageExpression": "self.x"}, "", "messageExpression must evaluate to a string"),
        # The type is looked at before constants are evaluated.
        (
            {"rule": "true", "messageExpression": "size(self.s.find('['))"},
            "",
            "messageExpression must evaluate to a string",
        ),
        (
            {"rule": "true", "messageExpression": "self.s.find('[')"},
            "",
            "messageExpression instantiation failed: error parsing regexp: missing closing ]: `[`",
        ),
    ],
)
def test_what_does_not_compile(rule: dict[str, Any], error: str, message_error: str) -> None:
    schema = schema_with(rule)
    decl = declare_self(schema, is_resource=False)
    assert decl is not None
    (found,) = compile_rules(schema, decl)
    assert (found.error, found.message_error) == (error, message_error)


@pytest.mark.parametrize(
    ("rule", "new", "old", "errors", "warnings"),
    [
        ({"rule": "self.x > 0"}, {"x": 1}, None, [], []),
        ({"rule": "self.x > 0"}, {"x": 0}, None, ["<nil>: Invalid value: failed rule: self.x > 0"], []),
        # What was wrong before and did not change is only warned of.
        ({"rule": "self.x > 0"}, {"x": 0}, {"x": 0}, [], ["<nil>: Invalid value: failed rule: self.x > 0"]),
        # Rules about changes need something before, and are never let pass.
        ({"rule": "self.x == oldSelf.x"}, {"x": 0}, None, [], []),
        ({"rule": "self.x > oldSelf.x", "message": "grow"}, {"x": 0}, {"x": 0}, ["<nil>: Invalid value: grow"], []),
        ({"rule": "oldSelf.hasValue()", "optionalOldSelf": True, "message": "m"}, {}, None, ["<nil>: Invalid value: m"], []),
        (
            {"rule": "self.x > 0", "fieldPath": ".x", "reason": "FieldValueForbidden"},
            {"x": 0},
            None,
            ["x: Forbidden: failed rule: self.x > 0"],
            [],
        ),
        ({"rule": "self.x > 0"}, {}, None, ['<nil>: Invalid value: "object": no such key: x evaluating rule: self.x > 0'], []),
    ],
)  # fmt: skip
def test_what_rules_refuse(
    rule: dict[str, Any], new: dict[str, Any], old: dict[str, Any] | None, errors: list[str], warnings: list[str]
) -> None:
    found, told = Validator(schema_with(rule), is_resource=False).validate(new, old, is_update=old is not None)
    assert ([str(error) for error in found], told) == (errors, warnings)


@pytest.mark.parametrize(
    ("extra", "excused"),
    [
        ({}, True),
        ({"metadata": {"name": "a"}}, False),
        ({"kind": "Widget"}, False),
        ({"rows": [{"k": "a", "v": 1}]}, True),
        ({"rows": [{"v": 1}]}, False),
    ],
)
def test_what_a_schema_has_no_field_for_is_not_known_to_be_the_same(extra: dict[str, Any], excused: bool) -> None:
    """An unknown field prevents excusing the rules of a whole object for being unchanged."""
    schema = schema_with({"rule": "self.x > 0"})
    element = {"type": "object", "properties": {"k": {"type": "string"}, "v": {"type": "integer"}}}
    rows = {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": element}
    schema = {**schema, "properties": {**schema["properties"], "rows": rows}}
    value = {"x": 0, **extra}
    found, told = Validator(schema, is_resource=False).validate(value, value, is_update=True)
    assert (len(found), len(told)) == ((0, 1) if excused else (1, 0))
