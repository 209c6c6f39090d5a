"""Values that an autoscaler computes, and what it computes them from."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, Final, NamedTuple

from fakeapiserver.apimachinery import labels
from fakeapiserver.apimachinery.gvk import GroupVersionResource
from fakeapiserver.apimachinery.labels import Selector
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.quantity import Family, Quantity, milli_value, parse
from fakeapiserver.apimachinery.timestamp import rfc3339
from fakeapiserver.component_helpers.conditions import find_condition
from fakeapiserver.controllers.horizontal_pod_autoscaler.replica_calculator import (
    CalculationError,
    Tolerances,
)
from fakeapiserver.controllers.horizontal_pod_autoscaler.scaling import (
    Reason,
)

# Why a metric can't be read, by its type.
FAILED: Final = {
    "Object": "FailedGetObjectMetric",
    "Pods": "FailedGetPodsMetric",
    "Resource": "FailedGetResourceMetric",
    "ContainerResource": "FailedGetContainerResourceMetric",
    "External": "FailedGetExternalMetric",
}


class HPAError(Exception):
    """An autoscaler failed in whole or in part; its status and events were written already."""


class Scale(NamedTuple):
    """A target's scale subresource, and where it is."""

    resource: GroupVersionResource
    obj: Object

    @property
    def replicas(self) -> int:
        replicas: int = self.obj["spec"].get("replicas", 0)
        return replicas

    @property
    def status(self) -> Mapping[str, Any]:
        status: Mapping[str, Any] = self.obj.get("status") or {}
        return status


class Measured(NamedTuple):
    """The result of one metric: pods, the metric's description, and its part of the status."""

    replicas: int
    name: str
    status: Object


class Computed(NamedTuple):
    """The result of all metrics.

    `statuses`: one for each. `failure`: of the first metric that couldn't be read, if any.
    """

    replicas: int
    name: str
    statuses: Sequence[Object]
    failure: str


class Metric(NamedTuple):
    """The inputs for one metric of an autoscaler."""

    namespace: str
    source: Mapping[str, Any]
    scale: Scale
    selector: Selector
    tolerances: Tolerances

    @property
    def identifier(self) -> Mapping[str, Any]:
        metric: Mapping[str, Any] = self.source["metric"]
        return metric

    @property
    def name(self) -> str:
        return str(self.identifier["name"])

    @property
    def external_name(self) -> str:
        return f"external metric {self.name}({labels.go_text(self.identifier.get('selector'))})"

    def labels(self) -> Selector:
        """The selector of the series that count. Raises CalculationError."""
        try:
            return labels.from_label_selector(self.identifier.get("selector"))
        except ValueError as error:
            raise CalculationError(str(error)) from None


class NoScale(Exception):
    """The target's scale can't be read."""


class InvalidVersion(NoScale):
    """No server can serve this version."""


class MetricFailed(Exception):
    """A metric can't be read. The text is for events and conditions; `context` precedes it elsewhere."""

    def __init__(self, why: str, reason: str, context: str) -> None:
        super().__init__(why)
        self.reason = reason
        self.context = context


class InContext(Exception):
    """Wraps a CalculationError, whose text is reported without this context."""


class Uncomputable(Exception):
    """The number of pods can't be computed; the text says why. `statuses`: of the metrics that could be read."""

    def __init__(self, why: str, statuses: Sequence[Object] | None = None) -> None:
        super().__init__(why)
        self.statuses = statuses


class Status:
    """The status of an autoscaler that is being written. `generation`: the one that it will have observed; 0: it doesn't say."""

    def __init__(self, old: Object | None, now: float, generation: int = 0) -> None:
        self._fields: Object = {**(old or {})}
        self._now = now
        self._generation = generation

    def set(self, condition_type: str, status: str, reason: Reason) -> None:
        """Sets a condition; it changed now only if its status did."""
        old = find_condition(self._fields.get("conditions"), condition_type)
        since = rfc3339(self._now) if old is None or old["status"] != status else old.get("lastTransitionTime")
        new = {"type": condition_type, "status": status, "lastTransitionTime": since, **reason._asdict()}
        conditions = {row["type"]: row for row in self._fields.get("conditions") or ()}
        self._fields["conditions"] = [*(conditions | {condition_type: new}).values()]

    def is_true(self, condition_type: str) -> bool:
        condition = find_condition(self._fields.get("conditions"), condition_type)
        return condition is not None and condition["status"] == "True"

    def remove(self, condition_type: str) -> None:
        conditions = self._fields.get("conditions") or ()
        self._fields["conditions"] = [row for row in conditions if row["type"] != condition_type]

    def show(
        self, current: int, metrics: Sequence[Object] | None, desired: int | None = None, *, scaled: bool = False
    ) -> None:
        """Numbers of pods (desired: as before, by default) and metrics. Beside them stay the conditions and the last time."""
        self._fields = {
            "observedGeneration": self._generation,
            "currentReplicas": current,
            "desiredReplicas": self._fields.get("desiredReplicas", 0) if desired is None else desired,
            "lastScaleTime": rfc3339(self._now) if scaled else self._fields.get("lastScaleTime"),
            "currentMetrics": metrics,
            "conditions": self._fields.get("conditions"),
        }

    def differs(self, other: Object | None) -> bool:
        """Reports whether the status differs; empty fields count as absent."""
        return _filled(self._fields) != _filled(other or {})

    def written(self) -> Object:
        return {"desiredReplicas": 0, **_filled(self._fields)}


def tolerances_of(spec: Object, default: float) -> Tolerances:
    """Returns the tolerances of an autoscaler for going down and up."""
    behavior = spec.get("behavior") or {}
    down, up = ((behavior.get(way) or {}).get("tolerance") for way in ("scaleDown", "scaleUp"))
    return Tolerances(*(default if text is None else approximate(text) for text in (down, up)))


def measured(replicas: int, name: str, kind: str, shown: Object) -> Measured:
    return Measured(replicas, name, {"type": kind, field(kind): shown})


def field(kind: str) -> str:
    """Returns the field that holds a metric of this type."""
    return kind[0].lower() + kind[1:]


def _filled(fields: Object) -> Object:
    return {name: value for name, value in fields.items() if value}


def milli(text: object) -> int:
    return milli_value(parse(str(text)))


def quantity(thousandths: int, family: Family = "DecimalSI") -> str:
    return str(Quantity(Fraction(thousandths, 1000), family))


def resource_quantity(resource: str, thousandths: int) -> str:
    """Returns the amount in the form of the resource metrics."""
    return quantity(thousandths, "BinarySI" if resource == "memory" else "DecimalSI")


def approximate(text: object) -> float:
    """Returns the amount as Go multiplies it (upstream: AsApproximateFloat64)."""
    amount = parse(str(text)).amount
    power = next(power for power in (0, 3, 6, 9) if (amount * 10**power).denominator == 1)
    return float(amount * 10**power) * 10.0**-power
