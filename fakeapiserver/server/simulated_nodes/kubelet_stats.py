"""The usage of simulated nodes: /stats/summary and /metrics/resource. Pure.

A container's usage is its script's `usage`, else what a test has set in the metrics APIs, else 1m of processor time and 10Mi of
memory. Counters of processor time grow at that rate from the container's start.

Upstream: k8s.io/kubelet/pkg/apis/stats/v1alpha1/types.go, pkg/kubelet/metrics/collectors/resource_metrics.go.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from msgspec import Struct

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.quantity import parse
from fakeapiserver.apimachinery.timestamp import rfc3339, seconds_of
from fakeapiserver.nodes.behaviour import Behaviours
from fakeapiserver.nodes.node import CAPACITY
from fakeapiserver.server.metrics_apis.values import Usage, Values

_NANOS: Final = 10**9
_MEMORY: Final = "memory"
_STORAGE: Final = "ephemeral-storage"
_PIDS: Final = "pids"


class ContainerStats(NamedTuple):
    """`usage` by resource, in cores, bytes and processes. `started` in seconds since the epoch."""

    name: str
    started: float
    usage: Mapping[str, float]


class PodStats(Struct, frozen=True):
    """A pod and its running containers."""

    pod: Object
    containers: tuple[ContainerStats, ...]

    def total(self, resource: str) -> float:
        """Returns the sum of the containers' usage."""
        return sum(container.usage.get(resource, 0.0) for container in self.containers)

    def core_seconds(self, now: float) -> float:
        """The processor time that the running containers have used."""
        return sum(_core_seconds(container, now) for container in self.containers)


class NodeStats(Struct, frozen=True):
    """`started`: since when the node runs, in seconds since the epoch. `usage`: by resource, with that of its pods."""

    name: str
    started: float
    usage: Mapping[str, float]
    pods: tuple[PodStats, ...]


def node_stats(name: str, started: float, pods: Iterable[Object], behaviours: Behaviours, values: Values) -> NodeStats:
    """The usage of a node and its pods now."""
    pods_stats = tuple(_pod_stats(pod, behaviours, values) for pod in pods)
    own = values.of_node({"metadata": {"name": name}}, ()) or {}
    usage = {resource: float(quantity.amount) for resource, quantity in own.items()}
    for resource in {"cpu", _MEMORY, _STORAGE, _PIDS}:
        usage[resource] = usage.get(resource, 0.0) + sum(pod.total(resource) for pod in pods_stats)
    return NodeStats(name, started, usage, pods_stats)


def _pod_stats(pod: Object, behaviours: Behaviours, values: Values) -> PodStats:
    known: Mapping[str, Usage] = dict(values.of_pod(pod) or ())
    status = pod.get("status") or {}
    rows = [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]
    containers = []
    for row in rows:
        if (running := row["state"].get("running")) is None:
            continue
        usage = {resource: float(quantity.amount) for resource, quantity in known.get(row["name"], {}).items()}
        scripted = behaviours.of(pod, row["name"], main=True).usage
        usage |= {resource: float(parse(text).amount) for resource, text in scripted.items()}
        containers.append(ContainerStats(row["name"], seconds_of(running["startedAt"]) or 0.0, usage))
    return PodStats(pod, tuple(containers))


def _core_seconds(container: ContainerStats, now: float) -> float:
    return container.usage.get("cpu", 0.0) * max(0.0, now - container.started)


# ------------------------------------------------------------------------ summary


def summary(stats: NodeStats, now: float) -> Object:
    """A stats/v1alpha1 Summary."""
    seconds = max(0.0, now - stats.started)
    memory_left = float(parse(CAPACITY[_MEMORY]).amount) - stats.usage[_MEMORY]
    disk = _disk(stats.usage[_STORAGE], now)
    return {
        "node": {
            "nodeName": stats.name,
            "startTime": rfc3339(stats.started),
            "cpu": _cpu(stats.usage["cpu"], stats.usage["cpu"] * seconds, now),
            "memory": {**_memory(stats.usage[_MEMORY], now), "availableBytes": int(memory_left)},
            "fs": disk,
            "runtime": {"imageFs": disk, "containerFs": disk},
            "rlimit": {"time": rfc3339(now), "maxpid": 1 << 22, "curproc": int(stats.usage[_PIDS])},
        },
        "pods": [_pod(pod, now) for pod in stats.pods if pod.containers],
    }


def _pod(stats: PodStats, now: float) -> Object:
    metadata = stats.pod["metadata"]
    return {
        "podRef": {"name": metadata["name"], "namespace": metadata["namespace"], "uid": metadata["uid"]},
        "startTime": (stats.pod.get("status") or {}).get("startTime"),
        "containers": [
            {
                "name": container.name,
                "startTime": rfc3339(container.started),
                "cpu": _cpu(container.usage.get("cpu", 0.0), _core_seconds(container, now), now),
                "memory": _memory(container.usage.get(_MEMORY, 0.0), now),
                "rootfs": _disk(container.usage.get(_STORAGE, 0.0), now),
            }
            for container in stats.containers
        ],
        "cpu": _cpu(stats.total("cpu"), stats.core_seconds(now), now),
        "memory": _memory(stats.total(_MEMORY), now),
        "ephemeral-storage": _disk(stats.total(_STORAGE), now),
        "process_stats": {"process_count": int(stats.total(_PIDS))},
    }


def _cpu(cores: float, core_seconds: float, now: float) -> Object:
    used = round(core_seconds * _NANOS)
    return {"time": rfc3339(now), "usageNanoCores": round(cores * _NANOS), "usageCoreNanoSeconds": used}


def _memory(used: float, now: float) -> Object:
    return {"time": rfc3339(now), **dict.fromkeys(("usageBytes", "workingSetBytes", "rssBytes"), int(used))}


def _disk(used: float, now: float) -> Object:
    capacity = int(parse(CAPACITY[_STORAGE]).amount)
    return {
        "time": rfc3339(now),
        "availableBytes": capacity - int(used),
        "capacityBytes": capacity,
        "usedBytes": int(used),
    }


# ------------------------------------------------------------------------ metrics


class _Family(NamedTuple):
    kind: str
    help: str
    samples: Sequence[tuple[str, float]]


def resource_metrics(stats: NodeStats, now: float) -> str:
    """The text of /metrics/resource. Samples have the time at which they were taken, in milliseconds."""
    seconds = max(0.0, now - stats.started)
    containers = [
        (_labels(pod.pod, f'container="{container.name}",'), container)
        for pod in stats.pods
        for container in pod.containers
    ]
    pods = [(_labels(pod.pod), pod) for pod in stats.pods if pod.containers]
    time, bytes_ = "Cumulative cpu time consumed by the {} in core-seconds", "Current working set of the {} in bytes"
    families = {
        "container_cpu_usage_seconds_total": _Family(
            "counter",
            time.format("container"),
            [(row, _core_seconds(container_stats, now)) for row, container_stats in containers],
        ),
        "container_memory_working_set_bytes": _Family(
            "gauge",
            bytes_.format("container"),
            [(row, container_stats.usage.get(_MEMORY, 0.0)) for row, container_stats in containers],
        ),
        "container_start_time_seconds": _Family(
            "gauge",
            "Start time of the container since unix epoch in seconds",
            [(row, container_stats.started) for row, container_stats in containers],
        ),
        "node_cpu_usage_seconds_total": _Family("counter", time.format("node"), [("", stats.usage["cpu"] * seconds)]),
        "node_memory_working_set_bytes": _Family("gauge", bytes_.format("node"), [("", stats.usage[_MEMORY])]),
        "pod_cpu_usage_seconds_total": _Family(
            "counter", time.format("pod"), [(row, pod.core_seconds(now)) for row, pod in pods]
        ),
        "pod_memory_working_set_bytes": _Family(
            "gauge", bytes_.format("pod"), [(row, pod.total(_MEMORY)) for row, pod in pods]
        ),
    }
    text = "".join(line for name, family in families.items() for line in _lines(name, family, f" {int(now * 1000)}"))
    failed = _Family("gauge", "1 if there was an error while getting container metrics, 0 otherwise", [("", 0.0)])
    return text + "".join(_lines("resource_scrape_error", failed, ""))


def _labels(pod: Object, container: str = "") -> str:
    metadata = pod["metadata"]
    return f'{{{container}namespace="{metadata["namespace"]}",pod="{metadata["name"]}"}}'


def _lines(name: str, family: _Family, stamp: str) -> Iterator[str]:
    if not family.samples:
        return
    yield f"# HELP {name} [STABLE] {family.help}\n# TYPE {name} {family.kind}\n"
    for labels, value in family.samples:
        yield f"{name}{labels} {value:.15g}{stamp}\n"
