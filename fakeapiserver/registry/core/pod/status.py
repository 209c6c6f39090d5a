"""A pod's status: its conditions and what they say.

Upstream: pkg/api/v1/pod/util.go.
"""

from fakeapiserver.apimachinery.meta import Object


def set_condition(status: Object, condition: Object, now: str) -> None:
    """Adds a condition or puts it in the place of the one of its type, with a new list (UpdatePodCondition).

    The time of the last transition stays where the condition's status does."""
    old = list(status.get("conditions") or ())
    at = next((i for i, existing in enumerate(old) if existing["type"] == condition["type"]), len(old))
    before = old[at] if at < len(old) else {}
    kept = before.get("lastTransitionTime") if before.get("status") == condition["status"] else now
    old[at : at + 1] = [{"lastProbeTime": None, "lastTransitionTime": kept, **condition}]
    status["conditions"] = old


def is_ready(pod: Object) -> bool:
    """Reports whether the condition Ready is True."""
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(condition.get("type") == "Ready" and condition.get("status") == "True" for condition in conditions)
