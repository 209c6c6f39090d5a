"""When a job's next pod may come: 10 s after a failure, twice as long after each further one, 10 min at most; pure.

Upstream: pkg/controller/job/backoff_utils.go.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.timestamp import seconds_of
from fakeapiserver.component_helpers.pods import pod_condition, transition_time
from fakeapiserver.controllers.job.pods import all_index_failures

_FIRST: Final = 10.0
_MAXIMUM: Final = 600.0


class BackoffRecord(NamedTuple):
    """failures: since the last success. last: seconds since the Unix epoch."""

    failures: int = 0
    last: float = 0.0

    def with_pods(self, succeeded: Iterable[Object], failed: Iterable[Object]) -> "BackoffRecord":
        """After these have ended; a success forgives the failures before it."""
        successes, failures = sorted(map(finished_at, succeeded)), sorted(map(finished_at, failed))
        if successes:
            later = [moment for moment in failures if moment > successes[-1]]
            return BackoffRecord(len(later), later[-1]) if later else BackoffRecord()
        return BackoffRecord(self.failures + len(failures), failures[-1]) if failures else self

    def remaining(self, now: float) -> float:
        """Seconds; 0 for no longer."""
        if not self.failures:
            return 0.0
        wait = min(_FIRST * 2.0 ** min(self.failures - 1, 16), _MAXIMUM)
        return max(0.0, self.last + wait - now)


def remaining_of_index(last_failed: Object | None, now: float) -> float:
    """Seconds until the index of a failed pod may have another one."""
    if last_failed is None:
        return 0.0
    return BackoffRecord(all_index_failures(last_failed) + 1, finished_at(last_failed)).remaining(now)


def finished_at(pod: Object) -> float:
    """Seconds since the Unix epoch: when its containers ended, or it wasn't ready any more, or was deleted, or else was made."""
    ended = _containers_ended(pod)
    if ended is not None:
        return ended
    ready = pod_condition(pod, "Ready")
    if ready is not None and ready["status"] == "False" and (since := transition_time(ready)) is not None:
        return since
    metadata = pod["metadata"]
    if deleted := metadata.get("deletionTimestamp"):
        return (seconds_of(deleted) or 0.0) - float(metadata.get("deletionGracePeriodSeconds") or 0)
    return seconds_of(metadata["creationTimestamp"]) or 0.0


def _containers_ended(pod: Object) -> float | None:
    """When the last of its containers did; sidecars count too. None while one hasn't, or none has said so."""
    status, spec = pod.get("status") or {}, pod["spec"]
    sidecars = {
        container["name"]
        for container in spec.get("initContainers") or ()
        if container.get("restartPolicy") == "Always"
    }
    # As upstream: a main container that hasn't ended only counts where there is no sidecar that has.
    main = _latest(status.get("containerStatuses") or ())
    others = [container for container in status.get("initContainerStatuses") or () if container["name"] in sidecars]
    if not others:
        return main
    latest = _latest(others)
    return None if latest is None else max(latest, main if main is not None else latest)


def _latest(containers: Sequence[Mapping[str, Any]]) -> float | None:
    ends = [((container.get("state") or {}).get("terminated") or {}).get("finishedAt") for container in containers]
    moments = [seconds_of(end) if end else None for end in ends]
    known = [moment for moment in moments if moment is not None]
    return max(known) if known and len(known) == len(moments) else None
