"""`cluster.outage()`, `restart()` and `read_only()`: what clients meet, and what stays."""

import asyncio
import http.client
import json
import socket
import ssl
from collections.abc import Iterator
from typing import Any

import pytest

from fakeapiserver import AsyncCluster, Cluster
from fakeapiserver.cluster import faults
from tests.cluster.test_faults import MAPS, Client


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(controllers=()) as cluster:
        yield cluster


@pytest.fixture
def client(cluster: Cluster) -> Client:
    return Client(cluster)


def test_the_port_is_kept_during_an_outage(cluster: Cluster) -> None:
    """Another server that takes it would leave this one without."""
    port = int(cluster.url.rpartition(":")[2])
    with cluster.outage(), socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with pytest.raises(OSError, match="in use"):
            other.bind(("127.0.0.1", port))
    with socket.create_connection(("127.0.0.1", port)):
        pass


def test_connections_are_refused_during_an_outage(cluster: Cluster, client: Client) -> None:
    client.create("kept", x="1")
    url, kubeconfig = cluster.url, cluster.kubeconfig
    with cluster.outage() as outage:
        with pytest.raises(ConnectionRefusedError):
            client.ask("GET", MAPS)
        assert not outage.over
        with pytest.raises(ValueError, match="this server can't be reached already: end that outage first"):
            cluster.outage()
    assert outage.over
    assert (cluster.url, cluster.kubeconfig) == (url, kubeconfig)
    assert client.ask("GET", f"{MAPS}/kept").body["data"] == {"x": "1"}


def test_open_watches_are_cut() -> None:
    async def run() -> None:
        async with AsyncCluster(controllers=()) as cluster:
            client = Client(cluster)
            await asyncio.to_thread(client.create, "a")
            watching = asyncio.ensure_future(asyncio.to_thread(client.watch, "resourceVersion=0", 15))
            await asyncio.sleep(0.2)  # the watch is open
            async with await cluster.outage():
                with pytest.raises((OSError, http.client.HTTPException)) as cut:
                    await watching
            assert b'"name":"a"' in getattr(cut.value, "partial", b'"name":"a"')

    asyncio.run(run())


def test_an_outage_ends_on_the_clusters_clock() -> None:
    async def run() -> None:
        async with AsyncCluster(controllers=()) as cluster:
            client = Client(cluster)
            await cluster.clock.stop()
            outage = await cluster.outage("10s")
            await cluster.clock.advance("9s")
            assert not outage.over
            await cluster.clock.advance("1s")
            await outage.wait()
            assert (await asyncio.to_thread(client.ask, "GET", MAPS)).status == 200

    asyncio.run(run())


def test_a_cluster_may_stop_during_an_outage() -> None:
    with Cluster(controllers=()) as cluster:
        cluster.outage("1ms")
    with Cluster(controllers=()) as cluster:
        cluster.outage()


@pytest.mark.parametrize("compact", [False, True])
def test_a_restart_keeps_objects_and_perhaps_the_history(cluster: Cluster, client: Client, compact: bool) -> None:
    version = client.create(f"before-{compact}".lower()).body["metadata"]["resourceVersion"]
    client.create(f"after-{compact}".lower())
    cluster.restart(compact=compact)
    [event, *_] = [json.loads(line) for line in client.watch(f"resourceVersion={version}").text.splitlines()]
    assert (event["type"], event["object"].get("reason")) == (("ERROR", "Expired") if compact else ("ADDED", None))


def test_a_read_only_server_says_that_etcd_is_full(cluster: Cluster, client: Client) -> None:
    with cluster.read_only() as fault:
        refused = client.create("never")
        assert (refused.status, refused.body["message"]) == (500, "etcdserver: mvcc: database space exceeded")
        assert client.ask("GET", MAPS).status == 200
        assert fault.hits == 1
    assert client.create("now").status == 201


def test_a_wrong_duration_begins_no_outage(cluster: Cluster, client: Client) -> None:
    with pytest.raises(ValueError, match="invalid duration"):
        cluster.outage("soon")
    assert client.ask("GET", MAPS).status == 200
    assert isinstance(cluster.outage("1ms"), faults.Outage)


@pytest.mark.parametrize(
    ("problem", "said"),
    [
        ("expired", "certificate has expired"),
        ("unknown", "unable to get local issuer certificate"),
        ("name", "IP address mismatch"),
    ],
)
def test_clients_refuse_a_bad_certificate(cluster: Cluster, client: Client, problem: Any, said: str) -> None:
    with cluster.bad_certificate(problem), pytest.raises(ssl.SSLCertVerificationError, match=said):
        client.ask("GET", MAPS)
    assert client.ask("GET", MAPS).status == 200


def test_there_is_no_other_bad_certificate(cluster: Cluster, client: Client) -> None:
    with pytest.raises(ValueError, match="a certificate is expired, unknown, name, not 'old'"):
        cluster.bad_certificate("old")  # type: ignore[arg-type]
    assert client.ask("GET", MAPS).status == 200
