"""`Cluster`: an API server in this process. Each file beside `cluster.py` is one of its attributes."""

from fakeapiserver.cluster.cluster import Cluster

__all__ = ["Cluster"]
