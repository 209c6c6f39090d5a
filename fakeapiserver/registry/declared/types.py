"""Interprets rules that upstream declares in its types and compiles into Go: a table of fields, each with its rules, in upstream's order.

A value that an update leaves as it was isn't validated again. A rule in `stops` that reports an error ends the field: its `checks`, and
what is below it, aren't reached. Other kinds' rules are written by hand, and errors.py adapts their errors.

Upstream: k8s.io/apimachinery/pkg/api/validate; the compiled rules are in pkg/apis/<group>/<version>/zz_generated.validations.go.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from msgspec import Struct

from fakeapiserver.apimachinery import field
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apis.feature_gates import FeatureGates
from fakeapiserver.registry.declared.rules import ITEM_REMOVED, NOTHING, union_errors
from fakeapiserver.registry.generic.label_selector import IMMUTABLE

# An empty object is one: it is held by a pointer.
_ZEROES: Final[Sequence[object]] = (None, "", 0, [])


class Value(NamedTuple):
    """A field's value, and the one that it had. None is an absent one, and for fields that aren't pointers an empty one."""

    new: Any
    old: Any
    is_update: bool
    features: FeatureGates


Rule = Callable[[Value, Path], ErrorList]


class Field(Struct, kw_only=True, frozen=True):
    """A field of a type. `is_pointer`: zero and an empty text are values. `is_always_there`: an absent object is validated as an empty one.

    `fields` are those of an object, or of each item of a list of objects, whose key is `name`; `item_checks` are of each item, too."""

    stops: Sequence[Rule] = ()
    checks: Sequence[Rule] = ()
    item_checks: Sequence[Rule] = ()
    fields: Mapping[str, "Field"] = {}
    is_pointer: bool = False
    is_always_there: bool = False
    is_list: bool = False


Fields = Mapping[str, Field]


def declared_errors(fields: Fields, obj: Object, old: Object | None, features: FeatureGates, path: Path) -> ErrorList:
    """The errors in the fields of an object at `path`. `old` is the one that an update replaces; None for a new object."""
    return _errors_below(fields, Value(obj, old, old is not None, features), path)


def _errors_below(fields: Fields, parent: Value, path: Path) -> ErrorList:
    errors: ErrorList = []
    for name, rules in fields.items():
        new, old = (_held(holder, name, rules) for holder in (parent.new, parent.old))
        if parent.is_update and parent.old is not None and new == old:
            continue
        errors += _errors_in(rules, parent._replace(new=new, old=old), path.child(name))
    return errors


def _held(holder: Object | None, name: str, rules: Field) -> Any:
    value = None if holder is None else holder.get(name)
    if value is None and rules.is_always_there and holder is not None:
        return {}
    return None if value in _ZEROES and not rules.is_pointer else value


def _errors_in(rules: Field, value: Value, path: Path) -> ErrorList:
    errors = [error for rule in rules.stops for error in rule(value, path)]
    if errors or value.new is None:
        return errors
    errors = [error for rule in rules.checks for error in rule(value, path)]
    if not rules.is_list:
        return errors + _errors_below(rules.fields, value, path)
    known: dict[str, Object] = {}
    for item in value.old or ():
        known.setdefault(item.get("name", ""), item)
    for i, item in enumerate(value.new):
        before = known.get(item.get("name", ""))
        if value.is_update and item == before:
            continue
        item_value, at = value._replace(new=item, old=before), path.index(i)
        errors += [error for rule in rules.item_checks for error in rule(item_value, at)]
        errors += _errors_below(rules.fields, item_value, at)
    return errors


def required(value: Value, path: Path) -> ErrorList:
    return [field.required(path)] if value.new is None else []


def immutable(value: Value, path: Path) -> ErrorList:
    return [field.invalid(path, NOTHING, IMMUTABLE)] if value.is_update else []


def needs_gate(gate: str) -> Rule:
    """The field must be absent while the gate is off."""

    def rule(value: Value, path: Path) -> ErrorList:
        is_refused = value.new is not None and not value.features.enabled(gate)
        return [field.forbidden(path, "")] if is_refused else []

    return rule


def never(*changes: str) -> Rule:
    """The field can't be `set` later, `cleared` or `modified`."""
    when: Mapping[str, tuple[bool, bool, str]] = {
        "set": (False, True, "once created"),
        "cleared": (True, False, "once set"),
        "modified": (True, True, "once set"),
    }

    def rule(value: Value, path: Path) -> ErrorList:
        change = (value.old is not None, value.new is not None)
        refused = (name for name in changes if value.is_update and change == when[name][:2])
        return [field.invalid(path, NOTHING, f"field cannot be {name} {when[name][2]}") for name in refused]

    return rule


def same_items(value: Value, path: Path) -> ErrorList:
    """No item may be added or removed. Items are identified by their names."""
    if not value.is_update:
        return []
    new, old = ([item.get("name", "") for item in items or ()] for items in (value.new, value.old))
    added = [field.forbidden(path.index(i), "item may not be added") for i, name in enumerate(new) if name not in old]
    return added + [field.forbidden(path, ITEM_REMOVED) for name in old if name not in new]


def most_items(most: int) -> Rule:
    def rule(value: Value, path: Path) -> ErrorList:
        count = len(value.new or ())
        return [field.too_many(path, count, most)] if count > most else []

    return rule


def unique_names(fields: Fields) -> Rule:
    """No two items of a list have the same name. An error shows an item's fields in upstream's order, which is that of `fields`."""

    def rule(value: Value, path: Path) -> ErrorList:
        twice = sorted(field.repetitions([item.get("name", "") for item in value.new]))
        return [field.duplicate(path.index(i), _in_order(value.new[i], fields)) for i in twice]

    return rule


def _in_order(value: Any, fields: Fields) -> Any:
    if isinstance(value, list):
        return [_in_order(item, fields) for item in value]
    if not isinstance(value, dict):
        return value
    given = [name for name in value if value[name] != []]
    names = (*(name for name in fields if name in given), *(name for name in given if name not in fields))
    return {name: _in_order(value[name], fields[name].fields if name in fields else {}) for name in names}


def text(check: Callable[[str], list[str]]) -> Rule:
    """The field is a text without the problems that `check` returns."""
    return lambda value, path: [field.invalid(path, value.new, problem) for problem in check(value.new)]


def between(least: int | None, most: int | None) -> Rule:
    def rule(value: Value, path: Path) -> ErrorList:
        if most is not None and value.new > most:
            return [field.invalid(path, value.new, f"must be less than or equal to {most}")]
        if least is not None and value.new < least:
            return [field.invalid(path, value.new, f"must be greater than or equal to {least}")]
        return []

    return rule


def never_less(value: Value, path: Path) -> ErrorList:
    is_less = value.is_update and value.old is not None and value.new < value.old
    return [field.invalid(path, value.new, f"may not be decreased from {value.old}")] if is_less else []


def most_characters(most: int) -> Rule:
    def rule(value: Value, path: Path) -> ErrorList:
        detail = f"may not be more than {most} characters"
        return [field.Error("FieldValueTooLong", path.text, detail=detail)] if len(value.new) > most else []

    return rule


def one_of(*choices: str) -> Rule:
    return lambda value, path: [] if value.new in choices else [field.not_supported(path, value.new, choices)]


def union(*members: str) -> Rule:
    """Exactly one of the fields is set. An update that leaves the same ones set isn't looked at."""

    def rule(value: Value, path: Path) -> ErrorList:
        new, old = ([name for name in members if (holder or {}).get(name) not in (None, [])] for holder in value[:2])
        if value.is_update and value.old is not None and new == old:
            return []
        return union_errors(dict.fromkeys(new, True), members, path)

    return rule
