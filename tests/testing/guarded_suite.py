"""A user's test suite with every client, each without a kubeconfig of its own: test_guard.py runs a copy of it beside a decoy."""

import asyncio
import inspect
import logging
import os
import shutil
import subprocess
from collections.abc import Awaitable, Callable
from typing import Any

import pytest


def kubernetes() -> list[str]:
    from kubernetes import client, config

    config.load_kube_config()
    return [item.metadata.name for item in client.CoreV1Api().list_namespace(_request_timeout=60).items]


def kubernetes_new_client() -> list[str]:
    from kubernetes import client, config

    api = client.CoreV1Api(config.new_client_from_config())
    return [item.metadata.name for item in api.list_namespace(_request_timeout=60).items]


def kubernetes_load_config() -> list[str]:
    """Prefers the kubeconfig, and takes the pod's service account else."""
    from kubernetes import client, config

    config.load_config()
    return [item.metadata.name for item in client.CoreV1Api().list_namespace(_request_timeout=60).items]


def made_at_import() -> list[str]:
    """A client that a module of the user makes when it is imported."""
    import conftest

    if not hasattr(conftest, "CLIENT"):
        pytest.skip("conftest.py makes no clients")
    return [item.metadata.name for item in conftest.CLIENT.list_namespace(_request_timeout=60).items]


def configured_at_import() -> list[str]:
    from kubernetes import client

    if client.Configuration._default is None:
        pytest.skip("nothing was configured")
    return [item.metadata.name for item in client.CoreV1Api().list_namespace(_request_timeout=60).items]


def lightkube_made_at_import() -> list[str]:
    import conftest
    from lightkube.resources.core_v1 import Namespace

    if not hasattr(conftest, "LIGHTKUBE"):
        pytest.skip("conftest.py makes no clients")
    return [item.metadata.name for item in conftest.LIGHTKUBE.list(Namespace)]


async def asyncio_configured_at_import() -> list[str]:
    from kubernetes_asyncio import client

    if client.Configuration._default is None:
        pytest.skip("nothing was configured")
    async with client.ApiClient() as api:
        return [item.metadata.name for item in (await client.CoreV1Api(api).list_namespace()).items]


def kubernetes_in_cluster() -> list[str]:
    from kubernetes import client, config

    try:
        config.load_incluster_config()
    except config.ConfigException:  # what the documentation recommends
        config.load_kube_config()
    return [item.metadata.name for item in client.CoreV1Api().list_namespace(_request_timeout=60).items]


async def kubernetes_asyncio() -> list[str]:
    from kubernetes_asyncio import client, config

    await config.load_kube_config()
    async with client.ApiClient() as api:
        return [item.metadata.name for item in (await client.CoreV1Api(api).list_namespace()).items]


async def kubernetes_aio() -> list[str]:
    aio = pytest.importorskip("kubernetes.aio")
    await aio.config.load_kube_config()
    async with aio.client.ApiClient() as api:
        return [item.metadata.name for item in (await aio.client.CoreV1Api(api).list_namespace()).items]


def kr8s() -> list[str]:
    import kr8s

    return [item.name for item in kr8s.api().get("namespaces")]


async def kr8s_asyncio() -> list[str]:
    import kr8s

    api = await kr8s.asyncio.api()
    return [item.name async for item in api.get("namespaces")]


def lightkube() -> list[str]:
    from lightkube import Client
    from lightkube.resources.core_v1 import Namespace

    return [str(item.metadata and item.metadata.name) for item in Client().list(Namespace)]


def lightkube_without_environment() -> list[str]:
    from lightkube import Client
    from lightkube.resources.core_v1 import Namespace

    return [str(item.metadata and item.metadata.name) for item in Client(trust_env=False).list(Namespace)]


def pykube() -> list[str]:
    pykube = pytest.importorskip("pykube")
    api = pykube.HTTPClient(pykube.KubeConfig.from_env())
    return [item.name for item in pykube.Namespace.objects(api)]


async def own_client() -> list[str]:
    from fakeapiserver.client import synchronous

    def names() -> list[str]:
        with synchronous.connect() as client:
            return [item["metadata"]["name"] for item in client.resource("namespaces").list()["items"]]

    return await asyncio.to_thread(names)


def kubectl() -> list[str]:
    return command("kubectl", "get", "namespaces", "--output=name", "--request-timeout=60s")


def helm() -> list[str]:
    return command("helm", "list", "--all-namespaces")


def command(program: str, *arguments: str) -> list[str]:
    """The lines that a program printed, without what comes before a slash."""
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    done = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=60, check=False)
    if done.returncode:
        raise OSError(done.stderr)
    return [line.rpartition("/")[2] for line in done.stdout.splitlines()] + ["default"] * (program == "helm")


def kopf_login(handler: str) -> Callable[[], Any]:
    """The server that an operator logs in to; the namespaces are there if it is the fake one."""

    async def login() -> list[str]:
        import kopf

        if handler == "login_via_pykube":
            pytest.importorskip("pykube")
        arguments: Any = {"logger": logging.getLogger(), "settings": kopf.OperatorSettings()}
        found = getattr(kopf, handler)(**arguments)
        info = await found if inspect.isawaitable(found) else found
        if info is None or info.server != os.environ.get("EXPECTED_SERVER"):
            raise OSError(f"logged in to {info and info.server}")
        return ["default"]

    login.__name__ = handler
    return login


CLIENTS: list[Callable[[], list[str] | Awaitable[list[str]]]] = [
    made_at_import,
    configured_at_import,
    lightkube_made_at_import,
    asyncio_configured_at_import,
    kubernetes,
    kubernetes_new_client,
    kubernetes_load_config,
    kubernetes_in_cluster,
    kubernetes_asyncio,
    kubernetes_aio,
    kr8s,
    kr8s_asyncio,
    lightkube,
    lightkube_without_environment,
    pykube,
    own_client,
    kubectl,
    helm,
    *map(kopf_login, ("login_via_client", "login_via_async_client", "login_via_pykube", "login_with_kubeconfig")),
]


async def outcomes() -> dict[str, str]:
    """Returns the outcome of each client: `reached` for the fake cluster, `skipped`, or an error, which differs by library."""
    found: dict[str, str] = {}
    for client in CLIENTS:
        try:
            names = client()
            names = (await names) if inspect.isawaitable(names) else names
            found[client.__name__] = "reached" if "default" in names else f"found {names}"
        except pytest.skip.Exception as skipped:
            found[client.__name__] = f"skipped: {skipped}"
        except Exception as error:
            found[client.__name__] = f"failed: {error!r}"
    return found


def check(found: dict[str, str], expected: str) -> None:
    print(*(f"{name}: {outcome[:300]}" for name, outcome in found.items()), sep="\n")
    assert {name: outcome for name, outcome in found.items() if not outcome.startswith((expected, "skipped"))} == {}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def expected_server(fake_cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXPECTED_SERVER", fake_cluster.url)


@pytest.mark.fake_cluster(controllers=())
class TestEveryClient:
    """The tests run in this order: without, with, without a fake cluster."""

    def test_is_refused_before(self) -> None:
        check(asyncio.run(outcomes()), "failed")

    def test_reaches_the_fake_cluster(self, expected_server: None) -> None:
        check(asyncio.run(outcomes()), "reached")

    @pytest.mark.anyio
    async def test_reaches_the_fake_cluster_in_an_event_loop(self, expected_server: None) -> None:
        check(await outcomes(), "reached")

    @pytest.mark.anyio
    async def test_is_refused_after(self) -> None:
        check(await outcomes(), "failed")
