"""Controllers start when there is work for them, or when they are waited for."""

from typing import Any

import pytest

from fakeapiserver import Cluster
from fakeapiserver.server.upkeep import occasions
from fakeapiserver.storage.interface import Index, StoredObject

_OWNED = b'{"metadata":{"name":"a","ownerReferences":[{}]}}'
_PLAIN = b'{"metadata":{"name":"a"}}'
_DELETED = b'{"metadata":{"name":"a","deletionTimestamp":"2026-01-01T00:00:00Z"}}'
_TOKEN = b'{"metadata":{"name":"a"},"type":"kubernetes.io/service-account-token"}'
_DEPLOYMENT: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web"},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "web", "image": "w"}]}},
    },
}
_CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}


@pytest.mark.parametrize(
    ("key", "value", "concerns"),
    [
        ("pods/default/a", _PLAIN, True),
        ("namespaces/a", _PLAIN, True),
        ("serviceaccounts/default/a", _PLAIN, True),
        ("services/specs/default/a", _PLAIN, True),
        ("configmaps/default/a", _PLAIN, False),
        ("configmaps/default/a", _OWNED, True),
        ("configmaps/default/a", _DELETED, True),
        ("configmaps/default/kube-root-ca.crt", _PLAIN.replace(b"a", b"kube-root-ca.crt"), True),
        ("secrets/default/a", _PLAIN, False),
        ("secrets/default/a", _TOKEN, True),
        ("clusterroles/a", _PLAIN, False),
        ("example.com/widgets/default/a", _PLAIN, False),
        ("example.com/widgets/default/a", _OWNED, True),
        ("apiextensions.k8s.io/customresourcedefinitions/a", _PLAIN, False),
    ],
)
def test_objects_that_concern_controllers(key: str, value: bytes, concerns: bool) -> None:
    stored = StoredObject(f"/registry/{key}", value, 2, 2, Index(), 13)
    assert occasions.concerns_controllers(stored) is concerns


def started(cluster: Cluster) -> bool:
    manager = cluster._server.controllers
    assert manager is not None
    return "deployment-controller" in manager.started


def test_a_deployment_starts_them() -> None:
    with Cluster() as cluster:
        cluster.apply(_CONFIG_MAP)
        assert not started(cluster)
        cluster.apply(_DEPLOYMENT)
        cluster.eventually(lambda: len(cluster.list("pods")) == 2, timeout=120)
        assert started(cluster)


def test_a_caller_that_waits_starts_them() -> None:
    with Cluster() as cluster:
        assert not started(cluster)
        cluster.settle()
        assert started(cluster)
        assert cluster.get("clusterrole/admin")["rules"]


def test_an_owner_that_was_there_before_they_started_is_known() -> None:
    with Cluster() as cluster:
        owner = cluster.apply(_CONFIG_MAP)[0]["metadata"]
        reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": owner["uid"]}
        cluster.apply({**_CONFIG_MAP, "metadata": {"name": "b", "ownerReferences": [reference]}})
        cluster.delete("cm/a")
        cluster.settle()
        assert [each["metadata"]["name"] for each in cluster.list("cm")] == ["kube-root-ca.crt"]


def test_a_restored_state_starts_them() -> None:
    with Cluster() as cluster, Cluster(controllers=()) as other:
        other.apply(_DEPLOYMENT)
        cluster.restore(other.snapshot())
        cluster.eventually(lambda: len(cluster.list("pods")) == 2, timeout=120)


def test_roles_are_aggregated_without_an_occasion() -> None:
    with Cluster() as cluster:
        cluster.eventually(
            lambda: all(cluster.get(f"clusterrole/{name}")["rules"] for name in ("admin", "edit", "view"))
        )
        assert not started(cluster)


def test_all_start_at_once_in_a_recording() -> None:
    with Cluster(ui=True) as cluster:
        cluster.eventually(lambda: started(cluster))
