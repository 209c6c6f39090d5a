"""HorizontalPodAutoscaler between autoscaling/v1 and v2: what v1 has no field for travels in its annotations.

Upstream: k8s.io/kubernetes/pkg/apis/autoscaling/v1/conversion.go, k8s.io/kubernetes/pkg/apis/autoscaling/helpers.go
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from fakeapiserver.apimachinery.meta import Object


class StatusV1(Object):
    """A status that came in v1, with the v2 one that it means: going back, v1 would say zero where v2 has nothing."""

    __slots__ = ("v2",)

    def __init__(self, value: Object, v2: Object) -> None:
        super().__init__(value)
        self.v2 = v2


# (field of v1, path in v2, what v1 writes when v2 has nothing there: None for nothing), in the order v1 writes them
Rows = tuple[tuple[str, tuple[str, ...], str | None], ...]

PREFIX: Final = "autoscaling.alpha.kubernetes.io/"
METRICS: Final = PREFIX + "metrics"
BEHAVIOR: Final = PREFIX + "behavior"
CURRENT_METRICS: Final = PREFIX + "current-metrics"
CONDITIONS: Final = PREFIX + "conditions"
TOLERANCES: Final = (PREFIX + "scale-down-tolerance", PREFIX + "scale-up-tolerance")
ROUND_TRIP: Final = frozenset({METRICS, BEHAVIOR, CURRENT_METRICS, CONDITIONS, *TOLERANCES})
DEFAULT_CPU_UTILIZATION: Final = 80

NAME: Final = ("name", ("name",), "")
CONTAINER: Final = ("container", ("container",), "")
METRIC: Final = ("metricName", ("metric", "name"), "")
SELECTOR: Final = ("selector", ("metric", "selector"), None)
EXTERNAL_SELECTOR: Final = ("metricSelector", ("metric", "selector"), None)

SOURCES: Final[Mapping[str, Rows]] = {
    "resource": (
        NAME,
        ("targetAverageUtilization", ("target", "averageUtilization"), None),
        ("targetAverageValue", ("target", "averageValue"), None),
    ),
    "containerResource": (
        NAME,
        ("targetAverageUtilization", ("target", "averageUtilization"), None),
        ("targetAverageValue", ("target", "averageValue"), None),
        CONTAINER,
    ),
    "pods": (METRIC, ("targetAverageValue", ("target", "averageValue"), "0"), SELECTOR),
    "object": (
        ("target", ("describedObject",), None),
        METRIC,
        ("targetValue", ("target", "value"), "0"),
        SELECTOR,
        ("averageValue", ("target", "averageValue"), None),
    ),
    "external": (
        METRIC,
        EXTERNAL_SELECTOR,
        ("targetValue", ("target", "value"), None),
        ("targetAverageValue", ("target", "averageValue"), None),
    ),
}
STATUSES: Final[Mapping[str, Rows]] = {
    "resource": (
        NAME,
        ("currentAverageUtilization", ("current", "averageUtilization"), None),
        ("currentAverageValue", ("current", "averageValue"), "0"),
    ),
    "containerResource": (
        NAME,
        ("currentAverageUtilization", ("current", "averageUtilization"), None),
        ("currentAverageValue", ("current", "averageValue"), "0"),
        CONTAINER,
    ),
    "pods": (METRIC, ("currentAverageValue", ("current", "averageValue"), "0"), SELECTOR),
    "object": (
        ("target", ("describedObject",), None),
        METRIC,
        ("currentValue", ("current", "value"), "0"),
        SELECTOR,
        ("averageValue", ("current", "averageValue"), None),
    ),
    "external": (
        METRIC,
        EXTERNAL_SELECTOR,
        ("currentValue", ("current", "value"), "0"),
        ("currentAverageValue", ("current", "averageValue"), None),
    ),
}
# Nested objects are written in the order of these.
ORDER: Final = ("kind", "name", "apiVersion", "matchLabels", "matchExpressions", "key", "operator", "values")
CONDITION: Final = (("type", ""), ("status", ""), ("lastTransitionTime", None), ("reason", None), ("message", None))
RULES: Final = ("stabilizationWindowSeconds", "selectPolicy", "policies", "tolerance")
POLICY: Final = ("type", "value", "periodSeconds")
NAMES: Final = {name.lower(): name for name in ("scaleUp", "scaleDown", *RULES, *POLICY)}
SHARED_SPEC: Final = ("scaleTargetRef", "minReplicas", "maxReplicas")
SHARED_STATUS: Final = ("observedGeneration", "lastScaleTime", "currentReplicas", "desiredReplicas")
# JSON inside an annotation escapes what could end a script, as Go's encoder does.
ESCAPES: Final = {ord(character): f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"}


def to_v1(obj: Object) -> Object:
    """A v2 object as v1 says it, but for apiVersion."""
    spec, status = obj.get("spec", {}), obj.get("status", {})
    kept: Object = {key: spec[key] for key in SHARED_SPEC if key in spec}
    cpu = [
        metric["resource"]["target"]["averageUtilization"] for metric in spec.get("metrics") or () if _is_cpu(metric)
    ]
    if cpu:
        kept["targetCPUUtilizationPercentage"] = cpu[0]
    converted = {**obj, "metadata": _annotated(obj.get("metadata", {}), _encoded(spec, status)), "spec": kept}
    if "status" in obj:
        converted["status"] = _status_v1(status)
    return converted


def there_and_back(obj: Object) -> Object:
    """A v1 object as the internal version leaves it, which remembers what its status meant."""
    meant = to_v2(obj)
    returned = to_v1(meant)
    return {**returned, "status": StatusV1(returned["status"], meant["status"])}


def to_v2(obj: Object) -> Object:
    """A v1 object as v2 says it, but for apiVersion; with no metric at all it gets the CPU one that v1 implies."""
    spec, status = obj.get("spec", {}), obj.get("status", {})
    annotations = obj.get("metadata", {}).get("annotations") or {}
    metrics = [_metric_v2(metric, SOURCES, "target") for metric in _items(annotations, METRICS) or ()]
    utilization = spec.get("targetCPUUtilizationPercentage")
    if utilization is None and not metrics:
        utilization = DEFAULT_CPU_UTILIZATION
    if utilization is not None:
        metrics.append(_cpu({"target": {"type": "Utilization", "averageUtilization": utilization}}))
    kept: Object = {**{key: spec[key] for key in SHARED_SPEC if key in spec}, "metrics": metrics}
    behavior = _decoded(annotations, BEHAVIOR)
    if isinstance(behavior, dict) and any(behavior.values()):
        kept["behavior"] = _named(behavior)
    return {
        **obj,
        "metadata": _annotated(obj.get("metadata", {}), {}),
        "spec": kept,
        "status": status.v2 if isinstance(status, StatusV1) else _status_v2(status, annotations),
    }


def _status_v1(status: Object) -> Object:
    kept: Object = {
        "currentReplicas": 0,
        "desiredReplicas": 0,
        **{key: status[key] for key in SHARED_STATUS if key in status},
    }
    for metric in status.get("currentMetrics") or ():
        utilization = _at(metric, ("resource", "current", "averageUtilization"))
        is_cpu = metric["type"] == "Resource" and _at(metric, ("resource", "name")) == "cpu"
        if is_cpu and utilization is not None:
            kept["currentCPUUtilizationPercentage"] = utilization
    return kept


def _status_v2(status: Object, annotations: Mapping[str, str]) -> Object:
    kept: Object = {"desiredReplicas": 0, **{key: status[key] for key in SHARED_STATUS if key in status}}
    if not kept.get("currentReplicas"):
        kept.pop("currentReplicas", None)
    kept["currentMetrics"] = None
    if (utilization := status.get("currentCPUUtilizationPercentage")) is not None:
        kept["currentMetrics"] = [_cpu({"current": {"averageUtilization": utilization}})]
    recorded = _items(annotations, CURRENT_METRICS)
    if recorded is not None:
        kept["currentMetrics"] = [_metric_v2(metric, STATUSES, "current") for metric in recorded]
    if conditions := _items(annotations, CONDITIONS):
        kept["conditions"] = conditions
    return kept


def _encoded(spec: Object, status: Object) -> dict[str, str]:
    """Returns the annotations of v1 for the values that it has no fields for."""
    others = [_metric_v1(metric, SOURCES) for metric in spec.get("metrics") or () if not _is_cpu(metric)]
    current = [_metric_v1(metric, STATUSES) for metric in status.get("currentMetrics") or ()]
    conditions = [_condition(condition) for condition in status.get("conditions") or ()]
    values = {
        METRICS: others,
        CURRENT_METRICS: current,
        CONDITIONS: conditions,
        BEHAVIOR: _behavior(spec.get("behavior")),
    }
    return {key: _json(value) for key, value in values.items() if value}


def _annotated(metadata: Object, annotations: Mapping[str, str]) -> Object:
    old = metadata.get("annotations") or {}
    kept = {**{key: value for key, value in old.items() if key not in ROUND_TRIP}, **annotations}
    rest = {key: value for key, value in metadata.items() if key != "annotations"}
    return {**rest, "annotations": kept} if kept else rest


def drop_round_trip_annotations(metadata: Object) -> None:
    """v2 has fields for all that v1 puts into annotations."""
    if not ROUND_TRIP.isdisjoint(metadata.get("annotations") or ()):
        metadata.update(_annotated(metadata, {}))
        if ROUND_TRIP.issuperset(metadata["annotations"]):
            del metadata["annotations"]


def _is_cpu(metric: Object) -> bool:
    resource = metric.get("resource") or {}
    wanted = metric.get("type") == "Resource" and resource.get("name") == "cpu"
    return wanted and _at(resource, ("target", "averageUtilization")) is not None


def _cpu(value: Object) -> Object:
    return {"type": "Resource", "resource": {"name": "cpu", **value}}


def _metric_v1(metric: Object, table: Mapping[str, Rows]) -> Object:
    converted: Object = {"type": metric["type"]}
    for key, rows in table.items():
        if key in metric:
            fields = {name: _ordered(_at(metric[key], path)) for name, path, _ in rows}
            empty = {name: default for name, _, default in rows}
            shown = {name: empty[name] if value is None else value for name, value in fields.items()}
            converted[key] = {name: value for name, value in shown.items() if value is not None}
    return converted


def _metric_v2(metric: Object, table: Mapping[str, Rows], place: str) -> Object:
    converted: Object = {"type": metric.get("type", "")}
    for key, rows in table.items():
        if isinstance(metric.get(key), dict):
            converted[key] = _source_v2(metric[key], rows, place)
            if place == "target":
                _set_target_type(key, converted[key])
    return converted


def _source_v2(source: Object, rows: Rows, place: str) -> Object:
    converted: Object = {place: {}}
    for name, path, default in rows:
        value = source.get(name, default)
        if value is not None:
            holder = converted.setdefault(path[0], {}) if len(path) > 1 else converted
            holder[path[-1]] = value
    return converted


def _set_target_type(key: str, source: Object) -> None:
    """v1 says which of the values is meant by leaving the others out, or zero where it must write one."""
    target = source["target"]
    if key == "object" and "averageValue" in target and target.get("value") == "0":
        del target["value"]
    if key in ("resource", "containerResource"):
        kind = "Utilization" if "averageUtilization" in target else "AverageValue"
    elif key == "external":
        kind = "Value" if "value" in target else "AverageValue"
    else:
        kind = "AverageValue" if "averageValue" in target else "Value"
    source["target"] = {"type": kind, **target}


def _condition(condition: Object) -> Object:
    shown = {key: condition.get(key, default) for key, default in CONDITION}
    return {key: value for key, value in shown.items() if value or key not in ("reason", "message")}


def _behavior(behavior: Object | None) -> Object | None:
    """The scaling rules with upstream's internal field names, absent ones as null."""
    if behavior is None:
        return None
    return {_upper(key): _rules(behavior.get(key)) for key in ("scaleUp", "scaleDown")}


def _rules(rules: Object | None) -> Object | None:
    if rules is None:
        return None
    shown = {_upper(key): rules.get(key) for key in RULES}
    if rules.get("policies") is not None:
        shown["Policies"] = [{_upper(key): policy.get(key) for key in POLICY} for policy in rules["policies"]]
    return shown


def _upper(name: str) -> str:
    return name[:1].upper() + name[1:]


def _named(value: Any) -> Any:
    """Returns a behavior's JSON with the field names of v2, which Go matches in any case, and without nulls."""
    if isinstance(value, list):
        return [_named(item) for item in value]
    if isinstance(value, dict):
        return {NAMES.get(key.lower(), key): _named(item) for key, item in value.items() if item is not None}
    return value


def _ordered(value: Any) -> Any:
    if isinstance(value, list):
        return [_ordered(item) for item in value]
    if isinstance(value, dict):
        rank = {key: place for place, key in enumerate(ORDER)}
        keys = sorted(value, key=lambda key: (rank.get(key, len(ORDER)), key))
        return {key: _ordered(value[key]) for key in keys}
    return value


def _at(value: Any, path: tuple[str, ...]) -> Any:
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).translate(ESCAPES)


def _decoded(annotations: Mapping[str, str], key: str) -> Any:
    """Returns an annotation's value, or None if it is missing or invalid: upstream ignores it then."""
    try:
        return json.loads(annotations[key])
    except (KeyError, ValueError):
        return None


def _items(annotations: Mapping[str, str], key: str) -> list[Object] | None:
    """The objects that an annotation lists."""
    decoded = _decoded(annotations, key)
    return decoded if isinstance(decoded, list) and all(isinstance(item, dict) for item in decoded) else None
