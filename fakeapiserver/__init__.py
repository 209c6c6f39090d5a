"""A Kubernetes API server to test against.

What is promised, so that a new minor version doesn't break its users: the names in `__all__` here, and those in the `__all__` of each of
`PUBLIC_MODULES`. Everything else may change at any time. Importing the package costs a few milliseconds: each name is loaded when it is
first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Final

from fakeapiserver import lazy_modules

if TYPE_CHECKING:
    from fakeapiserver.apimachinery.errors import StatusError
    from fakeapiserver.cluster import AsyncCluster, Cluster, ClusterOptions
    from fakeapiserver.cluster.differences import diff
    from fakeapiserver.server.apiserver import APIServer

__version__: Final = "0.1.0"
__all__ = ["APIServer", "AsyncCluster", "Cluster", "ClusterOptions", "StatusError", "__version__", "diff"]

PUBLIC_MODULES: Final = (
    "fakeapiserver.apimachinery.gvk",
    "fakeapiserver.apimachinery.timestamp",
    "fakeapiserver.asgi",
    "fakeapiserver.client",
    "fakeapiserver.client.cache",
    "fakeapiserver.client.cache.delta_fifo",
    "fakeapiserver.client.cache.indexer",
    "fakeapiserver.client.cache.lister",
    "fakeapiserver.client.cache.reflector",
    "fakeapiserver.client.cache.shared_informer",
    "fakeapiserver.client.config",
    "fakeapiserver.client.discovery",
    "fakeapiserver.client.dynamic",
    "fakeapiserver.client.errors",
    "fakeapiserver.client.kubeconfig",
    "fakeapiserver.client.leaderelection",
    "fakeapiserver.client.pager",
    "fakeapiserver.client.record",
    "fakeapiserver.client.rest",
    "fakeapiserver.client.rest_mapper",
    "fakeapiserver.client.streams",
    "fakeapiserver.client.synchronous",
    "fakeapiserver.client.wait",
    "fakeapiserver.client.workqueue",
    "fakeapiserver.controller_runtime",
    "fakeapiserver.controller_runtime.builder",
    "fakeapiserver.controller_runtime.cache",
    "fakeapiserver.controller_runtime.client",
    "fakeapiserver.controller_runtime.controller",
    "fakeapiserver.controller_runtime.controllerutil",
    "fakeapiserver.controller_runtime.event",
    "fakeapiserver.controller_runtime.finalizer",
    "fakeapiserver.controller_runtime.handler",
    "fakeapiserver.controller_runtime.healthz",
    "fakeapiserver.controller_runtime.logging",
    "fakeapiserver.controller_runtime.manager",
    "fakeapiserver.controller_runtime.markers",
    "fakeapiserver.controller_runtime.metrics",
    "fakeapiserver.controller_runtime.models",
    "fakeapiserver.controller_runtime.predicate",
    "fakeapiserver.controller_runtime.reconcile",
    "fakeapiserver.controller_runtime.scheme",
    "fakeapiserver.controller_runtime.source",
    "fakeapiserver.controller_runtime.webhook.admission",
    "fakeapiserver.controller_runtime.webhook.conversion",
    "fakeapiserver.controller_runtime.webhook.server",
    "fakeapiserver.nodes.behaviour",
    "fakeapiserver.scaffold.manifests",
    "fakeapiserver.testing",
    "fakeapiserver.testing.assertions",
)

_HOMES: Final = {
    "APIServer": "fakeapiserver.server.apiserver",
    "AsyncCluster": "fakeapiserver.cluster",
    "Cluster": "fakeapiserver.cluster",
    "ClusterOptions": "fakeapiserver.cluster",
    "diff": "fakeapiserver.cluster.differences",
    "StatusError": "fakeapiserver.apimachinery.errors",
}


lazy_modules.install()


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
