"""A fake cluster for tests without pytest's fixtures."""

from contextlib import ExitStack
from types import TracebackType
from typing import Any, ClassVar, Unpack

from fakeapiserver.cluster import AsyncCluster, Cluster
from fakeapiserver.cluster.options import ClusterOptions
from fakeapiserver.testing.environment import pointed_at


class fake_cluster:  # noqa: N801
    """A context manager, named as contextlib's are: a fresh cluster that every client uses which isn't given another one.

    `with` returns a Cluster in a thread, `async with` an AsyncCluster in the running event loop. `options` are those of `Cluster`."""

    def __init__(self, **options: Unpack[ClusterOptions]) -> None:
        self._options = options
        self._pointed = ExitStack()

    def __enter__(self) -> Cluster:
        with ExitStack() as stack:
            cluster = stack.enter_context(Cluster(**self._options))
            stack.enter_context(pointed_at(cluster.kubeconfig))
            self._pointed = stack.pop_all()
        return cluster

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._pointed.close()

    async def __aenter__(self) -> AsyncCluster:
        self._cluster = AsyncCluster(**self._options)
        await self._cluster.start()
        self._pointed.enter_context(pointed_at(self._cluster.kubeconfig))
        return self._cluster

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._pointed.close()
        await self._cluster.stop()


class FakeClusterTestCase:
    """A mixin for unittest's test cases, before `unittest.TestCase` or `unittest.IsolatedAsyncioTestCase`: each test has a fresh
    cluster, `self.fake_cluster`, which every client uses that isn't given another one. `fake_cluster_options` are the options of
    `Cluster`."""

    fake_cluster_options: ClassVar[ClusterOptions] = {}
    fake_cluster: Cluster

    def setUp(self) -> None:
        test: Any = self
        self.fake_cluster = test.enterContext(fake_cluster(**self.fake_cluster_options))
        test_case: Any = super()
        test_case.setUp()
