"""The Kubernetes API server to test against. What is named here is promised; everything else may change.

Importing the package costs a few milliseconds: each name is loaded when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from fakeapiserver.apimachinery.errors import StatusError
    from fakeapiserver.cluster import AsyncCluster, Cluster
    from fakeapiserver.server.apiserver import APIServer

__version__: Final = "0.1.0"
__all__ = ["APIServer", "AsyncCluster", "Cluster", "StatusError", "__version__"]

_HOMES: Final = {
    "APIServer": "fakeapiserver.server.apiserver",
    "AsyncCluster": "fakeapiserver.cluster",
    "Cluster": "fakeapiserver.cluster",
    "StatusError": "fakeapiserver.apimachinery.errors",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
