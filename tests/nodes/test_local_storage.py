"""Claims get volumes where their pods run, in a cluster with local storage."""

from typing import Any

from fakeapiserver import Cluster
from tests.nodes.test_kubelet import PODS
from tests.nodes.test_kubelet import PodClient as Client

CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
VOLUMES = "/api/v1/persistentvolumes"
EVENTS = "/api/v1/namespaces/default/events"


def claim(name: str, **spec: Any) -> dict[str, Any]:
    asked = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return {"metadata": {"name": name}, "spec": {**asked, **spec}}


def pod(name: str, *claims: str, **spec: Any) -> dict[str, Any]:
    volumes = [{"name": found, "persistentVolumeClaim": {"claimName": found}} for found in claims]
    return {
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "c", "image": "x"}], "volumes": volumes, **spec},
    }


def told(client: Client, about: str) -> list[str]:
    found = [row for row in client.ask("GET", EVENTS)["items"] if row["involvedObject"]["name"] == about]
    return sorted({row["reason"] for row in found})


def test_a_volume_is_made_on_the_node_of_its_first_consumer_and_goes_with_its_claim() -> None:
    with Cluster(nodes=3, local_storage=True) as cluster:
        client = Client(cluster)
        cluster.settle()
        client.ask("POST", CLAIMS, claim("data"))
        cluster.settle()
        assert client.ask("GET", f"{CLAIMS}/data")["status"] == {"phase": "Pending"}
        assert told(client, "data") == ["WaitForFirstConsumer"]
        client.ask("POST", PODS, pod("p", "data", nodeSelector={"kubernetes.io/hostname": "node-2"}))
        cluster.settle()
        assert client.pod_status("p")["phase"] == "Running"
        bound = client.ask("GET", f"{CLAIMS}/data")
        assert bound["status"]["phase"] == "Bound"
        assert bound["metadata"]["annotations"]["volume.kubernetes.io/selected-node"] == "node-2"
        [volume] = client.ask("GET", VOLUMES)["items"]
        assert volume["metadata"]["name"] == bound["spec"]["volumeName"] == f"pvc-{bound['metadata']['uid']}"
        [term] = volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
        assert term["matchExpressions"][0]["values"] == ["node-2"]
        assert told(client, "data") == [
            "ExternalProvisioning",
            "Provisioning",
            "ProvisioningSucceeded",
            "WaitForFirstConsumer",
        ]
        client.ask("DELETE", f"{PODS}/p")
        client.ask("DELETE", f"{CLAIMS}/data")
        cluster.settle()
        assert client.ask("GET", VOLUMES)["items"] == []


def test_a_pod_goes_where_its_volume_is() -> None:
    with Cluster(nodes=3, local_storage=True) as cluster:
        client = Client(cluster)
        client.ask("POST", CLAIMS, claim("data"))
        client.ask("POST", PODS, pod("first", "data"))
        cluster.settle()
        node = client.ask("GET", f"{PODS}/first")["spec"]["nodeName"]
        for number in range(3):
            client.ask("POST", PODS, pod(f"p{number}", "data"))
        cluster.settle()
        assert {found["spec"]["nodeName"] for found in client.ask("GET", PODS)["items"]} == {node}


def test_failures_of_the_provisioner_are_reported_and_retried() -> None:
    with Cluster(nodes=1, local_storage=True) as cluster:
        client = Client(cluster)
        cluster.settle()
        client.ask("POST", CLAIMS, claim("shared", accessModes=["ReadWriteMany"]))
        client.ask("POST", PODS, pod("p", "shared"))
        cluster.settle()
        assert "nodeName" not in client.ask("GET", f"{PODS}/p")["spec"]
        [failed] = [row for row in client.ask("GET", EVENTS)["items"] if row["reason"] == "ProvisioningFailed"]
        assert failed["message"] == (
            'failed to provision volume with StorageClass "standard": NodePath only supports ReadWriteOnce and '
            "ReadWriteOncePod (1.22+) access modes"
        )


def test_a_stateful_set_has_volumes_of_its_own() -> None:
    with Cluster(nodes=2, local_storage=True, controllers=("*",)) as cluster:
        client = Client(cluster)
        container = {"name": "c", "image": "x", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}
        body = {
            "metadata": {"name": "db"},
            "spec": {
                "replicas": 3,
                "serviceName": "db",
                "selector": {"matchLabels": {"app": "db"}},
                "template": {"metadata": {"labels": {"app": "db"}}, "spec": {"containers": [container]}},
                "volumeClaimTemplates": [claim("data")],
            },
        }
        client.ask("POST", "/apis/apps/v1/namespaces/default/statefulsets", body)
        cluster.settle()
        assert [client.pod_status(f"db-{number}")["phase"] for number in range(3)] == ["Running"] * 3
        assert len({row["spec"]["volumeName"] for row in client.ask("GET", CLAIMS)["items"]}) == 3


def test_a_claim_grows_with_its_volume() -> None:
    with Cluster(nodes=1, local_storage=True) as cluster:
        client = Client(cluster)
        client.ask("POST", CLAIMS, claim("data"))
        client.ask("POST", PODS, pod("p", "data"))
        cluster.settle()
        cluster.patch("pvc/data", {"spec": {"resources": {"requests": {"storage": "2Gi"}}}})
        cluster.settle()
        assert client.ask("GET", f"{CLAIMS}/data")["status"]["capacity"] == {"storage": "2Gi"}
        [volume] = client.ask("GET", VOLUMES)["items"]
        assert volume["spec"]["capacity"] == {"storage": "2Gi"}
        assert "VolumeResizeSuccessful" in told(client, "data")
