"""Horizontal pod autoscalers, which are served in two versions.

Upstream: pkg/registry/autoscaling/horizontalpodautoscaler/strategy.go, pkg/apis/autoscaling/{v1,v2}/defaults.go.
"""

from typing import Final

from fakeapiserver.apimachinery import field
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.apis import conversion_autoscaling
from fakeapiserver.registry.generic.strategy import Cells, Strategy
from fakeapiserver.registry.generic.table_cells import NONE, UNSET, age

_SPEC: Final = Path("spec")
_UNKNOWN: Final = "<unknown>"
_SHOWN: Final = 2
_TARGET_VERSION: Final = "spec.scaleTargetRef.apiVersion"
_NO_METRIC_FOR_ZERO: Final = "must specify at least one Object or External metric to support scaling to zero replicas"
_PERCENT: Final = {"type": "Percent", "value": 100, "periodSeconds": 15}
_PODS: Final = {"type": "Pods", "value": 4, "periodSeconds": 15}
_SOURCES: Final = {
    "External": "external",
    "Pods": "pods",
    "Object": "object",
    "Resource": "resource",
    "ContainerResource": "containerResource",
}


class HorizontalPodAutoscalerStrategy(Strategy, kw_only=True):
    def default(self, obj: Object, version: str) -> None:
        spec = obj["spec"]
        spec.setdefault("minReplicas", 1)
        if version == "v1":
            # What v1 has no field for travels in annotations, which the way through the internal version reads and writes anew.
            if type(obj.get("apiVersion")) is str and obj.get("kind"):
                returned = conversion_autoscaling.there_and_back(obj)
                obj.clear()
                obj.update(returned)
            return
        conversion_autoscaling.drop_round_trip_annotations(metadata(obj))
        if not spec.get("metrics"):
            target = {"type": "Utilization", "averageUtilization": 80}
            spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
        if (behavior := spec.get("behavior")) is not None:
            up = {"stabilizationWindowSeconds": 0, "selectPolicy": "Max", "policies": [dict(_PODS), dict(_PERCENT)]}
            down = {"selectPolicy": "Max", "policies": [dict(_PERCENT)]}
            behavior["scaleUp"] = {**up, **(behavior.get("scaleUp") or {})}
            behavior["scaleDown"] = {**down, **(behavior.get("scaleDown") or {})}

    def prepare_for_create(self, obj: Object) -> None:
        v1 = str(obj.get("apiVersion", "")).endswith("/v1")
        obj["status"] = {"currentReplicas": 0} if v1 else {"currentMetrics": None}
        obj["status"]["desiredReplicas"] = 0

    def validate(self, obj: Object) -> ErrorList:
        spec, errors = obj["spec"], ErrorList()
        least, most = spec.get("minReplicas", 1), spec.get("maxReplicas", 0)
        if least < 1:
            detail = "must be greater than or equal to 1"
            errors.append(field.invalid(_SPEC.child("minReplicas"), least, detail))
        if most == 0:
            errors.append(field.required(_SPEC.child("maxReplicas"), "must be set and greater than 0"))
        elif most < 0:
            detail = "must be greater than or equal to 1"
            errors.append(field.invalid(_SPEC.child("maxReplicas"), most, detail))
        if most < least:
            detail = "must be greater than or equal to `minReplicas`"
            errors.append(field.invalid(_SPEC.child("maxReplicas"), most, detail))
        target, path = spec.get("scaleTargetRef") or {}, _SPEC.child("scaleTargetRef")
        errors += [field.required(path.child(name)) for name in ("kind", "name") if not target.get(name)]
        version = target.get("apiVersion", "")
        detail = ""
        if version.count("/") > 1:
            detail = f"unexpected GroupVersion string: {version}"
        elif not version.rpartition("/")[0] and target.get("kind") != "ReplicationController":
            detail = "apiVersion must specify API group"
        if detail:
            errors.append(field.invalid(path.child("apiVersion"), version, detail))
        if least == 0 and not {metric.get("type") for metric in spec.get("metrics") or ()} & {"Object", "External"}:
            errors.append(field.forbidden(_SPEC.child("metrics"), _NO_METRIC_FOR_ZERO))
        return errors

    def validate_update(self, obj: Object, old: Object) -> ErrorList:
        """A target's version is judged only when it changes, or the target's kind."""
        new, before = (each["spec"].get("scaleTargetRef") or {} for each in (obj, old))
        tolerated = all(new.get(name) == before.get(name) for name in ("apiVersion", "kind"))
        return [error for error in self.validate(obj) if not (tolerated and str(error.field) == _TARGET_VERSION)]

    def table_row(self, obj: Object, now: float) -> Cells:
        spec, status = obj.get("spec") or {}, obj.get("status") or {}
        target = spec.get("scaleTargetRef") or {}
        return [
            metadata(obj).get("name", ""),
            f"{target.get('kind', '')}/{target.get('name', '')}",
            _metrics(spec, status),
            str(spec.get("minReplicas", UNSET)),
            spec.get("maxReplicas", 0),
            status.get("currentReplicas", 0),
            age(obj, now),
        ]


def _metrics(spec: Object, status: Object) -> str:
    specs, statuses = spec.get("metrics") or (), status.get("currentMetrics") or ()
    if not specs:
        return NONE
    found = [_metric(metric, statuses[i] if i < len(statuses) else {}) for i, metric in enumerate(specs)]
    more = f" + {len(found) - _SHOWN} more..." if len(found) > _SHOWN else ""
    return ", ".join(found[:_SHOWN]) + more


def _metric(metric: Object, status: Object) -> str:
    kind = str(metric.get("type", ""))
    if kind not in _SOURCES:
        return "<unknown type>"
    source = metric.get(_SOURCES[kind]) or {}
    target = source.get("target") or {}
    reported = status.get(_SOURCES[kind])
    current = (reported or {}).get("current") or {}
    # A missing quantity of a metric that is there shows as Go shows it, but where only the average may be meant.
    missing = _UNKNOWN if reported is None else "<nil>"
    average = "averageValue" in target
    if kind in ("Resource", "ContainerResource"):
        if average:
            return f"{source.get('name', '')}: {current.get('averageValue', missing)}/{target['averageValue']}"
        used, wanted = current.get("averageUtilization"), target.get("averageUtilization")
        shown = _UNKNOWN if used is None else f"{used}%"
        return f"{source.get('name', '')}: {shown}/{'<auto>' if wanted is None else f'{wanted}%'}"
    if kind == "Pods":
        return f"{current.get('averageValue', missing)}/{target.get('averageValue', '<nil>')}"
    if average:
        return f"{current.get('averageValue', _UNKNOWN)}/{target['averageValue']} (avg)"
    return f"{current.get('value', missing)}/{target.get('value', '<nil>')}"
