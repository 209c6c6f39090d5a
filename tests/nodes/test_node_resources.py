"""Tests what pods on simulated nodes wait for before their containers start."""

from typing import Any

from fakeapiserver import Cluster
from tests.nodes.test_kubelet import PODS, PodClient

Object = dict[str, Any]
STORAGE = "/apis/storage.k8s.io/v1"
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
DRIVER = "disk.example.com"
HANDLE = f"kubernetes.io/csi/{DRIVER}^handle"


def reason(status: Object) -> str:
    found: str = status["containerStatuses"][0]["state"]["waiting"]["reason"]
    return found


def test_a_volume_is_attached_before_its_pod_runs_and_detached_after_it() -> None:
    with Cluster(nodes=2, controllers=("*",)) as cluster:
        client = PodClient(cluster)
        cluster.clock.stop()
        client.ask("POST", f"{STORAGE}/csidrivers", {"metadata": {"name": DRIVER}, "spec": {}})
        size = {"storage": "1Gi"}
        common = {"accessModes": ["ReadWriteOnce"], "storageClassName": ""}
        volume = {**common, "capacity": size, "csi": {"driver": DRIVER, "volumeHandle": "handle"}}
        client.ask("POST", "/api/v1/persistentvolumes", {"metadata": {"name": "v"}, "spec": volume})
        claim = {**common, "resources": {"requests": size}, "volumeName": "v"}
        path = "/api/v1/namespaces/default/persistentvolumeclaims"
        client.ask("POST", path, {"metadata": {"name": "data"}, "spec": claim})
        cluster.settle()
        drivers = client.ask("GET", f"{STORAGE}/csinodes/node-2")["spec"]["drivers"]
        assert [(row["name"], row["nodeID"]) for row in drivers] == [(DRIVER, "node-2")]

        client.pod("p", volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}])
        cluster.settle()
        cluster.clock.advance("1m")
        assert reason(client.pod_status("p")) == "ContainerCreating"
        assert client.ask("GET", "/api/v1/nodes/node-1")["status"]["volumesInUse"] == [HANDLE]
        (attachment,) = client.ask("GET", f"{STORAGE}/volumeattachments")["items"]
        path = f"{STORAGE}/volumeattachments/{attachment['metadata']['name']}/status"
        client.ask("PUT", path, {**attachment, "status": {"attached": True}})
        cluster.settle()
        assert client.pod_status("p")["phase"] == "Running"

        client.ask("DELETE", f"{PODS}/p")
        cluster.clock.advance("1m")
        cluster.settle()
        status = client.ask("GET", "/api/v1/nodes/node-1")["status"]
        assert "volumesInUse" not in status
        assert "volumesAttached" not in status
        assert client.ask("GET", f"{STORAGE}/volumeattachments")["items"] == []


def test_devices_are_a_pods_before_it_runs() -> None:
    with Cluster(nodes=1) as cluster:
        client = PodClient(cluster)
        spec = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}}
        claim = client.ask("POST", CLAIMS, {"metadata": {"name": "gpu"}, "spec": spec})
        client.pod("p", resourceClaims=[{"name": "gpu", "resourceClaimName": "gpu"}])
        cluster.settle()
        assert reason(client.pod_status("p")) == "ContainerCreating"
        uids = client.ask("GET", f"{PODS}/p")["metadata"]["uid"], claim["metadata"]["uid"]
        told = {
            row["reason"]: row["message"] for row in client.ask("GET", "/api/v1/namespaces/default/events")["items"]
        }
        assert told["FailedPrepareDynamicResources"] == (
            "Failed to prepare dynamic resources: prepare dynamic resources: "
            f"pod p ({uids[0]}) is not allowed to use ResourceClaim gpu ({uids[1]})"
        )
        device = {"request": "gpu", "driver": "gpu.example.com", "pool": "p", "device": "d"}
        status = {
            "allocation": {"devices": {"results": [device]}},
            "reservedFor": [{"resource": "pods", "name": "p", "uid": uids[0]}],
        }
        client.ask("PUT", f"{CLAIMS}/gpu/status", {**claim, "status": status})
        cluster.settle()
        assert client.pod_status("p")["phase"] == "Running"
