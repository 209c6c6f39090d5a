"""The autoscaler's own metrics (upstream: pkg/controller/podautoscaler/monitor)."""

from collections.abc import Callable
from time import perf_counter
from typing import Final

from fakeapiserver.controller_runtime.metrics import Metrics

_NAME: Final = "horizontal_pod_autoscaler_controller"
_BUCKETS: Final = tuple(0.001 * 2**power for power in range(15))


class Monitor:
    """autoscalers: how many there are."""

    def __init__(self, metrics: Metrics, autoscalers: Callable[[], int]) -> None:
        labels = ("action", "error")
        self._total = metrics.counter(f"{_NAME}_reconciliations_total", "Looks at autoscalers, by result", *labels)
        self._seconds = metrics.histogram(
            f"{_NAME}_reconciliation_duration_seconds", "How long a look took", _BUCKETS, *labels
        )
        metrics.gauge(f"{_NAME}_num_horizontal_pod_autoscalers", "Autoscalers there are").set_function(autoscalers)

    def begin(self) -> "Observation":
        """Starts to measure one sync."""
        return Observation(self)

    def observe(self, action: str, error: str, seconds: float) -> None:
        self._total.labels(action, error).inc()
        self._seconds.labels(action, error).observe(seconds)


class Observation:
    """action: `scale_up`, `scale_down` or `none`; error: `spec`, `internal` or `none`."""

    def __init__(self, monitor: Monitor) -> None:
        self._monitor = monitor
        self._start = perf_counter()
        self.action = "none"
        self.error = "none"

    def scaled(self, current: int, desired: int) -> None:
        self.action = "scale_up" if desired > current else "scale_down"

    def end(self) -> None:
        self._monitor.observe(self.action, self.error, perf_counter() - self._start)
