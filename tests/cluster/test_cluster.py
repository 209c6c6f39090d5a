"""A Cluster as its users hold it: started, stopped, a hundred times over, side by side, in a thread or in a loop."""

import asyncio
import gc
import json
import os
import ssl
import stat
import threading
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from fakeapiserver import AsyncCluster, Cluster
from fakeapiserver.client import synchronous
from fakeapiserver.cluster.loop_thread import LoopThread


def get(cluster: Cluster | AsyncCluster, path: str) -> Any:
    """Sends a GET as the admin, with the CA checked."""
    context = ssl.create_default_context(cadata=cluster.ca.decode())
    request = urllib.request.Request(cluster.url + path, headers={"Authorization": f"Bearer {cluster.token}"})
    with urllib.request.urlopen(request, context=context, timeout=60) as answer:
        return json.load(answer)


def open_files() -> set[str]:
    """Returns the open files of this process, after a garbage collection."""
    gc.collect()
    found = set()
    for name in os.listdir("/proc/self/fd"):
        try:
            found.add(os.readlink(f"/proc/self/fd/{name}"))
        except FileNotFoundError:
            continue
    return {name for name in found if name.startswith("socket:") or "fakeapiserver" in name}


def test_answers_clients_that_trust_its_ca() -> None:
    with Cluster() as cluster:
        names = [item["metadata"]["name"] for item in get(cluster, "/api/v1/namespaces")["items"]]
    assert names == ["default", "kube-node-lease", "kube-public", "kube-system"]


def test_the_kubeconfig_is_private_and_gone_afterwards() -> None:
    with Cluster() as cluster:
        path = Path(cluster.kubeconfig)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert not path.parent.exists()


@pytest.mark.slow
def test_a_hundred_clusters_one_after_another_leave_nothing() -> None:
    with Cluster():
        pass  # what the first one loads stays
    files, threads = open_files(), threading.active_count()
    for _ in range(100):
        with Cluster():
            pass
    assert threading.active_count() <= threads
    assert open_files() <= files


@pytest.mark.slow
def test_twenty_side_by_side_know_nothing_of_each_other() -> None:
    clusters = [Cluster().start() for _ in range(20)]
    try:
        assert len({cluster.url for cluster in clusters}) == 20
        uids = {get(cluster, "/api/v1/namespaces/default")["metadata"]["uid"] for cluster in clusters}
        assert len(uids) == 20
        with pytest.raises(urllib.error.HTTPError, match="401"):
            get_with_token(clusters[0], clusters[1].token)
    finally:
        for cluster in clusters:
            cluster.stop()


def get_with_token(cluster: Cluster, token: str) -> None:
    context = ssl.create_default_context(cadata=cluster.ca.decode())
    request = urllib.request.Request(cluster.url + "/api", headers={"Authorization": f"Bearer {token}"})
    urllib.request.urlopen(request, context=context, timeout=60)


def test_runs_in_an_event_loop_without_a_thread() -> None:
    async def scenario() -> None:
        before = threading.active_count()
        async with Cluster() as cluster:
            assert threading.active_count() <= before
            found = await asyncio.to_thread(get, cluster, "/version")
            assert found["gitVersion"] == "v1.37.2"
        left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        assert left == []

    asyncio.run(scenario())


def test_a_timeout_has_a_message_and_a_time_limit_of_the_work_its_own() -> None:
    held = asyncio.Event()

    async def limited() -> None:
        held.set()
        await asyncio.sleep(0)
        raise TimeoutError("of its own")

    thread = LoopThread()
    with pytest.raises(
        TimeoutError, match=r"^not done within 0\.01 seconds: the machine is very busy, or something hangs$"
    ):
        thread.call(held.wait, 0.01)
    with pytest.raises(TimeoutError, match=r"^of its own$"):
        thread.call(limited)
    thread.stop()


def test_a_cluster_can_be_stopped_where_another_loop_runs() -> None:
    async def scenario() -> str:
        with Cluster(controllers=()) as cluster:
            return cluster.url

    assert asyncio.run(scenario()).startswith("https://")


def test_stopping_ends_open_watches_cleanly() -> None:
    cluster = Cluster().start()
    context = ssl.create_default_context(cadata=cluster.ca.decode())
    headers = {"Authorization": f"Bearer {cluster.token}"}
    request = urllib.request.Request(cluster.url + "/api/v1/namespaces?watch=true", headers=headers)
    answer = urllib.request.urlopen(request, context=context, timeout=60)
    first = json.loads(answer.readline())
    assert first["type"] == "ADDED"
    stopper = threading.Thread(target=cluster.stop)
    stopper.start()
    rest = answer.read()  # to a clean end of the chunked body: http.client raises IncompleteRead otherwise
    stopper.join()
    assert rest.count(b'"ADDED"') == 3


@pytest.mark.parametrize(
    ("use", "problem"),
    [
        (lambda: Cluster().url, "not running"),
    ],
)
def test_misuse_says_what_to_do(use: Any, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        use()


def test_a_port_in_use_is_one_clear_sentence() -> None:
    with Cluster() as cluster:
        port = int(cluster.url.rpartition(":")[2])
        with pytest.raises(
            OSError,
            match=rf"^port {port} is in use; choose another with --secure-port \(port= of a Cluster\), or 0 for a free one$",
        ):
            Cluster(port=port).start()


class TestFixtures:
    """The pytest plugin, used by its own tests."""

    def test_fake_cluster_sets_kubeconfig(self, fake_cluster: Cluster) -> None:
        assert os.environ["KUBECONFIG"] == fake_cluster.kubeconfig

    def test_fake_kubeconfig_is_a_path(self, fake_kubeconfig: str) -> None:
        assert json.loads(Path(fake_kubeconfig).read_text())["kind"] == "Config"

    @pytest.mark.fake_cluster(authorization_mode=["AlwaysDeny"])
    def test_the_marker_takes_options(self, fake_cluster: Cluster) -> None:
        # the admin is in system:masters, which no mode can lock out
        assert get(fake_cluster, "/api/v1/namespaces")["kind"] == "NamespaceList"

    @pytest.mark.fake_cluster(controllers=("*",))
    @pytest.mark.fake_cluster(controllers=(), nodes=1)
    def test_of_several_markers_the_nearer_counts(self, fake_cluster: Cluster) -> None:
        assert fake_cluster.controllers["namespace"] == "off"
        assert fake_cluster.nodes is not None


def test_a_pod_can_be_made_at_once_and_controllers_see_to_the_rest() -> None:
    with Cluster() as cluster, synchronous.connect(cluster.kubeconfig) as client:
        pod = {"metadata": {"name": "web"}, "spec": {"containers": [{"name": "web", "image": "web"}]}}
        assert client.resource("pods", "default").create(pod)["spec"]["serviceAccountName"] == "default"
        client.resource("namespaces").create({"metadata": {"name": "shop"}})
        cluster.settle()
        assert [found["metadata"]["name"] for found in client.resource("configmaps", "shop").list()["items"]] == [
            "kube-root-ca.crt"
        ]


def test_without_controllers_nothing_happens_by_itself() -> None:
    with Cluster(controllers=()) as cluster, synchronous.connect(cluster.kubeconfig) as client:
        client.resource("namespaces").create({"metadata": {"name": "shop"}})
        assert client.resource("serviceaccounts", "shop").list()["items"] == []
        pod = {"metadata": {"name": "web"}, "spec": {"containers": [{"name": "web", "image": "web"}]}}
        # without the controller that creates service accounts, admission doesn't require one
        client.resource("pods", "shop").create(pod)
