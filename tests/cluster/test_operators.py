"""`cluster.operator(setup)`: an operator of the bundled runtime in the cluster's event loop, by its clock."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fakeapiserver import AsyncCluster, Cluster
from fakeapiserver.client.errors import StatusError
from fakeapiserver.controller_manager.manager import NotSettled
from fakeapiserver.controller_runtime import Client, Manager, Request, Result, controller_managed_by, gvk
from fakeapiserver.testing.assertions import assert_unchanged
from tests.cluster.test_seed import _RANDOM

CONFIG_MAP, NAMESPACE = gvk("v1", "ConfigMap"), gvk("v1", "Namespace")
ROOT = Path(__file__).parents[2]


class Welcome:
    """Puts a ConfigMap into each namespace, and counts in it once an hour."""

    def __init__(self, manager: Manager, period: float = 3600.0) -> None:
        self.client: Client = manager.client
        self.clock = manager.clock
        self.period = period

    async def reconcile(self, request: Request) -> Result:
        metadata = {"name": "welcome", "namespace": request.name}
        hours = int((self.clock.now() - 1767225600) // 3600)
        data = {"hours": str(hours)}
        await self.client.apply(
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}, force=True
        )
        return Result(requeue_after=self.period)


def setup(manager: Manager) -> None:
    controller_managed_by(manager).for_(NAMESPACE).owns(CONFIG_MAP).complete(Welcome(manager))


def namespace(name: str) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


@pytest.fixture(params=["controllers", "no controllers"])
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    controllers = ("*",) if request.param == "controllers" else ()
    with Cluster(stopped_at="2026-01-01T00:00:00Z", seed=1, controllers=controllers) as cluster:
        yield cluster


def welcome(cluster: Cluster, name: str = "shop") -> str:
    return cluster.get("cm", "welcome", name)["data"]["hours"]


def test_settle_waits_for_it(cluster: Cluster) -> None:
    with cluster.operator(setup):
        for number in range(5):
            cluster.apply(namespace(f"shop-{number}"))
        cluster.settle()
        assert [welcome(cluster, f"shop-{number}") for number in range(5)] == ["0"] * 5


def test_it_runs_by_the_clusters_clock(cluster: Cluster) -> None:
    with cluster.operator(setup):
        cluster.apply(namespace("shop"))
        cluster.settle()
        cluster.clock.advance("3h")
        assert welcome(cluster) == "3"
        found = cluster.eventually(lambda: welcome(cluster) == "5", "4h")
        assert found
        assert cluster.clock.now() - 1767225600 == pytest.approx(5 * 3600, abs=5)


def test_its_requests_are_those_of_a_client(cluster: Cluster) -> None:
    with cluster.operator(setup, name="welcome-operator"):
        cluster.apply(namespace("shop"))
        cluster.settle()
    requests = cluster.requests.by(user_agent="welcome-operator")
    assert requests["patch configmaps shop/welcome"].count >= 1
    assert requests["watch namespaces"].count == 1
    assert {entry.user for entry in requests} == {"kubernetes-admin"}
    [entry] = cluster.get("cm", "welcome", "shop")["metadata"]["managedFields"]
    assert entry["manager"] == "welcome-operator"


def test_faults_strike_it_and_settle_waits_for_the_next_try(cluster: Cluster) -> None:
    with cluster.operator(setup), cluster.faults.add(verb="patch", resource="configmaps", status=500, times=4) as fault:
        cluster.apply(namespace("shop"))
        cluster.settle()
        assert fault.hits == 4
        assert welcome(cluster) == "0"


def test_faults_strike_its_open_watches(cluster: Cluster) -> None:
    with cluster.operator(setup):
        cluster.settle()
        with cluster.faults.add(verb="watch", resource="namespaces", coalesce=600.0) as fault:
            cluster.apply(namespace("shop"))
            cluster.settle()
            assert fault.hits == 1
            with pytest.raises(StatusError):
                welcome(cluster)
        cluster.settle()
        assert welcome(cluster) == "0"


def test_it_is_a_user_with_that_users_permissions() -> None:
    with Cluster() as cluster:
        cluster.settle()
        with cluster.operator(setup, user="default/default") as operator:
            with pytest.raises(NotSettled):
                cluster.settle(0.5)
            assert operator.manager.busy
        assert "system:serviceaccount:default:default" in str(cluster.rbac.denied[0])


def test_a_restart_causes_no_drift(cluster: Cluster) -> None:
    with cluster.operator(setup) as operator:
        cluster.apply(namespace("shop"))
        cluster.settle()
        first = operator.manager
        with assert_unchanged(cluster):
            operator.restart()
            cluster.settle()
        assert operator.manager is not first


def test_it_ends_with_its_block_or_the_cluster() -> None:
    with Cluster(controllers=()) as cluster:
        operator = cluster.operator(setup)
        with pytest.raises(ValueError, match="this operator hasn't been started"):
            _ = operator.manager
        with operator:
            cluster.settle()
            with pytest.raises(ValueError, match="this operator is running already"):
                operator.start()
        cluster.apply(namespace("late"))
        cluster.settle()
        with pytest.raises(StatusError):
            welcome(cluster, "late")
        operator.start()
        cluster.settle()
        assert welcome(cluster, "late")


def test_a_setup_that_fails() -> None:
    def wrong(manager: Manager) -> None:
        raise ZeroDivisionError

    with Cluster(controllers=()) as cluster:
        operator = cluster.operator(wrong)
        with pytest.raises(ZeroDivisionError):
            operator.start()
        cluster.settle()


def test_in_an_event_loop() -> None:
    async def scenario() -> None:
        async with AsyncCluster(controllers=()) as cluster, cluster.operator(setup):
            await cluster.apply(namespace("shop"))
            await cluster.settle()
            assert await cluster.get("cm", "welcome", "shop")

    asyncio.run(scenario())


SCENARIO = """
import sys
from fakeapiserver import Cluster
from tests.cluster.test_operators import namespace, setup

with Cluster(seed=7, stopped_at="2026-01-01T00:00:00Z", nodes=1) as cluster:
    cluster.settle()
    with cluster.faults.add(verb="patch", status=409, probability=0.3), cluster.operator(setup) as operator:
        cluster.settle()
        cluster.apply([namespace(f"shop-{number}") for number in range(5)])
        cluster.settle()
        cluster.delete("ns/shop-1")  # advance comes to rest before it moves the time
        cluster.clock.advance("5h")
        operator.restart()
        cluster.settle()
    print(cluster.requests.all().transcript())
    cluster.save(sys.argv[1])
"""


def test_two_runs_are_byte_identical(tmp_path: Path) -> None:
    results = []
    for hash_seed in ("1", "2"):
        path = tmp_path / f"{hash_seed}.json"
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-c", SCENARIO, str(path)]
        ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stderr
        results.append((ran.stdout, _RANDOM.sub("", path.read_text())))
    assert results[0][0].count("409 Conflict") > 0 or "fault" in results[0][0]
    assert results[0] == results[1]
