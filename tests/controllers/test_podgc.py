"""Pods that no kubelet or controller manages any more."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import pytest

from fakeapiserver.component_helpers.configuration import KubeControllerManagerConfiguration
from fakeapiserver.component_helpers.objects import NODES, PODS
from fakeapiserver.controllers.podgc import PodGCController
from fakeapiserver.server import local
from tests.controllers.harness import Harness, run

CONTROLLER = "pod-garbage-collector-controller"
FINALIZER = "example.com/keep"


def pod(name: str, *, node: str = "", phase: str = "Running", **metadata: Any) -> dict[str, Any]:
    spec: dict[str, Any] = {"containers": [{"name": "c", "image": "nginx"}]}
    if node:
        spec["nodeName"] = node
    return {"metadata": {"name": name, **metadata}, "spec": spec, "status": {"phase": phase}}


def node(ready: str = "True") -> dict[str, Any]:
    return {"metadata": {"name": "n1"}, "status": {"conditions": [{"type": "Ready", "status": ready}]}}


def test_a_pod_on_a_node_that_is_gone_fails_and_goes_when_the_node_was_missing_long_enough() -> None:
    async def scenario(cluster: Harness) -> None:
        await cluster.create(NODES, node(), "")
        ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        await cluster.create(PODS, {**pod("web", node="n1", finalizers=[FINALIZER]), "status": ready})
        await cluster.create(PODS, pod("done", node="n1", phase="Succeeded"))
        await cluster.of(NODES, "").delete("n1")
        await cluster.settle()
        await cluster.advance(39)
        assert await cluster.names(PODS) == ["done", "web"]
        await cluster.advance(41)
        assert await cluster.names(PODS) == ["web"]
        found = await cluster.get(PODS, "web")
        assert found["status"]["phase"] == "Failed"
        known, condition = found["status"]["conditions"]
        assert known["type"] == "Ready"
        assert {key: condition[key] for key in ("type", "status", "reason", "message", "observedGeneration")} == {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "DeletionByPodGC",
            "message": "PodGC: node no longer exists",
            "observedGeneration": 1,
        }

    run(scenario, CONTROLLER)


def test_a_node_that_comes_back_in_time_keeps_its_pods() -> None:
    async def scenario(cluster: Harness) -> None:
        await cluster.create(PODS, pod("web", node="n1"))
        await cluster.advance(30)
        await cluster.create(NODES, node(), "")
        await cluster.advance(120)
        assert await cluster.names(PODS) == ["web"]

    run(scenario, CONTROLLER)


def test_a_pod_that_is_being_deleted_and_was_never_bound_goes() -> None:
    async def scenario(cluster: Harness) -> None:
        await cluster.create(PODS, pod("web", phase="Pending", finalizers=[FINALIZER]))
        await cluster.of(PODS).delete("web")
        await cluster.settle()
        await cluster.advance(21)
        assert (await cluster.get(PODS, "web"))["status"]["phase"] == "Failed"
        await cluster.of(PODS).patch("web", {"metadata": {"finalizers": None}})
        assert await cluster.names(PODS) == []

    run(scenario, CONTROLLER)


@pytest.mark.parametrize(
    ("ready", "taints", "goes"),
    [
        ("False", ["node.kubernetes.io/out-of-service"], True),
        ("True", ["node.kubernetes.io/out-of-service"], False),
        ("False", ["node.kubernetes.io/unreachable"], False),
    ],
)
def test_a_pod_that_is_being_deleted_goes_at_once_from_a_node_out_of_service(
    ready: str, taints: list[str], goes: bool
) -> None:
    async def scenario(cluster: Harness) -> None:
        await cluster.create(NODES, node(ready), "")
        await cluster.create(PODS, pod("web", node="n1"))
        await cluster.of(PODS).delete("web")
        await cluster.of(NODES, "").patch(
            "n1", {"spec": {"taints": [{"key": key, "effect": "NoExecute"} for key in taints]}}
        )
        await cluster.settle()
        await cluster.advance(21)
        assert (await cluster.names(PODS) == []) == goes

    run(scenario, CONTROLLER)


def test_of_too_many_that_have_ended_evicted_ones_go_first_then_the_oldest(monkeypatch: pytest.MonkeyPatch) -> None:
    # what the manager that a cluster makes is configured with has no flag there
    configured = partial(KubeControllerManagerConfiguration, terminated_pod_gc_threshold=2)
    monkeypatch.setattr(local, "KubeControllerManagerConfiguration", configured)

    async def scenario(cluster: Harness) -> None:
        for name, status in {
            "a": {"phase": "Succeeded"},
            "b": {"phase": "Failed"},
            "c": {"phase": "Failed", "reason": "Evicted"},
            "d": {"phase": "Succeeded"},
            "e": {"phase": "Running"},
        }.items():
            await cluster.create(PODS, {**pod(name), "status": status})
        await cluster.advance(21)
        assert await cluster.names(PODS) == ["b", "d", "e"]

    run(scenario, CONTROLLER)


def test_no_reconcile_runs_while_there_is_nothing_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[None] = []
    original: Callable[..., Awaitable[Any]] = PodGCController.reconcile

    async def counted(self: PodGCController, request: Any) -> Any:
        looks.append(None)
        return await original(self, request)

    monkeypatch.setattr(PodGCController, "reconcile", counted)

    async def scenario(cluster: Harness) -> None:
        await cluster.create(NODES, node(), "")
        await cluster.create(PODS, pod("web", node="n1"))
        before = len(looks)
        await cluster.advance(600)
        assert len(looks) == before

    run(scenario, CONTROLLER)
