"""Prometheus metrics under controller-runtime's names, with its labels.

Upstream: sigs.k8s.io/controller-runtime/pkg/{internal/controller/metrics,internal/metrics,metrics,certwatcher/metrics},
pkg/webhook/{internal/metrics,admission/metrics,conversion/metrics}.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, cached_property
from typing import Final, Protocol

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from prometheus_client.metrics_core import GaugeMetricFamily, Metric

__all__ = [
    "CONTENT_TYPE",
    "ControllerMetrics",
    "Measured",
    "Metrics",
    "QueueMetrics",
]

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_RECONCILE_BUCKETS: Final = (
    *(0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0),
    *(1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 60),
)
_REQUEST_BUCKETS: Final = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
_BUCKETS: Final = (1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1, 10, 100, 1000)
_RESULTS: Final = ("success", "error", "requeue", "requeue_after")
_MAX_PRIORITIES: Final = 25
_TOO_MANY_PRIORITIES: Final = "exceeded_cardinality_limit"


class Measured(Protocol):
    """A queue, as far as its gauges go."""

    @property
    def depths(self) -> Mapping[int, int]: ...

    @property
    def oldest_processing(self) -> float: ...

    @property
    def unfinished_seconds(self) -> float: ...


class Metrics:
    """The metrics of one manager, in a registry of its own, which users may extend. All times are in seconds."""

    def __init__(self, queue_names: Mapping[str, str] | None = None) -> None:
        """`queue_names`: what queues are called here, where it isn't their own name; then metrics are as components of Kubernetes
        label them, who have neither controllers nor priorities."""
        registry = self.registry = CollectorRegistry()
        # Registered first, so that the others are collected with the series that it creates.
        self._late = _LateSeries()
        registry.register(self._late)
        registry.register(_process())
        self._queue_names = queue_names or {}
        self._made: dict[str, Counter | Gauge | Histogram] = {}
        counter, gauge, histogram = self.counter, self.gauge, self.histogram
        name = "controller_runtime_reconcile"
        self.reconcile_total = counter(f"{name}_total", "Reconciliations, by result", "controller", "result")
        self.reconcile_errors = counter(f"{name}_errors_total", "Reconciliations that failed", "controller")
        self.terminal_errors = counter(
            "controller_runtime_terminal_reconcile_errors_total", "Failures that aren't tried again", "controller"
        )
        self.panics = counter(f"{name}_panics_total", "Reconcilers that broke off unexpectedly", "controller")
        self.timeouts = counter(f"{name}_timeouts_total", "Reconciliations that took too long", "controller")
        self.reconcile_time = histogram(
            f"{name}_time_seconds", "How long reconciliations took", _RECONCILE_BUCKETS, "controller"
        )
        self.max_concurrent = gauge(
            "controller_runtime_max_concurrent_reconciles", "How many may run at once", "controller"
        )
        self.active_workers = gauge("controller_runtime_active_workers", "How many run", "controller")
        self.leader = gauge("leader_election_master_status", "1 for the leader, else 0, by lease", "name")
        self._requests = counter(
            "rest_client_requests_total", "Requests to API servers, each try by itself", "code", "host", "method"
        )
        # controller-runtime doesn't measure it, components do
        self._request_seconds = (
            histogram(
                "rest_client_request_duration_seconds", "Until an answer's head came", _REQUEST_BUCKETS, "host", "verb"
            )
            if queue_names is not None
            else None
        )
        name = "controller_runtime_webhook"
        self.webhook_latency = histogram(f"{name}_latency_seconds", "How long answers took", _BUCKETS, "webhook")
        self.webhook_requests = counter(f"{name}_requests_total", "Answers by HTTP status code", "code", "webhook")
        self.webhook_in_flight = gauge(f"{name}_requests_in_flight", "Requests that aren't answered yet", "webhook")
        self.webhook_panics = counter(f"{name}_panics_total", "Webhooks that broke off unexpectedly")
        self.conversion_panics = counter(
            "controller_runtime_conversion_webhook_panics_total", "Conversions that broke off unexpectedly"
        )
        self.certificate_reads = counter("certwatcher_read_certificate_total", "How often certificates were read")
        self.certificate_errors = counter(
            "certwatcher_read_certificate_errors_total", "How often certificates couldn't be read"
        )
        self._queues = _Queues(registry, by_controller=queue_names is None)
        registry.register(self._queues)

    def counter(self, name: str, text: str, *labels: str) -> Counter:
        """The one of this name, as it was first made; so are gauges and histograms."""
        metric = self._made.get(name) or Counter(name, text, labels, registry=self.registry)
        assert isinstance(metric, Counter)
        self._made[name] = metric
        return metric

    def gauge(self, name: str, text: str, *labels: str) -> Gauge:
        metric = self._made.get(name) or Gauge(name, text, labels, registry=self.registry)
        assert isinstance(metric, Gauge)
        self._made[name] = metric
        return metric

    def histogram(self, name: str, text: str, buckets: Iterable[float], *labels: str) -> Histogram:
        metric = self._made.get(name) or Histogram(name, text, labels, registry=self.registry, buckets=tuple(buckets))
        assert isinstance(metric, Histogram)
        self._made[name] = metric
        return metric

    def of_controller(self, controller: str, max_concurrent: int) -> "ControllerMetrics":
        """Every series of a controller is there from the beginning, but for the time of reconciliations."""
        metrics = ControllerMetrics(self, controller)

        def create() -> None:
            self.max_concurrent.labels(controller).set(max_concurrent)
            metrics.create()

        self._late.creators.append(create)
        return metrics

    def of_queue(self, name: str) -> "QueueMetrics":
        """For a WorkQueue of this name."""
        metrics = QueueMetrics(self._queues, name, self._queue_names.get(name, name))
        self._late.creators.append(metrics.create)
        return metrics

    def watch_queue(self, name: str, queue: Measured) -> None:
        """Reads the queue's gauges at each scrape."""
        self._queues.known[name] = (self._queue_names.get(name, name), queue)

    def count_request(self, code: str, method: str, host: str, seconds: float) -> None:
        """A client's RequestMetrics."""
        self._requests.labels(code, host, method).inc()
        if self._request_seconds is not None:
            self._request_seconds.labels(host, method).observe(seconds)

    def of_webhook(self, path: str) -> None:
        """The likely series of a webhook are there from the beginning."""
        for code in ("200", "500"):
            self.webhook_requests.labels(code, path)
        self.webhook_in_flight.labels(path)

    def exposition(self) -> bytes:
        """All of them in Prometheus' text format, without the time when each was made."""
        lines: list[str] = []
        for metric in sorted(self.registry.collect(), key=lambda metric: metric.name):
            samples = [sample for sample in metric.samples if not sample.name.endswith("_created")]
            if not samples:
                continue
            # not every counter of Kubernetes has the ending that Prometheus wants
            bare = metric.name in self._made
            name = metric.name if bare or metric.type != "counter" else f"{metric.name}_total"
            lines += (f"# HELP {name} {_escaped(metric.documentation)}", f"# TYPE {name} {metric.type}")
            for sample in samples:
                shown = name if bare and metric.type == "counter" else sample.name
                labels = ",".join(f'{key}="{_quoted(value)}"' for key, value in sorted(sample.labels.items()))
                lines.append(
                    f"{shown}{{{labels}}} {_number(sample.value)}" if labels else f"{shown} {_number(sample.value)}"
                )
        return ("\n".join(lines) + "\n").encode()


@cache
def _process() -> ProcessCollector:
    """Returns the metrics of this process, which are read at each scrape."""
    return ProcessCollector(registry=None)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def _quoted(text: str) -> str:
    return _escaped(text).replace('"', '\\"')


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)


class _Queues:
    """Work queues: what they count, and what they are asked for."""

    def __init__(self, registry: CollectorRegistry, *, by_controller: bool) -> None:
        # By controller: what the queue is called, and the queue.
        self.known: dict[str, tuple[str, Measured]] = {}
        self._by_controller = by_controller
        names = self._names = ["controller", "name"] if by_controller else ["name"]
        self.adds = Counter("workqueue_adds_total", "Items that were added", names, registry=registry)
        self.retries = Counter("workqueue_retries_total", "Items that were to be added later", names, registry=registry)
        self.queue_seconds = Histogram(
            "workqueue_queue_duration_seconds", "How long items waited", names, registry=registry, buckets=_BUCKETS
        )
        self.work_seconds = Histogram(
            "workqueue_work_duration_seconds",
            "How long items were worked on",
            names,
            registry=registry,
            buckets=_BUCKETS,
        )

    def labels(self, controller: str, name: str) -> list[str]:
        """Returns the label values of a queue's series."""
        return [controller, name] if self._by_controller else [name]

    def describe(self) -> Iterator[Metric]:
        yield from ()

    def collect(self) -> Iterator[Metric]:
        labels = self._names
        by_priority = [*labels, "priority"] if self._by_controller else labels
        depth = GaugeMetricFamily("workqueue_depth", "Items that wait", labels=by_priority)
        unfinished = GaugeMetricFamily(
            "workqueue_unfinished_work_seconds", "Seconds of work that goes on, together", labels=labels
        )
        longest = GaugeMetricFamily(
            "workqueue_longest_running_processor_seconds", "Seconds since the oldest work began", labels=labels
        )
        for controller, (name, queue) in self.known.items():
            depths, of_queue = queue.depths, self.labels(controller, name)
            if not self._by_controller:
                depth.add_metric(of_queue, sum(depths.values()))
            elif len(depths) > _MAX_PRIORITIES:
                depth.add_metric([*of_queue, _TOO_MANY_PRIORITIES], sum(depths.values()))
            else:
                for priority, count in depths.items():
                    depth.add_metric([*of_queue, str(priority)], count)
            unfinished.add_metric(of_queue, queue.unfinished_seconds)
            longest.add_metric(of_queue, queue.oldest_processing)
        yield from (depth, unfinished, longest)


class _LateSeries:
    """Creates series when metrics are first collected: a start has hundreds of them, which most processes never show."""

    def __init__(self) -> None:
        self.creators: list[Callable[[], object]] = []

    def describe(self) -> Iterator[Metric]:
        yield from ()

    def collect(self) -> Iterator[Metric]:
        creators, self.creators = self.creators, []
        for create in creators:
            create()
        yield from ()


class ControllerMetrics:
    """The metrics of one controller, each looked up once."""

    def __init__(self, metrics: Metrics, controller: str) -> None:
        self._metrics = metrics
        self._controller = controller

    def create(self) -> None:
        """Creates all series but the time of reconciliations."""
        _ = self.results, self.errors, self.terminal_errors, self.panics, self.timeouts, self.active_workers

    @cached_property
    def results(self) -> Mapping[str, Counter]:
        """The reconciliations by their result."""
        return {result: self._metrics.reconcile_total.labels(self._controller, result) for result in _RESULTS}

    @cached_property
    def errors(self) -> Counter:
        """The failed reconciliations."""
        return self._metrics.reconcile_errors.labels(self._controller)

    @cached_property
    def terminal_errors(self) -> Counter:
        """The failures that aren't tried again."""
        return self._metrics.terminal_errors.labels(self._controller)

    @cached_property
    def panics(self) -> Counter:
        """The reconcilers that broke off."""
        return self._metrics.panics.labels(self._controller)

    @cached_property
    def timeouts(self) -> Counter:
        """The reconciliations that took too long."""
        return self._metrics.timeouts.labels(self._controller)

    @cached_property
    def active_workers(self) -> Gauge:
        """The workers that run."""
        return self._metrics.active_workers.labels(self._controller)

    @cached_property
    def time(self) -> Histogram:
        """There from the first reconciliation on."""
        return self._metrics.reconcile_time.labels(self._controller)


class QueueMetrics:
    """The metrics of one queue, each looked up once."""

    def __init__(self, queues: _Queues, controller: str, name: str) -> None:
        self._queues = queues
        self._labels = queues.labels(controller, name)

    def create(self) -> None:
        """Creates all series."""
        _ = self._adds, self._retries, self._queue_seconds, self._work_seconds

    @cached_property
    def _adds(self) -> Counter:
        return self._queues.adds.labels(*self._labels)

    @cached_property
    def _retries(self) -> Counter:
        return self._queues.retries.labels(*self._labels)

    @cached_property
    def _queue_seconds(self) -> Histogram:
        return self._queues.queue_seconds.labels(*self._labels)

    @cached_property
    def _work_seconds(self) -> Histogram:
        return self._queues.work_seconds.labels(*self._labels)

    def added(self, priority: int) -> None:
        self._adds.inc()

    def taken(self, waited: float, priority: int) -> None:
        self._queue_seconds.observe(waited)

    def finished(self, worked: float) -> None:
        self._work_seconds.observe(worked)

    def retried(self) -> None:
        self._retries.inc()
