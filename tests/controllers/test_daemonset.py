"""Daemon sets: a pod on each node that should have one."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from fakeapiserver.client.dynamic import STRATEGIC_MERGE_PATCH
from fakeapiserver.component_helpers.objects import (
    CONTROLLER_REVISIONS,
    DAEMON_SETS,
    NODES,
    PODS,
    controller_of,
    is_terminating,
)
from fakeapiserver.controllers.daemonset.placement import Placement, bound_to, target_node, with_tolerations
from tests.controllers.harness import Harness, Object
from tests.controllers.harness import run as run_with
from tests.controllers.workloads import make_ready, pods, selecting, template


def run(scenario: Callable[[Harness], Awaitable[None]]) -> None:
    run_with(scenario, "daemonset-controller")


def node(name: str, taints: list[Object] | None = None, **labels: str) -> Object:
    return {"metadata": {"name": name, "labels": labels}, "spec": {"taints": taints or []}}


def taint(key: str = "special", effect: str = "NoSchedule") -> Object:
    return {"key": key, "effect": effect}


def daemon_set(image: str = "agent:1", **spec: Any) -> Object:
    return {"metadata": {"name": "agent"}, "spec": {"selector": selecting(), "template": template(image), **spec}}


async def nodes(cluster: Harness, *names: str) -> None:
    """Creates ready nodes: a new node is tainted until it is reported as ready."""
    for name in names:
        await cluster.of(NODES, "").create(node(name))
        await cluster.of(NODES, "").patch(name, {"spec": {"taints": None}})
    await cluster.settle()


async def on_nodes(cluster: Harness) -> list[tuple[str, str]]:
    """Returns (node, image) of the pods that aren't being deleted."""
    return sorted(
        (target_node(pod), pod["spec"]["containers"][0]["image"])
        for pod in await pods(cluster)
        if not is_terminating(pod)
    )


async def use_image(cluster: Harness, image: str) -> None:
    spec = {"template": {"spec": {"containers": [{"name": "c", "image": image}]}}}
    await cluster.of(DAEMON_SETS).patch("agent", {"spec": spec}, patch_type=STRATEGIC_MERGE_PATCH)
    await cluster.settle()


async def finish(cluster: Harness) -> None:
    """Pods become ready until nothing changes any more."""
    before: object = None
    for _ in range(20):
        await make_ready(cluster)
        after = await on_nodes(cluster), await status(cluster)
        if before == after:
            return
        before = after
    raise AssertionError("the rollout doesn't end")


async def status(cluster: Harness) -> Object:
    found: Object = (await cluster.get(DAEMON_SETS, "agent"))["status"]
    return found


def test_each_node_has_a_pod_and_a_new_node_gets_one() -> None:
    async def scenario(cluster: Harness) -> None:
        await nodes(cluster, "a", "b")
        await cluster.create(DAEMON_SETS, daemon_set())
        assert await on_nodes(cluster) == [("a", "agent:1"), ("b", "agent:1")]
        await nodes(cluster, "c")
        assert [name for name, _ in await on_nodes(cluster)] == ["a", "b", "c"]
        await make_ready(cluster)
        assert await status(cluster) == {
            "observedGeneration": 1,
            "currentNumberScheduled": 3,
            "desiredNumberScheduled": 3,
            "numberAvailable": 3,
            "numberMisscheduled": 0,
            "numberReady": 3,
            "updatedNumberScheduled": 3,
        }
        (revision,) = (await cluster.of(CONTROLLER_REVISIONS).list())["items"]
        labels = (await pods(cluster))[0]["metadata"]["labels"]
        assert labels["controller-revision-hash"] == revision["metadata"]["labels"]["controller-revision-hash"]
        assert labels["pod-template-generation"] == "1"
        assert {reason for reason, _ in await cluster.events()} == {"SuccessfulCreate"}

    run(scenario)


def test_a_pod_goes_from_a_node_where_it_should_not_be_any_more() -> None:
    async def scenario(cluster: Harness) -> None:
        await nodes(cluster, "a", "b")
        chosen = template("agent:1")
        chosen["spec"]["nodeSelector"] = {"disk": "ssd"}
        await cluster.create(DAEMON_SETS, daemon_set(template=chosen))
        assert await on_nodes(cluster) == []
        await cluster.of(NODES, "").patch("a", {"metadata": {"labels": {"disk": "ssd"}}})
        await cluster.settle()
        assert [name for name, _ in await on_nodes(cluster)] == ["a"]
        # The change of a node triggers a sync for the pods that are bound to it.
        pod = (await pods(cluster))[0]["metadata"]["name"]
        await cluster.of(PODS).create({"metadata": {"name": pod}, "target": {"kind": "Node", "name": "a"}}, "binding")
        await cluster.settle()
        await cluster.of(NODES, "").patch("a", {"metadata": {"labels": {"disk": None}}})
        await cluster.settle()
        assert await on_nodes(cluster) == []

    run(scenario)


@pytest.mark.parametrize(
    ("strategy", "steps"),
    [
        ({"rollingUpdate": {"maxUnavailable": 1}}, [["2", "1", "1"], ["2", "2", "1"], ["2", "2", "2"]]),
        ({"rollingUpdate": {"maxUnavailable": "60%"}}, [["2", "2", "1"], ["2", "2", "2"]]),
        ({"type": "OnDelete"}, [["1", "1", "1"]]),
    ],
)
def test_a_new_template_goes_from_node_to_node(strategy: Object, steps: list[list[str]]) -> None:
    """steps: the pods' images after the change, and after each time that all are ready."""

    async def scenario(cluster: Harness) -> None:
        await nodes(cluster, "a", "b", "c")
        await cluster.create(DAEMON_SETS, daemon_set(updateStrategy=strategy))
        await finish(cluster)
        await use_image(cluster, "agent:2")
        for step in steps:
            images = [image.removeprefix("agent:") for _, image in await on_nodes(cluster)]
            assert sorted(images, reverse=True) == step
            await make_ready(cluster)
        assert len(await cluster.names(CONTROLLER_REVISIONS)) == 2

    run(scenario)


def test_a_surge_pod_comes_before_the_old_one_goes() -> None:
    async def scenario(cluster: Harness) -> None:
        await nodes(cluster, "a", "b")
        strategy = {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
        await cluster.create(DAEMON_SETS, daemon_set(updateStrategy=strategy))
        await finish(cluster)
        await use_image(cluster, "agent:2")
        assert [image for _, image in await on_nodes(cluster)].count("agent:1") == 2
        assert len(await on_nodes(cluster)) == 3
        await finish(cluster)
        assert await on_nodes(cluster) == [("a", "agent:2"), ("b", "agent:2")]

    run(scenario)


def test_an_old_revision_comes_back_with_a_new_number() -> None:
    async def scenario(cluster: Harness) -> None:
        await nodes(cluster, "a")
        await cluster.create(DAEMON_SETS, daemon_set(revisionHistoryLimit=1))
        for image in ("agent:2", "agent:3", "agent:2"):
            await finish(cluster)
            await use_image(cluster, image)
        await finish(cluster)
        revisions = (await cluster.of(CONTROLLER_REVISIONS).list())["items"]
        assert sorted(revision["revision"] for revision in revisions) == [3, 4]

    run(scenario)


@pytest.mark.parametrize(
    ("phase", "reason", "text"),
    [
        ("Failed", "FailedDaemonPod", "Found failed daemon pod default/{} on node a, will try to kill it"),
        ("Succeeded", "SucceededDaemonPod", "Found succeeded daemon pod default/{} on node a, will try to delete it"),
    ],
)
def test_a_pod_that_ended_is_made_again(phase: str, reason: str, text: str) -> None:
    async def scenario(cluster: Harness) -> None:
        await nodes(cluster, "a")
        await cluster.create(DAEMON_SETS, daemon_set())
        name = (await pods(cluster))[0]["metadata"]["name"]
        await cluster.patch_status(PODS, name, {"phase": phase})
        assert [pod["metadata"]["name"] for pod in await pods(cluster)] != [name]
        assert (reason, text.format(name)) in await cluster.events()

    run(scenario)


def test_orphans_are_adopted() -> None:
    async def scenario(cluster: Harness) -> None:
        await nodes(cluster, "a")
        obj = {**template("agent:1"), "metadata": {"name": "lonely", "labels": {"app": "web"}}}
        obj["spec"] = bound_to(obj["spec"], "a")
        await cluster.create(PODS, obj)
        await cluster.create(DAEMON_SETS, daemon_set(updateStrategy={"type": "OnDelete"}))
        assert [pod["metadata"]["name"] for pod in await pods(cluster)] == ["lonely"]
        assert (controller_of(await cluster.get(PODS, "lonely")) or {}).get("name") == "agent"

    run(scenario)


# -------------------------------------------------------------------------------------------- pure


@pytest.mark.parametrize(
    ("spec", "found", "placed"),
    [
        ({}, node("a"), (True, True)),
        ({"nodeName": "b"}, node("a"), (False, False)),
        ({"nodeSelector": {"disk": "ssd"}}, node("a", disk="ssd"), (True, True)),
        ({"nodeSelector": {"disk": "ssd"}}, node("a"), (False, False)),
        ({}, node("a", [taint()]), (False, True)),  # what runs may go on
        ({}, node("a", [taint(effect="NoExecute")]), (False, False)),
        ({"tolerations": [{"operator": "Exists"}]}, node("a", [taint()]), (True, True)),
        ({}, node("a", [taint("node.kubernetes.io/unschedulable")]), (True, True)),
        ({}, node("a", [taint("node.kubernetes.io/network-unavailable")]), (False, True)),
        ({"hostNetwork": True}, node("a", [taint("node.kubernetes.io/network-unavailable")]), (True, True)),
    ],
)
def test_where_pods_belong(spec: Object, found: Object, placed: tuple[bool, bool]) -> None:
    assert Placement({"spec": {"template": {"spec": spec}}}).of(found) == placed


def test_an_equal_toleration_is_there_once() -> None:
    known = {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}
    found = with_tolerations({"tolerations": [known]})["tolerations"]
    assert len(found) == 6
    assert known not in found


@pytest.mark.parametrize("affinity", [{}, {"nodeAffinity": {}}, {"podAffinity": {"x": 1}}])
def test_a_pod_is_made_for_a_node(affinity: Object) -> None:
    spec = bound_to({"affinity": affinity}, "a")
    assert target_node({"spec": spec}) == "a"
    assert spec["affinity"].keys() >= affinity.keys()
