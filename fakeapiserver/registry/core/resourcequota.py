"""Resource quotas.

Upstream: pkg/registry/core/resourcequota/strategy.go.
"""

from dataclasses import dataclass
from typing import Final

from fakeapiserver.apimachinery import field, names
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.registry.core.field_formats import name_errors
from fakeapiserver.registry.core.resource_list import quantity, round_up_resources
from fakeapiserver.registry.core.table_cells import age
from fakeapiserver.registry.generic.strategy import Cells, Strategy

_KNOWN: Final = ("cpu", "memory", "storage", "ephemeral-storage")

_SCOPES: Final = Path("spec.scopes")
_PODS_ONLY: Final = ("pods",)
_COMPUTE: Final = (
    "cpu",
    "memory",
    "limits.cpu",
    "limits.memory",
    "requests.cpu",
    "requests.memory",
)
_STANDARD: Final = (
    *_COMPUTE,
    "configmaps",
    "ephemeral-storage",
    "limits.ephemeral-storage",
    "persistentvolumeclaims",
    "pods",
    "replicationcontrollers",
    "requests.ephemeral-storage",
    "requests.storage",
    "resourcequotas",
    "secrets",
    "services",
    "services.loadbalancers",
    "services.nodeports",
)
# Scope -> the resources it can be applied to.
_OF_SCOPE: Final = {
    "BestEffort": _PODS_ONLY,
    "CrossNamespacePodAffinity": (*_PODS_ONLY, *_COMPUTE),
    "NotBestEffort": (*_PODS_ONLY, *_COMPUTE),
    "NotTerminating": (*_PODS_ONLY, *_COMPUTE),
    "PriorityClass": (*_PODS_ONLY, *_COMPUTE),
    "Terminating": (*_PODS_ONLY, *_COMPUTE),
    "VolumeAttributesClass": ("persistentvolumeclaims", "requests.storage"),
}
_CONFLICTING: Final = ({"BestEffort", "NotBestEffort"}, {"Terminating", "NotTerminating"})


@dataclass(kw_only=True)
class ResourceQuotaStrategy(Strategy):
    def default(self, obj: Object, version: str) -> None:
        round_up_resources(obj.get("spec"), ("hard",))
        round_up_resources(obj.get("status"), ("hard", "used"))

    def prepare_for_create(self, obj: Object) -> None:
        obj["status"] = {}

    def validate(self, obj: Object) -> ErrorList:
        spec = obj.get("spec") or {}
        hard: dict[str, str] = spec.get("hard") or {}
        errors = [error for name in sorted(hard) for error in _hard_errors(name, hard[name])]
        return errors + _scope_errors(spec.get("scopes") or [], hard)

    def validate_update(self, obj: Object, old: Object) -> ErrorList:
        errors = self.validate(obj)
        scopes = (obj.get("spec") or {}).get("scopes") or []
        if set(scopes) != set((old.get("spec") or {}).get("scopes") or []):
            errors.append(field.invalid(_SCOPES, scopes or None, "field is immutable"))
        return errors

    def warnings_on_create(self, obj: Object) -> list[str]:
        """Requests that may be larger than limits make no sense."""
        hard: dict[str, str] = (obj.get("spec") or {}).get("hard") or {}
        found = []
        for name in _KNOWN:
            asked, limited = f"requests.{name}", f"limits.{name}"
            if asked not in hard and name in _KNOWN[:2]:
                asked = name
            if asked in hard and limited in hard and quantity(hard[asked]) > quantity(hard[limited]):
                text = f"ResourceQuota {asked} ({hard[asked]}) should be less than {limited} ({hard[limited]})"
                found.append(text)
        return found

    def table_row(self, obj: Object, now: float) -> Cells:
        status = obj.get("status") or {}
        hard, used = status.get("hard") or {}, status.get("used") or {}
        shown = {name: f"{name}: {used.get(name, '0')}/{hard[name]}" for name in sorted(hard)}
        requests = ", ".join(text for name, text in shown.items() if not name.startswith("limits."))
        limits = ", ".join(text for name, text in shown.items() if name.startswith("limits."))
        return [metadata(obj).get("name", ""), requests, limits, age(obj, now)]


def _hard_errors(name: str, amount: str) -> ErrorList:
    path = Path("spec.hard").key(name)
    errors = name_errors(name, names.is_qualified_name, path)
    standard = name in _STANDARD or name.startswith(("hugepages-", "requests.hugepages-"))
    if not errors and "/" not in name and not standard and name != "storage":
        errors.append(field.invalid(path, name, "must be a standard resource type or fully qualified"))
    if "/" not in name and not standard:
        errors.append(field.invalid(path, name, "must be a standard resource for quota"))
    if quantity(amount) < 0:
        errors.append(field.invalid(path, amount, "must be greater than or equal to 0"))
    return errors


def _scope_errors(scopes: list[str], hard: dict[str, str]) -> ErrorList:
    errors: ErrorList = []
    for scope in scopes:
        if scope not in _OF_SCOPE:
            errors.append(field.invalid(_SCOPES, scopes, "unsupported scope"))
            continue
        wrong = [name for name in sorted(hard) if name in _STANDARD and name not in _OF_SCOPE[scope]]
        errors += [field.invalid(_SCOPES, scopes, "unsupported scope applied to resource") for _ in wrong]
    clashes = [pair for pair in _CONFLICTING if pair <= set(scopes)]
    return errors + [field.invalid(_SCOPES, scopes, "conflicting scopes") for _ in clashes]
