"""Errors of rules that a version declares in its types, which kinds before 1.37 check by hand.

Upstream runs the declared rules after the handwritten ones, and drops handwritten errors that a declared rule reports as well.
Declared errors say less: a missing or forbidden field has no explanation, a changed one no value. Those that remain are reported once.

Upstream: k8s.io/apiserver/pkg/registry/rest/validate.go, k8s.io/apimachinery/pkg/api/validate; which rules are declared is recorded
(apis/versions/<version>/declared_rules.json).
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache, cmp_to_key
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from fakeapiserver.apimachinery.field import Error, ErrorList, Path, Reason
from fakeapiserver.apimachinery.gvk import GroupVersion
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apis.conversion_resource import OLDER_VERSIONS, path_in_v1beta1
from fakeapiserver.apis.feature_gates import FeatureGates
from fakeapiserver.apis.recorded import VERSIONS, read_table
from fakeapiserver.registry.declared.rules import (
    ITEM_REMOVED,
    NOTHING,
    Check,
    extended_resource_name,
    long_name,
    long_name_caseless,
    pool_name_errors,
    qualified_name_errors,
    short_name,
    union_errors,
)
from fakeapiserver.registry.generic.label_selector import IMMUTABLE

_FILE: Final = "declared_rules.json"
_REASONS: Final[Mapping[str, Reason]] = {
    "Enum": "FieldValueNotSupported",
    "ForbiddenPointer": "FieldValueForbidden",
    "MaxBytes": "FieldValueTooLong",
    "MaxItems": "FieldValueTooMany",
    "MaxLength": "FieldValueTooLong",
    "RequiredMap": "FieldValueRequired",
    "RequiredPointer": "FieldValueRequired",
    "RequiredSlice": "FieldValueRequired",
    "RequiredValue": "FieldValueRequired",
    "ValSliceUnique": "FieldValueDuplicate",
}
# What an invalid value's message begins with if it is of this rule; other rules have other messages than these.
_MESSAGES: Final = {
    "Immutable": re.compile("field is immutable"),
    "Maximum": re.compile(r"must be less than or equal to -?\d"),
    "Minimum": re.compile(r"must be greater than or equal to -?\d|priorities 0-999 are reserved"),
    "UpdatePointer": re.compile("field is immutable"),
}
_OF_OTHERS: Final = re.compile("|".join(pattern.pattern for pattern in _MESSAGES.values()) + "|.*`")
# What rules say of a text, where the handwritten ones say something else.
_CHECKS: Final[Mapping[str, Check]] = {
    "ExtendedResourceName": extended_resource_name,
    "LongName": long_name,
    "LongNameCaseless": long_name_caseless,
    "ShortName": short_name,
}
# The errors that rules report of a text, whatever the handwritten ones are.
_TEXTS: Final[Mapping[str, Callable[[str, Path], ErrorList]]] = {
    "ResourceFullyQualifiedName": qualified_name_errors,
    "ResourcePoolName": pool_name_errors,
}
# What only handwritten rules say of these texts.
_BY_HAND: Final = re.compile("may only be set on a slice|must be referenced by at least one")
# What rules say in place of a handwritten text.
_WORDED: Final[Mapping[str, Callable[[str], str]]] = {
    "MaxLength": lambda detail: detail.replace("bytes", "characters"),
    "UUID": lambda detail: "must be a lowercase UUID in 8-4-4-4-12 format",
}
# The handwritten message for a union -> its members.
_UNIONS: Final = {
    "exactly one value must be specified": (
        *("int", "bool", "string", "version"),
        *("ints", "bools", "strings", "versions"),
    ),
}
# The handwritten error of a device request with two members of a union.
BOTH_REQUESTS: Final = "exactly one of `exactly` or `firstAvailable` is required, but multiple fields are set"
_STEPS: Final = re.compile(r"[^.\[\]]+")
_PARTS: Final = re.compile(r"([^.\[\]]+)|\[([^\]]*)\]")
# Rules that are checked together with changes; other rules of a field come later.
_BEFORE_CHANGES: Final = ("Immutable", "UpdatePointer", "MaxItems")
# Kinds whose changes are refused by handwritten rules only.
_CHANGED_BY_HAND: Final = ("ResourceClaimTemplate",)
_WITHOUT_DETAIL: Final = ("FieldValueForbidden", "FieldValueRequired")


class _Placed(NamedTuple):
    """An error of a declared rule. `place`: of the rule in its kind; `is_of_list`: a list's rule, which comes before those of items."""

    place: int
    is_of_list: bool
    error: Error


class _Rule(NamedTuple):
    """A declared rule. Those that are beta are declared only with the gate DeclarativeValidationBeta."""

    path: re.Pattern[str]
    name: str
    is_beta: bool

    def reports(self, error: Error, path: str) -> bool:
        """Reports whether the rule finds the error, in the field with this path."""
        if not self.path.fullmatch(path):
            return False
        if self.name in _TEXTS:
            return error.reason in ("FieldValueInvalid", "FieldValueTooLong") and not _BY_HAND.match(error.detail)
        if error.reason != _REASONS.get(self.name, "FieldValueInvalid"):
            return False
        if error.reason != "FieldValueInvalid":
            return True
        message = _MESSAGES.get(self.name)
        return bool(message.match(error.detail) if message else not _OF_OTHERS.match(error.detail))


def with_declared(errors: ErrorList, obj: Object, group_version: GroupVersion, features: FeatureGates) -> ErrorList:
    """The errors in an object as a Kubernetes version reports them that declares rules; older versions declare none.

    `group_version`: of the request; rules are declared for each, and name the fields as it does.
    """
    table = _table(features.version)
    if table is None:
        return errors
    rules = table.get(_key(group_version, obj), ())
    if not features.enabled("DeclarativeValidationBeta"):
        rules = [rule for rule in rules if not rule.is_beta]
    is_older = group_version.group == "resource.k8s.io" and group_version.version in OLDER_VERSIONS
    path_in_version = path_in_v1beta1 if is_older else str
    # what is below a changed field isn't looked at, where a rule says so
    says_so = obj.get("kind") not in _CHANGED_BY_HAND
    changed = [error.field for error in errors if error.detail == IMMUTABLE] if says_so else []
    unions = [f"{error.field}." for error in errors if error.detail == BOTH_REQUESTS]
    by_hand: dict[tuple[str, int], Error] = {}
    declared: list[_Placed] = []
    for i, error in enumerate(errors):
        path = path_in_version(error.field)
        place = next((row for row, rule in enumerate(rules) if rule.reports(error, path)), None)
        if place is None and any(error.field.startswith(union) for union in unions):
            continue  # the handwritten rules don't look into a union with two members
        if place is None or _is_hidden(error, rules[place], changed):
            by_hand.setdefault((str(error), i if error.detail == ITEM_REMOVED else 0), error)
        else:
            is_of_list = rules[place].name == "ValSliceUnique"
            reported = [replace(one, field=path) for one in _as_declared(error, rules[place], obj)]
            declared += [_Placed(place, is_of_list, one) for one in reported]
    declared.sort(key=cmp_to_key(_in_order))
    return [*by_hand.values(), *({str(placed.error): placed.error for placed in declared}.values())]


def _is_hidden(error: Error, rule: _Rule, changed: Sequence[str]) -> bool:
    """Reports whether the rule isn't reached: a change of a field that can't change ends the rules of the field and of those below it."""
    is_first = rule.name in _BEFORE_CHANGES or rule.name.startswith("Required")
    return any(error.field.startswith(f"{path}.") or (error.field == path and not is_first) for path in changed)


def _in_order(one: _Placed, other: _Placed) -> int:
    """Compares by the order of items in lists, and of rules in a type."""
    steps = (_STEPS.findall(placed.error.field) for placed in (one, other))
    for left, right in zip(*steps, strict=False):
        if left != right:
            are_items = left.isdigit() and right.isdigit() and not (one.is_of_list or other.is_of_list)
            return int(left) - int(right) if are_items else one.place - other.place
    return one.place - other.place


def _as_declared(error: Error, rule: _Rule, obj: Object) -> ErrorList:
    if rule.name == "UpdatePointer":
        return [replace(error, value=NOTHING, detail="field cannot be modified once set")]
    if rule.name == "Immutable":
        return [replace(error, value=NOTHING)]
    if rule.name == "ValSliceUnique":
        return [replace(error, value=_value_at(obj, error.field))]
    if rule.name == "Union" and error.detail in _UNIONS:
        return _union_errors(error, _value_at(obj, error.field) or {})
    if rule.name in _CHECKS and isinstance(error.value, str):
        return [replace(error, detail=problem) for problem in _CHECKS[rule.name](error.value)]
    if rule.name in _WORDED:
        return [replace(error, detail=_WORDED[rule.name](error.detail))]
    if rule.name == "ZeroOrOneOfUnion":
        return [_decisions_error(error)]
    if rule.name in _TEXTS:
        return _TEXTS[rule.name](str(_value_at(obj, error.field)), Path(error.field))
    return [replace(error, detail="") if error.reason in _WITHOUT_DETAIL else error]


def _decisions_error(error: Error) -> Error:
    """The error of a request for a certificate that is both approved and denied."""
    members = [f'conditions[{{"type": "{name}"}}]' for name in ("Approved", "Denied")]
    listed = ", ".join(f"`{member}`" for member in members)
    return replace(error, value=f"{{{', '.join(members)}}}", detail=f"must specify at most one of: {listed}")


def _union_errors(error: Error, union: Object) -> ErrorList:
    return union_errors(union, _UNIONS[error.detail], Path(error.field))


def _value_at(obj: Object, path: str) -> Any:
    """Returns what an object holds at a path such as `spec.devices[0].name`, or None."""
    value: Any = obj
    for name, key in _PARTS.findall(path):
        step = name or key
        if isinstance(value, list) and step.isdigit() and int(step) < len(value):
            value = value[int(step)]
        else:
            value = value.get(step) if isinstance(value, dict) else None
    return value


def _key(group_version: GroupVersion, obj: Object) -> str:
    """`apps/v1/Deployment`, `core/v1/Pod`."""
    return f"{group_version.group.partition('.')[0] or 'core'}/{group_version.version}/{obj.get('kind')}"


@cache
def _table(version: str) -> Mapping[str, Sequence[_Rule]] | None:
    """Kind -> its declared rules; None for a version that declares none."""
    if not (VERSIONS / version / _FILE).is_file():
        return None
    recorded: dict[str, list[tuple[str, str, str]]] = read_table(version, _FILE)
    return {
        kind: [_Rule(_pattern(path, name), name, stage == "beta") for path, name, stage in rules]
        for kind, rules in recorded.items()
    }


def _pattern(path: str, name: str) -> re.Pattern[str]:
    if name == "ValSliceUnique":  # an error names the repeated item
        path += "[*]"
    return re.compile(r"\[[^\]]*\]".join(re.escape(part) for part in path.split("[*]")))
