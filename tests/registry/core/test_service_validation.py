"""Validation of services, and of the load balancers in their status."""

from typing import Any

import pytest

from fakeapiserver.registry.core.service.validation import service_errors, service_status_errors

Json = dict[str, Any]
RANGES = "service.beta.kubernetes.io/load-balancer-source-ranges"


def service(annotations: Json | None = None, **spec: Any) -> Json:
    own = {
        "type": "LoadBalancer",
        "ports": [{"port": 1, "protocol": "TCP", "targetPort": 1}],
        "sessionAffinity": "None",
    }
    return {"metadata": {"annotations": annotations or {}}, "spec": {**own, "externalTrafficPolicy": "Cluster", **spec}}


@pytest.mark.parametrize(
    ("made", "complaint"),
    [
        (service({RANGES: "10.0.0.0/8, x"}), "must be a valid CIDR value"),
        (service({RANGES: "10.0.0.0/8"}, type="NodePort"), "may only be used when `type` is 'LoadBalancer'"),
        (service({RANGES: "x"}, loadBalancerSourceRanges=["10.0.0.0/8"]), ""),
        (
            service({"service.kubernetes.io/topology-mode": "a", "service.kubernetes.io/topology-aware-hints": "b"}),
            "must match annotations[service.kubernetes.io/topology-aware-hints] when both are specified",
        ),
        (service(), ""),
    ],
)
def test_specs(made: Json, complaint: str) -> None:
    problems = "; ".join(map(str, service_errors(made)))
    assert complaint in problems if complaint else not problems


@pytest.mark.parametrize(
    ("kind", "entry", "complaint"),
    [
        ("ClusterIP", {"ip": "1.2.3.4"}, "may only be used when `spec.type` is 'LoadBalancer'"),
        ("LoadBalancer", {"ip": "x", "ipMode": "VIP"}, "must be a valid IP address"),
        ("LoadBalancer", {"ip": "1.2.3.4"}, "must be specified when `ip` is set"),
        ("LoadBalancer", {"hostname": "1.2.3.4"}, "must be a DNS name, not an IP address"),
        ("LoadBalancer", {"hostname": "a.b", "ipMode": "VIP"}, "may not be specified when `ip` is not set"),
        ("LoadBalancer", {"ip": "1.2.3.4", "ipMode": "Odd"}, 'supported values: "Proxy", "VIP"'),
        ("LoadBalancer", {"ip": "1.2.3.4", "ipMode": "Proxy", "hostname": "a.b"}, ""),
    ],
)
def test_statuses(kind: str, entry: Json, complaint: str) -> None:
    new = {"spec": {"type": kind}, "status": {"loadBalancer": {"ingress": [entry]}}}
    problems = "; ".join(map(str, service_status_errors(new, {})))
    assert complaint in problems if complaint else not problems
