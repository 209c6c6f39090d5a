"""`Cluster` and `AsyncCluster`: an API server in this process. Each file beside theirs is one of their attributes."""

from fakeapiserver.cluster.async_cluster import AsyncCluster
from fakeapiserver.cluster.cluster import Cluster
from fakeapiserver.cluster.options import ClusterOptions

__all__ = ["AsyncCluster", "Cluster", "ClusterOptions"]
