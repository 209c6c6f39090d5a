"""Clusters whose state is in an etcd."""

import pytest

from fakeapiserver import Cluster, StatusError
from fakeapiserver.cluster.options import ClusterOptions, config_of
from fakeapiserver.cluster.processes.etcd_process import EtcdProcess
from tests.etcd_processes import etcd

__all__ = ["etcd"]
SETTINGS = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"mode": "old"}}
CHANGE = {"data": {"mode": "new"}}


def test_the_next_cluster_on_an_etcd_goes_on_with_its_state(etcd: EtcdProcess) -> None:
    with Cluster(etcd_servers=etcd.url, controllers=(), storage_media_type="application/json") as cluster:
        created = cluster.apply(SETTINGS)[0]
        with Cluster(etcd_servers=etcd.url, controllers=()) as beside:
            changed = beside.patch("cm/settings", CHANGE)
        assert (
            cluster.eventually(lambda: _at(cluster, changed["metadata"]["resourceVersion"]))["data"] == CHANGE["data"]
        )
    with Cluster(etcd_servers=[etcd.url], controllers=()) as again:
        assert again.get("cm/settings")["metadata"]["uid"] == created["metadata"]["uid"]


def _at(cluster: Cluster, revision: str) -> dict[str, dict[str, str]]:
    settings = cluster.get("cm/settings")
    assert settings["metadata"]["resourceVersion"] == revision
    return settings


def test_a_prefix_is_a_cluster_of_its_own(etcd: EtcdProcess) -> None:
    with (
        Cluster(etcd_servers=etcd.url, controllers=(), etcd_prefix="/one") as one,
        Cluster(etcd_servers=etcd.url, controllers=(), etcd_prefix="two/") as two,
    ):
        one.apply(SETTINGS)
        with pytest.raises(StatusError, match="not found"):
            two.get("cm/settings")


def test_a_fork_of_a_cluster_that_is_read_only_is_in_memory_and_takes_writes(etcd: EtcdProcess) -> None:
    with Cluster(etcd_servers=etcd.url, controllers=()) as cluster:
        cluster.apply(SETTINGS)
    with Cluster(etcd_servers=etcd.url, read_only=True) as cluster:
        revision = cluster.get("cm/settings")["metadata"]["resourceVersion"]
        with pytest.raises(StatusError, match='configmaps "settings" is forbidden: this server is read-only'):
            cluster.patch("cm/settings", CHANGE)
        with cluster.fork() as fork:
            assert fork.get("cm/settings")["metadata"]["resourceVersion"] == revision
            assert fork.patch("cm/settings", CHANGE)["data"] == CHANGE["data"]
        assert cluster.get("cm/settings")["data"] == SETTINGS["data"]


def test_what_the_options_are_called_in_a_configuration() -> None:
    config = config_of({"etcd_servers": "http://a:1, http://b:2", "etcd_prefix": "/p", "read_only": True})
    assert (config.etcd.servers, config.etcd.prefix, config.read_only) == (("http://a:1", "http://b:2"), "/p", True)


@pytest.mark.parametrize(
    ("option", "reason"),
    [
        ({"nodes": 1}, "with which the server writes objects of its own"),
        ({"controllers": "*"}, "since controllers write"),
    ],
)
def test_what_writes_contradicts_read_only(option: ClusterOptions, reason: str) -> None:
    (name,) = option
    with pytest.raises(ValueError, match=f"^read_only: leave {name} out, {reason}$"):
        config_of(option | ClusterOptions(read_only=True, etcd_servers="http://127.0.0.1:1"))
