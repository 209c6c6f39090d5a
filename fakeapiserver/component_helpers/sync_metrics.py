"""Counts and times the syncs of the controllers that publish kube-apiserver's authority.

Upstream: pkg/controller/certificates/{rootcacertpublisher,clustertrustbundlepublisher}/metrics.go.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Final

from fakeapiserver.client.errors import StatusError
from fakeapiserver.controller_runtime.metrics import Metrics

_BUCKETS: Final = tuple(0.001 * 2**power for power in range(15))


class SyncMetrics:
    """The metrics `NAME_total` and `NAME_duration_seconds`, by the code of the response that ended a sync. `synced`: what is synced."""

    def __init__(self, metrics: Metrics, name: str, synced: str) -> None:
        self._syncs = metrics.counter(f"{name}_total", f"Syncs of {synced}", "code")
        self._seconds = metrics.histogram(
            f"{name}_duration_seconds", f"How long syncs of {synced} took", _BUCKETS, "code"
        )

    @contextmanager
    def sync(self) -> Iterator[None]:
        """Counts the block as a sync. Errors go through."""
        start, code = perf_counter(), "500"
        try:
            yield
            code = "200"
        except StatusError as error:
            code = str(error.code)
            raise
        finally:
            self._syncs.labels(code).inc()
            self._seconds.labels(code).observe(perf_counter() - start)
