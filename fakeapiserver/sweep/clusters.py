"""The clusters in which cases run, and a wait in them."""

from collections.abc import Iterator, Set
from contextlib import contextmanager
from typing import Final

from msgspec import Struct

from fakeapiserver.apis import removed_versions
from fakeapiserver.cluster.cluster import Cluster
from fakeapiserver.cluster.options import ClusterOptions

# Waits for events that come late, at most.
_ROUNDS: Final = 50
_KEPT_REQUESTS: Final = 20_000
# The same uids, generated names and addresses in every run but the one that shows what follows from them.
_SEED: Final = 1
OTHER_SEED: Final = 2
# Operators that are older than the server ask for versions that Kubernetes has removed meanwhile.
_VERSIONS: Final = {removed_versions.SWITCH: "true"}


class Base(Struct, frozen=True):
    """A cluster at rest, in which no operator runs, for forks. `fresh`: the keys of the objects that it had from the start."""

    cluster: Cluster
    fresh: Set[str]


def new(*options: ClusterOptions) -> Cluster:
    """A cluster that isn't started yet. Later options win."""
    merged = ClusterOptions(seed=_SEED, kept_requests=_KEPT_REQUESTS, runtime_config=_VERSIONS)
    for each in options:
        merged = ClusterOptions(**{**merged, **each})
    return Cluster(**merged)


@contextmanager
def fork(base: Base) -> Iterator[Base]:
    """Another cluster in the same state."""
    with base.cluster.fork() as cluster:
        yield Base(cluster, base.fresh)


def await_late_events(cluster: Cluster, users: str, delay: float, patience: float) -> None:
    """Lets time pass until nothing follows from events that come `delay` seconds late to these users."""
    for _ in range(_ROUNDS):
        sent = cluster.requests.mark()
        cluster.clock.advance(delay)
        cluster.settle(timeout=patience, with_=users, quiet=0.0)
        if cluster.requests.mark() == sent:
            return
