"""The responses of each metrics API.

Upstream: k8s.io/metrics/pkg/apis (the types), and the servers: sigs.k8s.io/metrics-server/pkg/api,
sigs.k8s.io/custom-metrics-apiserver/pkg.
"""

from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from fakeapiserver.apimachinery.duration import format_duration
from fakeapiserver.apimachinery.errors import new_bad_request, new_generic_not_found, new_not_found, status_error
from fakeapiserver.apimachinery.gvk import GroupResource, GroupVersion
from fakeapiserver.apimachinery.labels import EVERYTHING, Selector, parse
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.object_reader import ObjectReader
from fakeapiserver.apimachinery.quantity import ZERO, Quantity
from fakeapiserver.apimachinery.quantity import parse as parse_quantity
from fakeapiserver.apimachinery.timestamp import rfc3339
from fakeapiserver.apis.resource_table import ResourceTable
from fakeapiserver.clock import Clock
from fakeapiserver.endpoints import respond
from fakeapiserver.endpoints.negotiation.media_types import Accept, negotiate
from fakeapiserver.endpoints.request import Request, Response
from fakeapiserver.endpoints.verbs.options import list_options
from fakeapiserver.server.metrics_apis.values import WINDOW, Usage, Values

_NAME: Final = {
    "name": "Name",
    "type": "string",
    "format": "name",
    "description": "Name of the resource",
    "priority": 0,
}
_TABLE: Final = "meta.k8s.io"
_WINDOW: Final = format_duration(WINDOW)


class MetricsGroup(Protocol):
    """A served group version of a metrics API."""

    def resources(self) -> Sequence[Object]:
        """APIResources, as discovery lists them."""

    def answer(self, request: Request) -> Response:
        """A request for one of them, with GET. StatusError."""


class ResourceMetrics:
    """metrics.k8s.io: what nodes and pods use."""

    def __init__(self, values: Values, objects: ObjectReader, clock: Clock, version: GroupVersion) -> None:
        self._values = values
        self._objects = objects
        self._clock = clock
        self._version = version

    def resources(self) -> Sequence[Object]:
        return [
            _resource("nodes", "NodeMetrics", False, "get", "list"),
            _resource("pods", "PodMetrics", True, "get", "list"),
        ]

    def answer(self, request: Request) -> Response:
        info = request.info
        if info.subresource or info.rest or info.resource not in ("nodes", "pods"):
            raise new_generic_not_found()
        kind, items = (
            ("NodeMetrics", self._nodes()) if info.resource == "nodes" else ("PodMetrics", self._pods(request))
        )
        accept = negotiate(request.header(b"accept"), custom=True)
        if info.name and info.verb == "get":
            chosen = next((obj for obj in items if obj["metadata"]["name"] == info.name), None)
            if chosen is None:
                name = f"{info.namespace}/{info.name}" if info.namespace else info.name
                raise new_not_found(GroupResource(self._version.group, kind.lower()), name)
            return self._told(request, accept, kind, [chosen], single=True)
        options = list_options(request.query)
        wanted, fields = options.label_selector or EVERYTHING, options.field_selector
        items = [
            obj
            for obj in items
            if wanted.matches(obj["metadata"].get("labels") or {}) and (fields is None or fields.matches(_fields(obj)))
        ]
        return self._told(request, accept, kind, items, single=False)

    def _told(self, request: Request, accept: Accept, kind: str, items: list[Object], *, single: bool) -> Response:
        if accept.as_kind == "Table":
            return respond.encoded(request, _table(items, accept.as_version), accept)
        if single:
            return respond.encoded(request, {"kind": kind, "apiVersion": str(self._version), **items[0]}, accept)
        head = {"kind": f"{kind}List", "apiVersion": str(self._version), "metadata": {}}
        return respond.encoded(request, {**head, "items": items}, accept)

    def _pods(self, request: Request) -> list[Object]:
        """Returns the metrics of the pods for which values are known."""
        namespace = request.info.namespace
        pods = self._objects.list("pods", namespace)
        if request.info.name and request.info.verb == "get":
            one = self._objects.get("pods", namespace, request.info.name)
            if one is None:
                raise new_not_found(GroupResource("", "pods"), request.info.name)
            pods = [one]
        items = []
        for pod in pods:
            containers = self._values.of_pod(pod)
            if containers is not None:
                told = [{"name": container.name, "usage": _shown(container.usage)} for container in containers]
                items.append({**self._head(pod), "containers": told})
        return items

    def _nodes(self) -> list[Object]:
        on: dict[str, list[Object]] = {}
        for pod in self._objects.list("pods"):
            on.setdefault(pod["spec"].get("nodeName") or "", []).append(pod)
        items = []
        for node in self._objects.list("nodes"):
            usage = self._values.of_node(node, on.get(node["metadata"]["name"], ()))
            if usage is not None:
                items.append({**self._head(node), "usage": _shown(usage)})
        return items

    def _head(self, obj: Object) -> Object:
        now, metadata = rfc3339(self._clock.now()), obj["metadata"]
        kept = {key: metadata[key] for key in ("name", "namespace", "labels") if metadata.get(key)}
        return {"metadata": {**kept, "creationTimestamp": now}, "timestamp": now, "window": _WINDOW}


class CustomMetrics:
    """custom.metrics.k8s.io: metrics of any objects, `/namespaces/NS/RESOURCE/NAME/METRIC` (`*`: of all of them), or
    `/namespaces/NS/metrics/METRIC` of a namespace."""

    def __init__(
        self, values: Values, objects: ObjectReader, clock: Clock, version: GroupVersion, table: ResourceTable
    ) -> None:
        self._values = values
        self._objects = objects
        self._clock = clock
        self._version = version
        self._table = table

    def resources(self) -> Sequence[Object]:
        return [
            _resource(f"{resource}/{metric}", "MetricValueList", self._row(resource)[1], "get")
            for resource, metric in self._values.custom_metrics()
        ]

    def answer(self, request: Request) -> Response:
        info = request.info
        if info.rest or not (info.subresource or info.resource == "metrics"):
            raise new_generic_not_found()
        series = _selector(request, "metricLabelSelector")
        if info.resource == "metrics" and not info.subresource:
            resource, name, metric, namespace = "namespaces", info.namespace, info.name, ""
        else:
            resource, name, metric, namespace = info.resource, info.name, info.subresource, info.namespace
        if name == "*":
            values = self._of_all(metric, resource, namespace, _selector(request, "labelSelector"), series)
        else:
            values = {name: self._of_one(metric, resource, namespace, name, series)}
        items = [
            self._item(resource, namespace, name, metric, value, series)
            for name, value in values.items()
            if value is not None
        ]
        if not items:
            about = "" if name == "*" else f" {name}"
            raise status_error(
                404, "NotFound", f"the server could not find the metric {metric} for {resource}{about}", {}
            )
        head = {"kind": "MetricValueList", "apiVersion": str(self._version), "metadata": {}}
        accept = negotiate(request.header(b"accept"), custom=True)
        return respond.encoded(request, {**head, "items": items}, accept)

    def _of_all(
        self, metric: str, resource: str, namespace: str, wanted: Selector, series: Selector
    ) -> Mapping[str, Quantity | None]:
        """Returns the metric's value by name, for running pods or for the other objects that have a value."""
        objects: list[Object]
        if resource == "pods":
            objects = [
                pod
                for pod in self._objects.list("pods", namespace)
                if (pod.get("status") or {}).get("phase") == "Running"
                and wanted.matches(pod["metadata"].get("labels") or {})
            ]
        else:
            names = self._values.names(metric, resource, namespace)
            objects = [{"metadata": {"name": name, "namespace": namespace}} for name in names]
        return {obj["metadata"]["name"]: self._values.of_object(metric, resource, obj, series) for obj in objects}

    def _of_one(self, metric: str, resource: str, namespace: str, name: str, series: Selector) -> Quantity | None:
        """Returns the metric's value for an object, or None. A pod must exist; for another object, the value that was set is used."""
        obj = self._objects.get("pods", namespace, name) if resource == "pods" else None
        return self._values.of_object(
            metric, resource, obj or {"metadata": {"name": name, "namespace": namespace}}, series
        )

    def _item(self, resource: str, namespace: str, name: str, metric: str, value: Quantity, series: Selector) -> Object:
        kind, namespaced, api_version = (*self._row(resource), _api_version(self._table, resource))
        described = {
            "kind": kind,
            "namespace": namespace if namespaced else "",
            "name": name,
            "apiVersion": api_version,
        }
        item: Object = {"describedObject": {key: text for key, text in described.items() if text}}
        told = {"timestamp": rfc3339(self._clock.now()), "value": str(value)}
        if self._version.version == "v1beta1":
            return {**item, "metricName": metric, **told, "selector": _label_selector(series)}
        return {**item, "metric": {"name": metric, "selector": _label_selector(series)}, **told}

    def _row(self, resource: str) -> tuple[str, bool]:
        """Returns the resource's kind and whether it is namespaced; a resource that isn't served counts as namespaced."""
        name, _, group = resource.partition(".")
        for view in self._table.groups():
            if view.name == group:
                for row in view.versions[0].resources:
                    if row.gvr.resource == name:
                        return row.gvk.kind, row.namespaced
        return name, True


class ExternalMetrics:
    """external.metrics.k8s.io: what has nothing to do with the cluster, `/namespaces/NS/METRIC`."""

    def __init__(self, values: Values, clock: Clock, version: GroupVersion) -> None:
        self._values = values
        self._clock = clock
        self._version = version

    def resources(self) -> Sequence[Object]:
        return [_resource(name, "ExternalMetricValueList", True, "get") for name in self._values.external_metrics()]

    def answer(self, request: Request) -> Response:
        info = request.info
        if (info.name and info.named_path) or info.subresource or not info.namespace:
            raise new_generic_not_found()
        external_series = self._values.external(info.resource, info.namespace, _selector(request, "labelSelector"))
        now = rfc3339(self._clock.now())
        items = [
            {
                "metricName": info.resource,
                "metricLabels": series.labels or None,
                "timestamp": now,
                "value": str(series.value),
            }
            for series in external_series
        ]
        head = {"kind": "ExternalMetricValueList", "apiVersion": str(self._version), "metadata": {}}
        return respond.encoded(request, {**head, "items": items}, negotiate(request.header(b"accept"), custom=True))


def _resource(name: str, kind: str, namespaced: bool, *verbs: str) -> Object:
    return {"name": name, "singularName": "", "namespaced": namespaced, "kind": kind, "verbs": [*verbs]}


def _api_version(table: ResourceTable, resource: str) -> str:
    view = table.group(resource.partition(".")[2])
    return str(view.versions[0].gv) if view is not None else ""


def _selector(request: Request, parameter: str) -> Selector:
    """StatusError 400."""
    try:
        return parse(request.param(parameter))
    except ValueError as error:
        raise new_bad_request(str(error)) from None


def _label_selector(selector: Selector) -> Object | None:
    """Returns the selector as a metav1.LabelSelector, or None if it selects everything."""
    operators = {"in": "In", "notin": "NotIn", "!=": "NotIn", "exists": "Exists", "!": "DoesNotExist"}
    equal = {
        requirement.key: requirement.values[0]
        for requirement in selector.requirements
        if requirement.operator in ("=", "==")
    }
    others = [
        {
            "key": requirement.key,
            "operator": operators[requirement.operator],
            **({"values": [*requirement.values]} if requirement.values else {}),
        }
        for requirement in selector.requirements
        if requirement.operator in operators
    ]
    return {**({"matchLabels": equal} if equal else {}), **({"matchExpressions": others} if others else {})} or None


def _shown(usage: Usage) -> Mapping[str, str]:
    return {name: str(quantity) for name, quantity in usage.items()}


def _fields(obj: Object) -> Mapping[str, str]:
    metadata = obj["metadata"]
    return {"metadata.name": metadata["name"], "metadata.namespace": metadata.get("namespace", "")}


def _table(items: Sequence[Object], version: str) -> Object:
    """Returns the objects as the table that `kubectl get` prints."""
    usages = [_total(obj) for obj in items]
    names = sorted(usages[0]) if usages else []
    column = {"type": "string", "description": "", "priority": 0}
    columns = [_NAME, *({"name": name, "format": "quantity", **column} for name in names)]
    rows = [
        {
            "cells": [obj["metadata"]["name"], *(str(usage.get(name, ZERO)) for name in names), obj["window"]],
            "object": {
                "kind": "PartialObjectMetadata",
                "apiVersion": f"{_TABLE}/{version}",
                "metadata": obj["metadata"],
            },
        }
        for obj, usage in zip(items, usages, strict=True)
    ]
    window = {"name": "Window", "format": "duration", **column}
    return {
        "kind": "Table",
        "apiVersion": f"{_TABLE}/{version}",
        "metadata": {},
        "columnDefinitions": [*columns, window] if rows else [],
        "rows": rows,
    }


def _total(obj: Object) -> Usage:
    if "usage" in obj:
        return {name: parse_quantity(text) for name, text in obj["usage"].items()}
    total: Usage = {}
    for container in obj["containers"]:
        for name, text in container["usage"].items():
            total[name] = total.get(name, ZERO) + parse_quantity(text)
    return total
