"""Replica sets, and replication controllers, which are run by the same: as many pods as are wanted."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from fakeapiserver.component_helpers.objects import (
    PODS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    controller_of,
    is_terminating,
)
from tests.controllers.harness import Harness, Object
from tests.controllers.harness import run as run_with
from tests.controllers.workloads import make_ready, pods, selecting, template


def run(scenario: Callable[[Harness], Awaitable[None]]) -> None:
    run_with(scenario, "replicaset-controller", "replicationcontroller-controller")


def replica_set(replicas: int = 3, **spec: Any) -> Object:
    spec = {"replicas": replicas, "selector": selecting(), "template": template(), **spec}
    return {"metadata": {"name": "web"}, "spec": spec}


def orphan(name: str, app: str = "web") -> Object:
    return {**template(app=app), "metadata": {"name": name, "labels": {"app": app}}}


async def status(cluster: Harness) -> Object:
    found: Object = (await cluster.get(REPLICA_SETS, "web"))["status"]
    return found


async def scale(cluster: Harness, replicas: int) -> None:
    await cluster.of(REPLICA_SETS).patch("web", {"spec": {"replicas": replicas}})
    await cluster.settle()


def test_there_are_as_many_pods_as_are_wanted() -> None:
    async def scenario(cluster: Harness) -> None:
        await cluster.create(REPLICA_SETS, replica_set(3))
        found = await pods(cluster)
        owners = [controller_of(pod) for pod in found]
        assert [(owner or {}).get("name") for owner in owners] == ["web"] * 3
        assert sorted(await cluster.events()) == sorted(
            ("SuccessfulCreate", f"Created pod: {pod['metadata']['name']}") for pod in found
        )
        await scale(cluster, 1)
        left = await pods(cluster)
        assert len(left) == 1
        gone = {pod["metadata"]["name"] for pod in found} - {left[0]["metadata"]["name"]}
        assert {text for reason, text in await cluster.events() if reason == "SuccessfulDelete"} == {
            f"Deleted pod: {name}" for name in gone
        }

    run(scenario)


def test_the_status_follows_the_pods() -> None:
    async def scenario(cluster: Harness) -> None:
        await cluster.create(REPLICA_SETS, replica_set(2, minReadySeconds=30))
        seen = {"replicas": 2, "fullyLabeledReplicas": 2, "terminatingReplicas": 0, "observedGeneration": 1}
        assert await status(cluster) == seen
        await make_ready(cluster)
        assert await status(cluster) == {**seen, "readyReplicas": 2}
        await cluster.advance(25)
        assert await status(cluster) == {**seen, "readyReplicas": 2}
        await cluster.advance(5)
        assert await status(cluster) == {**seen, "readyReplicas": 2, "availableReplicas": 2}

    run(scenario)


def test_a_pod_that_leaves_is_replaced_at_once() -> None:
    async def scenario(cluster: Harness) -> None:
        await cluster.create(REPLICA_SETS, replica_set(1))
        first = (await pods(cluster))[0]["metadata"]["name"]
        await cluster.of(PODS).patch(first, {"metadata": {"finalizers": ["example.com/wait"]}})
        await cluster.of(PODS).delete(first)
        await cluster.settle()
        assert (await status(cluster))["replicas"] == 1
        assert (await status(cluster))["terminatingReplicas"] == 1
        assert len(await pods(cluster)) == 2
        await cluster.of(PODS).patch(first, {"metadata": {"finalizers": None}})
        await cluster.settle()
        assert (await status(cluster))["terminatingReplicas"] == 0

    run(scenario)


def test_a_pod_that_failed_is_replaced() -> None:
    async def scenario(cluster: Harness) -> None:
        await cluster.create(REPLICA_SETS, replica_set(1))
        first = (await pods(cluster))[0]["metadata"]["name"]
        await cluster.patch_status(PODS, first, {"phase": "Failed"})
        assert len(await pods(cluster)) == 2

    run(scenario)


def test_orphans_are_adopted_and_what_is_selected_no_more_is_released() -> None:
    async def scenario(cluster: Harness) -> None:
        await cluster.create(PODS, orphan("lonely"))
        await cluster.create(PODS, orphan("stranger", app="db"))
        await cluster.create(REPLICA_SETS, replica_set(2))
        assert len(await pods(cluster)) == 2
        assert (controller_of(await cluster.get(PODS, "lonely")) or {}).get("name") == "web"
        assert controller_of(await cluster.get(PODS, "stranger")) is None
        await cluster.of(PODS).patch("lonely", {"metadata": {"labels": {"app": "debug"}}})
        await cluster.settle()
        assert controller_of(await cluster.get(PODS, "lonely")) is None
        assert len(await pods(cluster)) == 2
        # One too many now: the youngest goes.
        await cluster.of(PODS).patch("lonely", {"metadata": {"labels": {"app": "web"}}})
        await cluster.settle()
        assert len(await pods(cluster)) == 2

    run(scenario)


def test_pods_that_are_not_ready_go_first() -> None:
    async def scenario(cluster: Harness) -> None:
        await cluster.create(REPLICA_SETS, replica_set(3))
        keep = (await pods(cluster))[1]
        for pod in await pods(cluster):
            await cluster.of(PODS).create(
                {"metadata": {"name": pod["metadata"]["name"]}, "target": {"kind": "Node", "name": "n1"}}, "binding"
            )
        await make_ready(cluster, [keep])
        await scale(cluster, 1)
        # The others stay until a kubelet lets them go.
        left = [pod["metadata"]["name"] for pod in await pods(cluster) if not is_terminating(pod)]
        assert left == [keep["metadata"]["name"]]
        assert (await status(cluster))["terminatingReplicas"] == 2

    run(scenario)


def test_a_failure_is_a_condition_until_it_is_over() -> None:
    async def scenario(cluster: Harness) -> None:
        broken = template()
        broken["spec"]["priorityClassName"] = "nobody-has-it"
        await cluster.create(REPLICA_SETS, replica_set(2, template=broken))
        text = 'pods "web-" is forbidden: no PriorityClass with name nobody-has-it was found'
        found = (await status(cluster))["conditions"]
        assert [(one["type"], one["status"], one["reason"], one["message"]) for one in found] == [
            ("ReplicaFailure", "True", "FailedCreate", text)
        ]
        assert ("FailedCreate", f"Error creating: {text}") in await cluster.events()
        await scale(cluster, 0)
        assert "conditions" not in await status(cluster)

    run(scenario)


def test_a_replica_set_that_is_being_deleted_makes_nothing() -> None:
    async def scenario(cluster: Harness) -> None:
        obj = replica_set(1)
        obj["metadata"]["finalizers"] = ["example.com/wait"]
        await cluster.create(REPLICA_SETS, obj)
        await cluster.of(REPLICA_SETS).delete("web")
        await scale(cluster, 3)
        assert len(await pods(cluster)) == 1

    run(scenario)


@pytest.mark.parametrize("replicas", [0, 2])
def test_a_replication_controller_does_the_same(replicas: int) -> None:
    async def scenario(cluster: Harness) -> None:
        spec = {"replicas": replicas, "selector": {"app": "web"}, "template": template()}
        await cluster.create(REPLICATION_CONTROLLERS, {"metadata": {"name": "web"}, "spec": spec})
        assert len(await pods(cluster)) == replicas
        expected = {"replicas": replicas, "fullyLabeledReplicas": replicas, "observedGeneration": 1}
        found = (await cluster.get(REPLICATION_CONTROLLERS, "web"))["status"]
        assert found == {key: value for key, value in expected.items() if value or key == "replicas"}

    run(scenario)
