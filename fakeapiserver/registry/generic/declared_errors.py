"""Errors of rules that a version declares in its types, which kinds before 1.37 check by hand.

Upstream runs the declared rules after the handwritten ones, and drops handwritten errors that a declared rule reports as well.
Declared errors say less: a missing or forbidden field has no explanation, a changed one no value. Those that remain are reported once.

Upstream: k8s.io/apiserver/pkg/registry/rest/validate.go, k8s.io/apimachinery/pkg/api/validate; which rules are declared is recorded
(apis/versions/<version>/declared_rules.json).
"""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Final, NamedTuple

from msgspec.structs import replace

from fakeapiserver.apimachinery.field import Error, ErrorList, Reason
from fakeapiserver.apimachinery.gvk import GroupVersion
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apis.recorded import VERSIONS, read_table
from fakeapiserver.registry.generic.declarative import NOTHING

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
    "Minimum": re.compile(r"must be greater than or equal to -?\d"),
    "UpdatePointer": re.compile("field cannot be"),
}
_OF_OTHERS: Final = re.compile("|".join(pattern.pattern for pattern in _MESSAGES.values()) + "|.*`")
_WITHOUT_VALUE: Final = ("Immutable", "UpdatePointer")
_WITHOUT_DETAIL: Final = ("FieldValueForbidden", "FieldValueRequired")


class _Rule(NamedTuple):
    path: re.Pattern[str]
    name: str

    def reports(self, error: Error) -> bool:
        if error.reason != _REASONS.get(self.name, "FieldValueInvalid") or not self.path.fullmatch(error.field):
            return False
        if error.reason != "FieldValueInvalid":
            return True
        message = _MESSAGES.get(self.name)
        return bool(message.match(error.detail) if message else not _OF_OTHERS.match(error.detail))


def with_declared(errors: ErrorList, obj: Object, version: str) -> ErrorList:
    """The errors in an object as a version reports them that declares rules; older versions declare none."""
    table = _table(version)
    if table is None:
        return errors
    rules = table.get(_key(obj), ())
    by_hand: dict[str, Error] = {}
    declared: ErrorList = []
    for error in errors:
        rule = next((rule for rule in rules if rule.reports(error)), None)
        if rule is None:
            by_hand.setdefault(str(error), error)
        else:
            declared.append(_as_declared(error, rule))
    return [*by_hand.values(), *({str(error): error for error in declared}.values())]


def _as_declared(error: Error, rule: _Rule) -> Error:
    if rule.name in _WITHOUT_VALUE:
        return replace(error, value=NOTHING)
    return replace(error, detail="") if error.reason in _WITHOUT_DETAIL else error


def _key(obj: Object) -> str:
    """`apps/v1/Deployment`, `core/v1/Pod`."""
    group, version = GroupVersion.parse(obj.get("apiVersion") or "")
    return f"{group.partition('.')[0] or 'core'}/{version}/{obj.get('kind')}"


@cache
def _table(version: str) -> Mapping[str, Sequence[_Rule]] | None:
    """Kind -> its declared rules; None for a version that declares none."""
    if not (VERSIONS / version / _FILE).is_file():
        return None
    recorded: dict[str, list[tuple[str, str]]] = read_table(version, _FILE)
    return {kind: [_Rule(_pattern(path), name) for path, name in rules] for kind, rules in recorded.items()}


def _pattern(path: str) -> re.Pattern[str]:
    return re.compile(r"\[[^\]]*\]".join(re.escape(part) for part in path.split("[*]")))
