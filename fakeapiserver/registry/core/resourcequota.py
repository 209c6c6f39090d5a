"""Resource quotas.

Upstream: pkg/registry/core/resourcequota/strategy.go.
"""

from typing import Final

from fakeapiserver.apimachinery import field
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.apis.internal_form import internal_form
from fakeapiserver.apis.pod_resources import is_extended
from fakeapiserver.registry.core.pod.resource_requirements_validation import qualified_resource_name_errors
from fakeapiserver.registry.core.resource_list import is_whole, quantity, round_up_resources
from fakeapiserver.registry.generic.strategy import Cells, Strategy
from fakeapiserver.registry.generic.table_cells import age

_KNOWN: Final = ("cpu", "memory", "storage", "ephemeral-storage")

_SCOPES: Final = Path("spec.scopes")
_EXPRESSIONS: Final = Path("spec.scopeSelector.matchExpressions")
_STATUS: Final = Path("status")
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
_WHOLE: Final = frozenset(
    {
        "configmaps",
        "persistentvolumeclaims",
        "pods",
        "replicationcontrollers",
        "resourcequotas",
        "secrets",
        "services",
        "services.loadbalancers",
        "services.nodeports",
    }
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
# Scopes that have no values.
_PLAIN: Final = ("BestEffort", "NotBestEffort", "Terminating", "NotTerminating", "CrossNamespacePodAffinity")
_PLAIN_ONLY: Final = (
    "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, "
    "ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"
)
_SOME_VALUE: Final = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
_NO_VALUE: Final = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
_NOT_APPLICABLE: Final = "unsupported scope applied to resource"
_CONFLICTING: Final = ({"BestEffort", "NotBestEffort"}, {"Terminating", "NotTerminating"})


class ResourceQuotaStrategy(Strategy, kw_only=True):
    def default(self, obj: Object, version: str) -> None:
        round_up_resources(obj.get("spec"), ("hard",))
        round_up_resources(obj.get("status"), ("hard", "used"))

    def prepare_for_create(self, obj: Object) -> None:
        obj["status"] = {}

    def validate(self, obj: Object) -> ErrorList:
        spec = obj.get("spec") or {}
        hard: dict[str, str] = spec.get("hard") or {}
        errors = _list_errors(hard, Path("spec.hard")) + _scope_errors(spec.get("scopes") or [], hard)
        if (selector := spec.get("scopeSelector")) is not None:
            errors += _selector_errors(spec, selector.get("matchExpressions") or [], hard)
        return errors

    def validate_status_update(self, obj: Object, old: Object) -> ErrorList:
        status = obj.get("status") or {}
        return [error for name in ("hard", "used") for error in _list_errors(status.get(name), _STATUS.child(name))]

    def validate_update(self, obj: Object, old: Object) -> ErrorList:
        errors = self.validate(obj)
        scopes = (obj.get("spec") or {}).get("scopes") or []
        if set(scopes) != set((old.get("spec") or {}).get("scopes") or []):
            errors.append(field.invalid(_SCOPES, scopes or None, "field is immutable"))
        return errors

    def warnings_on_create(self, obj: Object) -> list[str]:
        """Warns of requests that may be larger than limits."""
        if not self.features.at_least("v1.35"):
            return []
        hard: dict[str, str] = (obj.get("spec") or {}).get("hard") or {}
        warnings = []
        for name in _KNOWN:
            asked, limited = f"requests.{name}", f"limits.{name}"
            if asked not in hard and name in _KNOWN[:2]:
                asked = name
            if asked in hard and limited in hard and quantity(hard[asked]) > quantity(hard[limited]):
                text = f"ResourceQuota {asked} ({hard[asked]}) should be less than {limited} ({hard[limited]})"
                warnings.append(text)
        return warnings

    def table_row(self, obj: Object, now: float) -> Cells:
        status = obj.get("status") or {}
        hard, used = status.get("hard") or {}, status.get("used") or {}
        used_texts = {name: f"{name}: {used.get(name, '0')}/{hard[name]}" for name in sorted(hard)}
        requests = ", ".join(text for name, text in used_texts.items() if not name.startswith("limits."))
        limits = ", ".join(text for name, text in used_texts.items() if name.startswith("limits."))
        return [metadata(obj).get("name", ""), requests, limits, age(obj, now)]


def _list_errors(amounts: dict[str, str] | None, path: Path) -> ErrorList:
    return [error for name in sorted(amounts or ()) for error in _amount_errors(name, (amounts or {})[name], path)]


def _amount_errors(name: str, amount: str, path: Path) -> ErrorList:
    path = path.key(name)
    errors = qualified_resource_name_errors(name, path)
    standard = _is_standard(name)
    if not errors and "/" not in name and not standard and name != "storage":
        errors.append(field.invalid(path, field.json_text(name), "must be a standard resource type or fully qualified"))
    if "/" not in name and not standard:
        errors.append(field.invalid(path, field.json_text(name), "must be a standard resource for quota"))
    if quantity(amount) < 0:
        errors.append(field.invalid(path, amount, "must be greater than or equal to 0"))
    if (name in _WHOLE or is_extended(name)) and not is_whole(amount):
        errors.append(field.invalid(path, amount, "must be an integer"))
    return errors


def _is_standard(name: str) -> bool:
    return name in _STANDARD or name.startswith(("hugepages-", "requests.hugepages-"))


def _scope_errors(scopes: list[str], hard: dict[str, str]) -> ErrorList:
    errors: ErrorList = []
    for scope in scopes:
        if scope not in _OF_SCOPE:
            errors.append(field.invalid(_SCOPES, scopes, "unsupported scope"))
            continue
        errors += [field.invalid(_SCOPES, scopes, _NOT_APPLICABLE) for _ in _not_applicable(scope, hard)]
    return errors + _clashes(_SCOPES, set(scopes), scopes)


def _selector_errors(spec: Object, expressions: list[Object], hard: dict[str, str]) -> ErrorList:
    errors: ErrorList = []
    path = _EXPRESSIONS
    for expression in expressions:
        scope, operator = expression.get("scopeName", ""), expression.get("operator", "")
        values = expression.get("values") or []
        if scope not in _OF_SCOPE:
            errors.append(field.invalid(path.child("scopeName"), field.json_text(scope), "unsupported scope"))
        go_selector = internal_form(spec["scopeSelector"], "ScopeSelector")
        errors += [field.invalid(path, go_selector, _NOT_APPLICABLE) for _ in _not_applicable(scope, hard)]
        if scope in _PLAIN and operator != "Exists":
            errors.append(field.invalid(path.child("operator"), field.json_text(operator), _PLAIN_ONLY))
        if operator in ("In", "NotIn"):
            if not values:
                errors.append(field.required(path.child("values"), _SOME_VALUE))
        elif operator not in ("Exists", "DoesNotExist"):
            errors.append(
                field.invalid(path.child("operator"), field.json_text(operator), "not a valid selector operator")
            )
        elif values:
            errors.append(field.invalid(path.child("values"), values, _NO_VALUE))
    scopes = {expression.get("scopeName", "") for expression in expressions}
    return errors + _clashes(path, scopes, spec.get("scopes"))


def _not_applicable(scope: str, hard: dict[str, str]) -> list[str]:
    """The resources that the scope doesn't cover. An unknown scope is reported elsewhere."""
    known = _OF_SCOPE.get(scope)
    return [name for name in sorted(hard) if known is not None and _is_standard(name) and name not in known]


def _clashes(path: Path, scopes: set[str], shown: list[str] | None) -> ErrorList:
    """The error for scopes that exclude each other; upstream shows the plain scopes in any case."""
    return [field.invalid(path, shown, "conflicting scopes") for pair in _CONFLICTING if pair <= scopes]
