"""The nodes of a cluster that are simulated: which run, what their pods do."""

import asyncio
from collections.abc import Callable, Iterable

from msgspec import Struct

from fakeapiserver.client.cache.indexer import Object
from fakeapiserver.clock import Timers
from fakeapiserver.controller_runtime.reconcile import Request
from fakeapiserver.nodes.addresses import Addresses
from fakeapiserver.nodes.behaviour import Behaviours
from fakeapiserver.nodes.node import MAX_NODES, name_of


class NodeState(Struct):
    """`runs`: False: as if its plug was pulled, nothing is renewed and pods stay as they are."""

    name: str
    number: int
    runs: bool = True


class Simulation:
    """`count` nodes, node-1 and so on; none where stages drive others. Belongs to one event loop.

    staged: the kinds, Pod and Node, that stages tell what becomes of, in place of kubelets.
    watchers: called when scripts, stages or a node's state change.
    """

    def __init__(self, count: int) -> None:
        if not 0 <= count <= MAX_NODES:
            raise ValueError(f"from 0 to {MAX_NODES} nodes can be simulated, not {count}")
        self.count = count
        self.nodes = {name_of(number): NodeState(name_of(number), number) for number in range(1, count + 1)}
        self.behaviours = Behaviours()
        self.on_start: Callable[[str], object] = lambda name: None
        self.watchers: list[Callable[[], object]] = []
        self.addresses = Addresses()
        self.staged: frozenset[str] = frozenset()
        # What the kubelets know of a pod; None: it is gone.
        self.pod: Callable[[Request], Object | None] = lambda request: None
        self._uids: dict[Request, str] = {}
        self._followers: dict[Request, set[asyncio.Event]] = {}

    def script(self, **rule: object) -> None:
        """`Behaviours.add`; pods that are there already follow it from now on."""
        self.behaviours.add(**rule)  # type: ignore[arg-type]
        self._changed()

    def clear_scripts(self) -> None:
        """Nothing is scripted any more."""
        self.behaviours.clear()
        self._changed()

    def set_running(self, name: str, runs: bool) -> None:
        """Pulls a node's plug, or puts it back. ValueError for a node there isn't."""
        if name not in self.nodes:
            raise ValueError(f"there is no simulated node {name}: they are {', '.join(self.nodes)}")
        self.nodes[name].runs = runs
        if runs:
            self.on_start(name)
            self._changed()

    def set_staged(self, kinds: frozenset[str]) -> None:
        """Stages for these kinds are there now."""
        if kinds != self.staged:
            self.staged = kinds
            self._changed()

    def _changed(self) -> None:
        for tell in [*self.watchers]:
            tell()

    async def change(self, request: Request, clock: Timers, at: float | None) -> None:
        """Returns when something is told of the pod, or at a time (seconds since the epoch)."""
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
        self._uids[request] = uid

    def forget(self, request: Request) -> str:
        """It doesn't any more; its uid, "" if it never did."""
        return self._uids.pop(request, "")

    @property
    def requests(self) -> Iterable[Request]:
        """The pods on our nodes."""
        return [*self._uids]
