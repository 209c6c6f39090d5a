"""Daemon sets: a pod on each node that should have one (upstream: pkg/controller/daemon/daemon_controller.go)."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from fakeapiserver.apimachinery.labels import Selector
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.client.cache.indexer import NAMESPACE_INDEX
from fakeapiserver.client.errors import StatusError, is_not_found
from fakeapiserver.component_helpers import pods as pod_facts
from fakeapiserver.component_helpers.consistency import NOT_READY, ConsistencyStore
from fakeapiserver.component_helpers.controller_context import ControllerContext
from fakeapiserver.component_helpers.objects import (
    CONTROLLER_REVISIONS,
    DAEMON_SETS,
    NODES,
    PODS,
    controller_of,
    is_namespace_terminating,
    is_terminating,
    key_of,
    labels_of,
    resolve_controller,
)
from fakeapiserver.component_helpers.workloads.controller_ref_manager import ControllerRefManager, Patch
from fakeapiserver.component_helpers.workloads.expectations import CountingExpectations, is_over
from fakeapiserver.component_helpers.workloads.pod_control import (
    SLOW_START_INITIAL_BATCH_SIZE,
    PodControl,
    pod_from_template,
    slow_start_batch,
)
from fakeapiserver.component_helpers.workloads.replica_sets import label_selector_of
from fakeapiserver.controller_runtime.controller import Controller
from fakeapiserver.controller_runtime.event import CreateEvent, DeleteEvent, Event, UpdateEvent, object_of
from fakeapiserver.controller_runtime.handler import Queue, request_for
from fakeapiserver.controller_runtime.reconcile import Request, Result
from fakeapiserver.controller_runtime.source import Informer
from fakeapiserver.controllers.daemonset.history import History
from fakeapiserver.controllers.daemonset.placement import (
    KIND,
    REVISION_HASH,
    Placement,
    bound_to,
    pod_template,
    pods_by_node,
)
from fakeapiserver.controllers.daemonset.rollout import Plan, Rollout

log = logging.getLogger(__name__)

BURST_REPLICAS: Final = 250
_STATUS_UPDATE_RETRIES: Final = 1
# A pod that fails is deleted after so many seconds, later each time.
_FIRST_BACKOFF: Final = 1.0
_LONGEST_BACKOFF: Final = 900.0
_LATE: Final = 1.0
# Counts that Go leaves out when they are 0.
_LEFT_OUT: Final = ("updatedNumberScheduled", "numberAvailable", "numberUnavailable")


class DaemonSetsController:
    """Requests are daemon sets."""

    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client
        self._clock = context.clock
        self._recorder = context.recorder("daemonset-controller")
        self._pod_control = PodControl(context.client, self._recorder)
        self._expectations = CountingExpectations(context.clock)
        self._consistency = ConsistencyStore()
        self._set_informer = context.informer(DAEMON_SETS)
        self._pod_informer = context.informer(PODS)
        self._node_informer = context.informer(NODES)
        self._revision_informer = context.informer(CONTROLLER_REVISIONS)
        self._sets = self._set_informer.indexer
        self._nodes = self._node_informer.indexer
        self._pods = pod_facts.add_controller_indexer(self._pod_informer)
        pod_facts.add_pod_node_name_indexer(self._pod_informer)
        self._revisions = pod_facts.add_controller_indexer(self._revision_informer)
        # By set, its observed generation and node: when a failed pod was last deleted, and how long the next has to wait.
        self._failures: dict[tuple[str, int, str], _Failure] = {}

    def add_to(self, controller: Controller) -> None:
        """Makes it the controller of its sources."""
        controller.add_source(Informer(self._set_informer, self.set_changed))
        controller.add_source(Informer(self._pod_informer, self.pod_changed))
        controller.add_source(Informer(self._revision_informer, self.revision_changed))
        controller.add_source(Informer(self._node_informer, self.node_changed))

    # ------------------------------------------------------------------------ events

    def set_changed(self, event: Event, queue: Queue) -> None:
        """Queues a daemon set after every change; a new object of the same name starts without expectations."""
        obj = object_of(event)
        if is_over(event):
            self._expectations.forget(key_of(obj))
        queue.add(request_for(obj))

    def pod_changed(self, event: Event, queue: Queue) -> None:
        """Queues the pod's daemon set, or all sets that may adopt the pod."""
        if isinstance(event, UpdateEvent):
            self._pod_updated(event.object_old, event.object_new, queue)
        elif isinstance(event, DeleteEvent) or is_terminating(event.object):
            self._pod_deleted(event.object, queue)
        elif (owner := self._owner(event.object)) is not None:
            self._expectations.creation_observed(key_of(owner))
            queue.add(request_for(owner))
        elif controller_of(event.object) is None:
            self._enqueue_selecting(event.object, queue)

    def _pod_updated(self, old: Object, new: Object, queue: Queue) -> None:
        if old["metadata"]["resourceVersion"] == new["metadata"]["resourceVersion"]:
            return
        if is_terminating(new):
            self._pod_deleted(new, queue)
            return
        self._changed_hands(old, new, queue)
        if (owner := self._owner(new)) is not None:
            wait = owner["spec"].get("minReadySeconds", 0)
            if wait > 0 and not pod_facts.is_pod_ready(old) and pod_facts.is_pod_ready(new):
                queue.add_after(request_for(owner), wait + _LATE)

    def _pod_deleted(self, pod: Object, queue: Queue) -> None:
        if (owner := self._owner(pod)) is not None:
            self._expectations.deletion_observed(key_of(owner))
            queue.add(request_for(owner))

    def revision_changed(self, event: Event, queue: Queue) -> None:
        """Queues the revision's daemon set, or all sets that may adopt the revision.

        New revisions are ignored: the set created them.
        """
        if isinstance(event, UpdateEvent):
            self._changed_hands(event.object_old, event.object_new, queue)
        elif isinstance(event, DeleteEvent):
            if (owner := self._owner(event.object)) is not None:
                queue.add(request_for(owner))
        elif isinstance(event, CreateEvent) and controller_of(event.object) is None:
            self._enqueue_selecting(event.object, queue)

    def _changed_hands(self, old: Object, new: Object, queue: Queue) -> None:
        """The set that had it and the one that has it look, or those that may adopt it."""
        changed = controller_of(old) != controller_of(new)
        if changed and (former := self._owner(old)) is not None:
            queue.add(request_for(former))
        if (owner := self._owner(new)) is not None:
            queue.add(request_for(owner))
        elif controller_of(new) is None and (changed or labels_of(old) != labels_of(new)):
            self._enqueue_selecting(new, queue)

    def node_changed(self, event: Event, queue: Queue) -> None:
        """Sets that should begin or cease to have a pod there look."""
        if isinstance(event, DeleteEvent):
            return
        node = object_of(event)
        if isinstance(event, UpdateEvent) and _place(event.object_old) == _place(node):
            return
        pods = self._pods.by_index(pod_facts.POD_NODE_NAME_INDEX, node["metadata"]["name"])
        placed = {key_of(owner) for pod in pods if (owner := self._owner(pod)) is not None}
        for daemon_set in self._sets.list():
            should_run, may_go_on = Placement(daemon_set).of(node)
            scheduled = key_of(daemon_set) in placed
            misscheduled = daemon_set["status"].get("numberMisscheduled", 0) > 0
            if (should_run and not scheduled) or (scheduled and (not may_go_on or misscheduled)):
                queue.add(request_for(daemon_set))

    def _owner(self, obj: Object) -> Object | None:
        """The set that the owner reference means."""
        return resolve_controller(self._sets, obj, KIND.kind)

    def _enqueue_selecting(self, obj: Object, queue: Queue) -> None:
        """Sets that may adopt it."""
        labels = labels_of(obj)
        for daemon_set in self._sets.by_index(NAMESPACE_INDEX, obj["metadata"]["namespace"]):
            selector = label_selector_of(daemon_set)
            if labels and not selector.empty and selector.matches(labels):
                queue.add(request_for(daemon_set))

    # -------------------------------------------------------------------------- sync

    async def reconcile(self, request: Request) -> Result | None:
        key = str(request)
        daemon_set = self._sets.get_by_key(key)
        if daemon_set is None:
            self._expectations.forget(key)
            self._consistency.clear(request)
            return None
        if not self._consistency.is_ready(request):
            return NOT_READY
        if daemon_set["spec"].get("selector") == {}:
            text = "This daemon set is selecting all pods. A non-empty selector is required."
            self._event(daemon_set, "Warning", "SelectingAll", text)
            return None
        if is_terminating(daemon_set):
            return None
        return await self._sync(key, daemon_set, label_selector_of(daemon_set))

    async def _sync(self, key: str, daemon_set: Object, selector: Selector) -> Result | None:
        history = History(self._client, daemon_set, lambda: self._claim(daemon_set, selector))
        current, old = await history.construct(await self._claim_revisions(daemon_set, selector, history))
        revision_hash = labels_of(current)[REVISION_HASH]
        may_act, delays, failure = self._expectations.satisfied(key), _Delays(), None
        if may_act:
            try:
                await self._update(key, daemon_set, selector, revision_hash, delays)
                await history.clean_up(old, await self._claim(daemon_set, selector))
            except Exception as error:
                failure = error
        try:
            rollout = await self._rollout(daemon_set, selector, revision_hash)
            # What wasn't acted on wasn't observed.
            await self._update_status(daemon_set, rollout.counts(), observed=may_act)
        except Exception:
            if failure is None:
                raise
            log.exception("the status of daemon set %s was not written", key)
        if failure is not None:
            raise failure
        counts = rollout.counts()
        if counts["numberReady"] != counts["numberAvailable"]:
            delays.add(daemon_set["spec"].get("minReadySeconds", 0))
        return delays.result

    async def _rollout(self, daemon_set: Object, selector: Selector, revision_hash: str) -> Rollout:
        pods = pods_by_node(await self._claim(daemon_set, selector))
        return Rollout(daemon_set, self._nodes.list(), pods, revision_hash, self._clock.now())

    async def _update(
        self, key: str, daemon_set: Object, selector: Selector, revision_hash: str, delays: "_Delays"
    ) -> None:
        """A pod where there should be one, and then the newest template."""
        rollout = await self._rollout(daemon_set, selector, revision_hash)
        plan = rollout.manage(
            lambda node: self._may_kill(daemon_set, node, delays),
            lambda event_type, reason, message: self._event(daemon_set, event_type, reason, message),
        )
        await self._follow(key, daemon_set, revision_hash, plan)
        rolls = daemon_set["spec"]["updateStrategy"].get("type") == "RollingUpdate"
        if rolls and self._expectations.satisfied(key):
            rollout = await self._rollout(daemon_set, selector, revision_hash)
            await self._follow(key, daemon_set, revision_hash, rollout.update())

    async def _follow(self, key: str, daemon_set: Object, revision_hash: str, plan: Plan) -> None:
        """Creates and deletes; raises the first failure."""
        create, delete = plan.create[:BURST_REPLICAS], plan.delete[:BURST_REPLICAS]
        self._expectations.set(key, len(create), len(delete))
        failure = await self._create_pods(key, daemon_set, revision_hash, create) if create else None
        namespace = daemon_set["metadata"]["namespace"]

        async def delete_pod(name: str) -> Exception | None:
            try:
                await self._pod_control.delete(namespace, name, daemon_set)
            except Exception as error:
                self._expectations.deletion_observed(key)
                return None if is_not_found(error) else error
            return None

        failures = [failure, *await asyncio.gather(*map(delete_pod, delete))]
        if first := next((error for error in failures if error is not None), None):
            raise first

    async def _create_pods(
        self, key: str, daemon_set: Object, revision_hash: str, nodes: Sequence[str]
    ) -> Exception | None:
        template = pod_template(daemon_set, revision_hash)
        namespace, waiting = daemon_set["metadata"]["namespace"], iter(nodes)

        async def create() -> None:
            pod = pod_from_template(template, daemon_set, KIND)
            pod["spec"] = bound_to(pod["spec"], next(waiting))
            try:
                await self._pod_control.create(namespace, pod, daemon_set)
            except StatusError as error:
                if not is_namespace_terminating(error):  # where none can be created any more
                    raise

        successes, failure = await slow_start_batch(len(nodes), SLOW_START_INITIAL_BATCH_SIZE, create)
        self._expectations.creation_observed(key, len(nodes) - successes)
        return failure

    def _may_kill(self, daemon_set: Object, node: str, delays: "_Delays") -> bool:
        """Reports whether a failed pod may be deleted:

        a node that rejects pods again and again gets new ones after growing delays.
        """
        now = self._clock.now()
        for stale in [key for key, failure in self._failures.items() if now - failure.last > 2 * _LONGEST_BACKOFF]:
            del self._failures[stale]
        key = (daemon_set["metadata"]["uid"], daemon_set["status"].get("observedGeneration", 0), node)
        known = self._failures.get(key)
        if known is not None and now - known.last < known.delay:
            delays.add(known.delay)
            return False
        delay = min(known.delay * 2, _LONGEST_BACKOFF) if known is not None else _FIRST_BACKOFF
        self._failures[key] = _Failure(now, delay)
        return True

    # ------------------------------------------------------------------------- claims

    def _manager(self, daemon_set: Object, selector: Selector, owned: str, patch: Patch) -> ControllerRefManager:
        namespace, name = daemon_set["metadata"]["namespace"], daemon_set["metadata"]["name"]
        return ControllerRefManager(
            daemon_set,
            KIND,
            selector,
            owned,
            patch,
            lambda: self._client.resource(DAEMON_SETS, namespace).get(name),
        )

    async def _claim(self, daemon_set: Object, selector: Selector) -> Sequence[Object]:
        """The set's pods."""
        patch = self._pod_control.patcher(daemon_set["metadata"]["namespace"])
        pods = pod_facts.objects_of_owner(self._pods, daemon_set, KIND.kind, orphans=True)
        return await self._manager(daemon_set, selector, "Pod", patch).claim(pods)

    async def _claim_revisions(self, daemon_set: Object, selector: Selector, history: History) -> Sequence[Object]:
        revisions = pod_facts.objects_of_owner(self._revisions, daemon_set, KIND.kind, orphans=True)
        return await self._manager(daemon_set, selector, "ControllerRevision", history.patch).claim(revisions)

    # ------------------------------------------------------------------------- status

    async def _update_status(self, daemon_set: Object, counts: Mapping[str, int], *, observed: bool) -> None:
        generation, status = daemon_set["metadata"]["generation"], daemon_set["status"]
        if status.get("observedGeneration", 0) >= generation and all(
            status.get(name, 0) == count for name, count in counts.items()
        ):
            return
        client = self._client.resource(DAEMON_SETS, daemon_set["metadata"]["namespace"])
        current = daemon_set
        for attempt in range(_STATUS_UPDATE_RETRIES + 1):
            status = {**current["status"], **({"observedGeneration": generation} if observed else {}), **counts}
            for name in _LEFT_OUT:
                if not status[name]:
                    del status[name]
            try:
                written = await client.update_status({**current, "status": status})
                self._consistency.wrote_at(request_for(daemon_set), self._set_informer, written)
                return
            except StatusError:
                if attempt == _STATUS_UPDATE_RETRIES:
                    raise
                current = await client.get(daemon_set["metadata"]["name"])

    def _event(self, daemon_set: Object, event_type: str, reason: str, message: str) -> None:
        self._recorder.event(daemon_set, event_type, reason, message)


class _Delays:
    """The earliest of several times to look again."""

    def __init__(self) -> None:
        self.result: Result | None = None

    def add(self, seconds: float) -> None:
        if seconds > 0 and (self.result is None or seconds < self.result.requeue_after):
            self.result = Result(requeue_after=seconds)


class _Failure(Struct, frozen=True):
    """When a failed pod was last deleted, and the seconds that the next has to wait."""

    last: float
    delay: float


def _place(node: Object) -> tuple[object, object]:
    """Returns the parts of a node that decide which pods may run there."""
    return labels_of(node), (node.get("spec") or {}).get("taints") or []


def new(context: ControllerContext) -> Sequence[Controller]:
    reconciler = DaemonSetsController(context)
    controller = context.controller(reconciler, workers=context.configuration.concurrent_daemonset_syncs)
    reconciler.add_to(controller)
    return [controller]
