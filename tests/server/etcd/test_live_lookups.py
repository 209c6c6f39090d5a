"""Objects that a server looks for in etcd if it doesn't know them yet, because another server has just stored them."""

import asyncio
from pathlib import Path
from typing import Any, Final

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from conformance.players.credentials import private_pem
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.cluster.processes.etcd_process import EtcdProcess
from tests.server.etcd.ours import TEAM, ask, near_and_far

_POD: Final[Object] = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}


@pytest.mark.parametrize(
    ("path", "stored", "pod", "message"),
    [
        pytest.param("/api/v1/namespaces", {"metadata": {"name": "new"}}, {}, "", id="a namespace"),
        pytest.param(
            f"{TEAM}/serviceaccounts", {"metadata": {"name": "a"}}, {"serviceAccountName": "a"}, "", id="an account"
        ),
        pytest.param(
            "/apis/node.k8s.io/v1/runtimeclasses",
            {"metadata": {"name": "r"}, "handler": "h"},
            {"runtimeClassName": "r"},
            "",
            id="a runtime class",
        ),
        pytest.param(
            f"{TEAM}/limitranges",
            {"metadata": {"name": "l"}, "spec": {"limits": [{"type": "Container", "max": {"cpu": "1"}}]}},
            {"containers": [{"name": "c", "image": "i", "resources": {"limits": {"cpu": "5"}}}]},
            "maximum cpu usage per Container is 1",
            id="limits",
        ),
        pytest.param(
            f"{TEAM}/resourcequotas",
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
            await ask(near, "POST", f"{TEAM}/serviceaccounts", {"metadata": {"name": "a"}})
            requested: Any = await ask(near, "POST", f"{TEAM}/serviceaccounts/a/token", {"spec": {}})
            review = {"spec": {"token": requested["status"]["token"]}}
            reviews = "/apis/authentication.k8s.io/v1/tokenreviews"
            status = (await ask(far, "POST", reviews, review))["status"]
            assert status["user"]["username"] == "system:serviceaccount:team:a", status

    asyncio.run(scenario())
