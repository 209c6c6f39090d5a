"""Objects that a server looks for in etcd if it doesn't know them yet, because another server has just stored them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from conformance.players.credentials import private_pem
from conformance.robustness.proxy import Proxy
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.cluster.processes.etcd_process import EtcdProcess
from tests.server.etcd.ours import ask, server

# Seconds by which the second server learns later of the first one's writes.
_DELAY: Final = 0.3
_TEAM: Final = "/api/v1/namespaces/team"
_POD: Final[Object] = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}


@asynccontextmanager
async def near_and_far(
    etcd: EtcdProcess, prefix: str, **options: Any
) -> AsyncIterator[tuple[httpx.AsyncClient, httpx.AsyncClient]]:
    """Clients of two servers, the second of which is far from etcd. `options`: fields of their Config."""
    network = Proxy(int(etcd.url.rpartition(":")[2]))
    config: dict[str, Any] = {"enable_admission_plugins": ("ServiceAccount",), **options}
    try:
        async with (
            server(etcd.url, prefix=prefix, config=config) as near,
            server(network.url, prefix=prefix, config=config) as far,
        ):
            await ask(near, "POST", "/api/v1/namespaces", {"metadata": {"name": "team"}})
            await ask(near, "POST", f"{_TEAM}/serviceaccounts", {"metadata": {"name": "default"}})
            await ask(far, "GET", _TEAM)
            network.delay = _DELAY
            yield near, far
    finally:
        network.close()


@pytest.mark.parametrize(
    ("path", "stored", "pod", "message"),
    [
        pytest.param("/api/v1/namespaces", {"metadata": {"name": "new"}}, {}, "", id="a namespace"),
        pytest.param(
            f"{_TEAM}/serviceaccounts", {"metadata": {"name": "a"}}, {"serviceAccountName": "a"}, "", id="an account"
        ),
        pytest.param(
            "/apis/node.k8s.io/v1/runtimeclasses",
            {"metadata": {"name": "r"}, "handler": "h"},
            {"runtimeClassName": "r"},
            "",
            id="a runtime class",
        ),
        pytest.param(
            f"{_TEAM}/limitranges",
            {"metadata": {"name": "l"}, "spec": {"limits": [{"type": "Container", "max": {"cpu": "1"}}]}},
            {"containers": [{"name": "c", "image": "i", "resources": {"limits": {"cpu": "5"}}}]},
            "maximum cpu usage per Container is 1",
            id="limits",
        ),
        pytest.param(
            f"{_TEAM}/resourcequotas",
            {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "3"}}},
            {},
            "exceeded quota: q",
            id="a quota",
        ),
    ],
)
def test_a_write_is_judged_by_what_another_server_has_just_stored(
    shared_etcd: EtcdProcess, prefix: str, path: str, stored: Object, pod: Object, message: str
) -> None:
    async def scenario() -> None:
        async with near_and_far(shared_etcd, prefix) as (near, far):
            await ask(near, "POST", path, stored)
            if "hard" in stored.get("spec", {}):
                status = {"hard": {"pods": "0"}, "used": {"pods": "0"}}
                await ask(near, "PUT", f"{path}/q/status", {**stored, "status": status})
            namespace = "new" if path.endswith("/namespaces") else "team"
            if namespace == "new":
                target, body = "configmaps", {"metadata": {"name": "c"}}
            else:
                target, body = "pods", {**_POD, "spec": {**_POD["spec"], **pod}}
            response = await far.post(f"/api/v1/namespaces/{namespace}/{target}", json=body, timeout=30)
            assert message in response.json().get("message", ""), response.text
            assert response.status_code == (403 if message else 201), response.text

    asyncio.run(scenario())


def test_a_token_is_accepted_for_an_account_that_another_server_has_just_stored(
    shared_etcd: EtcdProcess, prefix: str, tmp_path: Path
) -> None:
    key = tmp_path / "sa.key"
    key.write_bytes(private_pem(ec.generate_private_key(ec.SECP256R1())))
    keys = {"service_account_signing_key_file": key, "service_account_key_file": (key,)}

    async def scenario() -> None:
        async with near_and_far(shared_etcd, prefix, **keys) as (near, far):
            await ask(near, "POST", f"{_TEAM}/serviceaccounts", {"metadata": {"name": "a"}})
            requested: Any = await ask(near, "POST", f"{_TEAM}/serviceaccounts/a/token", {"spec": {}})
            review = {"spec": {"token": requested["status"]["token"]}}
            reviews = "/apis/authentication.k8s.io/v1/tokenreviews"
            status = (await ask(far, "POST", reviews, review))["status"]
            assert status["user"]["username"] == "system:serviceaccount:team:a", status

    asyncio.run(scenario())
