"""Tolerations: what they may say, and merging them.

Upstream: pkg/apis/core/validation/validation.go (ValidateTolerations), pkg/util/tolerations/tolerations.go.
"""

import re
from collections.abc import Sequence
from typing import Final

from fakeapiserver.apimachinery import field, names
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.go.strconv import parse_int
from fakeapiserver.apimachinery.meta import Object

_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_OPERATORS: Final = ("Equal", "Exists", "Lt", "Gt")
_DECIMAL: Final = re.compile(r"0|-?[1-9][0-9]*", re.ASCII)
_NOT_DECIMAL: Final = "must be a valid decimal integer in canonical form"
_COMPARING: Final = ("Lt", "Gt")
_ALL_VALUES: Final = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'


def toleration_errors(tolerations: Sequence[Object], path: Path, *, comparing: bool = False) -> ErrorList:
    """`comparing`: whether Lt and Gt are allowed (TaintTolerationComparisonOperators)."""
    errors: ErrorList = []
    for i, toleration in enumerate(tolerations):
        at, key, operator = path.index(i), toleration.get("key", ""), toleration.get("operator", "")
        value, effect = toleration.get("value", ""), toleration.get("effect", "")
        if key:
            errors += [field.invalid(at.child("key"), key, problem) for problem in names.is_qualified_name(key)]
        elif operator != "Exists":
            errors.append(field.invalid(at.child("operator"), field.json_text(operator), _ALL_VALUES))
        if "tolerationSeconds" in toleration and effect != "NoExecute":
            detail = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            errors.append(field.invalid(at.child("effect"), field.json_text(effect), detail))
        if operator in ("Equal", ""):
            if problems := names.is_valid_label_value(value):
                errors.append(field.invalid(at.child("operator"), value, ";".join(problems)))
        elif operator in _COMPARING and comparing:
            errors += _number_errors(value, at.child("value"))
        elif operator != "Exists":
            # Without the feature the message names Lt and Gt, although they aren't allowed.
            known = _OPERATORS if operator in _OPERATORS else _OPERATORS[:2]
            errors.append(field.not_supported(at.child("operator"), operator, known, rule="toleration.operator"))
        elif value:
            detail = "value must be empty when `operator` is 'Exists'"
            errors.append(field.invalid(at.child("operator"), value, detail))
        if effect:
            errors += [] if effect in _EFFECTS else [field.not_supported(at.child("effect"), effect, _EFFECTS)]
    return errors


def _number_errors(value: str, path: Path) -> ErrorList:
    """Returns the errors of a 64-bit integer as Go writes it; an invalid one breaks both rules."""
    errors: ErrorList = []
    if not value:
        errors.append(field.invalid(path, value, "must be non-empty"))
    elif not _DECIMAL.fullmatch(value):
        errors.append(field.invalid(path, value, _NOT_DECIMAL))
    try:
        parse_int(value)
    except ValueError as error:
        errors.append(field.invalid(path, value, str(error)))
    return errors


def merge_tolerations(first: Sequence[Object], second: Sequence[Object]) -> list[Object]:
    """Both lists without what another toleration makes redundant; of equal ones the first stays."""
    every = [*first, *second]
    merged: list[Object] = []
    for i, toleration in enumerate(every):
        later = every[i + 1 :]
        if any(is_superset(other, toleration) for other in merged):
            continue
        if any(other != toleration and is_superset(other, toleration) for other in later):
            continue
        merged.append(toleration)
    return merged


def is_superset(wide: Object, narrow: Object) -> bool:
    """Reports whether `wide` tolerates everything `narrow` does."""
    if wide == narrow:
        return True
    operator = wide.get("operator") or "Equal"
    key = wide.get("key") or ""
    if (narrow.get("key") or "") != key and (key or operator != "Exists"):
        return False
    effect = wide.get("effect") or ""
    if effect and narrow.get("effect") != effect:
        return False
    if effect == "NoExecute" and not _outlasts(wide.get("tolerationSeconds"), narrow.get("tolerationSeconds")):
        return False
    if operator == "Equal":
        return narrow.get("operator") == "Equal" and (narrow.get("value") or "") == (wide.get("value") or "")
    return bool(operator == "Exists")


def _outlasts(wide: int | None, narrow: int | None) -> bool:
    return wide is None or (narrow is not None and narrow <= wide)
