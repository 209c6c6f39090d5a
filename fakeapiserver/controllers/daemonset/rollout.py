"""The pods of a daemon set that are created and deleted next: pure (upstream:
pkg/controller/daemon/{daemon_controller,update}.go).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.component_helpers.objects import is_terminating, labels_of
from fakeapiserver.component_helpers.pods import is_pod_available, is_pod_ready, pod_phase
from fakeapiserver.component_helpers.workloads.int_or_percent import scaled_value
from fakeapiserver.controllers.daemonset.placement import (
    REVISION_HASH,
    Placement,
    is_updated,
    oldest_first,
    template_generation,
)

_NONE: Sequence[Object] = ()


class Plan(Struct):
    """The nodes that need a pod, and the names of pods to delete."""

    create: list[str] = field(default_factory=list)
    delete: list[str] = field(default_factory=list)


def _rolling(daemon_set: Object) -> Mapping[str, Any]:
    strategy = daemon_set["spec"]["updateStrategy"]
    rolling_update: Mapping[str, Any] = (
        strategy.get("rollingUpdate") or {} if strategy.get("type") == "RollingUpdate" else {}
    )
    return rolling_update


def surge_count(daemon_set: Object, desired: int) -> int:
    """Pods that may come before old ones have gone."""
    return scaled_value(_rolling(daemon_set).get("maxSurge") or 0, desired, round_up=True)


def unavailable_count(daemon_set: Object, desired: int) -> int:
    """Pods that may be missing."""
    return scaled_value(_rolling(daemon_set).get("maxUnavailable") or 0, desired, round_up=True)


class Rollout:
    """Plans the sync of a daemon set.

    nodes: all nodes. pods: the set's pods by node; they don't change during the sync.
    may_kill: whether a failed pod on a node may be deleted now. `tell`: records an event: type, reason, message.
    """

    def __init__(
        self,
        daemon_set: Object,
        nodes: Sequence[Object],
        pods: Mapping[str, Sequence[Object]],
        revision_hash: str,
        now: float,
    ) -> None:
        self._set = daemon_set
        self._nodes = nodes
        self._pods = pods
        self._hash = revision_hash
        self._now = now
        self._min_ready: int = daemon_set["spec"].get("minReadySeconds", 0)
        self._generation = template_generation(daemon_set)
        placement = Placement(daemon_set)
        self._placed = {node["metadata"]["name"]: placement.of(node) for node in nodes}

    # ------------------------------------------------------------------------- manage

    def manage(self, may_kill: Callable[[str], bool], tell: Callable[[str, str, str], None]) -> Plan:
        """A pod on each node that needs one, and none elsewhere."""
        plan = Plan()
        surges = surge_count(self._set, 1) > 0
        for node, (should_run, may_go_on) in self._placed.items():
            pods = self._pods.get(node)
            if should_run and pods is None:
                plan.create.append(node)
            elif may_go_on:
                self._manage_node(plan, node, pods or _NONE, should_run, surges, may_kill, tell)
            elif pods is not None:
                plan.delete += [pod["metadata"]["name"] for pod in pods if not is_terminating(pod)]
        # No other controller deletes pods that wait for a node that is gone.
        for node, node_pods in self._pods.items():
            if node not in self._placed:
                plan.delete += [pod["metadata"]["name"] for pod in node_pods if not pod["spec"].get("nodeName")]
        return plan

    def _manage_node(
        self,
        plan: Plan,
        node: str,
        pods: Sequence[Object],
        should_run: bool,
        surges: bool,
        may_kill: Callable[[str], bool],
        tell: Callable[[str, str, str], None],
    ) -> None:
        running = []
        for pod in pods:
            name, phase = pod["metadata"]["name"], pod_phase(pod)
            where = f"daemon pod {pod['metadata']['namespace']}/{name} on node {node}"
            if is_terminating(pod) or (phase == "Failed" and not may_kill(node)):
                continue
            if phase == "Failed":
                tell("Warning", "FailedDaemonPod", f"Found failed {where}, will try to kill it")
                plan.delete.append(name)
            elif phase == "Succeeded":
                tell("Normal", "SucceededDaemonPod", f"Found succeeded {where}, will try to delete it")
                plan.delete.append(name)
            else:
                running.append(pod)
        if not surges:
            plan.delete += [pod["metadata"]["name"] for pod in oldest_first(running)[1:]]
        elif running:
            plan.delete += self._beyond_surge(oldest_first(running)) if len(running) > 1 else []
        elif should_run:
            plan.create.append(node)

    def _beyond_surge(self, running: Sequence[Object]) -> list[str]:
        """Returns the pods beyond the oldest of each template on a node; the old one stays until the new one can
        take over.
        """
        new = [pod for pod in running if labels_of(pod).get(REVISION_HASH) == self._hash]
        old = [pod for pod in running if labels_of(pod).get(REVISION_HASH) != self._hash]
        gone = [pod for pod in running if pod not in (*new[:1], *old[:1])]
        if new and old and (not is_pod_ready(old[0]) or self._is_available(new[0])):
            gone.append(old[0])
        return [pod["metadata"]["name"] for pod in gone]

    # -------------------------------------------------------------------------- update

    def update(self) -> Plan:
        """Pods of the newest template take over, within what may be missing or too many."""
        desired = [node for node, (should_run, _) in self._placed.items() if should_run]
        pods = {**self._pods, **{node: _NONE for node in desired if node not in self._pods}}
        most_missing = unavailable_count(self._set, len(desired))
        surge = surge_count(self._set, len(desired))
        if desired and not most_missing and not surge:
            most_missing = 1
        return self._update_by_surge(pods, surge, len(desired)) if surge else self._update_in_place(pods, most_missing)

    def _update_in_place(self, pods_by_node: Mapping[str, Sequence[Object]], most_missing: int) -> Plan:
        unavailable, replaced, candidates = 0, [], []
        for pods in pods_by_node.values():
            new, old, clear = self._pair(pods)
            if not clear or (new is None) == (old is None):
                unavailable += 1
            elif new is not None:
                unavailable += not self._is_available(new)
            elif old is not None:
                name = old["metadata"]["name"]
                if not self._is_available(old):
                    replaced.append(name)
                    unavailable += 1
                elif unavailable < most_missing:
                    candidates.append(name)
        return Plan(delete=[*replaced, *candidates[: max(0, most_missing - unavailable)]])

    def _update_by_surge(self, pods_by_node: Mapping[str, Sequence[Object]], most: int, desired: int) -> Plan:
        plan = Plan()
        candidates: list[str] = []
        misplaced: list[str] = []
        surging = available = 0
        for node, pods in pods_by_node.items():
            new, old, clear = self._pair(pods)
            if not clear:
                surging += 1
                continue
            counted = old if old is not None else new
            is_available = counted is not None and self._is_available(counted)
            available += is_available
            if old is None:
                continue
            name, should_run = old["metadata"]["name"], self._placed.get(node, (False, False))[0]
            if new is not None:
                if self._is_available(new):
                    plan.delete.append(name)
                else:
                    surging += 1
            elif not should_run:
                (misplaced if is_available else plan.delete).append(name)
            elif not is_available:
                plan.create.append(node)
            elif surging < most:
                candidates.append(node)
        plan.delete += misplaced[: max(0, available - desired)]
        plan.create += candidates[: max(0, most - surging)]
        return plan

    def _pair(self, pods: Sequence[Object]) -> tuple[Object | None, Object | None, bool]:
        """(the new pod of a node, its old one, whether there is at most one of each)."""
        pair: dict[bool, Object] = {}
        for pod in pods:
            if is_terminating(pod):
                continue
            updated = is_updated(pod, self._hash, self._generation)
            if updated in pair:
                return None, None, False
            pair[updated] = pod
        return pair.get(True), pair.get(False), True

    def _is_available(self, pod: Object) -> bool:
        return is_pod_available(pod, self._min_ready, self._now)

    # -------------------------------------------------------------------------- status

    def counts(self) -> dict[str, int]:
        """The numbers of the status."""
        desired = current = misscheduled = ready = updated = available = 0
        for node, (should_run, _) in self._placed.items():
            pods = self._pods.get(node)
            if not should_run:
                misscheduled += bool(pods)
                continue
            desired += 1
            if not pods:
                continue
            current += 1
            pod = oldest_first(pods)[0]
            ready += is_pod_ready(pod)
            available += self._is_available(pod)
            updated += is_updated(pod, self._hash, self._generation)
        return {
            "currentNumberScheduled": current,
            "numberMisscheduled": misscheduled,
            "desiredNumberScheduled": desired,
            "numberReady": ready,
            "updatedNumberScheduled": updated,
            "numberAvailable": available,
            "numberUnavailable": desired - available,
        }
