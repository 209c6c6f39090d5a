"""An operator of fakeapiserver.controller_runtime in the event loop of each case's cluster: no process, and rest is known, not guessed."""

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Final

from msgspec import structs

from fakeapiserver.cluster.cluster import Cluster
from fakeapiserver.cluster.operators import Operator, Setup
from fakeapiserver.cluster.options import ClusterOptions
from fakeapiserver.controller_runtime.manager import ManagerOptions
from fakeapiserver.sweep.surroundings import Surroundings

_NAME: Final = "operator-under-test"
_BEGIN: Final = "2026-01-01T00:00:00Z"


class InProcess:
    """`setup` adds the controllers to a Manager, as for `cluster.operator(setup)`."""

    def __init__(self, setup: Setup, options: ManagerOptions | None = None) -> None:
        self._setup = setup
        self._options = options

    @property
    def words(self) -> Sequence[str]:
        """The name of the function."""
        function = self._setup.func if isinstance(self._setup, partial) else self._setup
        return (getattr(function, "__qualname__", type(function).__name__),)

    @property
    def options(self) -> ClusterOptions:
        """Time stands still until a wait lets it pass."""
        return {"stopped_at": _BEGIN}

    @property
    def serves_webhooks(self) -> bool:
        """False: `start` returns when its webhook server listens."""
        return False

    def new(self, quiet: float, surroundings: Surroundings) -> "InProcessOperator":
        """An operator that isn't running yet. It needs no quiet time, and has the environment of this process."""
        return InProcessOperator(self._setup, self._options)


class InProcessOperator:
    """An operator in one cluster."""

    quiet = 0.0
    # It is in the cluster's event loop, which nothing else goes on in meanwhile.
    computes = False

    def __init__(self, setup: Setup, options: ManagerOptions | None) -> None:
        self._setup = setup
        # a crash waits for nothing
        self._options = structs.replace(options or ManagerOptions(), graceful_shutdown_timeout=0.0)
        self._running: Operator | None = None
        self._errors: list[str] = []
        self.starts = 0

    def start(self, cluster: Cluster, user: str, groups: Sequence[str]) -> None:
        """Returns when its caches are filled. An error of its start ends it."""
        assert self._running is None
        operator = cluster.operator(self._setup, name=_NAME, user=user, groups=groups, options=self._options)
        self.starts += 1
        self._running = operator
        try:
            operator.start()
        except Exception as error:
            self._errors.append(f"panic: {type(error).__name__}: {error}")

    @property
    def ended(self) -> int | None:
        """1 if an error has ended it."""
        if self._running is None:
            return None
        return 1 if self._running.error is not None or not self._running.is_running else None

    def kill(self) -> None:
        """Cancels it wherever it is."""
        operator, self._running = self._running, None
        if operator is None:
            return
        if operator.error is not None:
            self._errors.append(f"panic: {type(operator.error).__name__}: {operator.error}")
        with suppress(Exception):  # what has ended it
            operator.stop()

    def output(self) -> str:
        """A line for each error that has ended it."""
        return "\n".join(self._errors)

    def close(self) -> None:
        self.kill()
