"""`cluster.controllers`: the bundled controllers of kube-controller-manager."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from fakeapiserver.cluster.loop_thread import Call

if TYPE_CHECKING:
    from fakeapiserver.controller_manager.manager import ControllerManager, Mode


class Controllers(Mapping[str, "Mode"]):
    """The mode of each controller, by its name: `run`, `step` or `off`. `cluster.controllers["job-controller"] = "step"` sets it."""

    def __init__(self, manager: "ControllerManager", call: Call) -> None:
        self._manager = manager
        self._call = call

    def __getitem__(self, name: str) -> "Mode":
        return self._manager.mode(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._manager.modes)

    def __len__(self) -> int:
        return len(self._manager.modes)

    def __setitem__(self, name: str, mode: "Mode") -> None:
        """ValueError for an unknown controller or mode."""
        self._call(lambda: self._manager.set_mode(name, mode))

    def step(self, name: str, timeout: float = 30.0) -> int:
        """Lets a controller in mode `step` do what there is to do now, and returns the number of its requests. ValueError for a
        controller in another mode, NotSettled after `timeout` seconds."""
        return self._call(lambda: self._manager.step(name, timeout), timeout + 5)

    @property
    def failures(self) -> Mapping[str, str]:
        """Controllers that should run, but have failed -> why."""
        return self._manager.failures
