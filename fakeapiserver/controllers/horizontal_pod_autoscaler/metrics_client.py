"""Values from the metrics APIs.

Upstream: pkg/controller/podautoscaler/metrics/client.go, k8s.io/metrics/pkg/client/{custom_metrics,external_metrics}.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from fakeapiserver.apimachinery.duration import parse_duration
from fakeapiserver.apimachinery.gvk import GroupKind, GroupVersion
from fakeapiserver.apimachinery.labels import Selector
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.quantity import milli_value, parse
from fakeapiserver.apimachinery.timestamp import seconds_of
from fakeapiserver.client.errors import StatusError, TransportError, is_not_found
from fakeapiserver.client.rest import RESTClient, resource_path
from fakeapiserver.client.rest_mapper import NoMatchError, RESTMapper
from fakeapiserver.clock import Clock
from fakeapiserver.controllers.horizontal_pod_autoscaler.replica_calculator import (
    MAX_INT64,
    CalculationError,
    PodMetric,
    PodMetrics,
)

RESOURCE_METRICS: Final = GroupVersion("metrics.k8s.io", "v1beta1")
CUSTOM_METRICS: Final = "custom.metrics.k8s.io"
EXTERNAL_METRICS: Final = GroupVersion("external.metrics.k8s.io", "v1beta1")
_CUSTOM_VERSIONS: Final = ("v1beta2", "v1beta1")
# Seconds that a custom value is of, where it doesn't say so.
_WINDOW: Final = 60.0
_ALL: Final = "*"


class MetricsClient:
    """`period`: seconds for which it is remembered which version of custom metrics the server prefers."""

    def __init__(self, rest: RESTClient, mapper: RESTMapper, clock: Clock, period: float) -> None:
        self._rest = rest
        self._mapper = mapper
        self._clock = clock
        self._period = period
        self._preferred: tuple[str, float] | None = None

    async def resource(self, resource: str, namespace: str, selector: Selector, container: str) -> PodMetrics:
        """Returns the usage of CPU or memory by pods or by one of their containers. Raises CalculationError."""
        path = resource_path(*RESOURCE_METRICS, "pods", namespace)
        items = _items(
            await self._get(path, "resource", "pods.metrics.k8s.io", {"labelSelector": str(selector)}), "resource"
        )
        return {
            item["metadata"]["name"]: PodMetric(value, _time(item), parse_duration(item.get("window") or "0s"))
            for item in items
            if (value := _used(item.get("containers") or (), resource, container)) is not None
        }

    async def pods(self, metric: str, namespace: str, selector: Selector, metric_selector: Selector) -> PodMetrics:
        """A custom metric of each pod. CalculationError."""
        params = {"labelSelector": str(selector), "metricLabelSelector": str(metric_selector)}
        items = _items(await self._custom(GroupKind("", "Pod"), namespace, _ALL, metric, params), "custom")
        return {
            item["describedObject"]["name"]: PodMetric(_value(item), _time(item), _window_of(item)) for item in items
        }

    async def of_object(
        self, metric: str, namespace: str, reference: Mapping[str, Any], metric_selector: Selector
    ) -> int:
        """A custom metric of one object, in thousandths. CalculationError."""
        kind = GroupKind(GroupVersion.parse(reference.get("apiVersion") or "").group, reference["kind"])
        params = {"metricLabelSelector": str(metric_selector)}
        items = (await self._custom(kind, namespace, reference["name"], metric, params)).get("items") or []
        if len(items) != 1:
            raise _failed(
                "custom", f"the custom metrics API server returned {len(items)} results when we asked for exactly one"
            )
        return _value(items[0])

    async def external(self, metric: str, namespace: str, selector: Selector) -> int:
        """An external metric: all its series together, in thousandths. CalculationError."""
        path = resource_path(*EXTERNAL_METRICS, metric, namespace)
        asked = f"{metric}.external.metrics.k8s.io"
        items = _items(await self._get(path, "external", asked, {"labelSelector": str(selector)}), "external")
        return min(sum(_value(item) for item in items), MAX_INT64)

    # -------------------------------------------------------------------------------- asking

    async def _custom(
        self, kind: GroupKind, namespace: str, name: str, metric: str, params: Mapping[str, str]
    ) -> Object:
        version = await self._custom_version()
        if kind == ("", "Namespace"):
            resource, name = "metrics", metric
            path = resource_path(CUSTOM_METRICS, version, resource, namespace, metric)
        else:
            try:
                resource = str((await self._mapper.mapping(kind)).gvr.group_resource)
            except NoMatchError as error:
                named = f"{kind.kind}.{kind.group}" if kind.group else kind.kind
                raise _failed("custom", f"unable to map kind {named} to resource: {error}") from None
            path = resource_path(CUSTOM_METRICS, version, resource, namespace, name, metric)
        return await self._get(path, "custom", f"{resource}.{CUSTOM_METRICS} {name}", params)

    async def _custom_version(self) -> str:
        now = self._clock.monotonic()
        if self._preferred is None or self._preferred[1] <= now:
            self._preferred = (await self._find_custom_version(), now + self._period)
        return self._preferred[0]

    async def _find_custom_version(self) -> str:
        try:
            group = (await self._rest.request("GET", f"/apis/{CUSTOM_METRICS}")).json()
        except StatusError as error:
            if is_not_found(error):
                raise _failed("custom", f"no custom metrics API ({CUSTOM_METRICS}) registered") from None
            raise _failed("custom", str(error)) from None
        except (TransportError, TimeoutError) as error:
            raise _failed("custom", str(error)) from None
        versions = [group.get("preferredVersion") or {}, *(group.get("versions") or ())]
        version = next((row["version"] for row in versions if row.get("version") in _CUSTOM_VERSIONS), None)
        if version is None:
            raise _failed("custom", "no known available metric versions found")
        return str(version)

    async def _get(self, path: str, api: str, asked: str, params: Mapping[str, str]) -> Object:
        try:
            return (await self._rest.request("GET", path, params=params)).json()
        except StatusError as error:
            raise _failed(api, f"{error} (get {asked})" if _is_unexpected(error) else str(error)) from None
        except (TransportError, TimeoutError, ValueError) as error:
            raise _failed(api, str(error)) from None


def _failed(api: str, why: str) -> CalculationError:
    return CalculationError(f"unable to fetch metrics from {api} metrics API: {why}")


def _is_unexpected(error: StatusError) -> bool:
    """Reports whether the answer did not come from an API server: the client made the error."""
    causes = (error.status.get("details") or {}).get("causes") or ()
    return any(cause.get("reason") == "UnexpectedServerResponse" for cause in causes)


def _items(document: Object, api: str) -> Sequence[Object]:
    """Returns the items of a list. Raises CalculationError if it is empty."""
    items: Sequence[Object] = document.get("items") or []
    if not items:
        raise CalculationError(f"no metrics returned from {api} metrics API")
    return items


def _used(containers: Sequence[Mapping[str, Any]], resource: str, container: str) -> int | None:
    """Returns the usage of the containers, or None if it isn't known for all of them."""
    chosen = [row for row in containers if container in ("", row["name"])]
    amounts = [*_amounts(chosen[:1] if container else chosen, resource)]
    return sum(amounts) if amounts and len(amounts) == len(chosen[:1] if container else chosen) else None


def _amounts(containers: Sequence[Mapping[str, Any]], resource: str) -> Iterator[int]:
    for container in containers:
        if (text := (container.get("usage") or {}).get(resource)) is not None:
            yield milli_value(parse(str(text)))


def _value(item: Object) -> int:
    return milli_value(parse(str(item["value"])))


def _time(item: Object) -> float:
    """Returns the item's time; a missing time is the beginning of time, as in Go."""
    seconds = seconds_of(item.get("timestamp") or "")
    return float("-inf") if seconds is None else seconds


def _window_of(item: Object) -> float:
    seconds = item.get("windowSeconds", item.get("window"))
    return _WINDOW if seconds is None else float(seconds)
