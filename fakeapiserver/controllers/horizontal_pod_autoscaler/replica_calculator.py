"""The number of pods that a metric asks for (upstream: pkg/controller/podautoscaler/replica_calculator.go, metrics/utilization.go).

Values are in thousandths. Numbers behave as Go's do: a division by zero is infinite, what is too large for its type wraps around.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from msgspec import Struct

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.quantity import milli_value, parse
from fakeapiserver.apimachinery.timestamp import seconds_of
from fakeapiserver.apis.pod_resources import charged_resources, is_pod_level
from fakeapiserver.component_helpers.objects import is_terminating
from fakeapiserver.component_helpers.pods import is_pod_ready, pod_condition, pod_phase

MAX_INT32: Final = 2**31 - 1
MAX_INT64: Final = 2**63 - 1
_CPU: Final = "cpu"
_NO_PODS: Final = "no pods returned by selector while calculating replica count"
_NO_METRICS: Final = "did not receive metrics for targeted pods (pods might be unready)"


class CalculationError(Exception):
    """The number can't be computed; the text says why."""


class PodMetric(NamedTuple):
    """A pod's value, measured in the `window` (seconds) before `timestamp` (seconds since the Unix epoch)."""

    value: int
    timestamp: float = 0.0
    window: float = 0.0


# By the pod's name.
PodMetrics = dict[str, PodMetric]


class Tolerances(Struct, frozen=True):
    """The relative deviations from the target below which no pod is added or removed."""

    scale_down: float
    scale_up: float

    def covers(self, ratio: float) -> bool:
        return 1.0 - self.scale_down <= ratio <= 1.0 + self.scale_up


class Delays(Struct, frozen=True):
    """Seconds after a pod's start: in which its CPU counts only while it is ready, and until when one that isn't never was."""

    cpu_initialization_period: float
    initial_readiness_delay: float


class ResourceProposal(NamedTuple):
    replicas: int
    utilization: int
    usage: int


class Proposal(NamedTuple):
    """A number of pods, and the usage for the status."""

    replicas: int
    usage: int


class CalculationRules(NamedTuple):
    """The tolerated deviation from a target, the delays in which pods don't count, and the time in seconds since the epoch."""

    tolerances: Tolerances
    delays: Delays
    now: float


class _Groups(NamedTuple):
    """The names of pods by state; `ready`: the number of all others."""

    ready: int
    unready: set[str]
    missing: set[str]
    ignored: set[str]


# ------------------------------------------------------------------- metrics of each pod


def resource_replicas(
    metrics: PodMetrics,
    pods: Sequence[Object],
    current: int,
    target: int,
    resource: str,
    container: str,
    rules: CalculationRules,
) -> ResourceProposal:
    """Computes the replicas from a utilization target in percent of the requests. Raises CalculationError."""
    groups, metrics = _counted(metrics, pods, resource, rules)
    requests = {pod["metadata"]["name"]: _request(pod, container, resource) for pod in pods}
    ratio, utilization, usage = _utilization(metrics, requests, target)

    def missing(name: str) -> int:
        """Assumes that a missing pod uses all that it requests."""
        return requests[name] * max(100, target) // 100

    def ratio_of(pod_metrics: PodMetrics) -> float:
        return _utilization(pod_metrics, requests, target)[0]

    return ResourceProposal(
        _replicas(metrics, groups, current, ratio, rules.tolerances, missing, ratio_of), utilization, usage
    )


def plain_replicas(
    metrics: PodMetrics,
    pods: Sequence[Object],
    current: int,
    target: int,
    resource: str,
    rules: CalculationRules,
) -> Proposal:
    """By the value that each pod should have. `resource`: empty for a custom metric. CalculationError."""
    groups, metrics = _counted(metrics, pods, resource, rules)
    ratio, usage = _usage(metrics, target)
    replicas = _replicas(
        metrics,
        groups,
        current,
        ratio,
        rules.tolerances,
        lambda name: target,
        lambda pod_metrics: _usage(pod_metrics, target)[0],
    )
    return Proposal(replicas, usage)


def _counted(
    metrics: PodMetrics, pods: Sequence[Object], resource: str, rules: CalculationRules
) -> tuple[_Groups, PodMetrics]:
    """The metrics that count. CalculationError."""
    if not pods:
        raise CalculationError(_NO_PODS)
    groups = _group(pods, metrics, resource, rules.delays, rules.now)
    left_out = groups.ignored | groups.unready
    kept = {name: metric for name, metric in metrics.items() if name not in left_out}
    if not kept:
        raise CalculationError(_NO_METRICS)
    return groups, kept


def _replicas(
    metrics: PodMetrics,
    groups: _Groups,
    current: int,
    ratio: float,
    tolerances: Tolerances,
    missing: Callable[[str], int],
    ratio_of: Callable[[PodMetrics], float],
) -> int:
    """Computes the replicas; missing and unready pods are assumed to dampen the change. Raises CalculationError."""
    growing_with_unready = bool(groups.unready) and ratio > 1.0
    if not growing_with_unready and not groups.missing:
        return current if tolerances.covers(ratio) else ceil32(ratio * groups.ready)
    assumed = dict(metrics)
    if ratio < 1.0:
        assumed |= {name: PodMetric(missing(name)) for name in groups.missing}
    elif ratio > 1.0:
        assumed |= dict.fromkeys(groups.missing, PodMetric(0))
    if growing_with_unready:
        assumed |= dict.fromkeys(groups.unready, PodMetric(0))
    assumed_ratio = ratio_of(assumed)
    if tolerances.covers(assumed_ratio) or (ratio < 1.0 < assumed_ratio) or (assumed_ratio < 1.0 < ratio):
        return current
    replicas = ceil32(assumed_ratio * len(assumed))
    if (assumed_ratio < 1.0 and replicas > current) or (assumed_ratio > 1.0 and replicas < current):
        return current
    return replicas


def _group(
    pods: Iterable[Object], metrics: Mapping[str, PodMetric], resource: str, delays: Delays, now: float
) -> _Groups:
    """Upstream: groupPods."""
    ready, unready, missing, ignored = 0, set(), set(), set()
    for pod in pods:
        name, phase = pod["metadata"]["name"], pod_phase(pod)
        metric = metrics.get(name)
        if is_terminating(pod) or phase == "Failed":
            ignored.add(name)
        elif phase == "Pending":
            unready.add(name)
        elif metric is None:
            missing.add(name)
        elif resource == _CPU and not _is_measured(pod, metric, delays, now):
            unready.add(name)
        else:
            ready += 1
    return _Groups(ready, unready, missing, ignored)


def _is_measured(pod: Object, metric: PodMetric, delays: Delays, now: float) -> bool:
    """Reports whether its CPU is that of its work, rather than of its start."""
    condition, started = pod_condition(pod, "Ready"), seconds_of((pod.get("status") or {}).get("startTime") or "")
    if condition is None or started is None:
        return False
    since = seconds_of(condition.get("lastTransitionTime") or "")
    is_unready = condition["status"] == "False"
    if started + delays.cpu_initialization_period > now:
        # A whole window must have gone by since.
        return not is_unready and not (since is not None and metric.timestamp < since + metric.window)
    return not (is_unready and (since is None or started + delays.initial_readiness_delay > since))


def _utilization(metrics: PodMetrics, requests: Mapping[str, int], target: int) -> tuple[float, int, int]:
    """(part of the target, percent of the requests, average usage). CalculationError."""
    known = [(metric.value, requests[name]) for name, metric in metrics.items() if name in requests]
    used, requested = sum(value for value, _ in known), sum(request for _, request in known)
    if requested == 0:
        raise CalculationError("no metrics returned matched known pods")
    percent = int32(_quotient(used * 100, requested))
    return divided(percent, target), percent, _quotient(used, len(known))


def _usage(metrics: PodMetrics, target: int) -> tuple[float, int]:
    """(part of the target, average)."""
    average = _quotient(sum(metric.value for metric in metrics.values()), len(metrics))
    return divided(average, target), average


def _request(pod: Object, container: str, resource: str) -> int:
    """Returns the request of the container or the whole pod. Raises CalculationError."""
    name, spec = pod["metadata"]["name"], pod["spec"]
    if not container and _has_pod_level_requests(spec):
        requested = charged_resources({"spec": spec}, "requests").get(resource)
        if requested is None:
            raise CalculationError(f"missing pod-level request for {resource} in Pod {name}")
        return milli_value(requested)
    total = 0
    for one in _running_containers(spec):
        if container in ("", one["name"]):
            text = ((one.get("resources") or {}).get("requests") or {}).get(resource)
            if text is None:
                raise CalculationError(f"missing request for {resource} in container {one['name']} of Pod {name}")
            total += milli_value(parse(str(text)))
        if container == one["name"]:
            return total
    if container:
        raise CalculationError(f"container {container} not found in Pod {name}")
    return total


def _has_pod_level_requests(spec: Object) -> bool:
    return any(is_pod_level(name) for name in (spec.get("resources") or {}).get("requests") or ())


def _running_containers(spec: Object) -> Iterable[Mapping[str, Any]]:
    """Yields the containers that run as long as the pod does."""
    yield from spec["containers"]
    yield from (one for one in spec.get("initContainers") or () if one.get("restartPolicy") == "Always")


# ------------------------------------------------------------------- metrics of something else


def value_replicas(
    usage: int, target: int, current: int, pods: Callable[[], Sequence[Object]], tolerances: Tolerances
) -> int:
    """By the value that something has in all; `pods` are those that it is shared by. CalculationError."""
    ratio = divided(usage, target)
    if current == 0:
        return ceil32(ratio)
    if tolerances.covers(ratio):
        return current
    count = pods()
    if not count:
        raise CalculationError(f"unable to calculate ready pods: {_NO_PODS}")
    ready = sum(pod_phase(pod) == "Running" and is_pod_ready(pod) for pod in count)
    wanted = ratio * ready
    return MAX_INT32 if wanted > MAX_INT32 else ceil32(wanted)


def value_per_pod_replicas(usage: int, target: int, current: int, tolerances: Tolerances) -> Proposal:
    """By the value that something should have for each pod (an Object metric)."""
    ratio = divided(usage, target * current)
    replicas = current if tolerances.covers(ratio) else ceil32(divided(usage, target))
    return Proposal(replicas, ceil64(divided(usage, current)))


def external_per_pod_replicas(usage: int, target: int, current: int, tolerances: Tolerances) -> Proposal:
    """The same of an External metric, which may be too large to count."""
    ratio, replicas = divided(usage, target * current), current
    if not tolerances.covers(ratio):
        wanted = divided(usage, target)
        replicas = MAX_INT32 if wanted > MAX_INT32 else ceil32(wanted)
    if float(usage) >= float(MAX_INT64):
        return Proposal(replicas, MAX_INT64)
    return Proposal(replicas, ceil64(divided(usage, current)))


# ------------------------------------------------------------------------------ numbers


def divided(number: float, by: float) -> float:
    """Divides as Go does: by zero is infinite or NaN."""
    if by:
        return number / by
    return math.nan if number == 0 or math.isnan(number) else math.copysign(math.inf, number)


def int32(number: int) -> int:
    """Returns the lower half of an int64."""
    return (number + 2**31) % 2**32 - 2**31


def ceil32(number: float) -> int:
    """Rounded up; the least there is for what no int32 can hold."""
    return _ceil(number, 31)


def ceil64(number: float) -> int:
    """The same of an int64."""
    return _ceil(number, 63)


def _ceil(number: float, bits: int) -> int:
    rounded = math.ceil(number) if math.isfinite(number) else 2**bits
    return rounded if -(2**bits) <= rounded < 2**bits else -(2**bits)


def _quotient(number: int, by: int) -> int:
    """Towards zero."""
    return -(-number // by) if number < 0 else number // by
