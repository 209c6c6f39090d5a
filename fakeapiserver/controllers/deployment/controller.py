"""Deployments: pods of a template, rolled out by replica sets (upstream: pkg/controller/deployment/deployment_controller.go)."""

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from fakeapiserver.apimachinery.labels import Selector, from_label_selector
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.client.cache.indexer import NAMESPACE_INDEX
from fakeapiserver.client.dynamic import STRATEGIC_MERGE_PATCH
from fakeapiserver.client.errors import StatusError, is_conflict
from fakeapiserver.component_helpers import pods as pod_facts
from fakeapiserver.component_helpers.consistency import NOT_READY, ConsistencyStore
from fakeapiserver.component_helpers.controller_context import ControllerContext
from fakeapiserver.component_helpers.objects import (
    DEPLOYMENTS,
    PODS,
    REPLICA_SETS,
    controller_of,
    is_namespace_terminating,
    labels_of,
    resolve_controller,
)
from fakeapiserver.component_helpers.workloads.controller_ref_manager import ControllerRefManager
from fakeapiserver.controller_runtime.controller import Controller
from fakeapiserver.controller_runtime.event import DeleteEvent, Event, UpdateEvent
from fakeapiserver.controller_runtime.handler import Queue, enqueue_request_for_object, request_for
from fakeapiserver.controller_runtime.reconcile import Request, Result
from fakeapiserver.controller_runtime.source import Informer
from fakeapiserver.controllers.deployment.new_replica_set import KIND
from fakeapiserver.controllers.deployment.rollout import Rollout, RolloutTools

log = logging.getLogger(__name__)

_REPLICA_SET: Final = "ReplicaSet"
# After so many failures in a row nothing is tried until something changes.
_MAX_RETRIES: Final = 15


class DeploymentController:
    """Requests are deployments. tries: how often a request has failed in a row."""

    def __init__(self, context: ControllerContext) -> None:
        self.tries: Callable[[Request], int] = lambda request: 0
        self._client = context.client
        self._clock = context.clock
        self._consistency = ConsistencyStore()
        self._recorder = context.recorder("deployment-controller")
        self._deployment_informer = context.informer(DEPLOYMENTS)
        self._replica_set_informer = context.informer(REPLICA_SETS)
        self._pod_informer = context.informer(PODS)
        self._deployments = self._deployment_informer.indexer
        self._replica_sets = pod_facts.add_controller_indexer(self._replica_set_informer)
        self._pods = pod_facts.add_controller_indexer(self._pod_informer)

    def add_to(self, controller: Controller) -> None:
        """Makes it the controller of its sources."""
        self.tries = controller.queue.num_requeues
        controller.add_source(Informer(self._deployment_informer, enqueue_request_for_object))
        controller.add_source(Informer(self._replica_set_informer, self.replica_set_changed))
        controller.add_source(Informer(self._pod_informer, self.pod_changed))

    # ------------------------------------------------------------------------ events

    def replica_set_changed(self, event: Event, queue: Queue) -> None:
        """Queues the replica set's deployment, or all deployments that may adopt it."""
        if isinstance(event, UpdateEvent):
            self._replica_set_updated(event.object_old, event.object_new, queue)
            return
        deployment = self._owner(event.object)
        if deployment is not None:
            queue.add(request_for(deployment))
        elif not isinstance(event, DeleteEvent) and controller_of(event.object) is None:
            self._enqueue_all(self._selecting(event.object), queue)

    def _replica_set_updated(self, old: Object, new: Object, queue: Queue) -> None:
        if old["metadata"]["resourceVersion"] == new["metadata"]["resourceVersion"]:
            return
        changed_hands = controller_of(old) != controller_of(new)
        if changed_hands and (former := self._owner(old)) is not None:
            queue.add(request_for(former))
        if controller_of(new) is not None:
            if (deployment := self._owner(new)) is not None:
                queue.add(request_for(deployment))
        elif changed_hands or labels_of(old) != labels_of(new):
            self._enqueue_all(self._selecting(new), queue)

    def pod_changed(self, event: Event, queue: Queue) -> None:
        """With its last pod gone, a deployment that recreates them goes on."""
        if not isinstance(event, DeleteEvent):
            return
        replica_set = resolve_controller(self._replica_sets, event.object, _REPLICA_SET)
        deployment = self._owner(replica_set) if replica_set is not None else None
        if (
            deployment is not None
            and deployment["spec"]["strategy"]["type"] == "Recreate"
            and not self._any_pods(deployment)
        ):
            queue.add(request_for(deployment))

    def _any_pods(self, deployment: Object) -> bool:
        owned = pod_facts.objects_of_owner(self._replica_sets, deployment, KIND.kind, orphans=False)
        return any(map(self._pods_of, owned))

    def _pods_of(self, replica_set: Object) -> Sequence[Object]:
        return pod_facts.objects_of_owner(self._pods, replica_set, _REPLICA_SET, orphans=False)

    def _has_pods(self, replica_set: Object) -> bool:
        return not all(map(pod_facts.is_pod_terminal, self._pods_of(replica_set)))

    def _enqueue_all(self, deployments: Iterable[Object], queue: Queue) -> None:
        for deployment in deployments:
            queue.add(request_for(deployment))

    def _owner(self, replica_set: Object) -> Object | None:
        """The deployment that the replica set's owner reference means."""
        return resolve_controller(self._deployments, replica_set, KIND.kind)

    def _selecting(self, replica_set: Object) -> Sequence[Object]:
        """Deployments that would adopt the replica set."""
        labels = labels_of(replica_set)
        selecting = []
        for deployment in self._deployments.by_index(NAMESPACE_INDEX, replica_set["metadata"]["namespace"]):
            selector = _selector_of(deployment)
            if labels and not selector.empty and selector.matches(labels):
                selecting.append(deployment)
        return selecting

    # -------------------------------------------------------------------------- sync

    async def reconcile(self, request: Request) -> Result | None:
        try:
            return await self._sync_asking(request)
        except StatusError as error:
            if is_namespace_terminating(error):
                return None
            if self.tries(request) < _MAX_RETRIES:
                raise
            log.error("dropping deployment %s out of the queue: %s", request, error)
            return None

    async def _sync_asking(self, request: Request) -> Result | None:
        """The status of a big replica set changes faster than the cache follows: then the server is asked."""
        try:
            return await self._sync(request)
        except StatusError as error:
            if not is_conflict(error):
                raise
        return await self._sync(request, asks=True)

    async def _sync(self, request: Request, *, asks: bool = False) -> Result | None:
        """`asks`: the server, as the cache lags behind."""
        deployment = self._deployments.get_by_key(str(request))
        if deployment is None:
            self._consistency.clear(request)
            return None
        if asks:
            deployment = await self._client.resource(DEPLOYMENTS, request.namespace).get(request.name)
        elif not self._consistency.is_ready(request):
            return NOT_READY
        if deployment["spec"].get("selector") == {}:
            await self._refuse(deployment)
            return None
        replica_sets = pod_facts.objects_of_owner(self._replica_sets, deployment, KIND.kind, orphans=True)
        if asks:
            client = self._client.resource(REPLICA_SETS, request.namespace)
            replica_sets = [await client.get(replica_set["metadata"]["name"]) for replica_set in replica_sets]
        tools = RolloutTools(
            self._client,
            self._recorder,
            self._has_pods,
            lambda name: self._replica_sets.get_by_key(f"{request.namespace}/{name}"),
            lambda obj: self._wrote(request, obj),
        )
        now = self._clock.now()
        return await Rollout(tools, now, deployment, await self._claim(deployment, replica_sets)).sync()

    def _wrote(self, request: Request, obj: Object) -> None:
        informer = self._deployment_informer if obj["kind"] == KIND.kind else self._replica_set_informer
        self._consistency.wrote_at(request, informer, obj)

    async def _refuse(self, deployment: Object) -> None:
        text = "This deployment is selecting all pods. A non-empty selector is required."
        self._recorder.event(deployment, "Warning", "SelectingAll", text)
        generation, status = deployment["metadata"]["generation"], deployment["status"]
        if status.get("observedGeneration", 0) < generation:
            client = self._client.resource(DEPLOYMENTS, deployment["metadata"]["namespace"])
            await client.update_status({**deployment, "status": {**status, "observedGeneration": generation}})

    async def _claim(self, deployment: Object, replica_sets: Iterable[Object]) -> list[Object]:
        """The replica sets that are the deployment's."""
        namespace, name = deployment["metadata"]["namespace"], deployment["metadata"]["name"]
        client = self._client.resource(REPLICA_SETS, namespace)
        manager = ControllerRefManager(
            deployment,
            KIND,
            _selector_of(deployment),
            _REPLICA_SET,
            lambda replica_set, patch: client.patch(replica_set, patch, patch_type=STRATEGIC_MERGE_PATCH),
            lambda: self._client.resource(DEPLOYMENTS, namespace).get(name),
        )
        return await manager.claim(replica_sets)


def _selector_of(deployment: Object) -> Selector:
    return from_label_selector(deployment["spec"].get("selector"))


def new(context: ControllerContext) -> Sequence[Controller]:
    reconciler = DeploymentController(context)
    controller = context.controller(reconciler, workers=context.configuration.concurrent_deployment_syncs)
    reconciler.add_to(controller)
    return [controller]
