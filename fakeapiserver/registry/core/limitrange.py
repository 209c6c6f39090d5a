"""Limit ranges: what containers are limited to completes what they are given.

Upstream: pkg/registry/core/limitrange/strategy.go, pkg/apis/core/v1/defaults.go (SetDefaults_LimitRangeItem),
pkg/apis/core/validation/validation.go (ValidateLimitRange).
"""

import uuid
from collections.abc import Sequence
from math import inf
from typing import Final

from fakeapiserver.apimachinery import field, names
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.quantity import amount
from fakeapiserver.registry.core.field_formats import duplicate_errors
from fakeapiserver.registry.core.pod.resource_requirements_validation import (
    container_resource_name_errors,
    resource_name_errors,
)
from fakeapiserver.registry.core.resource_list import int64_value, round_up_resources
from fakeapiserver.registry.generic.strategy import Strategy

_DEFAULTS: Final = ("default", "defaultRequest")
_RATIO: Final = "maxLimitRequestRatio"
_LISTS: Final = ("max", "min", *_DEFAULTS, _RATIO)
# From here on upstream doesn't look at thousandths.
_MAX_MILLI: Final = (2**63 - 1) // 1000

_LIMITS: Final = Path("spec.limits")
_TYPES: Final = ("Container", "PersistentVolumeClaim", "Pod")
# (list, list that may not be smaller, which of the two is blamed, which value is shown, words)
_ORDERED: Final = (
    ("min", "max", "min", "min", "min value {} is greater than max value {}"),
    (
        "min",
        "defaultRequest",
        "defaultRequest",
        "defaultRequest",
        "min value {} is greater than default request value {}",
    ),
    (
        "defaultRequest",
        "max",
        "defaultRequest",
        "defaultRequest",
        "default request value {} is greater than max value {}",
    ),
    (
        "defaultRequest",
        "default",
        "defaultRequest",
        "defaultRequest",
        "default request value {} is greater than default limit value {}",
    ),
    ("min", "default", "default", "min", "min value {} is greater than default value {}"),
    ("default", "max", "default", "max", "default value {} is greater than max value {}"),
)


class LimitRangeStrategy(Strategy, kw_only=True):
    def default(self, obj: Object, version: str) -> None:
        for item in (obj.get("spec") or {}).get("limits") or ():
            if item.get("type") == "Container":
                _default_item(item)
            round_up_resources(item, _LISTS)

    def validate(self, obj: Object) -> ErrorList:
        errors: ErrorList = []
        seen: set[str] = set()
        for i, item in enumerate((obj.get("spec") or {}).get("limits") or ()):
            path, kind = _LIMITS.index(i), item.get("type", "")
            json_kind = field.json_text(kind)
            problems = [field.invalid(path.child("type"), json_kind, text) for text in names.is_qualified_name(kind)]
            if not problems and "/" not in kind and kind not in _TYPES:
                detail = "must be a standard limit type or fully qualified"
                problems.append(field.invalid(path.child("type"), json_kind, detail))
            errors += problems + duplicate_errors(kind, seen, path.child("type")) + _item_errors(item, path)
        return errors

    def validate_update(self, obj: Object, old: Object) -> ErrorList:
        return self.validate(obj)

    def prepare_for_create(self, obj: Object) -> None:
        if not obj["metadata"].get("name"):
            obj["metadata"]["name"] = str(uuid.uuid4())


def _default_item(item: Object) -> None:
    """Sets the defaults of one item: the default limit is max, the default request is the default limit, or else min."""
    limits = {**(item.get("max") or {}), **(item.get("default") or {})}
    requests = {**(item.get("min") or {}), **limits, **(item.get("defaultRequest") or {})}
    if limits:
        item["default"] = limits
    if requests:
        item["defaultRequest"] = requests


def _item_errors(item: Object, path: Path) -> ErrorList:
    kind = item.get("type", "")
    errors = _name_errors(item, ("max", "min"), path)
    if kind == "Pod":
        detail = "may not be specified when `type` is 'Pod'"
        errors += [field.forbidden(path.child(name), detail) for name in _DEFAULTS if item.get(name)]
        item = {name: value for name, value in item.items() if name not in _DEFAULTS}
    errors += _name_errors(item, _DEFAULTS, path)
    if kind == "PersistentVolumeClaim" and not any("storage" in (item.get(n) or {}) for n in ("min", "max")):
        detail = "either minimum or maximum storage value is required, but neither was provided"
        errors.append(field.required(path.child("limits"), detail))
    errors += _name_errors(item, (_RATIO,), path)
    for name in sorted({key for amounts in _LISTS for key in item.get(amounts) or ()}):
        errors += _order_errors(item, name, path) + _ratio_errors(item, name, path.child(_RATIO).key(name))
        limit, request = ((item.get(which) or {}).get(name) for which in _DEFAULTS)
        if _is_strict(name) and limit and request and amount(limit) != amount(request):
            detail = f"default value {limit} must equal to defaultRequest value {request} in {name}"
            errors.append(field.invalid(path.child("defaultRequest").key(name), request, detail))
    return errors


def _name_errors(item: Object, amounts: Sequence[str], path: Path) -> ErrorList:
    """The errors in names of resources: for pods and containers those that containers can request, for other types any resource."""
    of_pods = item.get("type") in ("Container", "Pod")
    check = container_resource_name_errors if of_pods else resource_name_errors
    return [
        error
        for which in amounts
        for name in item.get(which) or ()
        for error in check(name, path.child(which).key(name))
    ]


def _is_strict(name: str) -> bool:
    """Reports whether a resource can't be overcommitted (IsOvercommitAllowed)."""
    return ("/" in name and "kubernetes.io/" not in name) or name.startswith("hugepages-")


def _order_errors(item: Object, name: str, path: Path) -> ErrorList:
    errors: ErrorList = []
    for small, large, blamed, shown_bound, words in _ORDERED:
        less, more = (item.get(small) or {}).get(name), (item.get(large) or {}).get(name)
        if less is not None and more is not None and amount(less) > amount(more):
            value = item[shown_bound][name]
            errors.append(field.invalid(path.child(blamed).key(name), value, words.format(less, more)))
    return errors


def _ratio_errors(item: Object, name: str, path: Path) -> ErrorList:
    """The errors in maxLimitRequestRatio, which can't be larger than the ratio of max to min."""
    ratio, least, most = ((item.get(which) or {}).get(name) for which in (_RATIO, "min", "max"))
    if ratio is None:
        return []
    errors: ErrorList = []
    if amount(ratio) < 1:
        errors.append(field.invalid(path, ratio, f"ratio {ratio} is less than 1"))
    if least is not None and most is not None:
        given, bottom, top = (int64_value(text) for text in (ratio, least, most))
        fine = all(number < _MAX_MILLI for number in (given, bottom, top))
        if fine:
            given, bottom, top = (int64_value(text, 1000) for text in (ratio, least, most))
        # Nothing is more than what a least of 0 allows.
        allowed = top / bottom if bottom else inf
        if given / (1000 if fine else 1) > allowed:
            errors.append(field.invalid(path, ratio, f"ratio {ratio} is greater than max/min = {allowed:f}"))
    return errors
