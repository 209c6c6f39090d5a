"""The nodes of a cluster that are simulated: which run, what their pods do."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from copy import deepcopy

from msgspec import Struct, field

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apis.recorded import release_of
from fakeapiserver.clock import Timers
from fakeapiserver.controller_runtime.reconcile import Request
from fakeapiserver.nodes.addresses import Addresses
from fakeapiserver.nodes.behaviour import Behaviours
from fakeapiserver.nodes.node import MAX_NODES, name_of
from fakeapiserver.nodes.pod_lifecycle.context import Spans
from fakeapiserver.nodes.pod_lifecycle.eviction import PRESSURES, TRANSITION_SECONDS, Pressure
from fakeapiserver.nodes.surroundings import Key, Objects


class NodeState(Struct):
    """`runs`: False: as if its plug was pulled, nothing is renewed and pods stay as they are.

    low: resources that are low, by their names, and how many pods are still to be evicted for each; None: as many as there are.
    lasting: what was low, and until when its condition stays true. shutdown: since when it ends its pods, and how.
    """

    name: str
    number: int
    runs: bool = True
    low: dict[str, int | None] = field(default_factory=dict)
    lasting: dict[str, float] = field(default_factory=dict)
    shutdown: "Shutdown | None" = None

    def pressures(self, now: float) -> list[Pressure]:
        """Returns the pressures whose conditions are true."""
        return [
            pressure for name, pressure in PRESSURES.items() if name in self.low or self.lasting.get(name, 0.0) > now
        ]


class Shutdown(Struct):
    """A graceful shutdown: pods have `grace` seconds, critical ones `critical_grace` of them, after all others.

    `stage`: how many of the two groups are stopping; `until`: when the next one stops, at the latest.
    """

    grace: float
    critical_grace: float
    stage: int = 0
    until: float = 0.0


class NodesState(Struct, frozen=True):
    """The scripts of containers, and the state of each simulated node by its name."""

    nodes: Mapping[str, NodeState]
    behaviours: Behaviours


class Simulation:
    """Simulates `count` nodes, node-1 and so on; 0 if stages drive other nodes. Belongs to one event loop.

    dual_stack: nodes and pods have an address of each IP family.
    staged: the kinds, Pod and Node, that stages drive in place of kubelets.
    watchers: called when scripts, stages or a node's state change.
    """

    def __init__(self, count: int, *, dual_stack: bool = False) -> None:
        if not 0 <= count <= MAX_NODES:
            raise ValueError(f"from 0 to {MAX_NODES} nodes can be simulated, not {count}")
        self.count = count
        self.dual_stack = dual_stack
        self.kubelet_version = release_of()
        # Where all kubelets answer, address and port; None: nowhere.
        self.endpoint: tuple[str, int] | None = None
        self.nodes = {name_of(number): NodeState(name_of(number), number) for number in range(1, count + 1)}
        self.behaviours = Behaviours()
        # Called with nodes whose state has changed, and with pods that are to be looked at.
        self.node_changed: list[Callable[[str], object]] = []
        self.now: Callable[[], float] = time.time
        self.look: Callable[[Request], object] = lambda request: None
        self.watchers: list[Callable[[], object]] = []
        self.addresses = Addresses()
        self.staged: frozenset[str] = frozenset()
        # What the kubelets know of a pod; None: it is gone.
        self.pod: Callable[[Request], Object | None] = lambda request: None
        # The exact times of a pod's runs, by its uid.
        self.spans: Callable[[str], Spans] = lambda uid: {}
        # Reads ConfigMaps and Secrets of a pod's namespace; those that can't be read are left out.
        self.read_objects: Callable[[Object, Iterable[Key]], Awaitable[Objects]] = _no_objects
        self._uids: dict[Request, str] = {}
        self._followers: dict[Request, set[asyncio.Event]] = {}

    @property
    def running(self) -> list[str]:
        """The names of the nodes that run, and are not to end."""
        return [name for name, node in self.nodes.items() if node.runs and node.shutdown is None]

    def fork(self) -> NodesState:
        """The state of this moment, for the simulation of another cluster."""
        return NodesState(deepcopy(self.nodes), self.behaviours.copy())

    def take_over(self, state: NodesState) -> None:
        """Goes on from the state of another cluster's nodes. To be called before the nodes run."""
        self.nodes |= deepcopy({name: node for name, node in state.nodes.items() if name in self.nodes})
        self.behaviours = state.behaviours.copy()

    def script(self, **rule: object) -> None:
        """`Behaviours.add`; pods that are there already follow it from now on."""
        self.behaviours.add(**rule)  # type: ignore[arg-type]
        self._changed()

    def finish(self, pod: Object, container: str, **changes: object) -> None:
        """A client has ended what the container does (`Behaviours.finish`)."""
        self.behaviours.finish(pod, container, **changes)
        self.look(Request(pod["metadata"]["namespace"], pod["metadata"]["name"]))

    def clear_scripts(self) -> None:
        """Removes all scripts."""
        self.behaviours.clear()
        self._changed()

    def set_running(self, name: str, runs: bool) -> None:
        """Pulls a node's plug, or puts it back. ValueError for a node there isn't."""
        state = self._node(name)
        state.runs = runs
        if runs:
            state.shutdown = None
            self.tell_node(name)
            self._changed()

    def press(self, name: str, resource: str, evicts: int | None = None) -> None:
        """A node runs low of memory, ephemeral-storage or pids, until so many pods are evicted for it, or it is relieved. ValueError."""
        state = self._node(name)
        if resource not in PRESSURES:
            raise ValueError(f"no pod is evicted for {resource}: it is {', '.join(PRESSURES)}")
        state.low[resource] = evicts
        self.tell_node(name)

    def relieve(self, name: str) -> None:
        """A node has enough of everything again; its conditions stay for five minutes. ValueError."""
        state = self._node(name)
        for resource in [*state.low]:
            del state.low[resource]
            state.lasting[resource] = self.now() + TRANSITION_SECONDS
        self.tell_node(name)

    def shut_down(self, name: str, grace: float, critical_grace: float) -> None:
        """A node ends its pods, critical ones last, and is off then. ValueError."""
        if not 0 <= critical_grace <= grace:
            raise ValueError("critical pods have a part of the whole grace period")
        self._node(name).shutdown = Shutdown(grace, critical_grace)
        self.tell_node(name)

    def _node(self, name: str) -> NodeState:
        if name not in self.nodes:
            raise ValueError(f"there is no simulated node {name}: they are {', '.join(self.nodes)}")
        return self.nodes[name]

    def tell_node(self, name: str) -> None:
        """A node's state has changed, or something on it that it waits for."""
        for tell in self.node_changed:
            tell(name)

    def set_staged(self, kinds: frozenset[str]) -> None:
        """Stages for these kinds are there now."""
        if kinds != self.staged:
            self.staged = kinds
            self._changed()

    def _changed(self) -> None:
        for tell in [*self.watchers]:
            tell()

    async def change(self, request: Request, clock: Timers, at: float | None) -> None:
        """Waits for a change concerning the pod, until a time (seconds since the epoch) at the latest."""
        changed = asyncio.Event()
        self._followers.setdefault(request, set()).add(changed)
        timer = clock.call_later(max(0.0, at - clock.now()), changed.set) if at is not None else None
        try:
            await changed.wait()
        finally:
            if timer is not None:
                timer.cancel()
            followers = self._followers[request]
            followers.remove(changed)
            if not followers:
                del self._followers[request]

    def tell(self, request: Request) -> None:
        """The pod has changed."""
        for changed in self._followers.get(request, ()):
            changed.set()

    def remember(self, request: Request, uid: str) -> None:
        """A pod lives on our nodes."""
        if self._uids.get(request, uid) != uid:
            self.forget(request)
        self._uids[request] = uid

    def forget(self, request: Request) -> str:
        """Forgets a pod that is gone; returns its uid, or ""."""
        uid = self._uids.pop(request, "")
        self.behaviours.forget(uid)
        return uid

    @property
    def requests(self) -> Iterable[Request]:
        """The pods on our nodes."""
        return [*self._uids]


async def _no_objects(pod: Object, keys: Iterable[Key]) -> Objects:
    return {}
