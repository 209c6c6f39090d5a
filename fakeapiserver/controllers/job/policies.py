"""The pod failure policy and the success policy of a job; pure.

Upstream: pkg/controller/job/{pod_failure_policy,success_policy}.go.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.controllers.job.indexes import Indexes


class FailureMatch(NamedTuple):
    """message: why the job fails because of it; "": it doesn't. counts: towards back-off limits. action: of the rule, "" without one."""

    message: str = ""
    counts: bool = True
    action: str = ""


_NO_RULE: Final = FailureMatch()


def failure_match(policy: Mapping[str, Any] | None, pod: Object) -> FailureMatch:
    """Applies the first rule of spec.podFailurePolicy that matches a failed pod."""
    for at, rule in enumerate((policy or {}).get("rules") or ()):
        what = _exit(pod, rule["onExitCodes"]) if rule.get("onExitCodes") else _condition(pod, rule)
        if what:
            action = rule["action"]
            if action == "FailJob":
                return FailureMatch(f"{what} matching FailJob rule at index {at}", True, action)
            return FailureMatch("", action != "Ignore", action)
    return _NO_RULE


def _exit(pod: Object, requirement: Mapping[str, Any]) -> str:
    """In words, how a container ended that the requirement is about."""
    status, metadata = pod.get("status") or {}, pod["metadata"]
    wanted, values = requirement.get("containerName"), requirement.get("values") or ()
    for container in _containers(status):
        code = ((container.get("state") or {}).get("terminated") or {}).get("exitCode")
        if code and wanted in (None, container["name"]) and (code in values) == (requirement["operator"] == "In"):
            pod_name = f"{metadata['namespace']}/{metadata['name']}"
            return f"Container {container['name']} for pod {pod_name} failed with exit code {code}"
    return ""


def _containers(status: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    statuses: Sequence[Mapping[str, Any]] = status.get("containerStatuses") or ()
    return [*statuses, *(status.get("initContainerStatuses") or ())]


def _condition(pod: Object, rule: Mapping[str, Any]) -> str:
    """In words, which condition of the pod the rule is about."""
    metadata = pod["metadata"]
    patterns = {(pattern["type"], pattern["status"]) for pattern in rule.get("onPodConditions") or ()}
    for condition in (pod.get("status") or {}).get("conditions") or () if patterns else ():
        if (condition["type"], condition["status"]) in patterns:
            return f"Pod {metadata['namespace']}/{metadata['name']} has condition {condition['type']}"
    return ""


def success_match(policy: Mapping[str, Any] | None, completions: int, succeeded: Indexes) -> str:
    """In words, which rule of spec.successPolicy is met; "" for none."""
    if not len(succeeded):
        return ""
    for at, rule in enumerate((policy or {}).get("rules") or ()):
        count, text = rule.get("succeededCount"), rule.get("succeededIndexes")
        if text is not None:
            wanted = Indexes.parse(text, completions)
            both = wanted.common(succeeded)
            met = len(wanted) > 0 and (both == len(wanted) or (count is not None and both >= count))
        else:
            met = count is not None and len(succeeded) >= count
        if met:
            return f"Matched rules at index {at}"
    return ""
