"""The metrics APIs as clients meet them, with values that a test sets."""

import json
import subprocess
import urllib.error
from collections.abc import Iterator
from typing import Any

import pytest

from fakeapiserver import Cluster
from tests.server.test_control import Client

PODS = "/api/v1/namespaces/default/pods"
RESOURCE = "/apis/metrics.k8s.io/v1beta1"
CUSTOM = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/default"
EXTERNAL = "/apis/external.metrics.k8s.io/v1beta1/namespaces/default"


def pod(name: str, **labels: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": labels}, "spec": {"containers": [{"name": "c", "image": "x"}]}}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Two pods of the app web run, another waits."""
    with Cluster(metrics=["*"]) as cluster:
        client = Client(cluster)
        for name, app, phase in (("a", "web", "Running"), ("b", "web", "Running"), ("c", "web", "Pending")):
            client.ask("POST", PODS, pod(name, app=app))
            path = f"{PODS}/{name}/status"
            stored = client.ask("GET", path)
            client.ask("PUT", path, {**stored, "status": {"phase": phase}})
        client.ask("POST", "/api/v1/nodes", {"metadata": {"name": "node-1"}})
        yield cluster


@pytest.fixture
def client(cluster: Cluster) -> Client:
    cluster.metrics.clear()
    return Client(cluster)


def refusal(client: Client, path: str, method: str = "GET") -> tuple[int, str]:
    try:
        client.open(method, path)
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())["message"]
    raise AssertionError("it was answered")


def usage(client: Client, query: str = "") -> dict[str, dict[str, str]]:
    """By pod, of its one container."""
    items = client.ask("GET", f"{RESOURCE}/namespaces/default/pods{query}")["items"]
    return {item["metadata"]["name"]: item["containers"][0]["usage"] for item in items}


def test_pods_that_run_use_next_to_nothing(client: Client) -> None:
    assert usage(client) == {name: {"cpu": "1m", "memory": "10Mi"} for name in ("a", "b")}


def test_the_last_word_counts(cluster: Cluster, client: Client) -> None:
    cluster.metrics.pod(selector="app=web", cpu="250m", memory="64Mi")
    cluster.metrics.pod("b", cpu=1)
    assert usage(client) == {"a": {"cpu": "250m", "memory": "64Mi"}, "b": {"cpu": "1", "memory": "64Mi"}}
    cluster.metrics.pod("a", missing=True)
    assert [*usage(client)] == ["b"]


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("?labelSelector=app%3Dweb", ["a", "b"]),
        ("?labelSelector=app%3Dother", []),
        ("?fieldSelector=metadata.name%3Db", ["b"]),
    ],
)
def test_selectors(client: Client, query: str, names: list[str]) -> None:
    assert [*usage(client, query)] == names


def test_a_node_uses_what_its_pods_do_and_a_little(cluster: Cluster, client: Client) -> None:
    assert client.ask("GET", f"{RESOURCE}/nodes/node-1")["usage"] == {"cpu": "100m", "memory": "512Mi"}
    cluster.metrics.node("node-1", cpu=2)
    assert client.ask("GET", f"{RESOURCE}/nodes")["items"][0]["usage"] == {"cpu": "2", "memory": "512Mi"}


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        (f"{RESOURCE}/nodes/x", (404, 'nodemetrics.metrics.k8s.io "x" not found')),
        (f"{RESOURCE}/namespaces/default/pods/x", (404, 'pods "x" not found')),
        (f"{RESOURCE}/namespaces/default/pods/c", (404, 'podmetrics.metrics.k8s.io "default/c" not found')),
        (f"{RESOURCE}/pods?labelSelector=%3D", (400, "found '=', expected: !, identifier")),
        (f"{RESOURCE}/things", (404, "the server could not find the requested resource")),
        (f"{CUSTOM}/pods/*/hits", (404, "the server could not find the metric hits for pods")),
        (f"{CUSTOM}/services/web/rps", (404, "the server could not find the metric rps for services web")),
    ],
)
def test_refusals(client: Client, path: str, answer: tuple[int, str]) -> None:
    code, message = refusal(client, path)
    assert code == answer[0]
    assert answer[1] in message


def test_other_methods(client: Client) -> None:
    assert refusal(client, f"{RESOURCE}/nodes", "DELETE")[0] == 405
    assert refusal(client, f"{RESOURCE}/nodes?watch=true")[0] == 405


def test_custom_metrics(cluster: Cluster, client: Client) -> None:
    cluster.metrics.custom("hits", "1500m", selector="app=web", labels={"verb": "GET"})
    cluster.metrics.custom("hits", 2, name="b", labels={"verb": "PUT"})
    items = client.ask("GET", f"{CUSTOM}/pods/*/hits?labelSelector=app%3Dweb")["items"]
    assert {item["describedObject"]["name"]: item["value"] for item in items} == {"a": "1500m", "b": "3500m"}
    items = client.ask("GET", f"{CUSTOM}/pods/*/hits?metricLabelSelector=verb%3DPUT")["items"]
    assert [item["describedObject"]["name"] for item in items] == ["b"]
    assert items[0]["metric"] == {"name": "hits", "selector": {"matchLabels": {"verb": "PUT"}}}
    cluster.metrics.custom("load", "10k", resource="namespaces", name="default")
    found = client.ask("GET", f"{CUSTOM.replace('v1beta2', 'v1beta1')}/metrics/load")["items"][0]
    assert (found["describedObject"]["kind"], found["metricName"], found["value"]) == ("Namespace", "load", "10k")
    cluster.metrics.custom("hits", None)
    cluster.metrics.custom("hits", None, labels={"verb": "GET"})
    assert [item["describedObject"]["name"] for item in client.ask("GET", f"{CUSTOM}/pods/*/hits")["items"]] == ["b"]


def test_external_metrics(cluster: Cluster, client: Client) -> None:
    def values(query: str = "") -> list[tuple[dict[str, str], str]]:
        items = client.ask("GET", f"{EXTERNAL}/queue{query}")["items"]
        return [(item["metricLabels"], item["value"]) for item in items]

    assert values() == []
    cluster.metrics.external("queue", 30, labels={"of": "a"})
    cluster.metrics.external("queue", 7, labels={"of": "b"})
    cluster.metrics.external("queue", 8, labels={"of": "b"}, namespace="default")
    assert values() == [({"of": "a"}, "30"), ({"of": "b"}, "8")]
    assert values("?labelSelector=of%3Db") == [({"of": "b"}, "8")]
    cluster.metrics.external("queue", None, labels={"of": "a"})
    assert values() == [({"of": "b"}, "8")]


def test_discovery_lists_them(cluster: Cluster, client: Client) -> None:
    cluster.metrics.custom("hits", 1)
    resources = client.ask("GET", "/apis/custom.metrics.k8s.io/v1beta2")["resources"]
    assert [row["name"] for row in resources] == ["pods/hits"]
    group = client.ask("GET", "/apis/custom.metrics.k8s.io")
    assert [version["version"] for version in group["versions"]] == ["v1beta2", "v1beta1"]
    names = [row["name"] for row in client.ask("GET", f"{RESOURCE}/")["resources"]]
    assert names == ["nodes", "pods"]


def test_they_come_and_go_with_their_apiservices() -> None:
    with Cluster() as cluster:
        client = Client(cluster)

        def groups() -> set[str]:
            return {row["name"] for row in client.ask("GET", "/apis")["groups"] if "metrics" in row["name"]}

        def api_services() -> set[str]:
            found = client.ask("GET", "/apis/apiregistration.k8s.io/v1/apiservices")["items"]
            return {item["metadata"]["name"] for item in found if "metrics" in item["metadata"]["name"]}

        assert groups() == api_services() == set()
        with pytest.raises(ValueError, match="no resource metrics are served here"):
            cluster.metrics.pod("a", cpu=1)
        before = cluster.snapshot()
        cluster.metrics.serve("resource")
        assert (groups(), api_services()) == ({"metrics.k8s.io"}, {"v1beta1.metrics.k8s.io"})
        assert client.ask("GET", f"{RESOURCE}/pods")["items"] == []
        cluster.restore(before)
        assert (groups(), api_services()) == ({"metrics.k8s.io"}, {"v1beta1.metrics.k8s.io"})
        cluster.metrics.serve()
        assert groups() == api_services() == set()
        assert client.status("GET", f"{RESOURCE}/pods") == 404


@pytest.mark.parametrize(
    ("names", "problem"),
    [
        (["all"], r"^metrics has no 'all': the choices are resource, custom, external, \*$"),
        (["resource", ""], "^metrics must be a list of names, but has ''$"),
    ],
)
def test_metrics_there_are_not(names: list[str], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        Cluster(metrics=names)


@pytest.mark.parametrize(
    ("what", "body", "status"),
    [
        ("pods", {"selector": "app=web", "usage": {"cpu": "250m"}}, 201),
        ("pods", {"usage": {"cpu": "lots"}}, 400),
        ("pods", {"selector": "a=b=c"}, 400),
        ("nodes", {"name": "node-1", "usage": {"memory": "1Gi"}}, 201),
        ("custom", {"metric": "hits", "value": 3, "selector": "app=web"}, 201),
        ("custom", {"metric": "hits", "value": 3, "resource": "services"}, 400),
        ("custom", {"metric": "", "value": 3}, 400),
        ("external", {"metric": "queue", "value": "1k", "labels": {"of": "a"}}, 201),
        ("external", {"metric": "queue"}, 422),
    ],
)
def test_over_http(client: Client, what: str, body: dict[str, Any], status: int) -> None:
    assert client.status("POST", f"/fakeapiserver/metrics/{what}", body) == status


def test_what_is_served_over_http(client: Client) -> None:
    try:
        assert client.ask("PUT", "/fakeapiserver/metrics", {"served": ["external"]}) == {"served": ["external"]}
        assert client.status("POST", "/fakeapiserver/metrics/pods", {}) == 400
        assert client.status("PUT", "/fakeapiserver/metrics", {"served": ["x"]}) == 400
    finally:
        every = {"served": ["resource", "custom", "external"]}
        assert client.ask("PUT", "/fakeapiserver/metrics", {"served": ["*"]}) == every
    assert client.ask("GET", "/fakeapiserver/metrics") == every
    assert client.status("DELETE", "/fakeapiserver/metrics") == 204


def test_usage_is_shared_by_containers() -> None:
    from fakeapiserver.server.metrics_apis.values import Values

    values = Values()
    containers = [{"name": name} for name in ("one", "two", "three")]
    found = {
        "metadata": {"name": "a", "namespace": "default"},
        "spec": {"containers": containers, "initContainers": [{"name": "init"}]},
        "status": {"phase": "Running"},
    }
    values.set_pod(usage={"cpu": "100m", "memory": "100", "gpu": 3})
    values.set_pod(container="two", usage={"cpu": 2})
    shown = {
        usage.name: {name: str(value) for name, value in usage.usage.items()} for usage in values.of_pod(found) or ()
    }
    assert shown == {
        "one": {"cpu": "33333334n", "memory": "34", "gpu": "1"},
        "two": {"cpu": "2", "memory": "33", "gpu": "1"},
        "three": {"cpu": "33333333n", "memory": "33", "gpu": "1"},
    }
    annotated = {**found, "metadata": {**found["metadata"], "annotations": {"kwok.x-k8s.io/usage-cpu": "7m"}}}
    assert str((Values().of_pod(annotated) or ())[0].usage["cpu"]) == "7m"


def test_kubectl_top(cluster: Cluster, client: Client) -> None:
    """`kubectl top` prints the metrics."""
    import shutil

    kubectl = shutil.which("kubectl")
    if kubectl is None:
        pytest.skip("there is no kubectl here")
    cluster.metrics.pod("a", cpu="250m", memory="64Mi")
    command = [kubectl, "--kubeconfig", cluster.kubeconfig, "top", "pods", "--no-headers"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert [line.split() for line in shown.splitlines()] == [["a", "250m", "64Mi"], ["b", "1m", "10Mi"]]
