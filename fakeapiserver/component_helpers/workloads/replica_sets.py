"""Keeps the wanted number of pods of a template: the controller of both ReplicaSets and ReplicationControllers.

Upstream: pkg/controller/replicaset/{replica_set,replica_set_utils}.go, pkg/controller/replication/{replication_controller,conversion}.go.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from fakeapiserver.apimachinery.gvk import GroupVersionKind, GroupVersionResource
from fakeapiserver.apimachinery.labels import Selector, from_label_selector
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.timestamp import rfc3339, seconds_of
from fakeapiserver.client.cache.indexer import NAMESPACE_INDEX
from fakeapiserver.client.errors import StatusError, is_not_found
from fakeapiserver.component_helpers import pods as pod_facts
from fakeapiserver.component_helpers.consistency import NOT_READY, ConsistencyStore
from fakeapiserver.component_helpers.controller_context import ControllerContext
from fakeapiserver.component_helpers.objects import (
    PODS,
    controller_of,
    is_namespace_terminating,
    is_terminating,
    key_of,
    labels_of,
    resolve_controller,
)
from fakeapiserver.component_helpers.workloads.controller_ref_manager import ControllerRefManager
from fakeapiserver.component_helpers.workloads.expectations import UIDTrackingControllerExpectations, is_over
from fakeapiserver.component_helpers.workloads.gathering import gather_changes
from fakeapiserver.component_helpers.workloads.pod_control import (
    SLOW_START_INITIAL_BATCH_SIZE,
    PodControl,
    pod_from_template,
    slow_start_batch,
)
from fakeapiserver.controller_runtime.controller import Controller
from fakeapiserver.controller_runtime.event import CreateEvent, DeleteEvent, Event, UpdateEvent, object_of
from fakeapiserver.controller_runtime.handler import Queue, request_for
from fakeapiserver.controller_runtime.reconcile import Request, Result
from fakeapiserver.controller_runtime.source import Informer

log = logging.getLogger(__name__)

# So many pods are created or deleted before the controller looks at what came of it.
BURST_REPLICAS: Final = 500
_CONTROLLER_UID_INDEX: Final = "controllerUID"
_STATUS_UPDATE_RETRIES: Final = 1
_COUNTS: Final = ("fullyLabeledReplicas", "readyReplicas", "availableReplicas")


class ReplicaSetController:
    """Requests are the controllers' objects, called replica sets below.

    kind, resource: of these objects. component: for events. selector_of: returns an object's selector; raises ValueError.
    counts_terminating: whether the status counts pods that are being deleted.
    """

    def __init__(
        self,
        context: ControllerContext,
        kind: GroupVersionKind,
        resource: GroupVersionResource,
        component: str,
        *,
        selector_of: Callable[[Object], Selector],
        counts_terminating: bool,
    ) -> None:
        self._kind = kind
        self._resource = resource
        self._client = context.client
        self._clock = context.clock
        self._selector_of = selector_of
        self._counts_terminating = counts_terminating
        self._pod_control = PodControl(context.client, context.recorder(component))
        self._expectations = UIDTrackingControllerExpectations(context.clock)
        self._consistency = ConsistencyStore()
        self._age_ratio = context.metrics.histogram(
            "replicaset_controller_sorting_deletion_age_ratio",
            "How old pods are that have to go, beside the youngest",
            [0.25 * 2**power for power in range(6)],
        )
        self._replica_sets = context.informer(resource)
        self._sets = pod_facts.add_indexer(self._replica_sets, _CONTROLLER_UID_INDEX, _by_controller_uid)
        self._pod_informer = context.informer(PODS)
        self._pods = pod_facts.add_controller_indexer(self._pod_informer)

    def add_to(self, controller: Controller) -> None:
        """Makes it the controller of its sources."""
        controller.add_source(Informer(self._replica_sets, self.replica_set_changed))
        controller.add_source(Informer(self._pod_informer, self.pod_changed))

    # ------------------------------------------------------------------------ events

    def replica_set_changed(self, event: Event, queue: Queue) -> None:
        """Queues a replica set after every change; a new object of the same name starts without expectations."""
        obj = object_of(event)
        if is_over(event):
            self._expectations.forget(key_of(obj))
        queue.add(request_for(obj))

    def pod_changed(self, event: Event, queue: Queue) -> None:
        """Queues the pod's controller, or all controllers that may adopt the pod."""
        if isinstance(event, UpdateEvent):
            self._pod_updated(event.object_old, event.object_new, queue)
        elif isinstance(event, DeleteEvent) or is_terminating(event.object):
            self._pod_deleted(event.object, queue)
        elif isinstance(event, CreateEvent):
            self._pod_added(event.object, queue)

    def _pod_added(self, pod: Object, queue: Queue) -> None:
        if controller_of(pod) is None:
            self._enqueue_all(self._selecting(pod), queue)
        elif (owner := self._controller(pod)) is not None:
            self._expectations.creation_observed(key_of(owner))
            queue.add(request_for(owner))

    def _pod_updated(self, old: Object, new: Object, queue: Queue) -> None:
        if old["metadata"]["resourceVersion"] == new["metadata"]["resourceVersion"]:
            return
        relabeled = labels_of(old) != labels_of(new)
        if is_terminating(new):
            # As good as gone: others are to be made now, not when it really is.
            self._pod_deleted(new, queue)
            if relabeled:
                self._pod_deleted(old, queue)
            return
        changed_hands = controller_of(old) != controller_of(new)
        if changed_hands and (former := self._controller(old)) is not None:
            queue.add(request_for(former))
        if controller_of(new) is None:
            if relabeled or changed_hands:
                self._enqueue_all(self._selecting(new), queue)
        elif (changed_hands or relabeled or _counts(old) != _counts(new)) and (
            owner := self._controller(new)
        ) is not None:
            queue.add(request_for(owner))
            wait = owner["spec"].get("minReadySeconds", 0)
            if wait > 0 and not pod_facts.is_pod_ready(old) and pod_facts.is_pod_ready(new):
                queue.add_after(request_for(owner), wait)

    def _pod_deleted(self, pod: Object, queue: Queue) -> None:
        if (owner := self._controller(pod)) is not None:
            self._expectations.deletion_observed(key_of(owner), key_of(pod))
            queue.add(request_for(owner))

    def _enqueue_all(self, replica_sets: Iterable[Object], queue: Queue) -> None:
        for replica_set in replica_sets:
            queue.add(request_for(replica_set))

    def _controller(self, pod: Object) -> Object | None:
        """The replica set that the pod's owner reference means."""
        return resolve_controller(self._sets, pod, self._kind.kind)

    def _selecting(self, pod: Object) -> Sequence[Object]:
        """Replica sets that would adopt the pod."""
        labels = labels_of(pod)
        if not labels:
            return []
        selecting = []
        for replica_set in self._sets.by_index(NAMESPACE_INDEX, pod["metadata"]["namespace"]):
            selector = self._selector_of(replica_set)
            if not selector.empty and selector.matches(labels):
                selecting.append(replica_set)
        if len(selecting) > 1:
            log.error("user error! more than one %s is selecting pods with labels: %s", self._kind.kind, labels)
        return selecting

    # -------------------------------------------------------------------------- sync

    async def reconcile(self, request: Request) -> Result | None:
        known = self._sets.get_by_key(str(request))
        if known is not None:
            await gather_changes(len(pod_facts.objects_of_owner(self._pods, known, self._kind.kind, orphans=False)))
        return await self._sync(request)

    async def _sync(self, request: Request) -> Result | None:
        key = str(request)
        replica_set = self._sets.get_by_key(key)
        if replica_set is None:
            self._expectations.forget(key)
            self._consistency.clear(request)
            return None
        if not self._consistency.is_ready(request):
            return NOT_READY
        may_act = self._expectations.satisfied(key)
        try:
            selector = self._selector_of(replica_set)
        except ValueError as error:
            log.error("error converting pod selector to selector for %s %s: %s", self._kind.kind, key, error)
            return None
        pods = pod_facts.objects_of_owner(self._pods, replica_set, self._kind.kind, orphans=True)
        active = await self._claim(replica_set, selector, pod_facts.active_pods(pods))
        terminating = 0
        if self._counts_terminating:
            leaving = filter(pod_facts.is_pod_terminating, pods)
            terminating = len(pod_facts.claimed_pods(replica_set, selector, leaving))
        failure: Exception | None = None
        if may_act and not is_terminating(replica_set):
            failure = await self._manage_replicas(key, replica_set, active)
        now = self._clock.now()
        status = self._status(replica_set, active, terminating, failure, now)
        updated = await self._update_status(replica_set, status)
        if updated is not replica_set:
            self._consistency.wrote_at(request, self._replica_sets, updated)
        if failure is not None:
            raise failure
        return self._next_check(updated, active, now)

    def _next_check(self, replica_set: Object, active: Iterable[Object], now: float) -> Result | None:
        """When the next pod becomes available."""
        wait, status = replica_set["spec"].get("minReadySeconds", 0), replica_set["status"]
        if wait <= 0 or status.get("readyReplicas", 0) == status.get("availableReplicas", 0):
            return None
        check = pod_facts.next_availability_check(active, wait, now, self._clock.now())
        if check is None:
            return Result(requeue_after=wait)
        return Result(requeue_after=max(check, pod_facts.SOON))

    async def _claim(self, replica_set: Object, selector: Selector, pods: Iterable[Object]) -> list[Object]:
        namespace, name = replica_set["metadata"]["namespace"], replica_set["metadata"]["name"]
        manager = ControllerRefManager(
            replica_set,
            self._kind,
            selector,
            "Pod",
            self._pod_control.patcher(namespace),
            lambda: self._client.resource(self._resource, namespace).get(name),
        )
        return await manager.claim(pods)

    async def _manage_replicas(self, key: str, replica_set: Object, active: Sequence[Object]) -> Exception | None:
        """Creates or deletes what is too few or too many; the first failure."""
        surplus = len(active) - replica_set["spec"]["replicas"]
        if surplus < 0:
            return await self._create_pods(key, replica_set, min(-surplus, BURST_REPLICAS))
        if surplus > 0:
            return await self._delete_pods(key, replica_set, active, min(surplus, BURST_REPLICAS))
        return None

    async def _create_pods(self, key: str, replica_set: Object, count: int) -> Exception | None:
        self._expectations.expect_creations(key, count)
        namespace = replica_set["metadata"]["namespace"]
        pod = pod_from_template(replica_set["spec"]["template"], replica_set, self._kind)

        async def create() -> None:
            try:
                await self._pod_control.create(namespace, pod, replica_set)
            except StatusError as error:
                if not is_namespace_terminating(error):  # where none can be created any more
                    raise

        successes, failure = await slow_start_batch(count, SLOW_START_INITIAL_BATCH_SIZE, create)
        self._expectations.creation_observed(key, count - successes)
        return failure

    async def _delete_pods(
        self, key: str, replica_set: Object, active: Sequence[Object], count: int
    ) -> Exception | None:
        namespace = replica_set["metadata"]["namespace"]
        chosen = active
        if count < len(active):
            ranks = self._pods_on_nodes(replica_set)
            chosen = pod_facts.sort_for_deletion(active, ranks, self._clock.now())[:count]
            self._tell_ages(active, chosen)
        self._expectations.expect_deletions(key, map(key_of, chosen))

        async def delete(pod: Object) -> Exception | None:
            try:
                await self._pod_control.delete(namespace, pod["metadata"]["name"], replica_set)
            except Exception as error:
                self._expectations.deletion_observed(key, key_of(pod))
                return None if is_not_found(error) else error
            return None

        results = await asyncio.gather(*map(delete, chosen))
        return next((error for error in results if error is not None), None)

    def _tell_ages(self, active: Sequence[Object], chosen: Sequence[Object]) -> None:
        """Counts how much older the pods to delete are than the youngest one; ready pods only."""
        now = self._clock.now()

        def age(pod: Object) -> float:
            return now - (seconds_of(pod["metadata"]["creationTimestamp"]) or now)

        youngest = min((age(pod) for pod in active if pod_facts.is_pod_ready(pod)), default=0.0)
        for pod in chosen:
            if youngest > 0 and pod_facts.is_pod_ready(pod):
                self._age_ratio.observe(age(pod) // youngest)

    def _pods_on_nodes(self, replica_set: Object) -> Counter[str]:
        """Returns the number of active pods of this replica set, and of others with its owner, per node."""
        owner = controller_of(replica_set)
        if owner is None:
            return Counter()
        selectors = [self._selector_of(owned) for owned in self._sets.by_index(_CONTROLLER_UID_INDEX, owner["uid"])]
        counts: Counter[str] = Counter()
        for pod in self._pods.by_index(NAMESPACE_INDEX, replica_set["metadata"]["namespace"]):
            labels = labels_of(pod)
            if pod_facts.is_pod_active(pod) and any(selector.matches(labels) for selector in selectors):
                counts[pod["spec"].get("nodeName", "")] += 1
        return counts

    # ------------------------------------------------------------------------ status

    def _status(
        self, replica_set: Object, active: Sequence[Object], terminating: int, failure: Exception | None, now: float
    ) -> Object:
        """Returns the status; zeroes are left out as Go leaves them out."""
        spec = replica_set["spec"]
        template = (spec["template"].get("metadata") or {}).get("labels") or {}
        wait = spec.get("minReadySeconds", 0)
        labeled = pod_facts.selects(from_label_selector({"matchLabels": template}))
        ready = [pod for pod in active if pod_facts.is_pod_ready(pod)]
        available = sum(pod_facts.is_pod_available(pod, wait, now) for pod in ready) if wait else len(ready)
        status: dict[str, Any] = {
            **replica_set["status"],
            "replicas": len(active),
            "observedGeneration": replica_set["metadata"]["generation"],
        }
        for name, count in zip(_COUNTS, (sum(map(labeled, active)), len(ready), available), strict=True):
            status[name] = count
            if not count:
                del status[name]
        if self._counts_terminating:
            status["terminatingReplicas"] = terminating
        conditions = status.get("conditions") or []
        failed = any(condition["type"] == "ReplicaFailure" for condition in conditions)
        if failure is not None and not failed:
            status["conditions"] = [*conditions, _failure_condition(len(active) - spec["replicas"], failure, now)]
        elif failure is None and failed:
            remaining = [condition for condition in conditions if condition["type"] != "ReplicaFailure"]
            del status["conditions"]
            if remaining:
                status["conditions"] = remaining
        return status

    async def _update_status(self, replica_set: Object, status: Object) -> Object:
        """The replica set as it is stored then; one that changed meanwhile gets the status too."""
        if replica_set["status"] == status:
            return replica_set
        metadata = replica_set["metadata"]
        client = self._client.resource(self._resource, metadata["namespace"])
        for _ in range(_STATUS_UPDATE_RETRIES):
            try:
                return await client.update_status({**replica_set, "status": status})
            except StatusError:
                replica_set = await client.get(metadata["name"])
        return await client.update_status({**replica_set, "status": status})


def _counts(pod: Object) -> tuple[str, object]:
    """Returns the parts of a pod's status that a replica set depends on.

    Upstream checks all pods after any change of a pod.
    """
    return pod_facts.pod_phase(pod), pod_facts.pod_condition(pod, "Ready")


def _failure_condition(surplus: int, failure: Exception, now: float) -> dict[str, str]:
    condition = {
        "type": "ReplicaFailure",
        "status": "True",
        "lastTransitionTime": rfc3339(now),
        "reason": "FailedCreate" if surplus < 0 else "FailedDelete" if surplus > 0 else "",
        "message": str(failure),
    }
    return {key: value for key, value in condition.items() if value}


def _by_controller_uid(replica_set: Object) -> Iterable[str]:
    owner = controller_of(replica_set)
    return (owner["uid"],) if owner is not None else ()


def label_selector_of(obj: Object) -> Selector:
    """Returns the selector of an object with a metav1.LabelSelector. Raises ValueError."""
    return from_label_selector(obj["spec"].get("selector"))
