"""`cluster.controllers`: the bundled controllers of kube-controller-manager."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from fakeapiserver.cluster.faces import Blocking, Call, blocking

if TYPE_CHECKING:
    from fakeapiserver.controller_manager.manager import ControllerManager, Mode
    from fakeapiserver.controller_manager.queue_contents import QueueContents


class AsyncControllers(Mapping[str, "Mode"]):
    """The mode of each controller, by its name: `run`, `step` or `off`. `await controllers.set("job-controller", "step")` sets it."""

    def __init__(self, manager: "ControllerManager") -> None:
        self._manager = manager

    def __getitem__(self, name: str) -> "Mode":
        return self._manager.mode(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._manager.modes)

    def __len__(self) -> int:
        return len(self._manager.modes)

    async def set(self, name: str, mode: "Mode") -> None:
        """Sets a controller's mode. ValueError for an unknown controller or mode."""
        await self._manager.set_mode(name, mode)

    async def settle(self, timeout: float = 30.0) -> None:
        """Returns when the controllers are at rest, whatever operators do: `cluster.settle` waits for those of this process, too. Raises
        NotSettled after `timeout` seconds."""
        await self._manager.settle(timeout)

    async def step(self, name: str, timeout: float = 30.0) -> int:
        """Lets a controller in mode `step` do what there is to do now, and returns the number of its requests. ValueError for a
        controller in another mode, NotSettled after `timeout` seconds."""
        return await self._manager.step(name, timeout)

    async def queue(self, name: str) -> "QueueContents":
        """The items of a controller's queue: `ready`, `delayed` (with seconds) and `processing`. ValueError for an unknown controller."""
        return self._manager.queue(name)

    @property
    def failures(self) -> Mapping[str, str]:
        """Controllers that should run, but have failed -> why."""
        return self._manager.failures


class Controllers(Blocking[AsyncControllers], Mapping[str, "Mode"]):
    """The mode of each controller, by its name: `run`, `step` or `off`. `cluster.controllers["job-controller"] = "step"` sets it."""

    def __init__(self, core: AsyncControllers, call: Call) -> None:
        super().__init__(core, call)

    def __getitem__(self, name: str) -> "Mode":
        return self._core[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._core)

    def __len__(self) -> int:
        return len(self._core)

    def __setitem__(self, name: str, mode: "Mode") -> None:
        """ValueError for an unknown controller or mode."""
        self.set(name, mode)

    set = blocking(AsyncControllers.set)
    settle = blocking(AsyncControllers.settle)
    step = blocking(AsyncControllers.step)
    queue = blocking(AsyncControllers.queue)

    @property
    def failures(self) -> Mapping[str, str]:
        """Controllers that should run, but have failed -> why."""
        return self._core.failures
