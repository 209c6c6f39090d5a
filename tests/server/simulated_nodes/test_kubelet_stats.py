"""Tests the usage that a simulated node reports."""

from collections.abc import Iterator
from typing import Any

import pytest

from fakeapiserver import Cluster
from tests.plain_client import Client

PODS = "/api/v1/namespaces/default/pods"
NODE = "/api/v1/nodes/node-1/proxy"


def pod(name: str, node: str) -> dict[str, Any]:
    containers = [{"name": "c", "image": "nginx"}, {"name": "side", "image": "nginx"}]
    return {"metadata": {"name": name}, "spec": {"nodeName": node, "containers": containers}}


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with Cluster(nodes=2, metrics=("resource",)) as cluster:
        cluster.clock.stop()
        connected = Client(cluster)
        for name, node in (("web", "node-1"), ("measured", "node-1"), ("elsewhere", "node-2")):
            connected.ask("POST", PODS, pod(name, node))
        usage = {"cpu": "250m", "memory": "64Mi", "ephemeral-storage": "1Gi", "pids": "7"}
        cluster.nodes.script(name="web", container="c", usage=usage)
        cluster.metrics.pod(name="measured", container="c", cpu="2", memory="1Gi")
        cluster.settle()
        cluster.clock.advance("100s")
        yield connected


def summary(client: Client) -> dict[str, Any]:
    found: dict[str, Any] = client.ask("GET", f"{NODE}/stats/summary")
    return found


def test_the_summary_has_the_pods_of_the_node(client: Client) -> None:
    found = summary(client)
    assert found["node"]["nodeName"] == "node-1"
    assert sorted(row["podRef"]["name"] for row in found["pods"]) == ["measured", "web"]


@pytest.mark.parametrize(
    ("name", "container", "cores", "memory"),
    [
        ("web", "c", 0.25, 64 << 20),
        ("measured", "c", 2.0, 1 << 30),
        ("web", "side", 0.001, 10 << 20),  # what nothing is said of waits for work
    ],
)
def test_containers_use_what_scripts_and_metrics_say(
    client: Client, name: str, container: str, cores: float, memory: int
) -> None:
    [row] = [row for row in summary(client)["pods"] if row["podRef"]["name"] == name]
    [stats] = [stats for stats in row["containers"] if stats["name"] == container]
    assert stats["cpu"]["usageNanoCores"] == cores * 1e9
    assert stats["cpu"]["usageCoreNanoSeconds"] == pytest.approx(cores * 1e9 * 100, rel=0.02)
    assert stats["memory"]["workingSetBytes"] == memory


def test_pods_and_nodes_add_up(client: Client) -> None:
    found = summary(client)
    [web] = [row for row in found["pods"] if row["podRef"]["name"] == "web"]
    assert web["memory"]["workingSetBytes"] == 74 << 20
    assert web["ephemeral-storage"]["usedBytes"] == 1 << 30
    assert web["process_stats"] == {"process_count": 7}
    node = found["node"]
    assert node["cpu"]["usageNanoCores"] == 2_352_000_000  # with 100m of its own
    assert node["memory"]["workingSetBytes"] + node["memory"]["availableBytes"] == 256 << 30
    assert node["rlimit"]["curproc"] == 7


def test_metrics_have_the_names_of_a_kubelet(client: Client) -> None:
    with client.open("GET", f"{NODE}/metrics/resource") as answer:
        text = answer.read().decode()
    samples = dict(line.rsplit(" ", 2)[:2] for line in text.splitlines() if not line.startswith(("#", "resource_")))
    labels = '{container="c",namespace="default",pod="web"}'
    assert float(samples[f"container_cpu_usage_seconds_total{labels}"]) == pytest.approx(25, rel=0.02)
    assert float(samples[f"container_memory_working_set_bytes{labels}"]) == 64 << 20
    assert float(samples['pod_memory_working_set_bytes{namespace="default",pod="web"}']) == 74 << 20
    assert float(samples["node_memory_working_set_bytes"]) > 1 << 30
    assert not any("elsewhere" in name for name in samples)
    assert text.endswith("# TYPE resource_scrape_error gauge\nresource_scrape_error 0\n")
