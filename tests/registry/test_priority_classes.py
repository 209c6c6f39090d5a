"""Priority classes that can't be deleted by name, as recorded of the real server."""

import pytest

from fakeapiserver import Cluster
from tests.plain_client import Client

CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"


@pytest.mark.parametrize("query", ["", "?dryRun=All"])
def test_system_classes_are_not_deleted_but_with_all(query: str) -> None:
    with Cluster(controllers=("none",)) as cluster:
        client = Client(cluster)
        for name in ("system-node-critical", "system-cluster-critical"):
            assert client.status("DELETE", f"{CLASSES}/{name}{query}") == 403
        client.ask("POST", CLASSES, {"metadata": {"name": "mine"}, "value": 7})
        assert client.status("DELETE", f"{CLASSES}/mine{query}") == 200
        client.ask("DELETE", CLASSES)
        assert client.ask("GET", CLASSES)["items"] == []
