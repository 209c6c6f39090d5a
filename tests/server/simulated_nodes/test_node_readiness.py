"""A server with simulated nodes says that it is ready when the nodes are."""

import json
import ssl
import urllib.request
from typing import Any

import pytest

from fakeapiserver import Cluster


@pytest.mark.parametrize(
    ("stepped", "taints"), [((), set()), (("node-lifecycle-controller",), {"node.kubernetes.io/not-ready"})]
)
def test_the_nodes_are_there_and_ready(stepped: tuple[str, ...], taints: set[str]) -> None:
    with Cluster(nodes=3, step_controllers=stepped) as cluster:
        headers = {"Authorization": f"Bearer {cluster.token}"}
        context = ssl.create_default_context(cadata=cluster.ca.decode())
        request = urllib.request.Request(f"{cluster.url}/api/v1/nodes", headers=headers)
        with urllib.request.urlopen(request, context=context) as response:
            nodes: list[dict[str, Any]] = json.load(response)["items"]
    conditions = [{item["type"]: item["status"] for item in node["status"]["conditions"]} for node in nodes]
    assert [found["Ready"] for found in conditions] == ["True"] * 3
    assert {taint["key"] for node in nodes for taint in node["spec"].get("taints", ())} == taints
