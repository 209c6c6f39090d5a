"""Stateful sets: pods with a name and storage of their own (upstream: pkg/controller/statefulset/stateful_set.go)."""

import logging
from collections.abc import Sequence

from fakeapiserver.apimachinery.labels import Selector
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.client.cache.indexer import NAMESPACE_INDEX
from fakeapiserver.component_helpers import pods as pod_facts
from fakeapiserver.component_helpers.consistency import NOT_READY, ConsistencyStore
from fakeapiserver.component_helpers.controller_context import ControllerContext
from fakeapiserver.component_helpers.objects import (
    CONTROLLER_REVISIONS,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    STATEFUL_SETS,
    controller_of,
    labels_of,
    resolve_controller,
)
from fakeapiserver.component_helpers.workloads.controller_ref_manager import ControllerRefManager
from fakeapiserver.component_helpers.workloads.history import ControllerHistory
from fakeapiserver.component_helpers.workloads.pod_control import PodControl
from fakeapiserver.component_helpers.workloads.replica_sets import label_selector_of
from fakeapiserver.controller_runtime.controller import Controller
from fakeapiserver.controller_runtime.event import CreateEvent, Event, UpdateEvent
from fakeapiserver.controller_runtime.handler import Queue, enqueue_request_for_object, request_for
from fakeapiserver.controller_runtime.reconcile import Request, Result
from fakeapiserver.controller_runtime.source import Informer
from fakeapiserver.controllers.statefulset.identity import KIND, is_member_of
from fakeapiserver.controllers.statefulset.pod_control import StatefulPodControl
from fakeapiserver.controllers.statefulset.update import StatefulSetUpdate, UpdateTools

log = logging.getLogger(__name__)


class StatefulSetController:
    """Requests are stateful sets."""

    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client
        self._clock = context.clock
        self._gates = context.configuration.feature_gates
        recorder = context.recorder("statefulset-controller")
        self._set_informer = context.informer(STATEFUL_SETS)
        self._pod_informer = context.informer(PODS)
        self._sets = self._set_informer.indexer
        self._pods = pod_facts.add_controller_indexer(self._pod_informer)
        self._pod_control = PodControl(context.client, recorder)
        claims = context.informer(PERSISTENT_VOLUME_CLAIMS).indexer
        self._consistency = ConsistencyStore()
        self._control = StatefulPodControl(context.client, self._pods, claims, recorder, self._wrote_pod)
        self._history = ControllerHistory(context.client, context.informer(CONTROLLER_REVISIONS))

    def add_to(self, controller: Controller) -> None:
        """Makes it the controller of its sources."""
        controller.add_source(Informer(self._set_informer, enqueue_request_for_object))
        controller.add_source(Informer(self._pod_informer, self.pod_changed))

    # ------------------------------------------------------------------------ events

    def pod_changed(self, event: Event, queue: Queue) -> None:
        """Queues the pod's set, or all sets that may adopt the pod."""
        if isinstance(event, UpdateEvent):
            self._pod_updated(event.object_old, event.object_new, queue)
        elif (owner := self._owner(event.object)) is not None:
            queue.add(request_for(owner))
        elif isinstance(event, CreateEvent) and controller_of(event.object) is None:
            self._enqueue_selecting(event.object, queue)

    def _pod_updated(self, old: Object, new: Object, queue: Queue) -> None:
        if old["metadata"]["resourceVersion"] == new["metadata"]["resourceVersion"]:
            return
        changed_hands = controller_of(old) != controller_of(new)
        if changed_hands and (former := self._owner(old)) is not None:
            queue.add(request_for(former))
        if (owner := self._owner(new)) is not None:
            queue.add(request_for(owner))
            wait = owner["spec"].get("minReadySeconds", 0)
            if wait > 0 and not pod_facts.is_pod_ready(old) and pod_facts.is_pod_ready(new):
                queue.add_after(request_for(owner), wait)
        elif controller_of(new) is None and (changed_hands or labels_of(old) != labels_of(new)):
            self._enqueue_selecting(new, queue)

    def _owner(self, pod: Object) -> Object | None:
        """The set that the pod's owner reference means."""
        return resolve_controller(self._sets, pod, KIND.kind)

    def _enqueue_selecting(self, pod: Object, queue: Queue) -> None:
        """Sets that may adopt the pod."""
        labels = labels_of(pod)
        for stateful_set in self._sets.by_index(NAMESPACE_INDEX, pod["metadata"]["namespace"]):
            selector = label_selector_of(stateful_set)
            if labels and not selector.empty and selector.matches(labels):
                queue.add(request_for(stateful_set))

    # -------------------------------------------------------------------------- sync

    async def reconcile(self, request: Request) -> Result | None:
        stateful_set = self._sets.get_by_key(str(request))
        if stateful_set is None:
            self._consistency.clear(request)
            return None
        if not self._consistency.is_ready(request):
            return NOT_READY
        try:
            selector = label_selector_of(stateful_set)
        except ValueError as error:
            log.error("error converting the selector of stateful set %s: %s", request, error)
            return None
        await self._adopt_revisions(stateful_set, selector)
        pods = await self._claim(stateful_set, selector)
        now = self._clock.now()
        tools = UpdateTools(self._client, self._control, self._history, self._sets, self._wrote_status, self._gates)
        status = await StatefulSetUpdate(tools, stateful_set, pods, now).run(selector)
        return self._next_check(stateful_set, status, pods, now)

    def _wrote_pod(self, stateful_set: Object, pod: Object) -> None:
        self._consistency.wrote_at(request_for(stateful_set), self._pod_informer, pod)

    def _wrote_status(self, stateful_set: Object) -> None:
        self._consistency.wrote_at(request_for(stateful_set), self._set_informer, stateful_set)

    def _next_check(self, stateful_set: Object, status: Object, pods: Sequence[Object], now: float) -> Result | None:
        """When the next pod becomes available."""
        wait = stateful_set["spec"].get("minReadySeconds", 0)
        if wait <= 0 or status.get("readyReplicas", 0) == status.get("availableReplicas", 0):
            return None
        check = pod_facts.next_availability_check(pods, wait, now, self._clock.now())
        return Result(requeue_after=wait if check is None else max(check, pod_facts.SOON))

    def _manager(self, stateful_set: Object, selector: Selector) -> ControllerRefManager:
        namespace, name = stateful_set["metadata"]["namespace"], stateful_set["metadata"]["name"]
        return ControllerRefManager(
            stateful_set,
            KIND,
            selector,
            "Pod",
            self._pod_control.patcher(namespace),
            lambda: self._client.resource(STATEFUL_SETS, namespace).get(name),
        )

    async def _claim(self, stateful_set: Object, selector: Selector) -> list[Object]:
        pods = pod_facts.objects_of_owner(self._pods, stateful_set, KIND.kind, orphans=True)
        return await self._manager(stateful_set, selector).claim(pods, lambda pod: is_member_of(stateful_set, pod))

    async def _adopt_revisions(self, stateful_set: Object, selector: Selector) -> None:
        revisions = self._history.list(stateful_set, KIND, selector)
        orphans = [revision for revision in revisions if controller_of(revision) is None]
        if orphans:
            await self._manager(stateful_set, selector).check_adoption("can't adopt ControllerRevisions")
        for revision in orphans:
            await self._history.adopt(stateful_set, KIND, revision)


def new(context: ControllerContext) -> Sequence[Controller]:
    reconciler = StatefulSetController(context)
    controller = context.controller(reconciler, workers=context.configuration.concurrent_statefulset_syncs)
    reconciler.add_to(controller)
    return [controller]
