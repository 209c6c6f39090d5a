"""For tests: fixtures of pytest (`plugin.py`), a context manager, and a mixin for unittest.

with fake_cluster(nodes=1) as cluster: ...           # every client that isn't given another cluster uses this one
async with fake_cluster(nodes=1) as cluster: ...     # an AsyncCluster

class TestOperator(FakeClusterTestCase, unittest.TestCase):
    fake_cluster_options = {"nodes": 1}

    def test_creates_a_namespace(self):
        self.fake_cluster.settle()
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fakeapiserver.testing.standalone import FakeClusterTestCase, fake_cluster

__all__ = ["FakeClusterTestCase", "fake_cluster"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("fakeapiserver.testing.standalone"), name)
