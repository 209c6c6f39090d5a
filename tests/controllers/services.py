"""Services and the pods behind them, as a kubelet would leave them."""

from typing import Any

from fakeapiserver.component_helpers.objects import ENDPOINT_SLICES, NODES, PODS, SERVICES
from tests.controllers.harness import Harness, Object


def service(name: str = "web", **spec: Any) -> Object:
    spec = {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8080}], **spec}
    return {"metadata": {"name": name}, "spec": {name: value for name, value in spec.items() if value is not None}}


def pod(name: str, app: str = "web", node: str = "here", **spec: Any) -> Object:
    containers = [{"name": "c", "image": "web:1", "ports": [{"name": "http", "containerPort": 8080}]}]
    return {
        "metadata": {"name": name, "labels": {"app": app}},
        "spec": {"nodeName": node, "containers": containers, **spec},
    }


def running(*ips: str, ready: bool = True, since: str = "2026-01-01T00:00:00Z") -> Object:
    condition = {"type": "Ready", "status": str(ready), "lastTransitionTime": since}
    return {"phase": "Running", "podIP": ips[0], "podIPs": [{"ip": ip} for ip in ips], "conditions": [condition]}


async def create_node(cluster: Harness, name: str = "here", zone: str = "", cpu: str = "2") -> None:
    labels = {"topology.kubernetes.io/zone": zone} if zone else {}
    status = {"allocatable": {"cpu": cpu}, "conditions": [{"type": "Ready", "status": "True"}]}
    await cluster.create(NODES, {"metadata": {"name": name, "labels": labels}, "status": status}, "")


async def create_pods(cluster: Harness, *found: Object) -> None:
    """Pods with the status they have."""
    for obj in found:
        await cluster.of(PODS).create(obj)
        await cluster.of(PODS).patch(obj["metadata"]["name"], {"status": obj["status"]}, "status")
    await cluster.settle()


async def create_service(cluster: Harness, name: str = "web", **spec: Any) -> Object:
    return await cluster.create(SERVICES, service(name, **spec))


async def slices(cluster: Harness, family: str = "IPv4") -> list[Object]:
    """The oldest first."""
    found: list[Object] = (await cluster.of(ENDPOINT_SLICES).list())["items"]
    name = "kubernetes.io/service-name"
    found = [each for each in found if each["addressType"] == family and each["metadata"]["labels"].get(name) == "web"]
    return sorted(found, key=lambda each: int(each["metadata"]["resourceVersion"]))


async def endpoints(cluster: Harness, family: str = "IPv4") -> list[Object]:
    """Returns the endpoints of all slices, by their first address."""
    found = [endpoint for each in await slices(cluster, family) for endpoint in each["endpoints"] or ()]
    return sorted(found, key=lambda endpoint: str(endpoint["addresses"][0]))
