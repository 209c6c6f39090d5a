"""Limit ranges: what containers are limited to completes what they are given.

Upstream: pkg/registry/core/limitrange/strategy.go, pkg/apis/core/v1/defaults.go (SetDefaults_LimitRangeItem).
"""

import uuid
from typing import Final

from fakeapiserver.apimachinery import field, names
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.registry.core.field_formats import duplicate_errors, name_errors
from fakeapiserver.registry.core.resource_list import quantity, round_up_resources
from fakeapiserver.registry.generic.strategy import Strategy

_LISTS: Final = ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio")

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
            problems = name_errors(kind, names.is_qualified_name, path.child("type"))
            if not problems and "/" not in kind and kind not in _TYPES:
                detail = "must be a standard limit type or fully qualified"
                problems.append(field.invalid(path.child("type"), kind, detail))
            errors += problems + duplicate_errors(kind, seen, path.child("type")) + _item_errors(item, path)
        return errors

    def validate_update(self, obj: Object, old: Object) -> ErrorList:
        return self.validate(obj)

    def prepare_for_create(self, obj: Object) -> None:
        if not obj["metadata"].get("name"):
            obj["metadata"]["name"] = str(uuid.uuid4())


def _default_item(item: Object) -> None:
    """The limit is the most there may be, the request is the limit, or else the least there must be."""
    limits = {**(item.get("max") or {}), **(item.get("default") or {})}
    requests = {**(item.get("min") or {}), **limits, **(item.get("defaultRequest") or {})}
    if limits:
        item["default"] = limits
    if requests:
        item["defaultRequest"] = requests


def _item_errors(item: Object, path: Path) -> ErrorList:
    errors: ErrorList = []
    if item.get("type") == "Pod":
        detail = "may not be specified when `type` is 'Pod'"
        errors += [
            field.forbidden(path.child(name), detail) for name in ("default", "defaultRequest") if item.get(name)
        ]
    if item.get("type") == "PersistentVolumeClaim" and not any(
        "storage" in (item.get(n) or {}) for n in ("min", "max")
    ):
        detail = "either minimum or maximum storage value is required, but neither was provided"
        errors.append(field.required(path.child("limits"), detail))
    for name in sorted({key for kind in _LISTS[:4] for key in item.get(kind) or ()}):
        errors += _order_errors(item, name, path)
    return errors


def _order_errors(item: Object, name: str, path: Path) -> ErrorList:
    errors: ErrorList = []
    for small, large, blamed, shown, words in _ORDERED:
        less, more = (item.get(small) or {}).get(name), (item.get(large) or {}).get(name)
        if less is not None and more is not None and quantity(less) > quantity(more):
            value = item[shown][name]
            errors.append(field.invalid(path.child(blamed).key(name), value, words.format(less, more)))
    return errors
