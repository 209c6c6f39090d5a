"""Tests how a Service is resolved, by its cluster address and by its endpoints."""

from collections.abc import Sequence
from typing import Any

import pytest

from fakeapiserver.transport.service_resolver import cluster_resolver, endpoint_resolver, loopback_resolver

Json = dict[str, Any]
PORTS = [{"name": "web", "port": 443}]


class Objects:
    def __init__(self, service: Json | None, slices: Sequence[Json] = ()) -> None:
        self._service = {"spec": service} if service is not None else None
        self._slices = slices

    def get(self, resource: str, namespace: str, name: str) -> Any:
        return self._service if (resource, namespace, name) == ("services", "default", "web") else None

    def list(self, resource: str, namespace: str = "") -> Sequence[Json]:
        return self._slices


def endpoint_slice(*addresses: str, service: str = "web", ready: bool | None = None, **port: Any) -> Json:
    conditions = {} if ready is None else {"conditions": {"ready": ready}}
    return {
        "metadata": {"labels": {"kubernetes.io/service-name": service}},
        "addressType": "IPv6" if ":" in addresses[0] else "IPv4",
        "endpoints": [{"addresses": [address], **conditions} for address in addresses],
        "ports": [{"name": "web", "port": 8443, **port}],
    }


@pytest.mark.parametrize(
    ("service", "found"),
    [
        ({"type": "ClusterIP", "clusterIP": "10.0.0.7", "ports": PORTS}, ("10.0.0.7", 443)),
        ({"type": "NodePort", "clusterIP": "10.0.0.7", "ports": PORTS}, ("10.0.0.7", 443)),
        ({"type": "ExternalName", "externalName": "web.example.com"}, ("web.example.com", 443)),
        ({"type": "ClusterIP", "clusterIP": "None", "ports": PORTS}, 'cannot route to service with ClusterIP "None"'),
        ({"type": "ClusterIP", "clusterIP": "10.0.0.7", "ports": []}, 'no service port 443 found for service "web"'),
        (None, 'service "web" not found'),
    ],
)
def test_by_cluster_address(service: Json | None, found: tuple[str, int] | str) -> None:
    resolve = cluster_resolver(Objects(service))
    if isinstance(found, str):
        with pytest.raises(LookupError, match=found):
            resolve("default", "web", 443)
    else:
        assert resolve("default", "web", 443) == found


@pytest.mark.parametrize(
    ("slices", "found"),
    [
        ([endpoint_slice("192.0.2.1")], ("192.0.2.1", 8443)),
        ([endpoint_slice("192.0.2.1", ready=False), endpoint_slice("192.0.2.2")], ("192.0.2.2", 8443)),
        ([endpoint_slice("192.0.2.1", name="other"), endpoint_slice("192.0.2.2")], ("192.0.2.2", 8443)),
        ([endpoint_slice("192.0.2.1", port=None)], None),
        ([endpoint_slice("192.0.2.1", service="other")], None),
        ([endpoint_slice("fd00::1"), endpoint_slice("192.0.2.2")], ("192.0.2.2", 8443)),
        ([], None),
    ],
)
def test_by_endpoints(slices: list[Json], found: tuple[str, int] | None) -> None:
    service = {"type": "ClusterIP", "clusterIP": "None", "ports": PORTS, "ipFamilies": ["IPv4"]}
    resolve = endpoint_resolver(Objects(service, slices))
    if found is None:
        with pytest.raises(LookupError, match='no endpoints available for service "web"'):
            resolve("default", "web", 443)
    else:
        assert resolve("default", "web", 443) == found


def test_by_endpoints_an_external_name_leads_nowhere() -> None:
    resolve = endpoint_resolver(Objects({"type": "ExternalName", "externalName": "x"}))
    with pytest.raises(LookupError, match='unsupported service type "ExternalName"'):
        resolve("default", "web", 443)


def test_the_service_kubernetes_is_this_server() -> None:
    resolve = loopback_resolver(cluster_resolver(Objects(None)), lambda: ("127.0.0.1", 6443))
    assert resolve("default", "kubernetes", 443) == ("127.0.0.1", 6443)
    with pytest.raises(LookupError):
        resolve("default", "kubernetes", 444)
