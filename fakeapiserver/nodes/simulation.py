"""The nodes of a cluster that are simulated: which run, what their pods do."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from fakeapiserver.controller_runtime.reconcile import Request
from fakeapiserver.nodes.behaviour import Behaviours
from fakeapiserver.nodes.node import MAX_NODES, name_of


@dataclass(slots=True)
class NodeState:
    """`runs`: False: as if its plug was pulled, nothing is renewed and pods stay as they are."""

    name: str
    number: int
    runs: bool = True


class Simulation:
    """`count` nodes, node-1 and so on. Belongs to one event loop."""

    def __init__(self, count: int) -> None:
        if not 0 < count <= MAX_NODES:
            raise ValueError(f"from 1 to {MAX_NODES} nodes can be simulated, not {count}")
        self.count = count
        self.nodes = {name_of(number): NodeState(name_of(number), number) for number in range(1, count + 1)}
        self.behaviours = Behaviours()
        self.on_start: Callable[[str], object] = lambda name: None
        self.on_change: Callable[[], object] = lambda: None
        self._uids: dict[Request, str] = {}

    def script(self, **rule: object) -> None:
        """`Behaviours.add`; pods that are there already follow it from now on."""
        self.behaviours.add(**rule)  # type: ignore[arg-type]
        self.on_change()

    def clear_scripts(self) -> None:
        """Nothing is scripted any more."""
        self.behaviours.clear()
        self.on_change()

    def set_running(self, name: str, runs: bool) -> None:
        """Pulls a node's plug, or puts it back. ValueError for a node there isn't."""
        if name not in self.nodes:
            raise ValueError(f"there is no simulated node {name}: they are {', '.join(self.nodes)}")
        self.nodes[name].runs = runs
        if runs:
            self.on_start(name)
            self.on_change()

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
