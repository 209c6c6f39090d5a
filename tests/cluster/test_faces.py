"""The two faces of a cluster: the same members with the same parameters, awaited or not."""

import asyncio
import inspect
import threading
from collections.abc import Iterator

import pytest

from fakeapiserver import AsyncCluster, Cluster
from fakeapiserver.cluster.access import Access, AsyncAccess
from fakeapiserver.cluster.clock import AsyncClusterClock, ClusterClock
from fakeapiserver.cluster.controllers import AsyncControllers, Controllers
from fakeapiserver.cluster.metrics import AsyncMetrics, Metrics
from fakeapiserver.cluster.nodes import AsyncNodes, Nodes
from fakeapiserver.cluster.operators import AsyncOperator, Operator
from fakeapiserver.cluster.processes.operator_process import AsyncOperatorProcess, OperatorProcess
from fakeapiserver.cluster.webhooks import AsyncWebhooks, Webhooks

FACES = [
    (AsyncCluster, Cluster),
    (AsyncAccess, Access),
    (AsyncClusterClock, ClusterClock),
    (AsyncControllers, Controllers),
    (AsyncMetrics, Metrics),
    (AsyncNodes, Nodes),
    (AsyncOperator, Operator),
    (AsyncOperatorProcess, OperatorProcess),
    (AsyncWebhooks, Webhooks),
]
WEBHOOK = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "ValidatingWebhookConfiguration",
    "metadata": {"name": "hooks"},
}


def members(face: type) -> Iterator[str]:
    return (name for name in dir(face) if not name.startswith("_"))


def parameters(member: object) -> list[inspect.Parameter] | None:
    """Returns a method's parameters, or None for a property."""
    return [*inspect.signature(member).parameters.values()] if callable(member) else None


@pytest.mark.parametrize(("asynchronous", "synchronous"), FACES, ids=lambda face: face.__name__)
def test_both_faces_have_the_same_members_with_the_same_parameters(asynchronous: type, synchronous: type) -> None:
    expected = {name: parameters(getattr(asynchronous, name)) for name in members(asynchronous)}
    found = {name: parameters(getattr(synchronous, name)) for name in members(synchronous)}
    assert found == expected


@pytest.mark.parametrize(("asynchronous", "synchronous"), FACES, ids=lambda face: face.__name__)
def test_every_public_member_says_what_it_does(asynchronous: type, synchronous: type) -> None:
    for face in (asynchronous, synchronous):
        assert [
            name for name in ("", *members(face)) if not inspect.getdoc(getattr(face, name) if name else face)
        ] == []


def test_the_synchronous_face_has_no_coroutines() -> None:
    for _, face in FACES:
        assert [name for name in members(face) if inspect.iscoroutinefunction(getattr(face, name))] == []


def test_everything_works_in_an_event_loop() -> None:
    """The synchronous class works, too: `async with Cluster()` returns the asynchronous face."""

    async def scenario(made: Cluster | AsyncCluster) -> None:
        before = threading.active_count()
        async with made as cluster:
            assert isinstance(cluster, AsyncCluster)
            await cluster.settle()
            empty = await cluster.snapshot()
            await cluster.controllers.set("deployment-controller", "step")
            assert cluster.controllers["deployment-controller"] == "step"
            assert await cluster.controllers.step("deployment-controller") == 0
            await cluster.clock.stop()
            started = cluster.clock.now()
            await cluster.clock.advance("1h")
            assert cluster.clock.now() - started == pytest.approx(3600)
            await cluster.nodes.script(selector="app=web", runs_for=3)
            await cluster.nodes.clear_scripts()
            await cluster.metrics.pod("web", cpu="250m")
            await cluster.metrics.clear()
            assert await cluster.rbac.used() == []
            assert cluster.rbac.denied == []
            assert await cluster.lose_watches() > 0
            await cluster.restore(empty)
            with pytest.raises(TimeoutError, match="no webhook server at https://127"):
                await cluster.webhooks.wait(timeout=0.01)
            assert cluster.user("jane")
            assert cluster.service_account("default/default")
            assert threading.active_count() <= before + 1  # that of the wait for the webhook server

    for face in (Cluster, AsyncCluster):
        asyncio.run(scenario(face(nodes=1, metrics=["resource"], webhooks=WEBHOOK)))


def test_a_cluster_in_an_event_loop_is_not_used_through_the_synchronous_face() -> None:
    async def scenario() -> None:
        cluster = Cluster(controllers=())
        async with cluster:
            with pytest.raises(ValueError, match="runs in your event loop: call what `async with Cluster"):
                cluster.settle()

    asyncio.run(scenario())


@pytest.mark.parametrize("face", [Cluster, AsyncCluster])
def test_one_that_runs_already_is_not_started_again(face: type[Cluster] | type[AsyncCluster]) -> None:
    async def scenario() -> None:
        cluster = AsyncCluster(controllers=())
        async with cluster:
            with pytest.raises(ValueError, match="running already"):
                await cluster.start()
            assert cluster.url  # and goes on

    if face is AsyncCluster:
        asyncio.run(scenario())
        return
    with Cluster(controllers=()) as cluster:
        with pytest.raises(ValueError, match="running already"):
            cluster.start()
        assert cluster.url


def test_a_function_that_the_cluster_calls_does_not_wait_for_the_cluster() -> None:
    """Waiting would never end, since the caller is the event loop that the cluster runs in."""
    with Cluster(controllers=()) as cluster:

        async def call() -> None:
            cluster.settle()

        with pytest.raises(RuntimeError, match="call this from the test's own thread"):
            cluster._run(call)
