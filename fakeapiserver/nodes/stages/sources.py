"""The sources of stages: files, or the cluster once it has Stage objects (KWOK's `--config` or its `--enable-crds=Stage`)."""

import logging
from collections.abc import Sequence
from random import Random
from typing import TYPE_CHECKING, Final

from fakeapiserver.apimachinery.gvk import GroupVersionResource
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.client.cache.shared_informer import SharedInformer
from fakeapiserver.client.rest_mapper import NoMatchError
from fakeapiserver.component_helpers.controller_context import EVERYTHING, ControllerContext, Periodic
from fakeapiserver.component_helpers.objects import CUSTOM_RESOURCE_DEFINITIONS, NODES
from fakeapiserver.controller_runtime.controller import Controller
from fakeapiserver.controller_runtime.event import CreateEvent, Event
from fakeapiserver.controller_runtime.handler import Queue
from fakeapiserver.controller_runtime.reconcile import Request, Result
from fakeapiserver.controller_runtime.source import Informer
from fakeapiserver.nodes.leases import renew
from fakeapiserver.nodes.node import RENEW_SECONDS, renew_slack
from fakeapiserver.nodes.simulation import Simulation
from fakeapiserver.nodes.stages import expressions, functions
from fakeapiserver.nodes.stages import player as player_module
from fakeapiserver.nodes.stages import stage as stage_module

if TYPE_CHECKING:
    from fakeapiserver.nodes.stages.player import Player
    from fakeapiserver.nodes.stages.stage import ResourceRef, Stage

log = logging.getLogger(__name__)

STAGES: Final = GroupVersionResource("kwok.x-k8s.io", "v1alpha1", "stages")
_WORKERS: Final = 8
# Seconds: discovery follows a definition a little later.
_SOON: Final = 0.05
_TRIES: Final = 3


def check(stages: Sequence[Object]) -> None:
    """ValueError, in one line, for the first that can't be played."""
    functions_of = functions.functions_for(lambda: 0.0, Random(0), _Nowhere())
    for obj in stages:
        stage_module.read_stage(obj, functions_of)


def kinds(stages: Sequence[Object]) -> frozenset[str]:
    """Pod and Node, where they are for these."""
    refs = [stage["spec"]["resourceRef"] for stage in stages]
    return frozenset(
        ref["kind"] for ref in refs if ref.get("apiGroup", "v1") == "v1" and ref["kind"] in ("Pod", "Node")
    )


class _Nowhere:
    def of_node(self, name: str) -> list[str]:
        return []

    def of_pod(self, node: str, uid: str) -> list[str]:
        return []


class _Playing:
    """A Reconciler; nothing is played before there is a Stage."""

    player: "Player | None" = None

    async def reconcile(self, request: Request) -> None:
        if self.player is not None:
            await self.player.reconcile(request)


class _Following:
    """Passes stages to the player. `given`: these and no others; None: those of the cluster."""

    def __init__(
        self, context: ControllerContext, simulation: Simulation, playing: _Playing, given: Sequence[Object] | None
    ) -> None:
        self._context = context
        self._simulation = simulation
        self._playing = playing
        self._given = given
        self._stages: SharedInformer | None = None
        self._source: Informer | None = None
        self._tries = _TRIES
        self._waiting: frozenset[ResourceRef] = frozenset()
        self._complained: dict[str, str] = {}
        self.definitions = context.informer(CUSTOM_RESOURCE_DEFINITIONS, metadata_only=True)
        self.queue: Queue | None = None
        self.play_queue: Queue | None = None

    def definition_changed(self, event: Event, queue: Queue) -> None:
        """Stages may be there now, or what they are for."""
        self._tries = _TRIES
        queue.add(EVERYTHING)

    def stage_changed(self, event: Event, queue: Queue) -> None:
        queue.add(EVERYTHING)

    async def reconcile(self, request: Request) -> Result | None:
        objects = self._given
        if objects is None:
            await self._find()
            if self._stages is not None:
                await self._stages.wait_for_sync()
                objects = sorted(self._stages.indexer.list(), key=lambda stage: str(stage["metadata"]["name"]))
        if not objects and self._playing.player is None:
            return self._again() if self._stages is None and self._is_defined() else None
        await self._tell(objects or ())
        return self._again() if self._waiting or (self._stages is None and self._is_defined()) else None

    def _is_defined(self) -> bool:
        return self._given is None and self.definitions.indexer.get_by_key(str(STAGES.group_resource)) is not None

    def _again(self) -> Result | None:
        """Discovery may not know yet what was defined."""
        self._tries -= 1
        return Result(requeue_after=_SOON) if self._tries >= 0 else None

    async def _find(self) -> None:
        """Follows the cluster's stages while it has such objects."""
        defined = self._is_defined()
        if not defined and self._source is not None:
            self._source.stop()
            self._stages = self._source = None
            self._context.shared.informers.stop_unused(STAGES)
        if not defined or self._stages is not None or self.queue is None:
            return
        try:
            await self._context.mapper.kind_for(STAGES)
        except NoMatchError:
            return
        self._stages = self._context.running_informer(STAGES, whole=True)
        self._source = Informer(self._stages, self.stage_changed)
        await self._source.start(self.queue)

    async def _tell(self, objects: Sequence[Object]) -> None:
        if self._playing.player is None:
            assert self.play_queue is not None
            self._playing.player = player_module.Player(self._context, self._simulation, self.play_queue)
        player = self._playing.player
        stages = [stage for obj in objects if (stage := self._read(obj, player)) is not None]
        unserved = await player.set_stages(player_module.grouped(stages))
        for ref in frozenset(unserved) - self._waiting:
            log.warning("stages for %s %s wait: the server doesn't have that resource", *ref)
        self._waiting = frozenset(unserved)

    def _read(self, obj: Object, player: "Player") -> "Stage | None":
        """Reads a stage; returns None for an invalid one, which is logged once."""
        metadata = obj["metadata"]
        name, version = metadata["name"], metadata.get("resourceVersion", "")
        try:
            stage = stage_module.read_stage(obj, player.functions_of)
        except expressions.StageError as error:
            if self._complained.get(name) != version:
                self._complained[name] = version
                log.warning("%s", error)
                reference = {
                    "apiVersion": "kwok.x-k8s.io/v1alpha1",
                    "kind": "Stage",
                    "name": name,
                    "uid": metadata.get("uid", ""),
                }
                self._context.recorder("kwok_controller").event(reference, "Warning", "InvalidStage", str(error)[:1000])
            return None
        self._complained.pop(name, None)
        return stage


class _Leases:
    """Renews the leases of nodes that live by stages; ours have kubelets that do. Requests are nodes."""

    def __init__(self, context: ControllerContext, simulation: Simulation) -> None:
        self._context = context
        self._simulation = simulation
        self.nodes = context.informer(NODES)

    def changed(self, event: Event, queue: Queue) -> None:
        """New ones begin."""
        if isinstance(event, CreateEvent):
            queue.add(Request("", event.object["metadata"]["name"]))

    def look_again(self, queue: Queue) -> None:
        for node in self.nodes.indexer.list():
            queue.add(Request("", node["metadata"]["name"]))

    async def reconcile(self, request: Request) -> Result | None:
        node = self.nodes.indexer.get_by_key(request.name)
        if node is None or "Node" not in self._simulation.staged or request.name in self._simulation.nodes:
            return None
        await renew(self._context.client, request.name, node["metadata"]["uid"], self._context.clock.now())
        return Result(requeue_after=RENEW_SECONDS)


def new(context: ControllerContext, simulation: Simulation, given: Sequence[Object]) -> Sequence[Controller]:
    """Returns the controllers that play the stages `given`, or, if empty, those of the cluster."""
    playing = _Playing()
    following = _Following(context, simulation, playing, given or None)
    plays = context.controller(playing, name="kwok-stages-play", workers=_WORKERS)
    follows = context.controller(following, name="kwok-stages")
    follows.add_source(Informer(following.definitions, following.definition_changed))
    follows.add_source(Periodic())
    following.queue, following.play_queue = follows.queue, plays.queue
    leases = _Leases(context, simulation)
    renews = context.controller(leases, name="kwok-node-leases")
    renews.add_source(Informer(leases.nodes, leases.changed))
    renews.queue.slack = renew_slack(context.configuration.node_monitor_grace_period)
    simulation.watchers.append(lambda: leases.look_again(renews.queue))
    return [follows, plays, renews]
