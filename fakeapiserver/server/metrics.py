"""What the server counts, under kube-apiserver's metric names.

Upstream: k8s.io/apiserver/pkg/endpoints/metrics/metrics.go. Counting is a dict update; prometheus-client, which costs some
100 ms to import, renders the text when /metrics is first asked for.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fakeapiserver.storage.interface import Storage

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(slots=True)
class Metrics:
    """Labels come from closed sets only: an unknown verb or resource is `other`, so that no client can grow them."""

    storage: Storage
    requests: Counter[tuple[str, str, str, str, str, str]] = field(default_factory=Counter)

    def count(self, verb: str, group: str, version: str, resource: str, subresource: str, code: int) -> None:
        self.requests[verb, group, version, resource, subresource, str(code)] += 1

    def render(self) -> bytes:
        """Prometheus' text format."""
        from prometheus_client import CollectorRegistry, generate_latest

        registry = CollectorRegistry()
        registry.register(_Collector(self))
        return generate_latest(registry)


class _Collector:
    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def collect(self) -> Iterator["Metric"]:
        from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily

        names = ["verb", "group", "version", "resource", "subresource", "code"]
        requests = CounterMetricFamily("apiserver_request", "Requests by verb, resource and HTTP code", labels=names)
        for values, count in sorted(self._metrics.requests.items()):
            requests.add_metric(list(values), count)
        yield requests
        revision = GaugeMetricFamily("apiserver_storage_revision", "The newest revision of the storage")
        revision.add_metric([], self._metrics.storage.revision)
        yield revision
