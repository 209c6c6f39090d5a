"""The report about a cluster after a failed test: requests by client, refusals, objects that are not ready, busy controllers."""

import json
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from fakeapiserver.clock import AdjustableClock
from fakeapiserver.cluster import Cluster
from fakeapiserver.evidence.entry import RequestEntry
from fakeapiserver.server.local import LocalServer

MAX_LINES: Final = 60
_WIDTH: Final = 200
# How many lines a part of the short report has, with its heading; together they are fewer than MAX_LINES.
_REQUESTS: Final = 26
_REFUSALS: Final = 7
_WARNINGS: Final = 9
_NOT_READY: Final = 11
_BUSY: Final = 5
# Conditions that are true when all is well.
_GOOD: Final = frozenset(("Ready", "Available", "Established", "NamesAccepted", "PodScheduled", "ContainersReady"))
_SHOWN_MESSAGE: Final = 100


def text(cluster: Cluster, *, full: bool = False) -> str:
    """The report as lines, at most MAX_LINES unless it is full."""

    async def written() -> str:
        return "\n".join(_lines(cluster._server, full))

    return cluster._run(written)


def _lines(server: LocalServer, full: bool) -> Iterator[str]:
    api = server.api
    assert api is not None
    yield f"{server.url}, clock: {_clock(server)}"
    if api.request_log is not None:
        entries = api.request_log.entries
        yield from _part("last requests", list(map(_request, entries)), _REQUESTS, full, newest=True)
    if api.access_log is not None:
        refused = Counter(str(denied) for denied in api.access_log.denied())
        yield from _part(
            "refused", [_times(count, line) for line, count in refused.items()], _REFUSALS, full, newest=True
        )
    objects = list(_objects(server))
    yield from _part("Warning events", list(_warnings(objects)), _WARNINGS, full, newest=True)
    yield from _part("not ready", list(_not_ready(objects)), _NOT_READY, full)
    if server.controllers is not None:
        failed = [f"{name} failed: {error}" for name, error in server.controllers.failures.items()]
        yield from _part("busy controllers", [*failed, *server.controllers.moving()], _BUSY, full)


def _part(title: str, lines: Sequence[str], limit: int, full: bool, *, newest: bool = False) -> Iterator[str]:
    """A heading and its lines; too many are cut at the beginning if the newest matter, else at the end."""
    if not lines:
        return
    yield f"{title}:"
    lines = [f"  {line}" for line in lines]
    if full or len(lines) < limit:
        yield from lines
        return
    kept = limit - 2
    left_out = f"  … {len(lines) - kept} more (--fake-cluster-report=full)"
    yield from (left_out, *lines[-kept:]) if newest else (*lines[:kept], left_out)


def _clock(server: LocalServer) -> str:
    shown = _time(server.clock.now())
    if not isinstance(server.clock, AdjustableClock):
        return shown
    ahead = server.clock.now() - time.time()
    if abs(ahead) >= 1:
        shown += f", {abs(ahead):.0f} s {'ahead of' if ahead > 0 else 'behind'} the machine"
    return shown + (", stopped" if server.clock.stopped else "")


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]


def _request(entry: RequestEntry) -> str:
    client = f"{entry.user_agent.partition(' ')[0] or 'no user agent'} ({entry.user or 'nobody'})"
    status = entry.status or "no answer"
    shown = f"{_time(entry.time)[11:]} {client} {entry.verb} {entry.path} {status} {1000 * entry.duration:.1f} ms"
    return _cut(f"{shown} {entry.reason} {entry.message}")


def _times(count: int, line: str) -> str:
    return _cut(f"{count} times: {line}" if count > 1 else line)


def _cut(line: str) -> str:
    line = " ".join(line.split())
    return line if len(line) <= _WIDTH else f"{line[: _WIDTH - 1]}…"


def _objects(server: LocalServer) -> Iterator[tuple[str, dict[str, Any]]]:
    """The name that people use for each stored object, e.g. `pods default/web`, and the object. Secrets are left out."""
    assert server.api is not None
    for bucket, stored in sorted(server.api.snapshot().buckets.items()):
        resource = {"minions": "nodes", "services/specs": "services"}.get(bucket, bucket.rpartition("/")[2])
        if bucket != "secrets":
            for item in stored.values():
                obj = json.loads(item.value)
                metadata = obj.get("metadata", {})
                namespace = metadata.get("namespace", "")
                yield f"{resource} {namespace + '/' * bool(namespace)}{metadata.get('name', '')}", obj


def _warnings(objects: Iterable[tuple[str, dict[str, Any]]]) -> Iterator[str]:
    warnings = []
    for name, obj in objects:
        if name.startswith("events ") and obj.get("type") == "Warning":
            about = obj.get("involvedObject") or obj.get("regarding") or {}
            when = obj.get("lastTimestamp") or obj.get("eventTime") or obj["metadata"].get("creationTimestamp") or ""
            what = f"{about.get('kind', '')} {about.get('namespace', '')}/{about.get('name', '')}"
            warnings.append((when, f"{what} {obj.get('reason', '')}: {obj.get('message') or obj.get('note', '')}"))
    yield from (_cut(line) for _, line in sorted(warnings))


def _not_ready(objects: Sequence[tuple[str, dict[str, Any]]]) -> Iterator[str]:
    has_nodes = any(name.startswith("nodes ") for name, _ in objects)
    for name, obj in objects:
        reasons = [*_reasons(obj)]
        if reasons and name.startswith("pods ") and not (has_nodes or obj["spec"].get("nodeName")):
            reasons.append("there are no nodes: the option nodes=1 simulates one")
        if reasons:
            yield _cut(f"{name}: {'; '.join(reasons)}")


def _reasons(obj: dict[str, Any]) -> Iterator[str]:
    """Why an object is not as it should be: it is being deleted, its phase, its conditions, what its containers wait for."""
    metadata, status = obj.get("metadata", {}), obj.get("status") or {}
    spec = obj.get("spec") or {}
    if metadata.get("deletionTimestamp"):
        waits_for = metadata.get("finalizers") or (spec.get("finalizers") if "finalizers" in spec else None)
        yield f"is being deleted, finalizers: {', '.join(waits_for or ()) or 'none'}"
    if (phase := status.get("phase")) in ("Pending", "Failed", "Unknown", "Lost"):
        yield f"phase {phase} {status.get('reason', '')}".strip()
    for condition in status.get("conditions") or ():
        if isinstance(condition, dict) and phase != "Succeeded" and _is_bad(condition):
            why = f"{condition.get('reason', '')} {condition.get('message', '')[:_SHOWN_MESSAGE]}".strip()
            yield f"{condition['type']}={condition['status']}" + (f" ({why})" if why else "")
    for container in status.get("containerStatuses") or ():
        waiting = (container.get("state") or {}).get("waiting") or {}
        if waiting:
            yield f"container {container.get('name')} waits: {waiting.get('reason', '')} {waiting.get('message', '')}".strip()


def _is_bad(condition: dict[str, Any]) -> bool:
    if condition.get("type") == "Failed":
        return condition.get("status") == "True"
    return condition.get("type") in _GOOD and condition.get("status") in ("False", "Unknown")
