"""Validation of the resources that containers and pods request.

Upstream: pkg/apis/core/validation/validation.go (validateResourceRequirements),
pkg/apis/core/helper/helpers.go.
"""

from collections.abc import Callable
from typing import Final

from fakeapiserver.apimachinery import field, names
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apis.pod_resources import is_extended
from fakeapiserver.registry.core.resource_list import int64_value, is_whole, quantity

NameRule = Callable[[str, Path], ErrorList]
HUGE_PAGES: Final = "hugepages-"
_OF_CONTAINERS: Final = ("cpu", "memory", "ephemeral-storage")
_INTEGERS: Final = frozenset(
    (
        *("pods", "resourcequotas", "services", "replicationcontrollers", "secrets", "configmaps"),
        *("persistentvolumeclaims", "services.nodeports", "services.loadbalancers"),
    )
)
_STANDARD: Final = _INTEGERS | {
    *("cpu", "memory", "ephemeral-storage", "storage", "requests.cpu", "requests.memory", "requests.storage"),
    *("requests.ephemeral-storage", "limits.cpu", "limits.memory", "limits.ephemeral-storage"),
}
_HUGE_PAGES_OF_ANY: Final = (HUGE_PAGES, f"requests.{HUGE_PAGES}")


def resource_errors(resources: Object, path: Path, name_rule: NameRule | None = None) -> ErrorList:
    """The errors in names and amounts, and for requests above their limits; names are those of containers unless another rule is given."""
    rule = name_rule or container_resource_name_errors
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    errors: ErrorList = []
    for name in limits:
        at = path.child("limits").key(name)
        errors += rule(name, at) + amount_errors(name, limits[name], at) + _huge_page_errors(name, limits[name], at)
    for name in requests:
        at = path.child("requests").key(name)
        errors += rule(name, at) + amount_errors(name, requests[name], at)
        errors += _overcommit_errors(name, requests[name], limits, path)
        errors += _huge_page_errors(name, requests[name], at)
    given = limits.keys() | requests.keys()
    if any(name.startswith(HUGE_PAGES) for name in given) and not given & {"cpu", "memory"}:
        errors.append(field.forbidden(path, "HugePages require cpu or memory"))
    return errors


def resource_name_errors(name: str, path: Path) -> ErrorList:
    """The errors in a resource's name: a standard name, or a name with a domain (validateResourceName)."""
    if errors := qualified_resource_name_errors(name, path):
        return errors
    if "/" in name or name in _STANDARD or name.startswith(_HUGE_PAGES_OF_ANY):
        return []
    return [field.invalid(path, field.json_text(name), "must be a standard resource type or fully qualified")]


def qualified_resource_name_errors(name: str, path: Path) -> ErrorList:
    return [field.invalid(path, field.json_text(name), problem) for problem in names.is_qualified_name(name)]


def amount_errors(name: str, amount: str, path: Path) -> ErrorList:
    """The errors in an amount, which must not be negative, and whole for integer resources (ValidateResourceQuantityValue)."""
    errors: ErrorList = []
    if quantity(amount) < 0:
        errors.append(field.invalid(path, amount, "must be greater than or equal to 0"))
    if (name in _INTEGERS or is_extended(name)) and not is_whole(amount):
        errors.append(field.invalid(path, amount, "must be an integer"))
    return errors


def container_resource_name_errors(name: str, path: Path) -> ErrorList:
    errors = resource_name_errors(name, path)
    if "/" not in name:
        if name not in _OF_CONTAINERS and not name.startswith(HUGE_PAGES):
            errors.append(field.invalid(path, field.json_text(name), "must be a standard resource for containers"))
    elif "kubernetes.io/" not in name and not is_extended(name):
        errors.append(field.invalid(path, field.json_text(name), "doesn't follow extended resource name standard"))
    return errors


def _overcommit_errors(name: str, amount: str, limits: Object, path: Path) -> ErrorList:
    # Of resources that can't be shared, the limit must equal the request.
    shared = ("/" not in name or "kubernetes.io/" in name) and not name.startswith(HUGE_PAGES)
    if name not in limits:
        detail = "Limit must be set for non overcommitable resources"
        return [] if shared else [field.required(path.child("limits"), detail)]
    asked, limit = quantity(amount), quantity(limits[name])
    if asked != limit and not shared:
        detail = f"must be equal to {name} limit of {limits[name]}"
    elif asked > limit:
        detail = f"must be less than or equal to {name} limit of {limits[name]}"
    else:
        return []
    return [field.invalid(path.child("requests"), amount, detail)]


def _huge_page_errors(name: str, amount: str, path: Path) -> ErrorList:
    if not name.startswith(HUGE_PAGES):
        return []
    size = name.removeprefix(HUGE_PAGES)
    unit = int64_value(size) if quantity(size) > 0 and is_whole(size) else 0
    if unit and int64_value(amount) % unit == 0:
        return []
    return [field.invalid(path, amount, f"{amount} is not positive integer multiple of {name}")]
