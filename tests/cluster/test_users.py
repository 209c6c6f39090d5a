"""Users that a test makes up: with a client certificate, or as a service account with a token."""

import asyncio
import json
import ssl
import stat
import urllib.error
import urllib.request
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest

from fakeapiserver import Cluster


def who(kubeconfig: str, tmp_path: Path) -> dict[str, Any]:
    """Returns the server's view of the kubeconfig's user."""
    config = json.loads(Path(kubeconfig).read_text())
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    context = ssl.create_default_context(cadata=b64decode(cluster["certificate-authority-data"]).decode())
    headers = {"Content-Type": "application/json"}
    if "token" in user:
        headers["Authorization"] = f"Bearer {user['token']}"
    else:
        pem = tmp_path / "client.pem"
        pem.write_bytes(b64decode(user["client-certificate-data"]) + b64decode(user["client-key-data"]))
        context.load_cert_chain(pem)
    body = json.dumps({"kind": "SelfSubjectReview", "apiVersion": "authentication.k8s.io/v1"}).encode()
    url = f"{cluster['server']}/apis/authentication.k8s.io/v1/selfsubjectreviews"
    with urllib.request.urlopen(urllib.request.Request(url, body, headers), context=context, timeout=60) as answer:
        found: dict[str, Any] = json.load(answer)["status"]["userInfo"]
        return found


def create(cluster: Cluster, path: str, body: dict[str, Any]) -> None:
    context = ssl.create_default_context(cadata=cluster.ca.decode())
    headers = {"Authorization": f"Bearer {cluster.token}", "Content-Type": "application/json"}
    request = urllib.request.Request(cluster.url + path, json.dumps(body).encode(), headers)
    urllib.request.urlopen(request, context=context, timeout=60).close()


def test_a_user_with_a_certificate(tmp_path: Path) -> None:
    with Cluster() as cluster:
        path = cluster.user("jane", groups=["dev", "ops"])
        assert stat.S_IMODE(Path(path).stat().st_mode) == 0o600
        found = who(path, tmp_path)
    assert (found["username"], found["groups"]) == ("jane", ["dev", "ops", "system:authenticated"])
    assert not Path(path).exists()


def test_a_service_account(tmp_path: Path) -> None:
    with Cluster() as cluster:
        create(cluster, "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "robot"}})
        found = who(cluster.service_account("default/robot"), tmp_path)
    assert found["username"] == "system:serviceaccount:default:robot"
    assert "system:serviceaccounts:default" in found["groups"]


def test_an_expired_service_account_token_is_refused(tmp_path: Path) -> None:
    with Cluster() as cluster:
        create(cluster, "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "robot"}})
        with pytest.raises(urllib.error.HTTPError) as refused:
            who(cluster.service_account("default/robot", lifetime=-61), tmp_path)
    assert refused.value.code == 401


def test_an_account_that_is_not_there() -> None:
    with Cluster() as cluster, pytest.raises(ValueError, match="there is no service account default/robot"):
        cluster.service_account("default/robot")


def test_users_in_an_event_loop() -> None:
    async def run() -> None:
        async with Cluster() as cluster:
            assert cluster.user("jane")
            with pytest.raises(ValueError, match="there is no service account"):
                cluster.service_account("default/robot")

    asyncio.run(run())
