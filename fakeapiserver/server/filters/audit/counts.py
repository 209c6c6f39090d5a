"""The metrics of auditing (upstream: k8s.io/apiserver/pkg/audit/metrics.go)."""

import logging
from typing import Final

from fakeapiserver.apimachinery.instruments import Family, Instruments

log = logging.getLogger(__name__)

EVENTS: Final = Family("apiserver_audit_event_total", "Audit events sent to the backend", ())
REJECTED: Final = Family(
    "apiserver_audit_requests_rejected_total", "Requests refused since they could not be audited", ()
)
LEVELS: Final = Family("apiserver_audit_level_total", "Requests by the level that the policy gives them", ("level",))
ERRORS: Final = Family("apiserver_audit_error_total", "Audit events that were lost, by who has lost them", ("plugin",))


class AuditCounts:
    """Counts what becomes of audit events."""

    def __init__(self, instruments: Instruments) -> None:
        self._events, self._rejected = instruments.counter(EVENTS), instruments.counter(REJECTED)
        self._levels, self._errors = instruments.counter(LEVELS), instruments.counter(ERRORS)

    def sent(self) -> None:
        """Counts an event that goes to the backends."""
        self._events[()] += 1

    def rejected(self) -> None:
        """Counts a request that was rejected since no backend could log it."""
        self._rejected[()] += 1

    def decided(self, level: str) -> None:
        """Counts a request by the level that the policy gives it."""
        self._levels[level,] += 1

    def lost(self, plugin: str, events: int, why: object) -> None:
        """Counts events that a plugin has lost, and logs why."""
        self._errors[plugin,] += events
        log.error("Error in audit plugin '%s' affecting %d audit events: %s", plugin, events, why)
