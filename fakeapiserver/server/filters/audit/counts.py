"""The metrics of auditing (upstream: k8s.io/apiserver/pkg/audit/metrics.go)."""

import logging
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec import Struct, field

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

log = logging.getLogger(__name__)


class AuditCounts(Struct):
    """Counts of the audit log. `levels`: requests by the level that a policy gives them; `errors`: lost events by plugin; `rejected`:
    requests that were rejected since no backend could log them.
    """

    events: int = 0
    rejected: int = 0
    levels: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)

    def lost(self, plugin: str, events: int, why: object) -> None:
        self.errors[plugin] += events
        log.error("Error in audit plugin '%s' affecting %d audit events: %s", plugin, events, why)

    def reset(self) -> None:
        self.events = self.rejected = 0
        self.levels.clear()
        self.errors.clear()

    def metrics(self) -> Iterator["Metric"]:
        from prometheus_client.metrics_core import CounterMetricFamily

        prefix = "apiserver_audit"
        yield CounterMetricFamily(f"{prefix}_event", "Audit events sent to the backend", value=self.events)
        text = "Requests refused since they could not be audited"
        yield CounterMetricFamily(f"{prefix}_requests_rejected", text, value=self.rejected)
        for name, label, counts, text in (
            ("level", "level", self.levels, "Requests by the level that the policy gives them"),
            ("error", "plugin", self.errors, "Audit events that were lost, by who has lost them"),
        ):
            family = CounterMetricFamily(f"{prefix}_{name}", text, labels=[label])
            for value, count in sorted(counts.items()):
                family.add_metric([value], count)
            yield family
