"""Conditions of the common form (metav1.Condition).

Upstream: k8s.io/apimachinery/pkg/apis/meta/v1/validation/validation.go, ValidateConditions.
"""

import re
from collections.abc import Sequence
from typing import Final

from fakeapiserver.apimachinery import field, names
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.message import Message
from fakeapiserver.apimachinery.meta import Object

STATUSES: Final = ("False", "True", "Unknown")
_NO_TYPE: Final = Message("is required", "condition.type")
_NO_STATUS: Final = Message("", "condition.status")
_MAX_REASON: Final = 1024
_MAX_MESSAGE: Final = 32 * 1024
_REASON: Final = "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?"
_IS_REASON: Final = re.compile(_REASON)
_REASON_RULE: Final = names.regex_error(
    "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric characters or "
    "'_,:', and must end with an alphanumeric character or '_'",
    _REASON,
    *("my_name", "MY_NAME", "MyName", "ReasonA,ReasonB", "ReasonA:ReasonB"),
)


def conditions_errors(conditions: Sequence[Object], path: Path) -> ErrorList:
    errors, seen = ErrorList(), set[str]()
    for i, condition in enumerate(conditions):
        at, kind = path.index(i), condition.get("type", "")
        if kind in seen:
            errors.append(field.duplicate(at, kind))
        seen.add(kind)
        errors += _condition_errors(condition, at)
    return errors


def _condition_errors(condition: Object, path: Path) -> ErrorList:
    kind, status, reason = (condition.get(name) or "" for name in ("type", "status", "reason"))
    errors = [field.invalid(path.child("type"), kind, problem) for problem in names.is_qualified_name(kind) if kind]
    if not kind:
        errors.append(field.required(path.child("type"), _NO_TYPE))
    if not status:
        errors.append(field.required(path.child("status"), _NO_STATUS))
    elif status not in STATUSES:
        errors.append(field.not_supported(path.child("status"), status, STATUSES))
    if (observed := condition.get("observedGeneration") or 0) < 0:
        errors.append(
            field.invalid(path.child("observedGeneration"), observed, "must be greater than or equal to zero")
        )
    if not condition.get("lastTransitionTime"):
        errors.append(field.required(path.child("lastTransitionTime")))
    if not reason:
        errors.append(field.required(path.child("reason")))
    elif not _IS_REASON.fullmatch(reason):
        errors.append(field.invalid(path.child("reason"), reason, _REASON_RULE))
    if len(reason.encode()) > _MAX_REASON:
        errors.append(field.too_long(path.child("reason"), _MAX_REASON))
    if len((condition.get("message") or "").encode()) > _MAX_MESSAGE:
        errors.append(field.too_long(path.child("message"), _MAX_MESSAGE))
    return errors
