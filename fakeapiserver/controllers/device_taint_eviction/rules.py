"""DeviceTaintRules: the devices that they taint, and the condition that says what became of their pods.

Upstream: pkg/controller/devicetainteviction/device_taint_eviction.go (maybeUpdateRuleStatus).
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.timestamp import rfc3339, seconds_of
from fakeapiserver.component_helpers.conditions import Condition, find_condition
from fakeapiserver.component_helpers.controller_context import ControllerContext
from fakeapiserver.component_helpers.objects import DEVICE_TAINT_RULES

# The shortest time between two updates of a status, in seconds.
STATUS_PERIOD: Final = 10.0
_EVICTING: Final = "EvictionInProgress"
_NO_EXECUTE: Final = "NoExecute"
_UNTIL_RECREATED: Final = (
    "if the effect was NoExecute. This information will not be updated again. "
    "Recreate the DeviceTaintRule to trigger an update."
)


class DeviceTaintRules:
    """The rules of a cluster, none while the feature gate DRADeviceTaintRules is off."""

    def __init__(self, context: ControllerContext) -> None:
        gates = context.configuration.feature_gates
        self._clock = context.clock
        self._name = context.name
        self._resource = DEVICE_TAINT_RULES._replace(version="v1" if gates.at_least("v1.37") else "v1beta2")
        self._client = context.client.resource(self._resource)
        self.informer = context.informer(self._resource) if gates.enabled("DRADeviceTaintRules") else None
        # How many pods were evicted because of a rule, by its uid.
        self._evicted: Counter[str] = Counter()

    def get(self, name: str) -> Object | None:
        return self.informer.indexer.get_by_key(name) if self.informer is not None else None

    def evicting(self) -> Sequence[Object]:
        """Returns the rules that make pods go."""
        rules = self.informer.indexer.list() if self.informer is not None else ()
        return [rule for rule in rules if rule["spec"]["taint"]["effect"] == _NO_EXECUTE]

    def evicted(self, uid: str) -> None:
        """Counts a pod that was evicted because of a rule."""
        self._evicted[uid] += 1

    def forget(self, uid: str) -> None:
        """The rule is deleted."""
        self._evicted.pop(uid, None)

    def seconds_until_due(self, rule: Object) -> float:
        """Returns the seconds until the status of the rule may be written again; 0 if it may be now."""
        condition = _condition(rule)
        if condition is None or condition.get("observedGeneration") != rule["metadata"]["generation"]:
            return 0.0
        last = seconds_of(condition["lastTransitionTime"]) or 0.0
        return max(STATUS_PERIOD - (self._clock.now() - last), 0.0)

    async def write_status(self, rule: Object, pods: Collection[Object], devices: tuple[int, int]) -> None:
        """Writes the condition EvictionInProgress unless it says the same already.

        pods: those that the rule makes go, or would with the effect NoExecute. devices: the numbers of published and of allocated
        devices that it selects.
        """
        condition = self._new_condition(rule, pods, devices)
        old = _condition(rule) or {}
        if {key: value for key, value in old.items() if key != "lastTransitionTime"} == condition:
            return
        metadata = {"name": rule["metadata"]["name"], "uid": rule["metadata"]["uid"]}
        status = {"conditions": [{**condition, "lastTransitionTime": rfc3339(self._clock.now())}]}
        version = str(self._resource.group_version)
        applied = {"apiVersion": version, "kind": "DeviceTaintRule", "metadata": metadata, "status": status}
        await self._client.apply_status(applied, force=True, field_manager=self._name)

    def _new_condition(self, rule: Object, pods: Collection[Object], devices: tuple[int, int]) -> Condition:
        evicted = self._evicted[rule["metadata"]["uid"]]
        status, message = "False", ""
        match rule["spec"]["taint"]["effect"]:
            case "NoExecute" if pods:
                status, reason = "True", "PodsPendingEviction"
                message = f"{_count(pods, 'needs', 'need')} to be evicted in {_namespaces(pods)}."
            case "NoExecute":
                reason = "Completed" if evicted else "NotStarted"
            case "None":
                reason = "NoEffect"
                published, allocated = devices
                message = f"{_plural(published, 'published device')} selected. "
                message += f"{_plural(allocated, 'allocated device')} selected. "
                message += f"{_count(pods, 'would', 'would')} be evicted in {_namespaces(pods)} {_UNTIL_RECREATED}"
            case _:
                reason, message = "OtherEffect", "Eviction only happens for the NoExecute effect."
        if evicted:
            message = f"{message} {_plural(evicted, 'pod')} evicted since starting the controller.".lstrip()
        return {
            "type": _EVICTING,
            "status": status,
            "reason": reason,
            "message": message,
            "observedGeneration": rule["metadata"]["generation"],
        }


def selects(rule: Object, device: Mapping[str, Any]) -> bool:
    """Reports whether a rule is about a device, given its `driver`, `pool` and `device`."""
    selector = rule["spec"].get("deviceSelector")
    return selector is not None and all(
        selector.get(key) in (None, device[key]) for key in ("driver", "pool", "device")
    )


def published(slices: Iterable[Object]) -> Iterator[Mapping[str, Any]]:
    """Yields the devices of the newest generation of a pool, given its slices."""
    slices = [*slices]
    newest = max((resource_slice["spec"]["pool"]["generation"] for resource_slice in slices), default=0)
    for resource_slice in slices:
        spec = resource_slice["spec"]
        if spec["pool"]["generation"] == newest:
            yield from spec.get("devices") or ()


def _condition(rule: Object) -> Condition | None:
    return find_condition((rule.get("status") or {}).get("conditions"), _EVICTING)


def _plural(count: int, noun: str) -> str:
    return f"1 {noun}" if count == 1 else f"{count} {noun}s"


def _count(pods: Collection[Object], singular: str, plural: str) -> str:
    return f"{_plural(len(pods), 'pod')} {singular if len(pods) == 1 else plural}"


def _namespaces(pods: Iterable[Object]) -> str:
    count = len({pod["metadata"]["namespace"] for pod in pods})
    return "1 namespace" if count == 1 else f"{count} different namespaces"
