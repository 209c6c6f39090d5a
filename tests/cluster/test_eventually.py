"""`cluster.eventually` and `cluster.settle(with_=…)`."""

import asyncio
import http.client
import itertools
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

import pytest

from fakeapiserver import AsyncCluster, Cluster
from fakeapiserver.client.errors import StatusError
from fakeapiserver.controller_manager.manager import NotSettled
from fakeapiserver.controller_runtime import Manager, Request, Result, controller_managed_by, gvk
from fakeapiserver.transport.kubeconfigs import clientcmd
from tests.cluster.test_faults import MAPS, Client

JOB = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "nightly"},
    "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "nightly"}]}}},
}


def config_map(name: str) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}


@contextmanager
def open_watch(cluster: Cluster, agent: str = "test") -> Iterator[None]:
    """A watch of ConfigMaps whose client reads nothing but the head."""
    host, _, port = cluster.url.removeprefix("https://").partition(":")
    context = ssl.create_default_context(cadata=cluster.ca.decode())
    with closing(http.client.HTTPSConnection(host, int(port), context=context)) as connection:
        headers = {"Authorization": f"Bearer {cluster.token}", "User-Agent": agent}
        connection.request("GET", f"{MAPS}?watch=1", headers=headers)
        connection.getresponse()
        yield


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(controllers=()) as found:
        yield found


class TestEventually:
    def test_returns_what_the_check_returns(self, cluster: Cluster) -> None:
        assert cluster.eventually(lambda: 3) == 3
        assert cluster.eventually(lambda: None) is None

    def test_wakes_at_a_write(self, cluster: Cluster) -> None:
        threading.Timer(0.05, lambda: cluster.apply(config_map("late"))).start()
        began = time.monotonic()
        found = cluster.eventually(lambda: cluster.get("cm/late"))
        assert found["metadata"]["name"] == "late"
        assert time.monotonic() - began < 5

    def test_wakes_at_the_request_of_a_client(self, cluster: Cluster) -> None:
        mark = cluster.requests.mark()
        threading.Timer(0.05, lambda: Client(cluster).ask("GET", MAPS)).start()
        began = time.monotonic()
        assert cluster.eventually(lambda: cluster.requests.since(mark)["list configmaps"]).count == 1
        assert time.monotonic() - began < 5

    def test_raises_the_last_failure_when_the_time_is_up(self, cluster: Cluster) -> None:
        def check() -> None:
            assert 1 + 1 == 3, "sums"

        with pytest.raises(AssertionError, match="sums") as failed:
            cluster.eventually(check, "50ms")
        assert failed.value.__notes__ == ["This didn't hold within 0.05 seconds of time."]
        with pytest.raises(StatusError, match='configmaps "none" not found'):
            cluster.eventually(lambda: cluster.get("cm/none"), 0)
        with pytest.raises(AssertionError, match=r"<lambda> returned \[\]"):
            cluster.eventually(lambda: cluster.list("pods"), 0)

    def test_other_errors_are_raised_at_once(self, cluster: Cluster) -> None:
        began = time.monotonic()
        with pytest.raises(ZeroDivisionError):
            cluster.eventually(lambda: 1 / 0)
        assert time.monotonic() - began < 5

    @pytest.mark.parametrize("timeout", ["soon", -1, None])
    def test_bad_timeouts(self, cluster: Cluster, timeout: object) -> None:
        with pytest.raises(ValueError, match="timeout must be "):
            cluster.eventually(lambda: True, timeout)  # type: ignore[arg-type]

    def test_a_coroutine_function_needs_the_other_face(self, cluster: Cluster) -> None:
        async def check() -> None: ...

        with pytest.raises(ValueError, match="the check is a coroutine function"):
            cluster.eventually(check)

    def test_moves_a_clock_that_stands_still(self) -> None:
        with Cluster(nodes=1) as cluster:
            cluster.nodes.script(selector="job-name=nightly", runs_for=3600, exit_codes=(0,))
            cluster.clock.stop()
            cluster.apply(JOB)
            before = cluster.clock.now()
            with pytest.raises(LookupError) as failed:
                cluster.eventually(lambda: cluster.get("job/nightly")["status"]["completionTime"], "10m")
            assert failed.value.__notes__ == [
                "This didn't hold within 600 seconds of the cluster's time, which was moved on."
            ]
            assert cluster.clock.now() == pytest.approx(before + 600)
            assert cluster.eventually(lambda: cluster.get("job/nightly")["status"]["completionTime"], "2h")
            assert cluster.clock.now() < before + 4000

    def test_moves_no_clock_while_a_client_watches(self) -> None:
        with Cluster(controllers=()) as cluster:
            cluster.clock.stop()
            before = cluster.clock.now()
            with open_watch(cluster), pytest.raises(AssertionError):
                cluster.eventually(lambda: False, 0.2)
            assert cluster.clock.now() == before

    def test_coroutine_functions(self) -> None:
        async def scenario() -> None:
            async with AsyncCluster(controllers=()) as cluster:

                async def later() -> None:
                    await cluster.apply(config_map("late"))

                async def check() -> dict[str, object]:
                    return await cluster.get("cm/late")

                task = asyncio.ensure_future(later())
                assert (await cluster.eventually(check))["kind"] == "ConfigMap"
                await task

        asyncio.run(scenario())


class TestSettleWithAnOperator:
    def test_waits_until_it_sends_no_request_for_a_while(self, cluster: Cluster) -> None:
        client = Client(cluster)
        client.ask("GET", MAPS, agent="busy-operator/1.0")
        mark = cluster.requests.mark()

        def work() -> None:
            for number in range(3):
                time.sleep(0.05)
                client.ask("POST", MAPS, config_map(f"made-{number}"), agent="busy-operator/1.0")

        thread = threading.Thread(target=work)
        thread.start()
        cluster.settle(with_="busy-operator*", quiet=0.2)
        cluster.requests.since(mark)["create configmaps"].assert_count(3)
        thread.join()

    def test_waits_until_it_has_been_seen(self, cluster: Cluster) -> None:
        threading.Timer(0.1, lambda: Client(cluster).ask("GET", MAPS, agent="starting-operator")).start()
        cluster.settle(with_="starting-operator", quiet=0.02)
        assert cluster.requests.by(user_agent="starting-operator").count == 1
        with pytest.raises(
            NotSettled, match=r"no client 'my-oprator\*' has sent a request yet \(others: .*starting-op"
        ):
            cluster.settle(0.1, with_="my-oprator*", quiet=0.01)

    def test_requests_in_flight_and_of_others(self, cluster: Cluster) -> None:
        client = Client(cluster)
        client.ask("GET", MAPS, agent="slow-operator")
        with cluster.faults.add(verb="list", resource="configmaps", latency=0.3, user_agent="slow-operator"):
            thread = threading.Thread(target=lambda: client.ask("GET", MAPS, agent="slow-operator"))
            thread.start()
            mark = cluster.requests.mark()
            while not cluster._server.api.request_log.in_flight:  # type: ignore[union-attr]
                time.sleep(0.001)
            cluster.settle(with_=["slow-operator"], quiet=0.02)
            assert cluster.requests.since(mark).by(user_agent="slow-operator").count == 1
            thread.join()

    def test_leader_election_does_not_count(self, cluster: Cluster) -> None:
        client, stopped = Client(cluster), threading.Event()
        client.ask("GET", MAPS, agent="leader")
        leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases"

        def renew() -> None:
            while not stopped.wait(0.02):
                client.ask("GET", leases, agent="leader")

        thread = threading.Thread(target=renew)
        thread.start()
        cluster.settle(5, with_="leader", quiet=0.2)
        stopped.set()
        thread.join()

    @pytest.mark.parametrize(
        ("data", "at_rest"),
        [
            (lambda number: {"state": "done"}, True),
            (lambda number: {"state": "done", "seen": f"2026-01-01T00:00:{number % 60:02}Z"}, True),
            (lambda number: {"state": "odd" if number % 2 else "even"}, False),
        ],
        ids=["the-same", "a-time", "to-and-fro"],
    )
    def test_an_operator_that_writes_the_same_again_and_again_is_at_rest(
        self, cluster: Cluster, data: Callable[[int], dict[str, str]], at_rest: bool
    ) -> None:
        client, stopped, written = Client(cluster), threading.Event(), threading.Event()
        client.ask("POST", MAPS, config_map("polled"), agent="polling-operator")

        def poll() -> None:
            for number in itertools.count():
                client.ask(
                    "PUT", f"{MAPS}/polled", {**config_map("polled"), "data": data(number)}, agent="polling-operator"
                )
                written.set()
                if stopped.wait(0.02):
                    return

        thread = threading.Thread(target=poll)
        thread.start()
        written.wait()
        try:
            if at_rest:
                cluster.settle(30, with_="polling-operator", quiet=0.3)
            else:
                with pytest.raises(NotSettled):
                    cluster.settle(1, with_="polling-operator", quiet=0.3)
        finally:
            stopped.set()
            thread.join()

    @pytest.mark.parametrize("with_", ["", 3, [None]])
    def test_bad_operators(self, cluster: Cluster, with_: object) -> None:
        with pytest.raises(ValueError, match="with_ is the user agent, user or connection of an operator"):
            cluster.settle(with_=with_)  # type: ignore[arg-type]

    def test_a_manager_of_this_process(self) -> None:
        async def scenario() -> None:
            async with AsyncCluster(controllers=()) as cluster:
                manager = Manager(clientcmd.load([cluster.kubeconfig]))

                class Copies:
                    async def reconcile(self, request: Request) -> Result:
                        await asyncio.sleep(0.05)
                        if not request.name.startswith("copy-"):
                            await cluster.apply(config_map(f"copy-{request.name}"))
                        return Result()

                controller_managed_by(manager).for_(gvk("v1", "ConfigMap")).complete(Copies())
                task = asyncio.ensure_future(manager.run())
                await cluster.settle(with_=manager, quiet=0.05)
                for number in range(5):
                    await cluster.apply(config_map(f"map-{number}"))
                await cluster.settle(with_=manager, quiet=0.05)
                names = [found["metadata"]["name"] for found in await cluster.list("configmaps")]
                assert sum("map-" in name for name in names) == 10
                task.cancel()
                await asyncio.wait((task,))

        asyncio.run(scenario())
