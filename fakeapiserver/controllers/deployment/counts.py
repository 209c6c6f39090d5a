"""The numbers of pods: actual, allowed and wanted. Pure (upstream: pkg/controller/deployment/util/deployment_util.go)."""

import math
from collections.abc import Iterable, Sequence
from typing import Any, Final

from fakeapiserver.apimachinery.go.strconv import parse_int
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.component_helpers.workloads.int_or_percent import scaled_value

# Annotations of replica sets: what their deployment wanted, and the most it could have, when they were last sized.
DESIRED_REPLICAS: Final = "deployment.kubernetes.io/desired-replicas"
MAX_REPLICAS: Final = "deployment.kubernetes.io/max-replicas"
_MAX_INT32: Final = 2**31 - 1


def spec_replicas(obj: Object) -> int:
    replicas: int = obj["spec"]["replicas"]
    return replicas


def status_count(obj: Object, name: str) -> int:
    """A count of the status; 0 where it isn't there."""
    count: int = obj["status"].get(name, 0)
    return count


def total_replicas(replica_sets: Iterable[Object]) -> int:
    """Returns the sum of the wanted replicas."""
    return sum(map(spec_replicas, replica_sets))


def total_count(replica_sets: Iterable[Object], name: str) -> int:
    """A count of their status, together."""
    return sum(status_count(replica_set, name) for replica_set in replica_sets)


def total_terminating(replica_sets: Iterable[Object]) -> int | None:
    """Returns the number of pods that are being deleted, or None if a synced replica set does not report it."""
    total = 0
    for replica_set in replica_sets:
        status = replica_set["status"]
        count = status.get("terminatingReplicas")
        if count is None and status.get("observedGeneration", 0):
            return None
        total += count or 0
    return total


def active(replica_sets: Iterable[Object]) -> list[Object]:
    """Returns the replica sets that want pods."""
    return [replica_set for replica_set in replica_sets if spec_replicas(replica_set) > 0]


# ------------------------------------------------------------------------- limits


def is_rolling_update(deployment: Object) -> bool:
    is_rolling: bool = deployment["spec"]["strategy"]["type"] == "RollingUpdate"
    return is_rolling


def resolve_fenceposts(max_surge: int | str | None, max_unavailable: int | str | None, desired: int) -> tuple[int, int]:
    """(surge, unavailable) of `desired` pods, never 0 both: rounding would let nothing move."""
    surge = scaled_value(max_surge or 0, desired, round_up=True)
    unavailable = scaled_value(max_unavailable or 0, desired, round_up=False)
    return surge, unavailable if surge or unavailable else 1


def _fenceposts(deployment: Object) -> tuple[int, int]:
    rolling: dict[str, Any] = deployment["spec"]["strategy"].get("rollingUpdate") or {}
    return resolve_fenceposts(rolling.get("maxSurge"), rolling.get("maxUnavailable"), spec_replicas(deployment))


def max_unavailable(deployment: Object) -> int:
    """Pods that may be missing during a rollout."""
    if not is_rolling_update(deployment) or not spec_replicas(deployment):
        return 0
    return min(_fenceposts(deployment)[1], spec_replicas(deployment))


def max_surge(deployment: Object) -> int:
    """Pods that may be too many during a rollout."""
    return _fenceposts(deployment)[0] if is_rolling_update(deployment) else 0


# -------------------------------------------------------------------------- sizes


def new_replicas(deployment: Object, replica_sets: Iterable[Object], size: int) -> int:
    """The next size of the new replica set, which has `size` now and is among the replica sets."""
    desired = spec_replicas(deployment)
    if not is_rolling_update(deployment):
        return desired
    rolling = deployment["spec"]["strategy"].get("rollingUpdate") or {}
    most = desired + scaled_value(rolling.get("maxSurge") or 0, desired, round_up=True)
    current = total_replicas(replica_sets)
    return size if current >= most else size + min(most - current, desired - size)


def is_saturated(deployment: Object, replica_set: Object | None) -> bool:
    """The new replica set has all pods it should have, and all are available."""
    if replica_set is None:
        return False
    desired = spec_replicas(deployment)
    return (
        spec_replicas(replica_set) == desired
        and _annotated(replica_set, DESIRED_REPLICAS) == desired
        and status_count(replica_set, "availableReplicas") == desired
    )


def proportional_sizes(deployment: Object, replica_sets: Iterable[Object]) -> Sequence[tuple[Object, int]]:
    """Each replica set with its size, when what the deployment gains or loses is spread over all (upstream: sync.go, scale)."""
    desired = spec_replicas(deployment)
    sized = [*replica_sets]
    to_add = (desired + max_surge(deployment) if desired > 0 else 0) - total_replicas(sized)
    # The largest first; of equals the newest gains first, and the oldest loses first.
    sized.sort(key=_age, reverse=to_add > 0)
    sized.sort(key=spec_replicas, reverse=True)
    sizes: list[int] = []
    added = 0
    for replica_set in sized:
        share = _proportion(deployment, replica_set, to_add, added)
        sizes.append(spec_replicas(replica_set) + share)
        added += share
    if sizes and to_add:
        sizes[0] = max(0, sizes[0] + to_add - added)
    return [*zip(sized, sizes, strict=True)]


def _proportion(deployment: Object, replica_set: Object, to_add: int, added: int) -> int:
    if not spec_replicas(replica_set) or to_add in (0, added):
        return 0
    fraction, allowed = _fraction(deployment, replica_set), to_add - added
    return min(fraction, allowed) if to_add > 0 else max(fraction, allowed)


def _fraction(deployment: Object, replica_set: Object) -> int:
    """Returns the replicas that the replica set gains or loses in proportion to its size."""
    size, desired = spec_replicas(replica_set), spec_replicas(deployment)
    if not desired:
        return -size
    before = _annotated(replica_set, MAX_REPLICAS) or status_count(deployment, "replicas")
    if not before:
        return 0
    exact = size * (desired + max_surge(deployment)) / before
    return math.floor(exact + 0.5) - size


def desired_replicas_annotation(replica_set: Object) -> int | None:
    """Returns the deployment's size when the replica set was last scaled, or None without the annotation."""
    return _annotated(replica_set, DESIRED_REPLICAS)


def _annotated(replica_set: Object, name: str) -> int | None:
    text = (replica_set["metadata"].get("annotations") or {}).get(name, "")
    try:
        number = parse_int(text, 32)
    except ValueError:
        return None
    return number if number >= 0 else None


def replicas_annotations(deployment: Object) -> dict[str, str]:
    """Returns the annotations of a replica set that is scaled."""
    desired = spec_replicas(deployment)
    return {DESIRED_REPLICAS: str(desired), MAX_REPLICAS: str(desired + max_surge(deployment))}


# -------------------------------------------------------------------------- order


def _age(replica_set: Object) -> tuple[str, str]:
    return replica_set["metadata"].get("creationTimestamp", ""), replica_set["metadata"]["name"]


def by_creation(replica_sets: Iterable[Object]) -> list[Object]:
    """The oldest first."""
    return sorted(replica_sets, key=_age)


def active_or_latest(new: Object | None, old: Sequence[Object]) -> Object | None:
    """The only replica set that wants pods, or the newest when none does; None when several do, or none is there."""
    everything = [*old, *([new] if new is not None else [])]
    wanting = active(everything)
    if len(wanting) > 1 or not everything:
        return None
    return wanting[0] if wanting else new if new is not None else by_creation(old)[-1]
