"""The job controller's metrics (upstream: pkg/controller/job/metrics/metrics.go)."""

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.controller_runtime.metrics import Metrics


class JobMetrics:
    """Series of one manager."""

    def __init__(self, metrics: Metrics) -> None:
        of_sync = ("completion_mode", "result", "action")
        self._syncs = metrics.counter("job_controller_job_syncs_total", "Job syncs", *of_sync)
        self._sync_seconds = metrics.histogram(
            "job_controller_job_sync_duration_seconds",
            "How long job syncs took",
            [0.004 * 2**power for power in range(15)],
            *of_sync,
        )
        self._finished = metrics.counter(
            "job_controller_jobs_finished_total", "Jobs that have finished", "completion_mode", "result", "reason"
        )
        self._pods_finished = metrics.counter(
            "job_controller_job_pods_finished_total", "Pods that were counted", "completion_mode", "result"
        )
        self._pods_made = metrics.counter(
            "job_controller_job_pods_creation_total", "Pods that were made", "reason", "status"
        )

    def synced(self, job: Object, result: str, action: str, seconds: float) -> None:
        """`action` is reconciling, tracking, pods_created or pods_deleted."""
        mode = _mode(job)
        self._syncs.labels(mode, result, action).inc()
        self._sync_seconds.labels(mode, result, action).observe(seconds)

    def finished(self, job: Object, result: str, reason: str) -> None:
        self._finished.labels(_mode(job), result, reason).inc()

    def pods_finished(self, job: Object, succeeded: int, failed: int) -> None:
        for result, count in (("succeeded", succeeded), ("failed", failed)):
            self._pods_finished.labels(_mode(job), result).inc(max(count, 0))

    def pods_made(self, reason: str, succeeded: int, failed: int) -> None:
        for status, count in (("succeeded", succeeded), ("failed", failed)):
            if count:
                self._pods_made.labels(reason, status).inc(count)


def _mode(job: Object) -> str:
    mode: str = job["spec"].get("completionMode") or "NonIndexed"
    return mode
