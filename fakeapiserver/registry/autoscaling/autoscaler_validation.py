"""Validation of a horizontal pod autoscaler's spec, in the form of v2.

Upstream: pkg/apis/autoscaling/validation/validation.go, pkg/registry/autoscaling/horizontalpodautoscaler/strategy.go.
"""

from collections.abc import Callable, Mapping
from typing import Final

from fakeapiserver.apimachinery import field, names
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.quantity import amount
from fakeapiserver.registry.core.field_formats import name_errors, non_negative_amount_errors
from fakeapiserver.registry.core.pod.resource_requirements_validation import container_resource_name_errors

_SPEC: Final = Path("spec")
_MAX_PERIOD_SECONDS: Final = 1800
_MAX_WINDOW_SECONDS: Final = 3600
_NO_METRIC_FOR_ZERO: Final = "must specify at least one Object or External metric to support scaling to zero replicas"
_METRIC_TYPES: Final = ("ContainerResource", "External", "Object", "Pods", "Resource")
_SELECT_POLICIES: Final = ("Disabled", "Max", "Min")
_POLICY_TYPES: Final = ("Percent", "Pods")
_TARGET_TYPES: Final = ("Utilization", "Value", "AverageValue")


def spec_errors(
    spec: Object, old: Object | None = None, *, to_zero: bool = False, judges_versions: bool = True
) -> ErrorList:
    """The errors in a spec. `old`: the spec before an update, whose values stay allowed: zero replicas (which `to_zero` allows anyway)
    and invalid versions of the targets and metrics (which `judges_versions` checks)."""
    had_none = old is not None and old.get("minReplicas") == 0
    errors = _replica_errors(spec, lowest=0 if to_zero or had_none else 1)
    target, before = spec.get("scaleTargetRef") or {}, (old or {}).get("scaleTargetRef") or {}
    errors += _reference_errors(target, _SPEC.child("scaleTargetRef"))
    if judges_versions and (
        old is None or any(target.get(name, "") != before.get(name, "") for name in ("apiVersion", "kind"))
    ):
        core = target.get("kind") == "ReplicationController"
        errors += _version_errors(target, _SPEC.child("scaleTargetRef"), may_be_core=core)
    tolerated = not judges_versions or any(
        _version_errors(described, _SPEC, may_be_core=True) for described in _described(old or {})
    )
    for i, metric in enumerate(spec.get("metrics") or ()):
        errors += _metric_errors(metric, _SPEC.child("metrics").index(i), tolerated=tolerated)
    if spec.get("minReplicas") == 0 and not {metric.get("type") for metric in spec.get("metrics") or ()} & {
        "Object",
        "External",
    }:
        errors.append(field.forbidden(_SPEC.child("metrics"), _NO_METRIC_FOR_ZERO))
    behavior = spec.get("behavior") or {}
    for name in ("scaleUp", "scaleDown"):
        if (rules := behavior.get(name)) is not None:
            errors += _scaling_rules_errors(rules, _SPEC.child("behavior", name))
    return errors


def _replica_errors(spec: Object, *, lowest: int) -> ErrorList:
    least, most = spec.get("minReplicas"), spec.get("maxReplicas", 0)
    errors: ErrorList = []
    if least is not None and least < lowest:
        errors.append(field.invalid(_SPEC.child("minReplicas"), least, f"must be greater than or equal to {lowest}"))
    path = _SPEC.child("maxReplicas")
    if most == 0:
        errors.append(field.required(path, "must be set and greater than 0"))
    elif most < 0:
        errors.append(field.invalid(path, most, "must be greater than or equal to 1"))
    if least is not None and most < least:
        errors.append(field.invalid(path, most, "must be greater than or equal to `minReplicas`"))
    return errors


def _reference_errors(reference: Object, path: Path) -> ErrorList:
    errors: ErrorList = []
    for name in ("kind", "name"):
        errors += _segment_errors(reference.get(name, ""), path.child(name))
    return errors


def _segment_errors(value: str, path: Path, detail: str = "") -> ErrorList:
    """The errors in a required text that must fit into one segment of a path."""
    return name_errors(value, names.path_segment_name, path) if value else [field.required(path, detail)]


def _version_errors(reference: Object, path: Path, *, may_be_core: bool) -> ErrorList:
    version = reference.get("apiVersion", "")
    group = "" if version.count("/") != 1 else version.partition("/")[0]
    if version.count("/") > 1:
        detail = f"unexpected GroupVersion string: {version}"
    elif not may_be_core and not group:
        detail = "apiVersion must specify API group"
    else:
        return []
    return [field.invalid(path.child("apiVersion"), version, detail)]


def _described(spec: Object) -> list[Object]:
    """The objects that metrics describe."""
    metrics = [metric for metric in spec.get("metrics") or () if metric.get("type") == "Object" and "object" in metric]
    return [metric["object"].get("describedObject") or {} for metric in metrics]


def _metric_errors(metric: Object, path: Path, *, tolerated: bool) -> ErrorList:
    """The errors in a metric. `tolerated`: the versions of described objects aren't checked."""
    kind = metric.get("type", "")
    errors: ErrorList = []
    if not kind:
        errors.append(field.required(path.child("type"), "must specify a metric source type"))
    unsupported = [] if kind in _METRIC_TYPES else [field.not_supported(path.child("type"), kind, _METRIC_TYPES)]
    errors += unsupported
    given = [name for name in _SOURCES if metric.get(name) is not None]
    if given:
        source, at = metric[given[0]], path.child(given[0])
        if given[0] == "object":
            described = source.get("describedObject") or {}
            errors += _reference_errors(described, at.child("describedObject"))
            if not tolerated:
                errors += _version_errors(described, at.child("describedObject"), may_be_core=True)
        errors += _SOURCES[given[0]](source, at)
    expected = kind[:1].lower() + kind[1:]
    if not unsupported and expected not in given:
        errors.append(field.required(path.child(expected), "must populate information for the given metric source"))
    errors += unsupported
    if len(given) > 1:
        others = [name for name in given if name != expected]
        errors += [field.forbidden(path.child(name), "must populate the given metric source only") for name in others]
    return errors


def _object_errors(source: Object, path: Path) -> ErrorList:
    errors, target = _identified_errors(source, path), source.get("target") or {}
    if target.get("value") is None and target.get("averageValue") is None:
        detail = "must set either a target value or averageValue"
        errors.append(field.required(path.child("target", "averageValue"), detail))
    return errors


def _external_errors(source: Object, path: Path) -> ErrorList:
    errors, target = _identified_errors(source, path), source.get("target") or {}
    given = [name for name in ("value", "averageValue") if target.get(name) is not None]
    if not given:
        detail = "must set either a target value for metric or a per-pod target"
        errors.append(field.required(path.child("target", "averageValue"), detail))
    elif len(given) > 1:
        detail = "may not set both a target value for metric and a per-pod target"
        errors.append(field.forbidden(path.child("target", "value"), detail))
    return errors


def _pods_errors(source: Object, path: Path) -> ErrorList:
    errors = _identified_errors(source, path)
    if (source.get("target") or {}).get("averageValue") is None:
        detail = "must specify a positive target averageValue"
        errors.append(field.required(path.child("target", "averageValue"), detail))
    return errors


def _resource_errors(source: Object, path: Path) -> ErrorList:
    errors: ErrorList = (
        [] if source.get("name") else [field.required(path.child("name"), "must specify a resource name")]
    )
    return errors + _used_errors(source, path)


def _container_resource_errors(source: Object, path: Path) -> ErrorList:
    errors: ErrorList = []
    if name := source.get("name"):
        errors += container_resource_name_errors(name, path.child("name"))
    else:
        errors.append(field.required(path.child("name"), "must specify a resource name"))
    if container := source.get("container"):
        errors += name_errors(container, names.is_dns1123_label, path.child("container"))
    else:
        errors.append(field.required(path.child("container"), "must specify a container"))
    return errors + _used_errors(source, path)


# In which order sources are looked at: only the first one's content is.
_SOURCES: Final[Mapping[str, Callable[[Object, Path], ErrorList]]] = {
    "object": _object_errors,
    "external": _external_errors,
    "pods": _pods_errors,
    "resource": _resource_errors,
    "containerResource": _container_resource_errors,
}


def _identified_errors(source: Object, path: Path) -> ErrorList:
    name = (source.get("metric") or {}).get("name", "")
    errors = _segment_errors(name, path.child("metric", "name"), "must specify a metric name")
    return errors + _target_errors(source.get("target") or {}, path.child("target"))


def _used_errors(source: Object, path: Path) -> ErrorList:
    """The errors in the target usage of a resource: an amount or a percentage."""
    target, at = source.get("target") or {}, path.child("target")
    errors = _target_errors(target, at)
    given = [name for name in ("averageUtilization", "averageValue") if target.get(name) is not None]
    if not given:
        detail = "must set either a target raw value or a target utilization"
        errors.append(field.required(at.child("averageUtilization"), detail))
    elif len(given) > 1:
        detail = "may not set both a target raw value and a target utilization"
        errors.append(field.forbidden(at.child("averageValue"), detail))
    return errors


def _target_errors(target: Object, path: Path) -> ErrorList:
    kind = target.get("type", "")
    errors: ErrorList = []
    if not kind:
        errors.append(field.required(path.child("type"), "must specify a metric target type"))
    if kind not in _TARGET_TYPES:
        detail = "must be either Utilization, Value, or AverageValue"
        errors.append(field.invalid(path.child("type"), field.json_text(kind), detail))
    for name in ("value", "averageValue"):
        value = target.get(name)
        if value is not None and amount(value) <= 0:
            errors.append(field.invalid(path.child(name), value, "must be positive"))
    share = target.get("averageUtilization")
    if share is not None and share < 1:
        errors.append(field.invalid(path.child("averageUtilization"), share, "must be greater than 0"))
    return errors


def _scaling_rules_errors(rules: Object, path: Path) -> ErrorList:
    errors: ErrorList = []
    window, at = rules.get("stabilizationWindowSeconds"), path.child("stabilizationWindowSeconds")
    if window is not None and window < 0:
        errors.append(field.invalid(at, window, "must be greater than or equal to zero"))
    if window is not None and window > _MAX_WINDOW_SECONDS:
        errors.append(field.invalid(at, window, f"must be less than or equal to {_MAX_WINDOW_SECONDS}"))
    select = rules.get("selectPolicy")
    if select is not None and select not in _SELECT_POLICIES:
        errors.append(field.not_supported(path.child("selectPolicy"), select, _SELECT_POLICIES))
    policies = rules.get("policies") or ()
    if not policies:
        errors.append(field.required(path.child("policies"), "must specify at least one Policy"))
    for i, policy in enumerate(policies):
        errors += _scaling_policy_errors(policy, path.child("policies").index(i))
    if (tolerance := rules.get("tolerance")) is not None:
        errors += non_negative_amount_errors(tolerance, path.child("tolerance"))
    return errors


def _scaling_policy_errors(policy: Object, path: Path) -> ErrorList:
    errors: ErrorList = []
    if policy.get("type", "") not in _POLICY_TYPES:
        errors.append(field.not_supported(path.child("type"), policy.get("type", ""), _POLICY_TYPES))
    for name in ("value", "periodSeconds"):
        if policy.get(name, 0) <= 0:
            errors.append(field.invalid(path.child(name), policy.get(name, 0), "must be greater than zero"))
    period = policy.get("periodSeconds", 0)
    if period > _MAX_PERIOD_SECONDS:
        detail = f"must be less than or equal to {_MAX_PERIOD_SECONDS}"
        errors.append(field.invalid(path.child("periodSeconds"), period, detail))
    return errors
