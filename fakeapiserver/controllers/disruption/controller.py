"""Keeps the status of pod disruption budgets (upstream: pkg/controller/disruption/disruption.go)."""

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from fakeapiserver.apimachinery import labels
from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.apimachinery.labels import Selector
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.timestamp import seconds_of
from fakeapiserver.client.cache.indexer import NAMESPACE_INDEX
from fakeapiserver.client.errors import StatusError, TransportError, is_conflict
from fakeapiserver.component_helpers.conditions import find_condition, set_pod_condition, set_status_condition
from fakeapiserver.component_helpers.controller_context import ControllerContext
from fakeapiserver.component_helpers.objects import POD_DISRUPTION_BUDGETS, PODS, is_terminating, labels_of
from fakeapiserver.component_helpers.pods import is_pod_ready, is_pod_terminal
from fakeapiserver.component_helpers.workloads.int_or_percent import scaled_value
from fakeapiserver.controller_runtime.controller import Controller
from fakeapiserver.controller_runtime.event import DeleteEvent, Event, object_of
from fakeapiserver.controller_runtime.handler import Queue, request_for
from fakeapiserver.controller_runtime.reconcile import ReconcilerFunc, Request, Result
from fakeapiserver.controller_runtime.source import Informer
from fakeapiserver.controllers.disruption.scale import Expected, ScaleFinder, ScaleUnknown

# Seconds within which a pod whose eviction was allowed is deleted, or it counts again.
_DELETION_TIMEOUT: Final = 120.0
# Seconds after which a pod that isn't being deleted isn't to be disrupted any more.
_STALE_DISRUPTION_TIMEOUT: Final = 120.0
_DISRUPTION_ALLOWED: Final = "DisruptionAllowed"
_DISRUPTION_TARGET: Final = "DisruptionTarget"
_TERMINATION_BY_KUBELET: Final = "TerminationByKubelet"


class _Counts(NamedTuple):
    """The counters of a budget's status, under their names there."""

    currentHealthy: int  # noqa: N815
    desiredHealthy: int  # noqa: N815
    expectedPods: int  # noqa: N815
    disruptionsAllowed: int  # noqa: N815


class DisruptionController:
    """Requests are budgets; `clean_up`'s are pods."""

    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client
        self._clock = context.clock
        self._events = context.recorder("controllermanager")
        self._scales = ScaleFinder(context)
        self._selectors: dict[str, tuple[int, Selector]] = {}
        self.pods = context.informer(PODS)
        self.budgets = context.informer(POD_DISRUPTION_BUDGETS)

    # -------------------------------------------------------------------------- what happened

    def budget_changed(self, event: Event, queue: Queue) -> None:
        budget = object_of(event)
        if isinstance(event, DeleteEvent):
            self._selectors.pop(budget["metadata"]["uid"], None)
        queue.add(request_for(budget))

    def pod_changed(self, event: Event, queue: Queue) -> None:
        """Queues the budget of the pod; one of them if there are several: no client may disrupt the pod then."""
        pod = object_of(event)
        namespace, own = pod["metadata"]["namespace"], labels_of(pod)
        budgets = [
            budget
            for budget in self.budgets.indexer.by_index(NAMESPACE_INDEX, namespace)
            if (selector := self._selector(budget)) is not None and selector.matches(own)
        ]
        if len(budgets) > 1:
            quoted = f"{go_quote(namespace)}/{go_quote(pod['metadata']['name'])}"
            chosen = go_quote(budgets[0]["metadata"]["name"])
            self._events.event(
                pod,
                "Warning",
                "MultiplePodDisruptionBudgets",
                f"Pod {quoted} matches multiple PodDisruptionBudgets.  Chose {chosen} arbitrarily.",
            )
        if budgets:
            queue.add(request_for(budgets[0]))

    def disruption_changed(self, event: Event, queue: Queue) -> None:
        """Pods that are to be disrupted, when that is long enough."""
        if isinstance(event, DeleteEvent):
            return
        pod = object_of(event)
        wait = self._until_stale(pod)
        if wait is not None:
            queue.add_after(request_for(pod), wait)

    def _selector(self, budget: Object) -> Selector | None:
        """Returns the budget's selector, or None if it is invalid."""
        metadata = budget["metadata"]
        known = self._selectors.get(metadata["uid"])
        if known is not None and known[0] == metadata["generation"]:
            return known[1]
        try:
            selector = labels.from_label_selector(budget["spec"].get("selector"))
        except ValueError:
            return None
        self._selectors[metadata["uid"]] = (metadata["generation"], selector)
        return selector

    # -------------------------------------------------------------------------------- budgets

    async def reconcile(self, request: Request) -> Result | None:
        budget = self.budgets.indexer.get_by_key(str(request))
        if budget is None:
            return None
        try:
            wait = await self._sync(budget)
        except (StatusError, TransportError, TimeoutError, ScaleUnknown, ValueError) as error:
            if isinstance(error, StatusError) and is_conflict(error):
                raise
            await self._fail_safe(budget, error)
            return None
        return Result(requeue_after=wait) if wait is not None else None

    async def _sync(self, budget: Object) -> float | None:
        """Seconds until a pod that was to be deleted counts again. ScaleUnknown, ValueError, StatusError."""
        pods = self._pods_of(budget)
        if not pods:
            self._events.event(budget, "Normal", "NoPods", "No matching pods found")
        try:
            expected, desired = await self._expected(budget, pods)
        except (StatusError, TransportError, TimeoutError, ScaleUnknown, ValueError) as error:
            self._events.event(
                budget,
                "Warning",
                "CalculateExpectedPodCountFailed",
                f"Failed to calculate the number of expected pods: {error}",
            )
            raise
        if expected.unmanaged:
            self._events.event(
                budget,
                "Warning",
                "UnmanagedPods",
                f"Pods selected by this PodDisruptionBudget (selector: {labels.go_text(budget['spec'].get('selector'))}) were found "
                "to be unmanaged. As a result, the status of the PDB cannot be calculated correctly, which may result in "
                'undefined behavior. To account for these pods please set ".spec.minAvailable" field of the PDB to an '
                "integer value.",
            )
        now = self._clock.now()
        disrupted, recheck = self._disrupted(budget, pods, now)
        healthy = _healthy(pods, disrupted, now)
        allowed = max(0, healthy - desired) if expected.pods > 0 else 0
        await self._write(budget, _Counts(healthy, desired, expected.pods, allowed), disrupted, now)
        return recheck

    def _pods_of(self, budget: Object) -> Sequence[Object]:
        """ValueError for a selector that can't be read."""
        selector = self._selector(budget)
        if selector is None:
            message = "the selector is invalid"
            self._events.event(budget, "Warning", "NoPods", f"Failed to get pods: {message}")
            raise ValueError(message)
        namespace = budget["metadata"]["namespace"]
        return [
            pod for pod in self.pods.indexer.by_index(NAMESPACE_INDEX, namespace) if selector.matches(labels_of(pod))
        ]

    async def _expected(self, budget: Object, pods: Sequence[Object]) -> tuple[Expected, int]:
        """Returns the wanted number of pods, and how many of them must be healthy.

        Raises ScaleUnknown, ValueError, StatusError.
        """
        spec = budget["spec"]
        unavailable, available = spec.get("maxUnavailable"), spec.get("minAvailable")
        if unavailable is not None:
            expected = await self._scales.expected(pods)
            return expected, max(0, expected.pods - scaled_value(unavailable, expected.pods, round_up=True))
        if isinstance(available, str):
            expected = await self._scales.expected(pods)
            return expected, scaled_value(available, expected.pods, round_up=True)
        return (Expected(0, []), 0) if available is None else (Expected(len(pods), []), available)

    def _disrupted(self, budget: Object, pods: Sequence[Object], now: float) -> tuple[dict[str, str], float | None]:
        """Pods that are to be deleted and aren't yet, and since when; seconds until the first of them counts again."""
        disrupted: dict[str, str] = (budget.get("status") or {}).get("disruptedPods") or {}
        kept: dict[str, str] = {}
        waits: list[float] = []
        for pod in pods if disrupted else ():
            since = disrupted.get(pod["metadata"]["name"])
            if since is None or is_terminating(pod):
                continue
            wait = (seconds_of(since) or 0.0) + _DELETION_TIMEOUT - now
            if wait < 0:
                namespace = budget["metadata"]["namespace"]
                # That the namespace stands where the name should is upstream's.
                message = f"Pod was expected by PDB {namespace}/{namespace} to be deleted but it wasn't"
                self._events.event(pod, "Warning", "NotDeleted", message)
            else:
                kept[pod["metadata"]["name"]] = since
                waits.append(wait)
        # A moment later, as what is due at this very moment isn't over yet.
        return kept, min(waits) + 0.005 if waits else None

    async def _write(self, budget: Object, counts: _Counts, disrupted: dict[str, str], now: float) -> None:
        status, generation = budget.get("status") or {}, budget["metadata"]["generation"]
        holds, reason = ("True", "SufficientPods") if counts.disruptionsAllowed > 0 else ("False", "InsufficientPods")
        condition = find_condition(status.get("conditions"), _DISRUPTION_ALLOWED)
        if (
            all(status.get(name, 0) == value for name, value in counts._asdict().items())
            and (status.get("disruptedPods") or {}) == disrupted
            and status.get("observedGeneration", 0) == generation
            and condition is not None
            and (condition["status"], condition["reason"]) == (holds, reason)
        ):
            return
        conditions = set_status_condition(
            status.get("conditions"), _DISRUPTION_ALLOWED, holds, reason, now, observed_generation=generation
        )
        written: dict[str, Any] = {**counts._asdict(), "observedGeneration": generation, "conditions": conditions}
        if disrupted:
            written["disruptedPods"] = disrupted
        await self._update(budget, written)

    async def _fail_safe(self, budget: Object, error: Exception) -> None:
        """Writes a status that forbids disruptions, because the right numbers are unknown. Raises StatusError."""
        status = budget.get("status") or {}
        conditions = set_status_condition(
            status.get("conditions"),
            _DISRUPTION_ALLOWED,
            "False",
            "SyncFailed",
            self._clock.now(),
            message=str(error),
            observed_generation=status.get("observedGeneration", 0),
        )
        empty = _Counts(0, 0, 0, 0)._asdict()
        await self._update(budget, {**empty, **status, "disruptionsAllowed": 0, "conditions": conditions})

    async def _update(self, budget: Object, status: dict[str, Any]) -> None:
        budgets = self._client.resource(POD_DISRUPTION_BUDGETS, budget["metadata"]["namespace"])
        await budgets.update_status({**budget, "status": status})

    # ----------------------------------------------------------------- pods that weren't disrupted

    def _until_stale(self, pod: Object) -> float | None:
        """Returns the seconds until the pod's condition DisruptionTarget expires, or None if it has none that could."""
        if is_terminating(pod) or is_pod_terminal(pod):
            return None
        condition = find_condition((pod.get("status") or {}).get("conditions"), _DISRUPTION_TARGET)
        if condition is None or condition["status"] != "True" or condition.get("reason") == _TERMINATION_BY_KUBELET:
            return None
        since = seconds_of(condition.get("lastTransitionTime") or "") or 0.0
        return max(0.0, since + _STALE_DISRUPTION_TIMEOUT - self._clock.now())

    async def clean_up(self, request: Request) -> Result | None:
        """The condition that the pod is to be disrupted holds no more."""
        pod = self.pods.indexer.get_by_key(str(request))
        wait = self._until_stale(pod) if pod is not None else None
        if pod is None or wait is None:
            return None
        if wait > 0:
            return Result(requeue_after=wait)
        denied = {"type": _DISRUPTION_TARGET, "status": "False"}
        conditions, _ = set_pod_condition(pod, denied, self._clock.now())
        status = {**pod["status"], "conditions": conditions}
        await self._client.resource(PODS, request.namespace).update_status({**pod, "status": status})
        return None


def _healthy(pods: Iterable[Object], disrupted: dict[str, str], now: float) -> int:
    """Ready, and not about to go."""
    return sum(
        is_pod_ready(pod)
        for pod in pods
        if not is_terminating(pod)
        and not (
            (since := disrupted.get(pod["metadata"]["name"])) is not None
            and (seconds_of(since) or 0.0) + _DELETION_TIMEOUT > now
        )
    )


def new(context: ControllerContext) -> Sequence[Controller]:
    reconciler = DisruptionController(context)
    budgets = context.controller(reconciler, workers=context.configuration.concurrent_disruption_syncs)
    budgets.add_source(Informer(reconciler.budgets, reconciler.budget_changed))
    budgets.add_source(Informer(reconciler.pods, reconciler.pod_changed))
    stale = context.controller(ReconcilerFunc(reconciler.clean_up), name=f"{context.name}-stale-pods")
    stale.add_source(Informer(reconciler.pods, reconciler.disruption_changed))
    return [budgets, stale]
