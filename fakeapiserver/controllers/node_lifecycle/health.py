"""Whether nodes still give signs of life, and what their zones' eviction rates are. Pure; times in seconds of one clock.

Upstream: pkg/controller/nodelifecycle/node_lifecycle_controller.go (tryUpdateNodeHealth, ComputeZoneState, handleDisruption).
"""

import math
from collections.abc import Mapping, Sequence
from typing import Final, Literal

from msgspec import Struct, field

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.timestamp import rfc3339, seconds_of
from fakeapiserver.client.flowcontrol import TokenBucket
from fakeapiserver.component_helpers.conditions import find_condition
from fakeapiserver.component_helpers.configuration import KubeControllerManagerConfiguration

State = Literal["Initial", "Normal", "PartialDisruption", "FullDisruption"]
# Seconds that may be lost when times are added up.
_ROUNDING: Final = 0.001
_TYPES: Final = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")


def zone_of(node: Object) -> str:
    """A name for its region and zone together; "" for neither."""
    labels = node["metadata"].get("labels") or {}
    zone = labels.get("failure-domain.beta.kubernetes.io/zone", labels.get("topology.kubernetes.io/zone", ""))
    region = labels.get("failure-domain.beta.kubernetes.io/region", labels.get("topology.kubernetes.io/region", ""))
    return f"{region}:\0:{zone}" if zone or region else ""


class NodeHealth(Struct):
    """The last sign of life: when it was noticed, and what it was."""

    seen_at: float
    heartbeat: str = ""
    renewed: str = ""

    def notice(self, node: Object, lease: Object | None, now: float) -> None:
        """A newer heartbeat in the status, or a renewed lease."""
        ready = find_condition(node["status"].get("conditions"), "Ready")
        heartbeat = ready.get("lastHeartbeatTime") or "" if ready else ""
        renewed = (lease or {}).get("spec", {}).get("renewTime") or ""
        if (ready and heartbeat != self.heartbeat) or renewed > self.renewed:
            self.seen_at = now
        self.heartbeat, self.renewed = heartbeat, max(renewed, self.renewed)

    def is_lost(self, now: float, patience: float) -> bool:
        """No sign of life for so many seconds."""
        return now >= self.seen_at + patience - _ROUNDING


def beats_until(seconds: float, period: float) -> int:
    """Returns how many periods it takes until so many seconds are over; 0 for 0 or fewer seconds."""
    return max(0, math.ceil((seconds - _ROUNDING) / period))


def first_seen(node: Object, now: float) -> NodeHealth:
    """Returns the health of a node seen for the first time; without a status, it counts from its creation."""
    if find_condition(node["status"].get("conditions"), "Ready") is not None:
        return NodeHealth(now)
    return NodeHealth(seconds_of(node["metadata"]["creationTimestamp"]) or now)


def conditions_unknown(node: Object, now: float) -> list[Object] | None:
    """Its conditions when it gives no sign of life any more; None: they say so already."""
    known = {row["type"]: row for row in node["status"].get("conditions") or ()}
    changed = {}
    for kind in _TYPES:
        old = known.get(kind)
        if old is None:
            changed[kind] = {
                "type": kind,
                "status": "Unknown",
                "reason": "NodeStatusNeverUpdated",
                "message": "Kubelet never posted node status.",
                "lastHeartbeatTime": node["metadata"]["creationTimestamp"],
                "lastTransitionTime": rfc3339(now),
            }
        elif old["status"] != "Unknown":
            changed[kind] = {
                **old,
                "status": "Unknown",
                "reason": "NodeStatusUnknown",
                "message": "Kubelet stopped posting node status.",
                "lastTransitionTime": rfc3339(now),
            }
    return [*{**known, **changed}.values()] if "Ready" in changed else None


class Zone(Struct):
    """The nodes that fail together, how they are, and how fast they are tainted."""

    limiter: TokenBucket | None
    state: State = "Initial"


class Zones(Struct):
    """Rates by the settings: in a zone where most nodes are lost, it is rather the network."""

    settings: KubeControllerManagerConfiguration
    zones: dict[str, Zone] = field(default_factory=dict)

    def of(self, node: Object) -> Zone:
        """Made when its first node comes."""
        return self.zones.setdefault(zone_of(node), Zone(_limiter(self.settings.node_eviction_rate)))

    def look(self, ready: Mapping[str, Sequence[bool]]) -> Literal["", "begins", "ends"]:
        """Updates the zones from the readiness of their nodes.

        Returns whether full disruption begins or ends, which stops evictions.
        """
        states = {name: self._state(zone_state) for name, zone_state in ready.items()}
        all_lost = all(state == "FullDisruption" for state in states.values())
        for gone in self.zones.keys() - ready.keys():
            del self.zones[gone]
        were_lost = all(zone.state == "FullDisruption" for zone in self.zones.values())
        if all_lost and were_lost:
            return ""
        if all_lost:
            for zone in self.zones.values():
                zone.state, zone.limiter = "FullDisruption", None
            return "begins"
        for name, state in states.items():
            zone = self.zones.setdefault(name, Zone(None))
            if were_lost or zone.state != state:
                zone.state, zone.limiter = state, _limiter(self._rate(state, len(ready[name])))
        return "ends" if were_lost else ""

    def _state(self, ready: Sequence[bool]) -> State:
        lost = len(ready) - sum(ready)
        if lost and lost == len(ready):
            return "FullDisruption"
        if lost > 2 and lost / len(ready) >= self.settings.unhealthy_zone_threshold:
            return "PartialDisruption"
        return "Normal"

    def _rate(self, state: State, size: int) -> float:
        if state != "PartialDisruption":
            return self.settings.node_eviction_rate
        large = size > self.settings.large_cluster_size_threshold
        return self.settings.secondary_node_eviction_rate if large else 0.0


def _limiter(rate: float) -> TokenBucket | None:
    """Returns a limiter, or None if no eviction is allowed."""
    return TokenBucket(rate, 1) if rate > 0 else None
