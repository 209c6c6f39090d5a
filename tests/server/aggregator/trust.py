"""Reads what an aggregated server needs to trust its front proxy."""

import time
from typing import Any

from conformance.exchange import Client

Json = dict[str, Any]
API_SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
TRUST = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
_FIRST: Json = {
    "metadata": {"name": "v1.first.example.com"},
    "spec": {
        "group": "first.example.com",
        "version": "v1",
        "groupPriorityMinimum": 1,
        "versionPriority": 1,
        "service": {"name": "first", "namespace": "default"},
    },
}


def whom_to_believe(client: Client) -> Json:
    """The answer with the ConfigMap, which is there soon after the first APIService with a Service."""
    client.send({"method": "POST", "path": API_SERVICES, "body": _FIRST}, [])
    end = time.monotonic() + 100
    while (found := client.send({"method": "GET", "path": TRUST}, []))["status"] != 200:
        assert time.monotonic() < end, found
        time.sleep(0.02)
    client.send({"method": "DELETE", "path": f"{API_SERVICES}/v1.first.example.com"}, [])
    return dict(found)
