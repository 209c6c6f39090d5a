"""Custom resources against the rules of their schemas.

Upstream: k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/validation.go, k8s.io/apiserver/pkg/cel/common/equality.go
"""

from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from typing import Any, Final

from msgspec import Struct, field

from fakeapiserver.apimachinery.cel.rules import RULES, Rule, compile_rules, declare_self
from fakeapiserver.apimachinery.cel.schema import converter, declare, with_type_and_meta
from fakeapiserver.apimachinery.field import OMIT, Error, ErrorList, Path, duplicate, forbidden, invalid, required
from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.apimachinery.schema.list_type import MISSING, items_by_key
from fakeapiserver.apimachinery.schema.resolve import Schema, has_rules
from fakeapiserver.languages.cel.escaping import escape
from fakeapiserver.languages.cel.program import LIMIT_MESSAGE, PER_CALL_LIMIT
from fakeapiserver.languages.cel.values import NONE, Optional
from fakeapiserver.languages.cel.versions import NEWEST

BUDGET: Final = 10_000_000
_MAX_MESSAGE: Final = 5 * 1024
_NO_BUDGET: Final = "validation failed due to running out of cost budget, no further validation rules will be run"


class _OutOfBudget(Exception):
    """No rule is run any more."""


class Run(Struct):
    """A validation's results and its remaining budget."""

    budget: int = BUDGET
    errors: ErrorList = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def spend(self, cost: int) -> bool:
        if cost > self.budget:
            return False
        self.budget -= cost
        return True


class _Old(Struct, frozen=True):
    """The old state of a value.

    `value` is MISSING if it can't be matched; `parent` has the nearest enclosing value that can, with its
    schema, and its old state.
    """

    value: Any = MISSING
    parent: tuple[Schema, Any, Any] | None = None

    def is_same(self, schema: Schema, value: Any) -> bool:
        """Reports whether nothing changed here, so that what is wrong may stay."""
        if self.value is not MISSING:
            return _is_same(schema, value, self.value)
        return self.parent is not None and _is_same(*self.parent)

    def below(self, schema: Schema, value: Any, old: Any) -> "_Old":
        """Returns the old state of a part of `value`, which has this schema."""
        return self if self.value is MISSING else _Old(old, (schema, value, self.value))


UNCORRELATED: Final = _Old()


def _is_same(schema: Schema, value: Any, old: Any) -> bool:
    """Reports whether a value is the old one, as far as the two can be correlated: what the schema has no field for can't, such as the
    metadata of a whole object, nor can an element without its keys (upstream: k8s.io/apiserver/pkg/cel/common/equality.go).
    """
    if isinstance(value, dict) and isinstance(old, dict):
        return len(value) == len(old) and all(
            key in old and (part := _part(schema, key)) is not None and _is_same(part, item, old[key])
            for key, item in value.items()
        )
    if isinstance(value, list) and isinstance(old, list) and schema.get("x-kubernetes-list-type") == "map":
        items, old_item = schema.get("items") or {}, items_by_key(old, schema)
        return len(value) == len(old) and all(
            (then := old_item(item)) is not MISSING and _is_same(items, item, then) for item in value
        )
    return _deep_equal(value, old)


def _part(schema: Schema, name: str) -> Schema | None:
    property_schema = (schema.get("properties") or {}).get(name)
    others = schema.get("additionalProperties")
    return property_schema if property_schema is not None else others if isinstance(others, dict) else None


def _deep_equal(one: Any, other: Any) -> bool:
    """Compares decoded JSON as Go's reflect.DeepEqual does."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_deep_equal(value, other[key]) for key, value in one.items())
    if isinstance(one, list):
        return len(one) == len(other) and all(map(_deep_equal, one, other))
    return bool(one == other)


class Validator:
    """The rules of a schema and of those inside it, in the CEL of a Kubernetes version; compiled when the first value is validated."""

    def __init__(self, schema: Schema, version: str = NEWEST, *, is_resource: bool) -> None:
        self._version = version
        self._schema = schema
        self._is_resource = is_resource

    def validate(self, value: Any, old: Any = None, *, is_update: bool = False) -> tuple[ErrorList, list[str]]:
        """Errors, and warnings for what was wrong before already. `old` is the stored value."""
        run = Run()
        with suppress(_OutOfBudget):
            self._check(value, old, Path(), _Old(old) if is_update else UNCORRELATED, run)
        return run.errors, run.warnings

    def run(self, value: Any, old: Any, path: Path, budget: int) -> Run:
        """Runs the rules at a place of its own, without regard to the old value's errors."""
        run = Run(budget)
        with suppress(_OutOfBudget):
            self._check(value, old, path, UNCORRELATED, run)
        return run

    # ------------------------------------------------------------ the tree

    @cached_property
    def _items(self) -> "Validator | None":
        return _below(self._schema.get("items"), self._version)

    @cached_property
    def _others(self) -> "Validator | None":
        return _below(self._schema.get("additionalProperties"), self._version)

    @cached_property
    def _properties(self) -> "dict[str, Validator]":
        validators = {}
        for name, schema in (self._schema.get("properties") or {}).items():
            child = _below(schema, self._version)
            # Fields of unknown type are left out, except those that only lack a name in expressions.
            if child is not None and (escape(name) is None or declare(schema, is_resource=False) is not None):
                validators[name] = child
        return validators

    @cached_property
    def _rules(self) -> list[Rule]:
        if not self._schema.get(RULES):
            return []
        decl = declare_self(self._schema, is_resource=self._is_resource)
        return [] if decl is None else compile_rules(self._schema, decl, self._version)

    @cached_property
    def _convert(self) -> Callable[[Any], Any]:
        schema = with_type_and_meta(self._schema) if self._is_resource else self._schema
        return converter(schema) or (lambda value: value)

    # ---------------------------------------------------------- validation

    def _check(self, value: Any, old: Any, path: Path, before: _Old, run: Run) -> None:
        if value is None:
            return
        if self._rules:
            self._check_rules(value, old, path, before, run)
        if isinstance(value, list):
            if self._items is not None:
                self._check_items(self._items, value, old if isinstance(old, list) else [], (path, before), run)
        elif isinstance(value, dict):
            self._check_fields(value, old if isinstance(old, dict) else {}, path, before, run)

    def _check_items(
        self, items: "Validator", value: list[Any], old: list[Any], place: tuple[Path, _Old], run: Run
    ) -> None:
        path, before = place
        is_map = self._schema.get("x-kubernetes-list-type") == "map"
        old_item = items_by_key(old if is_map else [], self._schema)
        for i, item in enumerate(value):
            then = old_item(item)
            items._check(
                item, None if then is MISSING else then, path.index(i), before.below(self._schema, value, then), run
            )

    def _check_fields(self, value: dict[str, Any], old: dict[str, Any], path: Path, before: _Old, run: Run) -> None:
        for key, item in value.items():
            child, at = self._others, path.key(key)
            if (own := self._properties.get(key)) is not None:
                child, at = own, path.child(key)
            if child is None:
                continue
            if before.parent is None and key in ("apiVersion", "kind") and before.value is not MISSING:
                below = UNCORRELATED
            else:
                below = before.below(self._schema, value, old.get(key, MISSING))
            child._check(item, old.get(key), at, below, run)

    def _check_rules(self, value: Any, old: Any, path: Path, before: _Old, run: Run) -> None:
        if run.budget <= 0:
            run.errors.append(invalid(path, self._type, _NO_BUDGET))
            raise _OutOfBudget
        current = self._convert(value)
        previous = self._convert(old) if old is not None and any(rule.uses_old_self for rule in self._rules) else None
        for rule in self._rules:
            self._check_rule(rule, (value, current, previous), path, before, run)

    @property
    def _type(self) -> str:
        return str(self._schema.get("type", ""))

    def _check_rule(self, rule: Rule, values: tuple[Any, Any, Any], path: Path, before: _Old, run: Run) -> None:
        value, current, previous = values
        if rule.error:
            run.errors.append(invalid(path, self._type, f"rule compile error: {rule.error}"))
            return
        if rule.program is None or (rule.uses_old_self and previous is None and not rule.optional_old_self):
            return
        variables = {"self": current, "oldSelf": previous}
        if rule.optional_old_self:
            variables["oldSelf"] = NONE if previous is None else Optional(True, previous)
        result = rule.program.evaluate(variables, PER_CALL_LIMIT)
        if not run.spend(result.cost):
            run.errors.append(invalid(path, self._type, _NO_BUDGET))
            raise _OutOfBudget
        if result.error:
            self._add_failure(rule, result.error, path, run)
        elif result.value is not True:
            self._add_error(rule, variables, value, path, before, run)

    def _add_failure(self, rule: Rule, error: str, path: Path, run: Run) -> None:
        """A rule that could not be evaluated."""
        if error.startswith("no such overload"):
            why = f"'{error}': call arguments did not match a supported operator, function or macro signature for rule"
            detail = f"{why}: {rule.shown}"
        elif error == LIMIT_MESSAGE:
            why = f"'{error}': no further validation rules will be run due to call cost exceeds limit for rule"
            run.errors.append(invalid(path, self._type, f"{why}: {rule.shown}"))
            raise _OutOfBudget
        else:
            detail = f"{error} evaluating rule: {rule.shown}"
        run.errors.append(invalid(path, self._type, detail))

    def _add_error(self, rule: Rule, variables: dict[str, Any], value: Any, path: Path, before: _Old, run: Run) -> None:
        at = path.child(rule.field_path) if rule.field_path else path
        detail, failure = _message(rule, variables, run)

        def add(error: Error) -> None:
            if not rule.uses_old_self and before.is_same(self._schema, value):
                run.warnings.append(str(error))
            else:
                run.errors.append(error)

        if failure:
            add(invalid(at, self._type, failure))
            raise _OutOfBudget
        if not detail:
            detail = str(rule.source.get("message") or "").strip() or f"failed rule: {rule.shown}"
        shown = OMIT if self._type in ("object", "array") else value
        add(_error(rule.source.get("reason"), at, shown, detail))


def _below(schema: Any, version: str) -> Validator | None:
    if not has_rules(schema):
        return None
    return Validator(schema, version, is_resource=bool(schema.get("x-kubernetes-embedded-resource")))


def _error(reason: str | None, path: Path, value: Any, detail: str) -> Error:
    match reason:
        case "FieldValueForbidden":
            return forbidden(path, detail)
        case "FieldValueRequired":
            return required(path, detail)
        case "FieldValueDuplicate":
            return duplicate(path, value)
    return invalid(path, value, detail)


def _message(rule: Rule, variables: dict[str, Any], run: Run) -> tuple[str, str]:
    """Returns the text of messageExpression, empty if it is unsuitable; and the reason if the budget is exhausted."""
    if rule.message is None:
        return "", ""
    source = go_quote(str(rule.source["messageExpression"]))
    result = rule.message.evaluate(variables, PER_CALL_LIMIT)
    if result.cost > run.budget:
        return (
            "",
            "messageExpression evaluation failed due to running out of cost budget, no further validation rules will be run",
        )
    if result.error == LIMIT_MESSAGE:
        return (
            "",
            f"no further validation rules will be run due to call cost exceeds limit for messageExpression: {source}",
        )
    run.spend(result.cost)
    if result.error or not isinstance(result.value, str):
        return "", ""
    text = result.value.strip()
    fits = len(text.encode()) <= _MAX_MESSAGE and "\n" not in text
    return (text if fits else ""), ""


def blocking(errors: ErrorList) -> bool:
    """Reports whether an object is too wrong for rules to be run on it."""
    reasons = (
        "FieldValueNotSupported",
        "FieldValueRequired",
        "FieldValueTooLong",
        "FieldValueTooMany",
        "FieldValueTypeInvalid",
    )
    return any(error.reason in reasons for error in errors)


def blocked() -> Error:
    detail = "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation"
    return invalid(Path(), None, detail)
