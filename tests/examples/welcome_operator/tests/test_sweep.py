"""A Welcome survives what a cluster may do to its operator."""

import pytest
from fakeapiserver import Cluster

from tests.conftest import CLUSTER
from welcome_operator.setup import setup

WELCOME = {"apiVersion": "apps.example.com/v1alpha1", "kind": "Welcome", "metadata": {"name": "jane"}}


@pytest.mark.fake_cluster(**CLUSTER, nodes=1)
@pytest.mark.sweep(operator=setup)
def test_a_welcome_survives_surprises(fake_cluster: Cluster) -> None:
    fake_cluster.apply({**WELCOME, "spec": {"name": "Jane", "replicas": 2}})
    fake_cluster.wait("welcomes/jane", "Ready")
    fake_cluster.patch("welcomes/jane", {"spec": {"replicas": 3}})
    fake_cluster.wait("welcomes/jane", "Ready")
    fake_cluster.delete("welcomes/jane")
    fake_cluster.wait("welcomes/jane", "delete")
    fake_cluster.apply({**WELCOME, "spec": {"name": "Jane", "replicas": 2}})
    fake_cluster.wait("welcomes/jane", "Ready")
