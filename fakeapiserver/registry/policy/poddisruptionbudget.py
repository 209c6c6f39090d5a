"""Pod disruption budgets.

Upstream: pkg/registry/policy/poddisruptionbudget/strategy.go, pkg/apis/policy/validation/validation.go.
"""

from typing import Final

from fakeapiserver.apimachinery import field
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.registry.apps.int_or_percent import at_most_all_errors, int_or_percent_errors
from fakeapiserver.registry.core.field_formats import non_negative_errors
from fakeapiserver.registry.generic.conditions import conditions_errors
from fakeapiserver.registry.generic.label_selector import label_selector_errors, shown_selector
from fakeapiserver.registry.generic.strategy import Cells, Strategy
from fakeapiserver.registry.generic.table_cells import age

_SPEC: Final = Path("spec")
_STATUS: Final = Path("status")
_COUNTS: Final = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")
_OF_V1BETA1: Final = "pdb.kubernetes.io/deprecated-v1beta1-empty-selector-match"
_MATCH_NONE: Final = {"key": _OF_V1BETA1, "operator": "Exists"}
_POLICIES: Final = ("AlwaysAllow", "IfHealthyBudget")


class PodDisruptionBudgetStrategy(Strategy, kw_only=True):
    def prepare_for_create(self, obj: Object) -> None:
        obj["status"] = dict.fromkeys(_COUNTS, 0)
        _strip(obj["spec"].get("selector"))

    def prepare_for_update(self, obj: Object, old: Object) -> None:
        super().prepare_for_update(obj, old)
        if obj["spec"].get("selector") != old["spec"].get("selector"):
            _strip(obj["spec"].get("selector"))

    def validate(self, obj: Object) -> ErrorList:
        spec, errors = obj["spec"], ErrorList()
        if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
            errors.append(field.invalid(_SPEC, _go_spec(spec), "minAvailable and maxUnavailable cannot be both set"))
        for name in ("minAvailable", "maxUnavailable"):
            if (value := spec.get(name)) is not None:
                errors += int_or_percent_errors(value, _SPEC.child(name))
                errors += at_most_all_errors(value, _SPEC.child(name))
        errors += label_selector_errors(spec.get("selector"), _SPEC.child("selector"))
        policy = spec.get("unhealthyPodEvictionPolicy")
        if policy is not None and policy not in _POLICIES:
            errors.append(field.not_supported(_SPEC.child("unhealthyPodEvictionPolicy"), policy, _POLICIES))
        return errors

    def validate_update(self, obj: Object, old: Object) -> ErrorList:
        return self.validate(obj)

    def validate_status_update(self, obj: Object, old: Object) -> ErrorList:
        status = obj.get("status") or {}
        errors = conditions_errors(status.get("conditions") or (), _STATUS.child("conditions"))
        for name in _COUNTS:
            errors += non_negative_errors(status.get(name) or 0, _STATUS.child(name))
        return errors

    def table_row(self, obj: Object, now: float) -> Cells:
        spec = obj.get("spec") or {}
        return [
            metadata(obj).get("name", ""),
            str(spec.get("minAvailable", "N/A")),
            str(spec.get("maxUnavailable", "N/A")),
            (obj.get("status") or {}).get("disruptionsAllowed", 0),
            age(obj, now),
        ]


def _strip(selector: Object | None) -> None:
    """Removes what v1beta1 made of a selector of all or no pods, where it isn't alone."""
    expressions = (selector or {}).get("matchExpressions") or []
    kept = [expression for expression in expressions if expression.get("key") != _OF_V1BETA1]
    if selector is None or len(kept) == len(expressions) or selector == {"matchExpressions": [_MATCH_NONE]}:
        return
    del selector["matchExpressions"]
    if kept:
        selector["matchExpressions"] = kept


def _go_spec(spec: Object) -> Object:
    """The spec as messages show it: as Go's internal type, which has no names for JSON."""
    return {
        "MinAvailable": spec.get("minAvailable"),
        "Selector": shown_selector(spec.get("selector")),
        "MaxUnavailable": spec.get("maxUnavailable"),
        "UnhealthyPodEvictionPolicy": spec.get("unhealthyPodEvictionPolicy"),
    }
