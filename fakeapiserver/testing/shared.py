"""Clusters that several tests use one after the other."""

from collections.abc import Iterator
from contextlib import contextmanager

from fakeapiserver.cluster import Cluster
from fakeapiserver.testing.environment import pointed_at


class SharedCluster:
    """Call order: `start()`, `used()` for each test, `stop()`. Each test finds the cluster as it was after its start."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def start(self) -> None:
        self._cluster.start()
        try:
            self._mark = self._cluster.mark()
        except BaseException:
            self._cluster.stop()
            raise

    def stop(self) -> None:
        self._cluster.stop()

    @contextmanager
    def used(self) -> Iterator[Cluster]:
        """Points every client at the cluster as long as the block runs, and resets the cluster afterwards."""
        with pointed_at(self._cluster.kubeconfig):
            try:
                yield self._cluster
            finally:
                self._cluster.reset(self._mark)
