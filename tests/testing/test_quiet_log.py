"""A test's captured log is about the test: starting, running and stopping a cluster hardly logs anything at INFO."""

import logging

import pytest

from fakeapiserver import Cluster
from tests.plain_client import Client

DEPLOYMENT = {
    "metadata": {"name": "web"},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "c", "image": "nginx"}]},
        },
    },
}


def test_a_cluster_with_nodes_logs_five_lines_at_most(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    with Cluster(nodes=3) as cluster:
        client = Client(cluster)
        client.ask("POST", "/apis/apps/v1/namespaces/default/deployments", DEPLOYMENT)
        cluster.settle()
        client.ask("DELETE", "/apis/apps/v1/namespaces/default/deployments/web")
        cluster.controllers["job-controller"] = "off"
        cluster.clock.advance("10m")
    lines = [record.getMessage() for record in caplog.records if record.name.startswith("fakeapiserver")]
    assert len(lines) <= 5, lines
