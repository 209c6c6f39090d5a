"""Resolves Services to the addresses at which admission webhooks and aggregated API servers are called.

Upstream: k8s.io/apiserver/pkg/util/proxy/proxy.go, k8s.io/kube-aggregator/pkg/apiserver/resolvers.go.
"""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.apimachinery.object_reader import ObjectReader

# (namespace, name, port) of a Service -> host and port to connect to. Raises LookupError with a sentence.
Resolve = Callable[[str, str, int], tuple[str, int]]
Slices = Sequence[Mapping[str, Any]]

_ROUTED: Final = ("ClusterIP", "LoadBalancer", "NodePort")
_SLICES: Final = "endpointslices.discovery.k8s.io"
_SERVICE_NAME: Final = "kubernetes.io/service-name"


def cluster_resolver(objects: ObjectReader) -> Resolve:
    """Services by their cluster address."""

    def resolve(namespace: str, name: str, port: int) -> tuple[str, int]:
        spec = _spec(objects, namespace, name)
        kind, address = spec.get("type", ""), spec.get("clusterIP", "")
        if kind == "ExternalName":
            return str(spec.get("externalName", "")), port
        if kind == "ClusterIP" and address == "None":
            raise LookupError('cannot route to service with ClusterIP "None"')
        _service_port(spec, name, port)
        return str(address), port

    return resolve


def endpoint_resolver(objects: ObjectReader) -> Resolve:
    """Services by one of their ready endpoints (--enable-aggregator-routing)."""

    def resolve(namespace: str, name: str, port: int) -> tuple[str, int]:
        spec = _spec(objects, namespace, name)
        if spec.get("type", "") not in _ROUTED:
            raise LookupError(f"unsupported service type {go_quote(spec.get('type', ''))}")
        port_name = _service_port(spec, name, port).get("name", "")
        slices = list(slices_of(objects, namespace, name))
        random.shuffle(slices)
        family = (spec.get("ipFamilies") or [""])[0]
        for one in sorted(slices, key=lambda endpoint_port: endpoint_port["addressType"] != family):
            for endpoint_port in one.get("ports") or ():
                ready = [endpoint for endpoint in one.get("endpoints") or () if is_ready(endpoint)]
                if endpoint_port.get("name") == port_name and endpoint_port.get("port") is not None and ready:
                    return str(random.choice(ready)["addresses"][0]), int(endpoint_port["port"])
        raise LookupError(f"no endpoints available for service {go_quote(name)}")

    return resolve


def loopback_resolver(resolve: Resolve, own: Callable[[], tuple[str, int]]) -> Resolve:
    """The service `kubernetes` is this server itself, at `own()`."""

    def resolved(namespace: str, name: str, port: int) -> tuple[str, int]:
        if (namespace, name, port) == ("default", "kubernetes", 443):
            return own()
        return resolve(namespace, name, port)

    return resolved


def slices_of(objects: ObjectReader, namespace: str, name: str) -> Iterator[Mapping[str, Any]]:
    """The EndpointSlices of a Service."""
    for endpoint_slice in objects.list(_SLICES, namespace):
        if (endpoint_slice["metadata"].get("labels") or {}).get(_SERVICE_NAME) == name:
            yield endpoint_slice


def is_ready(endpoint: Mapping[str, Any]) -> bool:
    """An endpoint that doesn't say so is ready too."""
    return (endpoint.get("conditions") or {}).get("ready") is not False


def _spec(objects: ObjectReader, namespace: str, name: str) -> Mapping[str, Any]:
    service = objects.get("services", namespace, name)
    if service is None:
        raise LookupError(f"service {go_quote(name)} not found")
    spec: Mapping[str, Any] = service.get("spec") or {}
    return spec


def _service_port(spec: Mapping[str, Any], name: str, port: int) -> Mapping[str, Any]:
    for served in spec.get("ports") or ():
        if served.get("port") == port:
            served_port: Mapping[str, Any] = served
            return served_port
    raise LookupError(f"no service port {port} found for service {go_quote(name)}")
