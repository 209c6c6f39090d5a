"""Horizontal pod autoscalers, which are served in two versions.

Upstream: pkg/registry/autoscaling/horizontalpodautoscaler/strategy.go, pkg/apis/autoscaling/{v1,v2}/defaults.go; what is valid is
in `autoscaler_validation.py`.
"""

from typing import TYPE_CHECKING, Final

from fakeapiserver.apimachinery import field
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.apis import conversion_autoscaling
from fakeapiserver.registry.autoscaling.autoscaler_validation import spec_errors
from fakeapiserver.registry.core.field_formats import non_negative_errors
from fakeapiserver.registry.generic.strategy import Cells, Strategy
from fakeapiserver.registry.generic.table_cells import NONE, UNSET, age

if TYPE_CHECKING:
    from fakeapiserver.apimachinery.schema.decoders import Empties

_UNKNOWN: Final = "<unknown>"
_TO_ZERO: Final = "HPAScaleToZero"
_SHOWN: Final = 2
_PERCENT: Final = {"type": "Percent", "value": 100, "periodSeconds": 15}
_PODS: Final = {"type": "Pods", "value": 4, "periodSeconds": 15}
_SOURCES: Final = {
    "External": "external",
    "Pods": "pods",
    "Object": "object",
    "Resource": "resource",
    "ContainerResource": "containerResource",
}

_TOO_FEW: Final = ("must be set and greater than 0", "must be greater than or equal to 1")


class HorizontalPodAutoscalerStrategy(Strategy, kw_only=True):
    def convert_decoded(self, obj: Object, empties: "Empties") -> None:
        """Rules with an empty list of policies get none by default, and are refused."""
        for name in ("scaleUp", "scaleDown"):
            if ("spec", "behavior", name, "policies") in empties:
                obj["spec"]["behavior"][name]["policies"] = []

    def default(self, obj: Object, version: str) -> None:
        spec = obj["spec"]
        spec.setdefault("minReplicas", 1)
        if version == "v1":
            # Values that v1 has no field for are in annotations, which conversion to the internal version and back writes again.
            if type(obj.get("apiVersion")) is str and obj.get("kind"):
                returned = conversion_autoscaling.there_and_back(obj)
                obj.clear()
                obj.update(returned)
            return
        conversion_autoscaling.drop_round_trip_annotations(metadata(obj))
        if not spec.get("metrics"):
            target = {"type": "Utilization", "averageUtilization": 80}
            spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
        _default_behavior(spec)

    def prepare_for_create(self, obj: Object) -> None:
        v1 = str(obj.get("apiVersion", "")).endswith("/v1")
        obj["status"] = {"currentReplicas": 0} if v1 else {"currentMetrics": None}
        obj["status"]["desiredReplicas"] = 0

    def validate(self, obj: Object) -> ErrorList:
        return self._errors(obj, None)

    def canonicalize(self, obj: Object) -> None:
        """Storage in v2 fills in what a v1 object's behavior lacks."""
        _default_behavior(obj["spec"])

    def validate_update(self, obj: Object, old: Object) -> ErrorList:
        return self._errors(obj, _meant(old)["spec"])

    def _errors(self, obj: Object, before: Object | None) -> ErrorList:
        """The errors by the server's version; older versions have the same message for zero and for negative replicas."""
        errors = spec_errors(
            _meant(obj)["spec"],
            before,
            to_zero=self.features.enabled(_TO_ZERO),
            judges_versions=self.features.at_least("v1.34"),
        )
        if self.features.at_least("v1.36"):
            return errors
        return [
            field.invalid(error.field, error.value or 0, "must be greater than 0")
            if error.field == "spec.maxReplicas" and error.detail in _TOO_FEW
            else error
            for error in errors
        ]

    def raises_generation(self, obj: Object, old: Object) -> bool:
        """Compares in v2. The way through v1 changes the order of metrics, which counts as a change."""
        return super().raises_generation(_meant(obj), _meant(old))

    def validate_status_update(self, obj: Object, old: Object) -> ErrorList:
        status, path = obj.get("status") or {}, Path("status")
        counts = ("currentReplicas", "desiredReplicas")
        return [error for name in counts for error in non_negative_errors(status.get(name, 0), path.child(name))]

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


def _default_behavior(spec: Object) -> None:
    if (behavior := spec.get("behavior")) is not None:
        up = {"stabilizationWindowSeconds": 0, "selectPolicy": "Max", "policies": [dict(_PODS), dict(_PERCENT)]}
        down = {"selectPolicy": "Max", "policies": [dict(_PERCENT)]}
        behavior["scaleUp"] = {**up, **(behavior.get("scaleUp") or {})}
        behavior["scaleDown"] = {**down, **(behavior.get("scaleDown") or {})}


def _meant(obj: Object) -> Object:
    """The object in the form of v2, in which every version is validated."""
    return conversion_autoscaling.to_v2(obj) if str(obj.get("apiVersion", "")).endswith("/v1") else obj


def _metrics(spec: Object, status: Object) -> str:
    specs, statuses = spec.get("metrics") or (), status.get("currentMetrics") or ()
    if not specs:
        return NONE
    cells = [_metric(metric, statuses[i] if i < len(statuses) else {}) for i, metric in enumerate(specs)]
    more = f" + {len(cells) - _SHOWN} more..." if len(cells) > _SHOWN else ""
    return ", ".join(cells[:_SHOWN]) + more


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
        used, target_share = current.get("averageUtilization"), target.get("averageUtilization")
        used_text = _UNKNOWN if used is None else f"{used}%"
        return f"{source.get('name', '')}: {used_text}/{'<auto>' if target_share is None else f'{target_share}%'}"
    if kind == "Pods":
        return f"{current.get('averageValue', missing)}/{target.get('averageValue', '<nil>')}"
    if average:
        return f"{current.get('averageValue', _UNKNOWN)}/{target['averageValue']} (avg)"
    return f"{current.get('value', missing)}/{target.get('value', '<nil>')}"
