"""Prometheus metrics under controller-runtime's names.

Upstream: sigs.k8s.io/controller-runtime/pkg/{internal/controller/metrics/metrics.go,metrics/workqueue.go,metrics/leaderelection.go},
pkg/webhook/internal/metrics.
"""

from collections.abc import Iterator
from typing import Final, Protocol

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.metrics_core import GaugeMetricFamily, Metric

_RECONCILE_BUCKETS: Final = (
    *(0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0),
    *(1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 60),
)
_QUEUE_BUCKETS: Final = (1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1, 10, 100, 1000)
_RESULTS: Final = ("success", "error", "requeue", "requeue_after")


class Measured(Protocol):
    """A queue, as far as its gauges go."""

    def __len__(self) -> int: ...

    @property
    def oldest_processing(self) -> float: ...

    @property
    def unfinished_seconds(self) -> float: ...


class Metrics:
    """One manager's metrics, in a registry of its own, to which anybody may add."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        registry, controller = self.registry, ["controller"]
        name = "controller_runtime"
        self.reconcile_total = Counter(
            f"{name}_reconcile_total", "Reconciliations, by result", ["controller", "result"], registry=registry
        )
        self.reconcile_errors = Counter(
            f"{name}_reconcile_errors_total", "Reconciliations that failed", controller, registry=registry
        )
        self.terminal_errors = Counter(
            f"{name}_terminal_reconcile_errors_total", "Failures that aren't tried again", controller, registry=registry
        )
        self.panics = Counter(
            f"{name}_reconcile_panics_total", "Reconcilers that broke off unexpectedly", controller, registry=registry
        )
        self.timeouts = Counter(
            f"{name}_reconcile_timeouts_total", "Reconciliations that took too long", controller, registry=registry
        )
        self.reconcile_time = Histogram(
            f"{name}_reconcile_time_seconds",
            "Seconds that reconciliations took",
            controller,
            registry=registry,
            buckets=_RECONCILE_BUCKETS,
        )
        self.max_concurrent = Gauge(
            f"{name}_max_concurrent_reconciles", "How many may run at once", controller, registry=registry
        )
        self.active_workers = Gauge(f"{name}_active_workers", "How many run", controller, registry=registry)
        self.leader = Gauge("leader_election_master_status", "1 for the leader, else 0", ["name"], registry=registry)
        self._queues = _Queues(registry)
        registry.register(self._queues)

    def of_controller(self, controller: str, max_concurrent: int) -> None:
        """Every series of a controller is there from the beginning."""
        for result in _RESULTS:
            self.reconcile_total.labels(controller, result)
        for counter in (self.reconcile_errors, self.terminal_errors, self.panics, self.timeouts):
            counter.labels(controller)
        self.reconcile_time.labels(controller)
        self.max_concurrent.labels(controller).set(max_concurrent)
        self.active_workers.labels(controller).set(0)

    def of_queue(self, name: str) -> "QueueMetrics":
        """For a WorkQueue of this name."""
        return QueueMetrics(self._queues, name)

    def watch_queue(self, name: str, queue: Measured) -> None:
        """Its gauges are read whenever somebody asks."""
        self._queues.known[name] = queue


class _Queues:
    """Work queues: what they count, and what they are asked for."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.known: dict[str, Measured] = {}
        names = ["controller", "name"]
        self.adds = Counter("workqueue_adds_total", "Items that were added", names, registry=registry)
        self.retries = Counter("workqueue_retries_total", "Items that were added again", names, registry=registry)
        self.queue_seconds = Histogram(
            "workqueue_queue_duration_seconds",
            "Seconds that items waited",
            names,
            registry=registry,
            buckets=_QUEUE_BUCKETS,
        )
        self.work_seconds = Histogram(
            "workqueue_work_duration_seconds",
            "Seconds that items were worked on",
            names,
            registry=registry,
            buckets=_QUEUE_BUCKETS,
        )

    def describe(self) -> Iterator[Metric]:
        yield from ()

    def collect(self) -> Iterator[Metric]:
        labels = ["controller", "name"]
        depth = GaugeMetricFamily("workqueue_depth", "Items that wait", labels=labels)
        unfinished = GaugeMetricFamily(
            "workqueue_unfinished_work_seconds", "Seconds of work that goes on, together", labels=labels
        )
        longest = GaugeMetricFamily(
            "workqueue_longest_running_processor_seconds", "Seconds since the oldest work began", labels=labels
        )
        for name, queue in self.known.items():
            depth.add_metric([name, name], len(queue))
            unfinished.add_metric([name, name], queue.unfinished_seconds)
            longest.add_metric([name, name], queue.oldest_processing)
        yield from (depth, unfinished, longest)


class QueueMetrics:
    """What one queue tells."""

    def __init__(self, queues: _Queues, name: str) -> None:
        self._adds = queues.adds.labels(name, name)
        self._retries = queues.retries.labels(name, name)
        self._queue_seconds = queues.queue_seconds.labels(name, name)
        self._work_seconds = queues.work_seconds.labels(name, name)

    def added(self, priority: int) -> None:
        self._adds.inc()

    def taken(self, waited: float, priority: int) -> None:
        self._queue_seconds.observe(waited)

    def finished(self, worked: float) -> None:
        self._work_seconds.observe(worked)

    def retried(self) -> None:
        self._retries.inc()
