"""`Cluster` and `AsyncCluster`: an API server in this process. Each file beside theirs is one of their attributes.

The command needs one of these files and not the rest, so the names are loaded when they are first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from fakeapiserver.cluster.async_cluster import AsyncCluster
    from fakeapiserver.cluster.cluster import Cluster
    from fakeapiserver.cluster.options import ClusterOptions

__all__ = ["AsyncCluster", "Cluster", "ClusterOptions"]

_HOMES: Final = {"AsyncCluster": "async_cluster", "Cluster": "cluster", "ClusterOptions": "options"}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
