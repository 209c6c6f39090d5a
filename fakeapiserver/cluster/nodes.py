"""`cluster.nodes`: the simulated nodes and what their containers do."""

from typing import TYPE_CHECKING, Any

from fakeapiserver.cluster.faces import Blocking, blocking

if TYPE_CHECKING:
    from fakeapiserver.nodes.simulation import Simulation


class AsyncNodes:
    """Scripts simulated nodes and their pods. Methods that name a node raise ValueError if there is no such node."""

    def __init__(self, simulation: "Simulation") -> None:
        self._simulation = simulation

    async def script(
        self, /, *, namespace: str = "", name: str = "", selector: str = "", container: str = "", **behaviour: Any
    ) -> None:
        """Says what containers do: those called `container`, in pods called `name` in `namespace` whose labels match `selector`.
        What is left empty matches any.

        `behaviour` are fields of nodes.behaviour.ContainerBehaviour, such as runs_for (seconds), exit_codes, ready_after,
        pull_error, log, exec (a function or a table), ports. Later scripts take precedence. TypeError for an unknown field."""
        rule = {"namespace": namespace, "name": name, "selector": selector, "container": container, **behaviour}
        self._simulation.script(**rule)

    async def clear_scripts(self) -> None:
        """Removes all scripts."""
        self._simulation.clear_scripts()

    async def stop(self, name: str) -> None:
        """Pulls a node's plug: its lease isn't renewed any more, its pods stay as they are."""
        self._simulation.set_running(name, False)

    async def start(self, name: str) -> None:
        """Starts a stopped node again."""
        self._simulation.set_running(name, True)

    async def press(self, name: str, resource: str, *, evicts: int | None = None) -> None:
        """Puts the node under pressure: it runs low on `resource` (`memory`, `ephemeral-storage` or `pids`). Its condition says so,
        and every ten seconds a pod is evicted, until `evicts` pods are gone or the node is relieved. Scripts say what pods use
        (`usage={"memory": "2Gi"}`)."""
        self._simulation.press(name, resource, evicts)

    async def relieve(self, name: str) -> None:
        """Ends all pressure on the node; its conditions follow five minutes later."""
        self._simulation.relieve(name)

    async def shut_down(self, name: str, *, grace: float = 30.0, critical_grace: float = 10.0) -> None:
        """Shuts the node down gracefully: it becomes NotReady and ends its pods within `grace` seconds, critical pods in the last
        `critical_grace` of these. Then it is off until `start`."""
        self._simulation.shut_down(name, grace, critical_grace)


class Nodes(Blocking[AsyncNodes]):
    """Scripts simulated nodes and their pods. Methods that name a node raise ValueError if there is no such node."""

    script = blocking(AsyncNodes.script)
    clear_scripts = blocking(AsyncNodes.clear_scripts)
    stop = blocking(AsyncNodes.stop)
    start = blocking(AsyncNodes.start)
    press = blocking(AsyncNodes.press)
    relieve = blocking(AsyncNodes.relieve)
    shut_down = blocking(AsyncNodes.shut_down)
