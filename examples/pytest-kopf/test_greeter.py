from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kopf.testing import KopfRunner

from fakeapiserver import Cluster

HERE = Path(__file__).parent

pytestmark = pytest.mark.fake_cluster(crds=str(HERE / "greetings.yaml"))


def greeting(text: str) -> dict[str, Any]:
    return {"apiVersion": "example.com/v1", "kind": "Greeting", "metadata": {"name": "hello"}, "spec": {"text": text}}


@pytest.fixture
def operator(fake_cluster: Cluster) -> Iterator[None]:
    """The operator, in a thread of the test's process. Its clients find the cluster by themselves."""
    with KopfRunner(["run", "--all-namespaces", "--standalone", str(HERE / "greeter.py")], timeout=60) as runner:
        yield
    assert runner.exit_code == 0


@pytest.mark.usefixtures("operator")
def test_a_greeting_gets_a_config_map(fake_cluster: Cluster) -> None:
    fake_cluster.apply(greeting("Hello!"))
    found = fake_cluster.wait("configmap", "hello", jsonpath="{.data.text}=Hello!")
    assert found["metadata"]["ownerReferences"][0]["kind"] == "Greeting"


@pytest.mark.usefixtures("operator")
def test_an_overloaded_api_server_is_tried_again(fake_cluster: Cluster) -> None:
    with fake_cluster.faults.add(verb="create", resource="configmaps", status=503, times=2) as fault:
        fake_cluster.apply(greeting("Hello again!"))
        fake_cluster.wait("configmap", "hello", jsonpath="{.data.text}=Hello again!")
    assert fault.hits == 2
