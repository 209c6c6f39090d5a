"""Conditions in the status of objects."""

from collections.abc import Mapping
from typing import Any

from fakeapiserver.client import wait
from fakeapiserver.testing.assertions.objects import AnyCluster, Named, find


def assert_condition(
    cluster: AnyCluster,
    obj: Named,
    type: str,  # noqa: A002
    status: str = "True",
    *,
    reason: str | None = None,
    namespace: str | None = None,
) -> Mapping[str, Any]:
    """Asserts that the object has a condition of this type, status and, if given, reason, and returns the condition.

    A condition that was observed at an older generation of the object doesn't count, as for `kubectl wait`. `namespace`: of an object that
    names none, by default `default`."""
    found = find(cluster, obj, namespace)
    conditions = (found.object.get("status") or {}).get("conditions") or []
    condition: Mapping[str, Any] = next((each for each in conditions if each.get("type") == type), {})
    if wait.has_condition(type, status)(found.object) and reason in (None, condition.get("reason")):
        return condition
    wanted = f"{type}={status}" + (f" for the reason {reason}" if reason is not None else "")
    raise AssertionError(
        f"{found.reference} doesn't have the condition {wanted}{_instead(found.object, condition, conditions)}\n{found}"
    )


def _instead(obj: Mapping[str, Any], condition: Mapping[str, Any], conditions: list[Mapping[str, Any]]) -> str:
    """Returns the condition that the object has instead, as the end of a sentence."""
    if not condition:
        return (
            f": its conditions are {', '.join(str(each.get('type')) for each in conditions)}."
            if conditions
            else ": it has none at all."
        )
    generation = obj["metadata"].get("generation", 0)
    observed = condition.get("observedGeneration") or (obj.get("status") or {}).get("observedGeneration") or generation
    stale = f", observed at generation {observed} of {generation}" if observed < generation else ""
    said = ": ".join(filter(None, (condition.get("reason"), condition.get("message"))))
    return f", but {condition['type']}={condition.get('status')}{f' ({said})' if said else ''}{stale}."
