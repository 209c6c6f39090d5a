"""client-go's parts for asyncio: they speak HTTP to any Kubernetes server.

    async with RESTClient(kubeconfig.load()) as rest:
        pods = DynamicClient(rest).resource(GroupVersionResource("", "v1", "pods"))
        await pods.namespaced("default").get("nginx")

Objects are plain dicts in wire case. A refusal by the server is a StatusError (`errors.is_not_found(error)` and similar functions say
which), an unreachable server is a TransportError. `synchronous` has the same for scripts and tests without an event loop.
"""

__all__ = [
    "cache",
    "config",
    "discovery",
    "dynamic",
    "errors",
    "kubeconfig",
    "leaderelection",
    "pager",
    "record",
    "rest",
    "rest_mapper",
    "streams",
    "synchronous",
    "wait",
    "workqueue",
]
