"""Tests how a test uses a cluster's controllers and its clock, in Python and over HTTP."""

import json
import time
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest

from fakeapiserver import Cluster
from tests.plain_client import Client

ACCOUNTS = "serviceaccount-controller"


class Asking(Client):
    """A client with the requests that these tests share."""

    def refusal(self, method: str, path: str, body: object = None) -> tuple[int, str]:
        with pytest.raises(urllib.error.HTTPError) as raised:
            self.ask(method, path, body)
        return raised.value.code, json.loads(raised.value.read())["message"]

    def accounts(self, namespace: str) -> list[str]:
        found = self.ask("GET", f"/api/v1/namespaces/{namespace}/serviceaccounts")
        return [account["metadata"]["name"] for account in found["items"]]

    def namespace(self, name: str) -> None:
        self.ask("POST", "/api/v1/namespaces", {"metadata": {"name": name}})


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(controllers=(ACCOUNTS,)) as found:
        found.settle()
        yield found


@pytest.fixture
def client(cluster: Cluster) -> Iterator[Asking]:
    yield Asking(cluster)
    cluster.controllers[ACCOUNTS] = "run"
    cluster.clock.start()


def test_a_settled_cluster_has_done_what_follows_from_each_write(cluster: Cluster, client: Asking) -> None:
    client.namespace("one")
    cluster.settle()
    assert client.accounts("one") == ["default"]


def test_a_test_steps_a_controller(cluster: Cluster, client: Asking) -> None:
    cluster.controllers[ACCOUNTS] = "step"
    assert cluster.controllers[ACCOUNTS] == "step"
    client.namespace("two")
    cluster.settle()
    assert client.accounts("two") == []
    assert cluster.controllers.step(ACCOUNTS) == 1
    assert client.accounts("two") == ["default"]


def test_the_same_over_http(cluster: Cluster, client: Asking) -> None:
    control = "/fakeapiserver/controllers"
    assert client.ask("PUT", f"{control}/{ACCOUNTS}", {"mode": "step"})["mode"] == "step"
    assert {"name": ACCOUNTS, "mode": "step", "failure": ""} in client.ask("GET", control)
    client.namespace("three")
    client.ask("POST", "/fakeapiserver/settle")
    assert client.accounts("three") == []
    assert client.ask("POST", f"{control}/{ACCOUNTS}/step") == {"requests": 1}
    assert client.accounts("three") == ["default"]


@pytest.mark.parametrize(
    ("method", "path", "body", "refusal"),
    [
        ("PUT", "controllers/wizard", {"mode": "run"}, (400, '"wizard" is not in the list of known controllers')),
        (
            "PUT",
            "controllers/service-lb-controller",
            {"mode": "run"},
            (
                400,
                "service-lb-controller isn't there: belongs to a cloud provider, and kube-controller-manager 1.37 doesn't have it",
            ),
        ),
        (
            "POST",
            f"controllers/{ACCOUNTS}/step",
            None,
            (400, f"{ACCOUNTS} is run: only a controller in mode step is stepped"),
        ),
        ("PUT", "clock", {"advance": "soon"}, (400, 'time: invalid duration "soon"')),
        ("PUT", "clock", {"advance": "-1s"}, (400, "time goes forward only, not by -1 s")),
    ],
)
def test_invalid_requests_are_reported(
    client: Asking, method: str, path: str, body: object, refusal: tuple[int, str]
) -> None:
    assert client.refusal(method, f"/fakeapiserver/{path}", body) == refusal


def test_stamps_follow_the_clock(cluster: Cluster, client: Asking) -> None:
    cluster.clock.stop()
    before = cluster.clock.now()
    cluster.clock.advance("24h")
    assert cluster.clock.now() - before == pytest.approx(24 * 3600)
    client.namespace("tomorrow")
    stamp = client.ask("GET", "/api/v1/namespaces/tomorrow")["metadata"]["creationTimestamp"]
    assert stamp == time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(cluster.clock.now()))
    assert client.ask("GET", "/fakeapiserver/clock") == {"now": stamp, "stopped": True, "next_due": None}


def test_time_is_moved_over_http(cluster: Cluster, client: Asking) -> None:
    before = cluster.clock.now()
    assert client.ask("PUT", "/fakeapiserver/clock", {"stopped": True, "advance": "1h"})["stopped"]
    assert 3600 <= cluster.clock.now() - before < 3660


def test_a_cluster_without_controllers_says_so() -> None:
    with Cluster(controllers=("none",)) as cluster:
        cluster.settle()
        with pytest.raises(ValueError, match="this cluster runs no controllers"):
            _ = cluster.controllers
        assert Asking(cluster).refusal("GET", "/fakeapiserver/controllers")[0] == 404


def test_what_controllers_ask_is_nobodys_traffic() -> None:
    with Cluster(controllers=("*",), nodes=1) as cluster:
        Asking(cluster).namespace("shop")
        cluster.settle()
        assert cluster.rbac.denied == []
        [role] = cluster.rbac.used()
        assert role["rules"] == [{"apiGroups": [""], "resources": ["namespaces"], "verbs": ["create"]}]


def test_nodes_and_their_scripts_over_http() -> None:
    control = "/fakeapiserver"
    pods = "/api/v1/namespaces/default/pods"
    with Cluster(nodes=2) as cluster:
        client = Asking(cluster)
        cluster.settle()
        client.ask("POST", f"{control}/scripts", {"selector": "app=job", "runs_for": 0, "exit_codes": [3]})
        probes = {"liveness": {"after": 5, "message": "no"}}
        client.ask("POST", f"{control}/scripts", {"name": "other", "probes": probes, "pre_stop": {"seconds": 3}})
        metadata, container = {"name": "p", "labels": {"app": "job"}}, {"name": "c", "image": "x"}
        client.ask("POST", pods, {"metadata": metadata, "spec": {"containers": [container], "restartPolicy": "Never"}})
        cluster.settle()
        assert client.ask("GET", f"{pods}/p")["status"]["phase"] == "Failed"
        assert client.ask("PUT", f"{control}/nodes/node-2", {"runs": False}) == {"name": "node-2", "runs": False}
        assert client.ask("GET", f"{control}/nodes") == [
            {"name": "node-1", "runs": True},
            {"name": "node-2", "runs": False},
        ]
        assert client.refusal("PUT", f"{control}/nodes/node-9", {"runs": False}) == (
            400,
            "there is no simulated node node-9: they are node-1, node-2",
        )


def test_an_hour_in_which_nothing_happens_is_mostly_skipped() -> None:
    """Counted, not timed: upstream's nodes renew their leases 360 times each; no controller may consider a node lost meanwhile."""
    with Cluster(nodes=3) as cluster:
        client = Client(cluster)
        leases, nodes = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases", "/api/v1/nodes"
        cluster.clock.stop()
        cluster.settle()
        before = client.ask("GET", leases)["metadata"]["resourceVersion"]
        cluster.clock.advance("1h")
        found = client.ask("GET", leases)
        # 384 writes on a quiet machine; how many timers come together depends on what else runs
        assert int(found["metadata"]["resourceVersion"]) - int(before) < 3 * 360 / 2
        at_standstill = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(cluster.clock.now() - 40))
        assert all(lease["spec"]["renewTime"] > at_standstill for lease in found["items"])
        for node in client.ask("GET", nodes)["items"]:
            [ready] = [row for row in node["status"]["conditions"] if row["type"] == "Ready"]
            assert ready["status"] == "True"
            assert not node["spec"].get("taints")
