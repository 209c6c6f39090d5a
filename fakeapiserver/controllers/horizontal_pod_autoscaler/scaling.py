"""Limits for the change of replicas: earlier recommendations and changes, minimum and maximum, policies.

Upstream: pkg/controller/podautoscaler/horizontal.go (normalizeDesiredReplicas and what follows). Times in seconds.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from msgspec import Struct, field

from fakeapiserver.apimachinery.meta import Object

_LIMIT_FACTOR: Final = 2
_LIMIT_MINIMUM: Final = 4

Rules = Mapping[str, Any]


class Reason(NamedTuple):
    """The reason and message of a condition."""

    reason: str
    message: str


WITHIN_RANGE: Final = Reason("DesiredWithinRange", "the desired count is within the acceptable range")
READY: Final = Reason("ReadyForNewScale", "recommended size matches current size")
UP_STABILIZED: Final = Reason(
    "ScaleUpStabilized",
    "recent recommendations were lower than current one, applying the lowest recent recommendation",
)
DOWN_STABILIZED: Final = Reason(
    "ScaleDownStabilized",
    "recent recommendations were higher than current one, applying the highest recent recommendation",
)
_UP_LIMIT: Final = Reason("ScaleUpLimit", "the desired replica count is increasing faster than the maximum scale rate")
_DOWN_LIMIT: Final = Reason(
    "ScaleDownLimit", "the desired replica count is decreasing faster than the maximum scale rate"
)
_TOO_MANY: Final = Reason("TooManyReplicas", "the desired replica count is more than the maximum replica count")
_TOO_FEW: Final = Reason("TooFewReplicas", "the desired replica count is less than the minimum replica count")


class _Recommendation(Struct):
    replicas: int
    at: float


class _ScaleEvent(Struct):
    """A change of the replicas."""

    change: int
    at: float
    outdated: bool = False


class History(Struct):
    """The earlier recommendations and changes of one autoscaler."""

    recommendations: list[_Recommendation] = field(default_factory=list)
    ups: list[_ScaleEvent] = field(default_factory=list)
    downs: list[_ScaleEvent] = field(default_factory=list)

    def begin(self, replicas: int, now: float) -> None:
        """Records the current replicas as the first recommendation."""
        if not self.recommendations:
            self.recommendations.append(_Recommendation(replicas, now))

    def scaled(self, behavior: Rules | None, before: int, after: int, now: float) -> None:
        """Records a change for later limits; only with a behavior (upstream: storeScaleEvent)."""
        if behavior is None:
            return
        events, rules = (self.ups, behavior["scaleUp"]) if after > before else (self.downs, behavior["scaleDown"])
        period = max((policy["periodSeconds"] for policy in rules["policies"]), default=0)
        for event in events:
            event.outdated = event.outdated or event.at < now - period
        _put(events, _ScaleEvent(abs(after - before), now), [event.outdated for event in events])


class Limits(NamedTuple):
    """The autoscaler's lowest and highest number of replicas; the window in seconds for going down, where it names none; and the time."""

    lowest: int
    highest: int
    downscale_window: float
    now: float


class Limited(NamedTuple):
    """The allowed replicas, why AbleToScale is true, and whether and why ScalingLimited is."""

    replicas: int
    able: Reason
    limited: bool
    why: Reason


# ------------------------------------------------------------------------ without behavior


def counts_without_pods(spec: Object) -> bool:
    """Reports whether the autoscaler has a metric that also exists while there are no pods."""
    return any(metric["type"] in ("Object", "External") for metric in spec.get("metrics") or ())


def scaled_to_zero(spec: Object, current: int, desired: int) -> tuple[str, Reason]:
    """Returns the status of the condition ScaledToZero after a change of the number of pods, and its reason."""
    if current > 0 == desired and spec.get("minReplicas", 1) == 0 and counts_without_pods(spec):
        return "True", Reason("ScaledToZero", "the HPA controller scaled the workload to zero")
    return "False", Reason("NotScaledToZero", "the HPA controller did not scale the workload to zero")


def normalize(history: History, current: int, desired: int, limits: Limits) -> Limited:
    """Limits the replicas for an autoscaler without `behavior`."""
    stabilized = _stabilize(history, desired, limits.downscale_window, limits.now)
    replicas, why = _within_limits(current, stabilized, limits.lowest, limits.highest)
    return Limited(replicas, READY if stabilized == desired else DOWN_STABILIZED, replicas != stabilized, why)


def _stabilize(history: History, desired: int, window: float, now: float) -> int:
    """The highest recommendation of late; this one takes the place of an old one."""
    cutoff = now - window
    recent = [recommendation.replicas for recommendation in history.recommendations if recommendation.at >= cutoff]
    old = [recommendation.at < cutoff for recommendation in history.recommendations]
    _put(history.recommendations, _Recommendation(desired, now), old)
    return max([desired, *recent])


def _within_limits(current: int, desired: int, lowest: int, highest: int) -> tuple[int, Reason]:
    up_limit = max(_LIMIT_FACTOR * current, _LIMIT_MINIMUM)
    allowed, why = (up_limit, _UP_LIMIT) if highest > up_limit else (highest, _TOO_MANY)
    if desired < lowest:
        return lowest, _TOO_FEW
    if desired > allowed:
        return allowed, why
    return desired, WITHIN_RANGE


# --------------------------------------------------------------------------- with behavior


def normalize_with_behavior(history: History, behavior: Rules, current: int, desired: int, limits: Limits) -> Limited:
    """Limits the replicas by the policies and windows of `behavior`."""
    up_window, down_window = (behavior[rules].get("stabilizationWindowSeconds") for rules in ("scaleUp", "scaleDown"))
    if down_window is None:
        down_window = int(limits.downscale_window)
    stabilized = _stabilize_both(history, current, desired, up_window, down_window, limits.now)
    able = READY if stabilized == desired else UP_STABILIZED if desired >= current else DOWN_STABILIZED
    replicas, why = _within_rates(history, behavior, current, stabilized, limits)
    return Limited(replicas, able, replicas != stabilized, why)


def _stabilize_both(
    history: History, current: int, desired: int, up_window: float, down_window: float, now: float
) -> int:
    """No more than the lowest of late, and no less than the highest."""
    up_cutoff, down_cutoff = now - up_window, now - down_window
    known = history.recommendations
    lowest = min([desired, *(event.replicas for event in known if event.at > up_cutoff)])
    highest = max([desired, *(event.replicas for event in known if event.at > down_cutoff)])
    old = [event.at < up_cutoff and event.at < down_cutoff for event in known]
    _put(known, _Recommendation(desired, now), old)
    return min(max(current, lowest), highest)


def _within_rates(history: History, behavior: Rules, current: int, desired: int, limits: Limits) -> tuple[int, Reason]:
    lowest, highest, _, now = limits
    if desired > current:
        limit = max(_up_limit(history, behavior["scaleUp"], current, now), current)
        allowed, why = (limit, _UP_LIMIT) if highest > limit else (highest, _TOO_MANY)
        if desired > allowed:
            return allowed, why
    elif desired < current:
        limit = min(_down_limit(history, behavior["scaleDown"], current, now), current)
        allowed, why = (limit, _DOWN_LIMIT) if lowest < limit else (lowest, _TOO_FEW)
        if desired < allowed:
            return allowed, why
    return desired, WITHIN_RANGE


def _up_limit(history: History, rules: Rules, current: int, now: float) -> int:
    def proposed(policy: Rules, start: int) -> int:
        value: int = policy["value"]
        return start + value if policy["type"] == "Pods" else math.ceil(start * (1 + value / 100))

    return _limit(history, rules, current, now, proposed, least=min, most=max)


def _down_limit(history: History, rules: Rules, current: int, now: float) -> int:
    def proposed(policy: Rules, start: int) -> int:
        value: int = policy["value"]
        return start - value if policy["type"] == "Pods" else int(start * (1 - value / 100))

    return _limit(history, rules, current, now, proposed, least=max, most=min)


def _limit(
    history: History,
    rules: Rules,
    current: int,
    now: float,
    proposed: Callable[[Rules, int], int],
    least: Callable[[Sequence[int]], int],
    most: Callable[[Sequence[int]], int],
) -> int:
    """Returns the limit of the policies: `least` and `most` choose the policy with the smallest or largest change."""
    if rules.get("selectPolicy") == "Disabled":
        return current
    limits = []
    for policy in rules["policies"]:
        period = policy["periodSeconds"]
        start = current - _changed(history.ups, period, now) + _changed(history.downs, period, now)
        limits.append(proposed(policy, start))
    return least(limits) if rules.get("selectPolicy") == "Min" else most(limits)


def _changed(events: Sequence[_ScaleEvent], period: float, now: float) -> int:
    """Returns the sum of the changes within the period."""
    return sum(event.change for event in events if event.at > now - period)


def _put(entries: list[Any], new: Any, old: Sequence[bool]) -> None:
    """Replaces the last of the old entries, or appends."""
    places = [place for place, is_old in enumerate(old) if is_old]
    if places:
        entries[places[-1]] = new
    else:
        entries.append(new)
