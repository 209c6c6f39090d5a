"""`cluster.metrics`: the values that the metrics APIs serve."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from fakeapiserver.cluster.faces import Blocking, blocking

if TYPE_CHECKING:
    from fakeapiserver.server.metrics_apis.apis import MetricsAPIs
    from fakeapiserver.server.metrics_apis.values import Amount


class AsyncMetrics:
    """Sets the values of the metrics APIs, also for pods that don't exist yet. The last value set for a thing counts. Amounts are
    quantities (`250m`, `64Mi`) or numbers; ValueError for anything else, and if the API isn't served."""

    def __init__(self, apis: "MetricsAPIs") -> None:
        self._apis = apis

    async def pod(
        self,
        /,
        name: str = "",
        *,
        namespace: str = "",
        selector: str = "",
        container: str = "",
        missing: bool = False,
        **usage: "Amount",
    ) -> None:
        """Sets the usage of a pod, or of each pod that `selector` matches: `pod("web-0", cpu="250m", memory="64Mi")`.

        The usage counts for each of its containers, or for `container`. `missing`: the API has no metrics of
        it. Other pods use next to
        nothing.
        """
        rule = {"namespace": namespace, "name": name, "selector": selector, "container": container}
        self._set("resource", lambda: self._apis.values.set_pod(**rule, usage=usage, missing=missing))

    async def node(self, /, name: str = "", *, selector: str = "", missing: bool = False, **usage: "Amount") -> None:
        """Sets the usage of a node, or of each node that `selector` matches.

        By default it is a little more than its pods use.
        """
        values = self._apis.values
        self._set("resource", lambda: values.set_node(name=name, selector=selector, usage=usage, missing=missing))

    async def custom(
        self,
        metric: str,
        value: "Amount | None",
        *,
        resource: str = "pods",
        name: str = "",
        namespace: str = "",
        selector: str = "",
        labels: Mapping[str, str] | None = None,
    ) -> None:
        """A metric of each matching pod, or of the object `name` of another `resource` (`services`,
        `ingresses.networking.k8s.io`). `labels` distinguish series of one metric. The value None removes it."""
        where = {"resource": resource, "name": name, "namespace": namespace, "selector": selector, "labels": labels}
        self._set("custom", lambda: self._apis.set_custom(metric, value, **where))

    async def external(
        self, metric: str, value: "Amount | None", *, namespace: str = "", labels: Mapping[str, str] | None = None
    ) -> None:
        """A series of an external metric, as autoscalers in `namespace` (by default in all) see it. The value None removes it."""
        self._set("external", lambda: self._apis.set_external(metric, value, namespace=namespace, labels=labels))

    async def clear(self) -> None:
        """Removes all values that were set."""
        self._apis.clear()

    async def serve(self, *names: str) -> None:
        """Serves exactly these metrics APIs: resource, custom, external, or `*` for all; none without arguments."""
        await self._apis.serve(names)

    def _set(self, api: str, work: Callable[[], None]) -> None:
        self._apis.require(api)
        work()


class Metrics(Blocking[AsyncMetrics]):
    """Sets the values of the metrics APIs, also for pods that don't exist yet. The last value set for a thing counts. Amounts are
    quantities (`250m`, `64Mi`) or numbers; ValueError for anything else, and if the API isn't served."""

    pod = blocking(AsyncMetrics.pod)
    node = blocking(AsyncMetrics.node)
    custom = blocking(AsyncMetrics.custom)
    external = blocking(AsyncMetrics.external)
    clear = blocking(AsyncMetrics.clear)
    serve = blocking(AsyncMetrics.serve)
