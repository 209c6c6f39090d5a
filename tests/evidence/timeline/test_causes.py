"""The chain of causes, from a user's write over reconciles to the writes of controllers."""

from typing import Any, Final

import pytest

from fakeapiserver import Cluster
from fakeapiserver.apimachinery.gvk import GroupVersionKind
from fakeapiserver.controller_runtime import builder
from fakeapiserver.controller_runtime.manager import Manager
from fakeapiserver.controller_runtime.reconcile import Request, Result
from tests.evidence.timeline.recorded import Record, of_type, recorded, records

CONFIG_MAP: Final = GroupVersionKind("", "v1", "ConfigMap")
DEPLOYMENT: Final = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "c", "image": "nginx"}]},
        },
    },
}


def cause_of(everything: list[Record], state: Record) -> list[str]:
    """The causes of a state, back to a request that no reconcile sent: who wrote what."""
    (request,) = of_type(everything, "request", seq=state["by"])
    line = f"{request['client']} {request['verb']} {state['r']}"
    if not request["reconcile"]:
        return [line]
    (reconcile,) = of_type(everything, "reconcile", id=request["reconcile"])
    first = min(reconcile["causes"])
    (cause,) = of_type(everything, "state", rev=first)
    return [line, f"{reconcile['controller']} {reconcile['key'].partition('-')[0]}", *cause_of(everything, cause)]


def test_pods_lead_back_to_the_deployment() -> None:
    with recorded(controllers=("deployment", "replicaset", "serviceaccount")) as cluster:
        cluster.apply(DEPLOYMENT)
        cluster.settle()
        everything = records(cluster)
    pods = of_type(everything, "state", r="pods", op="create")
    assert len(pods) == 2
    for pod in pods:
        assert cause_of(everything, pod) == [
            "replicaset-controller create pods",
            "replicaset-controller default/web",
            "deployment-controller create replicasets.apps",
            "deployment-controller default/web",
            "the test patch deployments.apps",
        ]


class Copier:
    """Makes `copy` of `original`, fails once, and asks to be called again."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._failures = 1

    async def reconcile(self, request: Request) -> Result:
        if request.name != "original":
            return Result()
        if self._failures:
            self._failures -= 1
            raise ValueError("not yet")
        copy = {"metadata": {"name": "copy", "namespace": "default"}, "apiVersion": "v1", "kind": "ConfigMap"}
        await self._client.create(copy)
        return Result(requeue_after=60)


def test_an_operator_of_the_bundled_runtime_has_causes() -> None:
    def setup(manager: Manager) -> None:
        builder.controller_managed_by(manager).named("copier").for_(CONFIG_MAP).complete(Copier(manager.client))

    with recorded(controllers=("none",)) as cluster, cluster.operator(setup, name="my-operator"):
        cluster.apply(
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "original", "namespace": "default"}}
        )
        cluster.settle()
        everything = records(cluster)
    original, copy = of_type(everything, "state", r="configmaps", op="create", ns="default")
    (created,) = of_type(everything, "request", seq=copy["by"])
    assert (created["client"], created["bundled"], created["changed"]) == ("my-operator", False, True)
    failed, done = of_type(everything, "reconcile", key="default/original")
    assert (failed["causes"], failed["after"], failed["error"]) == ([original["rev"]], 0, "not yet")
    assert failed["again"] == pytest.approx(0.005, abs=0.004)
    assert (done["causes"], done["after"], done["error"], done["again"]) == ([], failed["id"], "", 60.0)
    assert done["id"] == created["reconcile"]


@pytest.mark.parametrize("mode", ["off", "step"])
def test_a_controller_that_is_started_again_is_recorded(mode: Any) -> None:
    with recorded(controllers=("deployment", "serviceaccount")) as cluster:
        cluster.controllers["deployment"] = mode
        cluster.controllers["deployment"] = "run"
        cluster.apply(DEPLOYMENT)
        cluster.settle()
        everything = records(cluster)
    changes = of_type(everything, "controller", name="deployment-controller")
    assert [change["mode"] for change in changes] == [mode, "run"]
    assert of_type(everything, "reconcile", controller="deployment-controller")


def test_a_queue_is_recorded_when_it_has_changed(cluster: Cluster) -> None:
    cluster.apply(DEPLOYMENT)
    cluster.settle()
    queues = of_type(records(cluster), "queue", controller="deployment-controller")
    assert queues
    assert {type(queue[name]) for queue in queues for name in ("ready", "delayed", "processing")} == {int}


@pytest.fixture
def cluster() -> Any:
    with recorded(controllers=("deployment", "serviceaccount")) as cluster:
        yield cluster
