"""Reads the events that a server has written into its audit log for the requests of a run.

A scenario with `"audit": true` sends each request under an audit id of its own, and each answer keeps in `audit` the events that the server
has logged for its request. The log is `audit.log` in the folder of the area's credentials.
"""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

# Upstream writes the last event of a request after its answer; a scenario's last request has none that waits for it.
_WRITTEN: Final = 0.5  # seconds
_LATENCY: Final = "apiserver.latency.k8s.io/"

Event = dict[str, Any]


class AuditLog:
    """Reads a log on from where it ends now."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._start = path.stat().st_size

    def events(self, audit_ids: Sequence[str]) -> list[list[Event]]:
        """Returns the events of each request, in order; of a repeated request only the last attempt's."""
        time.sleep(_WRITTEN)
        found: dict[str, list[Event]] = {}
        for event in self._lines():
            known = found.setdefault(event["auditID"], [])
            if event["stage"] == "RequestReceived":
                known.clear()
            known.append(_comparable(event))
        return [found.get(audit_id, []) for audit_id in audit_ids]

    def _lines(self) -> Iterator[Event]:
        with self._path.open() as file:
            file.seek(self._start)
            # events of other clients' requests may be half written
            yield from (json.loads(line) for line in file if line.endswith("\n"))


def _comparable(event: Mapping[str, Any]) -> Event:
    """Without what a slow answer adds."""
    kept = {key: value for key, value in event.items() if key != "annotations"}
    annotations = event.get("annotations") or {}
    told = {key: value for key, value in annotations.items() if not key.startswith(_LATENCY)}
    return {**kept, "annotations": told} if told else kept
