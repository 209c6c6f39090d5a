"""The interface of the systems that are disturbed: servers with one store."""

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from conformance.robustness.client import Credentials
from conformance.robustness.history import Logged


class Target(Protocol):
    """Servers with one store."""

    # Seconds after which the store deletes Events at the earliest, 0 if it keeps them.
    expiry: float

    def start(self) -> Sequence[Credentials]:
        """Returns when all of them are ready. Raises RuntimeError with a complaint if one doesn't start."""

    def follow(self, since: int) -> None:
        """Keeps the log from a revision on."""

    @property
    def disturbances(self) -> Mapping[str, Callable[[random.Random], None]]:
        """The disturbances by name: each kills, stops or hinders something for about a second. They raise RuntimeError as `start`
        does."""

    def compact_every(self, seconds: float) -> None:
        """Forgets what is in the log, again and again."""

    def log(self) -> list[Logged]:
        """All changes since `follow`, in order, once there is no traffic any more."""

    def stop(self) -> None:
        """Kills everything, and leaves nothing behind."""
