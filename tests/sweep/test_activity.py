"""An operator goes on if it sends requests that aren't about its leader election."""

import pytest

from fakeapiserver import Cluster
from fakeapiserver.sweep.start_up import Activity
from tests.plain_client import Client

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
RECORD = {"control-plane.alpha.kubernetes.io/leader": '{"holderIdentity": "a"}'}


@pytest.mark.parametrize(
    ("path", "seconds", "expected"),
    [
        ("/api/v1/namespaces/default/pods", 60.0, True),
        (CONFIG_MAPS, 60.0, True),
        (f"{CONFIG_MAPS}/lock", 60.0, False),
        (LEASES, 60.0, False),
        ("/api/v1/namespaces/default/pods", -1.0, False),
    ],
)
def test_an_operator_goes_on(path: str, seconds: float, expected: bool) -> None:
    with Cluster(kept_requests=100) as cluster:
        client = Client(cluster)
        client.ask("POST", CONFIG_MAPS, {"metadata": {"name": "lock", "annotations": RECORD}})
        activity = Activity(cluster.requests, "*", seconds)
        client.ask("GET", path)
        assert activity.goes_on() is expected
        assert not activity.goes_on()
