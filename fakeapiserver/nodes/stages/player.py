"""Plays stages: chooses the next one for each object, waits for its time, performs it.

After a change of an object a new stage is chosen, which replaces the waiting one if it matches; a stage that changes
nothing is the last.
Failures because the server is busy are tried again, later each time; after other failures nothing happens until the object changes.
Upstream: sigs.k8s.io/kwok/pkg/kwok/controllers/{stage,pod,node}_controller.go.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct, field

from fakeapiserver.apimachinery.gvk import GroupVersionResource
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.client.cache.shared_informer import SharedInformer
from fakeapiserver.client.config import ImpersonationConfig
from fakeapiserver.client.dynamic import APPLY_PATCH, DynamicClient, ResourceClient
from fakeapiserver.client.errors import StatusError, TransportError, is_already_exists, is_not_found
from fakeapiserver.client.rest_mapper import NoMatchError
from fakeapiserver.clock import Timer
from fakeapiserver.component_helpers.controller_context import ControllerContext
from fakeapiserver.component_helpers.objects import NODES, PODS, key_of
from fakeapiserver.controller_runtime.event import CreateEvent, DeleteEvent, Event, UpdateEvent
from fakeapiserver.controller_runtime.handler import Queue
from fakeapiserver.controller_runtime.reconcile import Request
from fakeapiserver.controller_runtime.source import Informer
from fakeapiserver.nodes import node as simulated
from fakeapiserver.nodes.simulation import Simulation
from fakeapiserver.nodes.stages.expressions import StageError, Subject
from fakeapiserver.nodes.stages.functions import functions_about, functions_for, host_addresses
from fakeapiserver.nodes.stages.stage import (
    NODE,
    POD,
    Action,
    Apply,
    Delete,
    Functions,
    Patch,
    ResourceRef,
    SendEvent,
    Stage,
    choose,
)

log = logging.getLogger(__name__)

_COMPONENT: Final = "kwok_controller"
_MANAGER: Final = "kwok"
# KWOK's --cidr: for pods on nodes that have no range of their own.
_DEFAULT_CIDR: Final = "10.0.0.0/24"
_BACK_OFF: Final = 1.0
_MAX_BACK_OFF: Final = 1920.0
_JITTER: Final = 0.2
_TRANSIENT: Final = frozenset({"ServerTimeout", "Timeout", "ServiceUnavailable", "TooManyRequests"})


class _Job(Struct):
    """A stage that is to be played for an object, at the time `due` of the monotonic clock. `step`: where it goes on."""

    subject: Subject
    stage: Stage
    due: float
    step: int = 0
    retries: int = 0
    timer: Timer | None = None


class _Known(Struct):
    """An object: the version that was looked at last (0: none), and what waits for it."""

    uid: str
    version: int = 0
    job: _Job | None = None


class _Kind(Struct):
    """A resource that has stages."""

    ref: ResourceRef
    gvr: GroupVersionResource
    informer: SharedInformer
    stages: Sequence[Stage]
    objects: dict[Request, _Known] = field(default_factory=dict)
    source: Informer | None = None


class _NodeAddresses:
    """The addresses of nodes and pods in the cluster."""

    def __init__(self, simulation: Simulation, nodes: SharedInformer, pods: SharedInformer) -> None:
        self._simulation = simulation
        self._nodes = nodes
        self._pods = pods
        # The pods that were asked for last, with what their status said of their address.
        self.known: dict[str, Sequence[str]] = {}

    def of_node(self, name: str) -> list[str]:
        state = self._simulation.nodes.get(name)
        node_object = self._nodes.indexer.get_by_key(name)
        addresses = host_addresses(node_object) if node_object is not None else []
        if not addresses and state is not None:
            return [simulated.address_of(state.number)]
        return addresses

    def of_pod(self, node: str, uid: str) -> list[str]:
        node_object = self._nodes.indexer.get_by_key(node)
        if node_object is None:
            return []
        spec = node_object.get("spec") or {}
        cidrs = spec.get("podCIDRs") or [spec.get("podCIDR") or _DEFAULT_CIDR]
        known = [*self.known.get(uid, ()), *[""] * len(cidrs)]
        return [self._simulation.addresses.of(uid, cidr, known[at]) for at, cidr in enumerate(cidrs)]


class Player:
    """A Reconciler. Requests are objects; their names begin with the resource's: `pods.v1./web-0`."""

    def __init__(self, context: ControllerContext, simulation: Simulation, queue: Queue) -> None:
        self._context = context
        self._simulation = simulation
        self._queue = queue
        self._clock = context.clock
        self._random = context.random
        self._nodes = context.informer(NODES)
        self._pods = context.informer(PODS)
        self._addresses = _NodeAddresses(simulation, self._nodes, self._pods)
        self._recorder = context.recorder(_COMPONENT)
        self._kinds: dict[str, _Kind] = {}
        self._impersonating: dict[str, DynamicClient] = {}
        self.functions_of = functions_for(self._clock.now, self._random, self._addresses)
        simulation.watchers.append(self._look_again)

    # -------------------------------------------------------------------- which stages

    async def set_stages(self, stages: Mapping[ResourceRef, Sequence[Stage]]) -> Sequence[ResourceRef]:
        """Sets the stages to play; returns the resources that the server doesn't have yet."""
        unserved, wanted = [], {}
        for ref, stages_of_ref in stages.items():
            try:
                wanted[ref] = (await self._resource(ref), stages_of_ref)
            except NoMatchError:
                unserved.append(ref)
        for key, kind in [*self._kinds.items()]:
            if kind.ref not in wanted:
                await self._stop(key, kind)
        for ref, (gvr, stages_of_ref) in wanted.items():
            key = _key_of(gvr)
            known = self._kinds.get(key)
            if known is None:
                await self._start(key, _Kind(ref, gvr, self._context.running_informer(gvr, whole=True), stages_of_ref))
            elif [*map(_version_of, known.stages)] != [*map(_version_of, stages_of_ref)]:
                known.stages = stages_of_ref
                self._look_again_at(known)
        self._simulation.set_staged(frozenset(ref.kind for ref in wanted if ref in (POD, NODE)))
        return unserved

    async def _resource(self, ref: ResourceRef) -> GroupVersionResource:
        """NoMatchError."""
        group, _, version = ref.api_version.rpartition("/")
        return await self._context.mapper.resource_for(GroupVersionResource(group, version, ref.kind.lower()))

    async def _start(self, key: str, kind: _Kind) -> None:
        self._kinds[key] = kind

        def changed(event: Event, queue: Queue) -> None:
            obj = event.object_new if isinstance(event, UpdateEvent) else event.object
            metadata = obj["metadata"]
            queue.add(Request(metadata.get("namespace", ""), f"{key}/{metadata['name']}"))
            if kind.ref == NODE and isinstance(event, CreateEvent | DeleteEvent):
                self._look_again()

        kind.source = Informer(kind.informer, changed)
        await kind.source.start(self._queue)
        log.debug("plays stages of %s %s", *kind.ref)

    async def _stop(self, key: str, kind: _Kind) -> None:
        del self._kinds[key]
        for known in kind.objects.values():
            _drop(known)
        if kind.source is not None:
            kind.source.stop()
        log.debug("plays no stages of %s %s any more", *kind.ref)

    def _look_again(self) -> None:
        """Nodes run or don't any more."""
        for kind in self._kinds.values():
            if kind.ref in (POD, NODE):
                self._look_again_at(kind)

    def _look_again_at(self, kind: _Kind) -> None:
        """At what waits for nothing, or for a stage that is no more."""
        key, names = _key_of(kind.gvr), {_version_of(stage) for stage in kind.stages}
        for request, known in kind.objects.items():
            if known.job is not None and _version_of(known.job.stage) not in names:
                _drop(known)
            if known.job is None:
                known.version = 0
                self._queue.add(request)
        for obj in kind.informer.indexer.list():
            metadata = obj["metadata"]
            request = Request(metadata.get("namespace", ""), f"{key}/{metadata['name']}")
            if request not in kind.objects:
                self._queue.add(request)

    # ----------------------------------------------------------------------- one object

    async def reconcile(self, request: Request) -> None:
        key, _, name = request.name.partition("/")
        kind = self._kinds.get(key)
        if kind is None:
            return
        obj = kind.informer.indexer.get_by_key(str(Request(request.namespace, name)))
        known = kind.objects.get(request)
        if known is not None and (obj is None or known.uid != obj["metadata"]["uid"]):
            _drop(known)
            del kind.objects[request]
            self._simulation.addresses.give_back(known.uid)
            self._addresses.known.pop(known.uid, None)
            known = None
        if obj is None:
            return
        if known is None:
            known = kind.objects[request] = _Known(obj["metadata"]["uid"])
        if not self._is_driven(kind.ref, obj):
            _drop(known)
            known.version = 0
            return
        self._look_at(kind, known, obj)
        while known.job is not None and known.job.due <= self._clock.monotonic():
            job, known.job = known.job, None
            changed = await self._play(kind, request, known, job)
            if kind.objects.get(request) is not known:
                return
            if changed is not None and job.stage.immediate:
                self._look_at(kind, known, changed)
        self._wait(request, known)

    def _is_driven(self, ref: ResourceRef, obj: Object) -> bool:
        """Reports whether stages apply: to running nodes and their pods. Nodes that are not simulated count as running."""
        if ref not in (POD, NODE):
            return True
        name = obj["metadata"]["name"] if ref == NODE else (obj.get("spec") or {}).get("nodeName", "")
        state = self._simulation.nodes.get(name)
        if state is not None:
            return state.runs
        return ref == NODE or ("Node" in self._simulation.staged and self._nodes.indexer.get_by_key(name) is not None)

    def _look_at(self, kind: _Kind, known: _Known, obj: Object) -> None:
        """Finds what comes next for a version that is newer than the last; where nothing does, what waits goes on waiting."""
        version = int(obj["metadata"]["resourceVersion"])
        if version <= known.version:
            return
        known.version = version
        subject = Subject(obj, self._clock.now())
        try:
            stage = choose(kind.stages, subject, self._random)
        except StageError as error:
            log.warning("the stages of %s %s can't be matched: %s", kind.ref.kind, key_of(obj), error)
            return
        if stage is None:
            return
        try:
            delay = stage.delay(subject, self._random)
        except StageError as error:
            log.warning("the delay of %s %s can't be computed: %s", kind.ref.kind, key_of(obj), error)
            delay = 0.0
        _drop(known)
        known.job = _Job(subject, stage, self._clock.monotonic() + max(delay, 0.0))

    def _wait(self, request: Request, known: _Known) -> None:
        job = known.job
        if job is not None and job.timer is None:
            seconds = max(job.due - self._clock.monotonic(), 0.0)

            def wake() -> None:
                job.timer = None
                self._queue.add(request)

            job.timer = self._clock.call_later(seconds, wake)

    # ----------------------------------------------------------------------------- acts

    async def _play(self, kind: _Kind, request: Request, known: _Known, job: _Job) -> Object | None:
        """The object as the stage's last patch left it; None where it changed nothing, or is gone."""
        subject, stage = job.subject, job.stage
        subject.now = self._clock.now()
        functions = self._functions(kind.ref, subject.obj)
        changed: Object | None = None
        deleted = False
        try:
            for at in range(job.step, len(stage.steps)):
                job.step = at
                for action in stage.actions(stage.steps[at], subject, functions):
                    if deleted and not isinstance(action, SendEvent):
                        break
                    outcome = await self._act(kind, subject.obj, action)
                    deleted = deleted or isinstance(action, Delete)
                    changed = None if deleted else outcome or changed
        except StageError as error:
            log.warning("%s, for %s %s", error, kind.ref.kind, key_of(subject.obj))
        except (StatusError, TransportError, TimeoutError) as error:
            self._failed(kind, known, job, error)
        return changed

    def _functions(self, ref: ResourceRef, obj: Object) -> Functions:
        if ref == POD:
            status = obj.get("status") or {}
            rows = status.get("podIPs") or ([{"ip": status["podIP"]}] if status.get("podIP") else ())
            self._addresses.known[obj["metadata"]["uid"]] = [row.get("ip", "") for row in rows]
        return functions_about(obj, ref, self._addresses)

    def _failed(self, kind: _Kind, known: _Known, job: _Job, error: Exception) -> None:
        name = key_of(job.subject.obj)
        if isinstance(error, StatusError) and error.status.get("reason") not in _TRANSIENT:
            level = logging.DEBUG if is_not_found(error) else logging.WARNING
            log.log(level, "Stage %s of %s %s failed: %s", job.stage.name, kind.ref.kind, name, error)
            return
        if known.job is not None:
            return
        seconds = min(_BACK_OFF * 2 ** min(job.retries, 20), _MAX_BACK_OFF) * (1 + self._random.random() * _JITTER)
        log.info("Stage %s of %s %s is tried again in %.0f s: %s", job.stage.name, kind.ref.kind, name, seconds, error)
        job.retries += 1
        job.due = self._clock.monotonic() + seconds
        job.timer = None
        known.job = job

    async def _act(self, kind: _Kind, obj: Object, action: Action) -> Object | None:
        """Performs an action; returns the patched object. Raises StatusError, TransportError, TimeoutError."""
        metadata = obj["metadata"]
        match action:
            case SendEvent(event_type, reason, message):
                self._recorder.event(_reference(obj, kind.ref), event_type, reason, message)
            case Delete():
                resource = self._resource_client(kind.gvr, metadata.get("namespace", ""), "")
                await resource.delete(metadata["name"], grace_period_seconds=0, uid=metadata["uid"])
            case Patch(body, patch_type, subresource, user):
                resource = self._resource_client(kind.gvr, metadata.get("namespace", ""), user)
                parts = [subresource] if subresource else []
                patched = await resource.patch(metadata["name"], body, *parts, patch_type=patch_type)
                return patched if patched["metadata"]["resourceVersion"] != metadata["resourceVersion"] else None
            case Apply():
                await self._apply(action, metadata.get("namespace", ""))
        return None

    async def _apply(self, action: Apply, namespace: str) -> None:
        body = action.body
        ref = ResourceRef(body["apiVersion"], body["kind"])
        try:
            group, _, version = ref.api_version.rpartition("/")
            gvr = await self._context.mapper.resource_for(GroupVersionResource(group, version, ref.kind.lower()))
            mapping = await self._context.mapper.mapping_of(await self._context.mapper.kind_for(gvr))
        except NoMatchError as error:
            raise StageError(f"failed to map {body['apiVersion']}, Kind={body['kind']}: {error}") from None
        metadata: dict[str, Any] = {**(body.get("metadata") or {})}
        if mapping.namespaced:
            metadata.setdefault("namespace", namespace)
            namespace = metadata["namespace"]
        else:
            namespace = ""
        body = {**body, "metadata": metadata}
        resource = self._resource_client(gvr, namespace, action.impersonate)
        name, parts = metadata.get("name", ""), [action.subresource] if action.subresource else []
        if not parts:
            try:
                await resource.create(body)
                return
            except StatusError as error:
                if not is_already_exists(error) or not name:
                    raise
        if not name:
            raise StageError(f"what a Stage applies to {action.subresource} needs a name")
        if action.type == APPLY_PATCH:
            await resource.apply(body, *parts, force=True, field_manager=_MANAGER)
        else:
            await resource.patch(name, body, *parts, patch_type=action.type)

    def _resource_client(self, gvr: GroupVersionResource, namespace: str, user: str) -> ResourceClient:
        client = self._context.client
        if user:
            if user not in self._impersonating:
                rest = client.rest.impersonating(ImpersonationConfig(user_name=user))
                self._impersonating[user] = DynamicClient(rest)
            client = self._impersonating[user]
        return client.resource(gvr, namespace)


def _drop(known: _Known) -> None:
    """Cancels the object's waiting stage."""
    if known.job is not None and known.job.timer is not None:
        known.job.timer.cancel()
    known.job = None


def _key_of(gvr: GroupVersionResource) -> str:
    return f"{gvr.resource}.{gvr.version}.{gvr.group}"


def _version_of(stage: Stage) -> tuple[str, str]:
    metadata = stage.source.get("metadata") or {}
    return stage.name, str(metadata.get("resourceVersion") or metadata.get("generation") or "")


def _reference(obj: Object, ref: ResourceRef) -> Object:
    metadata = obj["metadata"]
    reference = {"kind": ref.kind, "uid": metadata["uid"], "name": metadata["name"]}
    if ref not in (POD, NODE):
        reference["apiVersion"] = ref.api_version
    if metadata.get("namespace"):
        reference["namespace"] = metadata["namespace"]
    return reference


def grouped(stages: Iterable[Stage]) -> dict[ResourceRef, list[Stage]]:
    """By the resource they are for."""
    groups: dict[ResourceRef, list[Stage]] = {}
    for stage in stages:
        groups.setdefault(stage.ref, []).append(stage)
    return groups
