"""The operator under test, as a sweep sees it: started as a user of its own, killed, and started again."""

from collections.abc import Sequence
from typing import Protocol

from fakeapiserver.cluster.cluster import Cluster
from fakeapiserver.cluster.options import ClusterOptions
from fakeapiserver.sweep.surroundings import Surroundings


class OperatorUnderTest(Protocol):
    """An operator in one cluster. `quiet`: real seconds without a request after which it is at rest."""

    quiet: float

    @property
    def starts(self) -> int:
        """The number of its starts."""

    @property
    def ended(self) -> int | None:
        """The exit status if it has ended by itself, negative for a signal."""

    @property
    def computes(self) -> bool:
        """Whether it is at work without sending requests."""

    def start(self, cluster: Cluster, user: str, groups: Sequence[str]) -> None:
        """Starts it as a user of these groups. Raises OSError if that is impossible."""

    def kill(self) -> None:
        """Ends it at once, without a goodbye. Does nothing if it doesn't run."""

    def output(self) -> str:
        """The end of its output, of all its starts."""

    def close(self) -> None:
        """Kills it and forgets its output."""


class Launcher(Protocol):
    """Makes the operator of each case. `words` name it: sweeps of the same operator have the same."""

    @property
    def words(self) -> Sequence[str]: ...

    @property
    def options(self) -> ClusterOptions:
        """The options of its clusters."""

    @property
    def serves_webhooks(self) -> bool:
        """Reports whether its operators are given a port and a certificate for webhooks."""

    def new(self, quiet: float, surroundings: Surroundings) -> OperatorUnderTest:
        """An operator that isn't running yet."""
