"""The node lifecycle controller's metrics (upstream: pkg/controller/nodelifecycle/metrics.go)."""

from collections.abc import Mapping, Sequence
from typing import Final

from fakeapiserver.controller_runtime.metrics import Metrics

_NODE_BUCKETS: Final = tuple(0.001 * 4**power for power in range(8))
_BUCKETS: Final = tuple(0.01 * 4**power for power in range(8))


class NodeMetrics:
    """Series of one manager, by zone."""

    def __init__(self, metrics: Metrics) -> None:
        self._size = metrics.gauge("node_collector_zone_size", "Nodes of a zone", "zone")
        self._health = metrics.gauge("node_collector_zone_health", "Percentage of healthy nodes", "zone")
        self._unhealthy = metrics.gauge("node_collector_unhealthy_nodes_in_zone", "Nodes that aren't ready", "zone")
        # of one node, and of all
        self.update_node = metrics.histogram(
            "node_collector_update_node_health_duration_seconds", "How long a look at a node took", _NODE_BUCKETS
        )
        self.update_all_nodes = metrics.histogram(
            "node_collector_update_all_nodes_health_duration_seconds", "How long a look at all nodes took", _BUCKETS
        )
        self._evictions = metrics.counter("node_collector_evictions_total", "Nodes whose pods had to go", "zone")
        self._known: set[str] = set()

    def zones(self, ready: Mapping[str, Sequence[bool]]) -> None:
        """Sets the metrics of each zone; zones that lost all nodes stay, as empty ones."""
        self._known |= ready.keys()
        for zone in self._known:
            nodes = ready.get(zone, ())
            unhealthy = len(nodes) - sum(nodes)
            self._size.labels(zone).set(len(nodes))
            self._health.labels(zone).set(100 * sum(nodes) / len(nodes) if nodes else 100)
            self._unhealthy.labels(zone).set(unhealthy)
            self._evictions.labels(zone)

    def evicted(self, zone: str) -> None:
        """A node was given its taint."""
        self._evictions.labels(zone).inc()
