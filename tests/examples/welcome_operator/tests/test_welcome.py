"""A Welcome has its page: tests what is created, what is restored, and what is reported."""

import asyncio
import shutil
import subprocess
from collections.abc import Callable
from typing import Any

import pytest
from fakeapiserver import Cluster
from fakeapiserver.client import wait
from fakeapiserver.client.dynamic import ResourceClient
from fakeapiserver.controller_runtime import Manager

from tests.conftest import CLUSTER, running
from welcome_operator.api.v1alpha1.welcome import Welcome, WelcomeSpec

Object = dict[str, Any]
JANE = Welcome(metadata={"name": "jane", "namespace": "default"}, spec=WelcomeSpec(name="Jane", replicas=2))


async def resource(manager: Manager, name: str) -> ResourceClient:
    return manager.dynamic.resource((await manager.mapper.mapping_for(name)).gvr, "default")


def exists(obj: Object | None) -> bool:
    return obj is not None


def uid(obj: Object) -> str:
    found: str = obj["metadata"]["uid"]
    return found


def says(*path: str | int, value: object) -> Callable[[Object | None], bool]:
    """Whether something in the object has a value."""

    def holds(obj: Any) -> bool:
        for step in path:
            try:
                obj = obj[step]
            except (KeyError, IndexError, TypeError):
                return False
        return bool(obj == value)

    return holds


@pytest.mark.fake_cluster(**CLUSTER)
def test_a_welcome_gets_a_deployment_and_a_service(fake_cluster: Cluster) -> None:
    async def scenario() -> None:
        async with running(fake_cluster) as manager:
            made = await manager.client.create(JANE)
            deployment = await wait.until(await resource(manager, "deployments"), exists, name="jane")
            service = await wait.until(await resource(manager, "services"), exists, name="jane")
            assert deployment is not None
            assert service is not None
            assert deployment["spec"]["replicas"] == 2
            assert deployment["metadata"]["ownerReferences"][0]["uid"] == made.metadata.uid
            assert {row["manager"] for row in deployment["metadata"]["managedFields"]} == {"welcome-operator"}
            assert service["spec"]["clusterIP"]
            assert 30000 <= service["spec"]["ports"][0]["nodePort"] < 32768
            welcomes = await resource(manager, "welcomes")
            await wait.until(welcomes, wait.has_condition("Ready", "False"), name="jane")

    asyncio.run(scenario())


@pytest.mark.fake_cluster(**CLUSTER)
def test_its_page_follows_the_spec_and_comes_back(fake_cluster: Cluster) -> None:
    async def scenario() -> None:
        async with running(fake_cluster) as manager:
            made = await manager.client.create(JANE)
            deployments, services = await resource(manager, "deployments"), await resource(manager, "services")
            await wait.until(deployments, exists, name="jane")
            await deployments.patch("jane", {"spec": {"replicas": 7}}, field_manager="somebody")
            await wait.until(deployments, says("spec", "replicas", value=2), name="jane")
            await manager.client.patch(made, {"spec": {"replicas": 3}})
            await wait.until(deployments, says("spec", "replicas", value=3), name="jane")
            old = await wait.until(services, exists, name="jane") or {}
            await services.delete("jane")
            await wait.until(services, lambda obj: obj is not None and uid(obj) != uid(old), name="jane")

    asyncio.run(scenario())


@pytest.mark.fake_cluster(**CLUSTER, nodes=1)
def test_it_is_ready_when_its_pods_are(fake_cluster: Cluster) -> None:
    async def scenario() -> None:
        async with running(fake_cluster) as manager:
            await manager.client.create(JANE)
            welcomes = await resource(manager, "welcomes")
            found = await wait.until(welcomes, wait.has_condition("Ready"), name="jane")
            assert found is not None
            assert found["status"]["readyReplicas"] == 2

    asyncio.run(scenario())


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="there is no kubectl on this machine")
@pytest.mark.fake_cluster(**CLUSTER)
def test_what_kubectl_shows(fake_cluster: Cluster) -> None:
    def kubectl(*words: str) -> list[str]:
        command = ["kubectl", "--kubeconfig", fake_cluster.kubeconfig, "get", *words, "--no-headers"]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()

    async def scenario() -> None:
        async with running(fake_cluster) as manager:
            await manager.client.create(JANE)
            await wait.until(await resource(manager, "services"), exists, name="jane")
            name, kind, address, external, ports, _ = await asyncio.to_thread(kubectl, "svc", "jane")
            assert (name, kind, external) == ("jane", "LoadBalancer", "<pending>")
            assert address.startswith("10.")
            assert ports.startswith("80:3")
            welcomes = await resource(manager, "welcomes")
            await wait.until(welcomes, wait.has_condition("Ready", "False"), name="jane")
            assert (await asyncio.to_thread(kubectl, "welcomes"))[:3] == ["jane", "Jane", "False"]

    asyncio.run(scenario())
