"""pytest fixtures: a Kubernetes API server per test (entry point `pytest11`).

def test_creates_a_namespace(fake_cluster): ...            # a fresh cluster; KUBECONFIG is set

@pytest.mark.fake_cluster(authorization_mode=["AlwaysAllow"])
def test_without_rbac(fake_kubeconfig): ...                # the kubeconfig's path
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from fakeapiserver.cluster import Cluster


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "fake_cluster(**options): options of fakeapiserver.Cluster for this test's `fake_cluster` fixture"
    )


@pytest.fixture
def fake_cluster(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator["Cluster"]:
    """A fresh cluster for this test, running in a thread; KUBECONFIG names its kubeconfig.

    The markers `fake_cluster` give its options; a test's own marker overrides its class's and its module's. Works under
    pytest-xdist: every cluster has ports and files of its own."""
    from fakeapiserver.cluster import Cluster

    options = {}
    for marker in reversed([*request.node.iter_markers("fake_cluster")]):
        options.update(marker.kwargs)
    with Cluster(**options) as cluster:
        monkeypatch.setenv("KUBECONFIG", cluster.kubeconfig)
        yield cluster


@pytest.fixture
def fake_kubeconfig(fake_cluster: "Cluster") -> str:
    """The path of a kubeconfig for this test's cluster."""
    return fake_cluster.kubeconfig
