"""Bootstrap tokens sign kube-public/cluster-info, and go in time."""

import base64

import pytest

from fakeapiserver.apimachinery.timestamp import rfc3339
from fakeapiserver.component_helpers.objects import CONFIG_MAPS, NAMESPACES, SECRETS
from fakeapiserver.controllers.bootstrap_signer import detached_signature
from tests.controllers.harness import Harness, Object, run

SYSTEM, PUBLIC = "kube-system", "kube-public"


def token(name: str = "abcdef", **data: str) -> Object:
    values = {"token-id": name, "token-secret": "0123456789abcdef", "usage-bootstrap-signing": "true"}
    values |= {key.replace("_", "-"): value for key, value in data.items()}
    return {
        "metadata": {"name": "bootstrap-token-abcdef"},
        "type": "bootstrap.kubernetes.io/token",
        "data": {key: base64.b64encode(value.encode()).decode() for key, value in values.items()},
    }


def test_a_signature_is_that_of_kubeadm() -> None:
    """The vector of k8s.io/cluster-bootstrap's own test."""
    assert (
        detached_signature("Hello from the other side. I must have called a thousand times.", "joshua", "my voice is my passcode")
        == "eyJhbGciOiJIUzI1NiIsImtpZCI6Impvc2h1YSJ9..VShe2taLd-YTrmWuRkcL_8QTNDHYxQIEBsAYYiIj1_8"
    )  # fmt: skip


@pytest.mark.parametrize(
    ("data", "signs"),
    [
        ({}, True),
        ({"usage_bootstrap_signing": "false"}, False),
        ({"expiration": "2020-01-01T00:00:00Z"}, False),
        ({"expiration": "2090-01-01T00:00:00Z"}, True),
        ({"expiration": "tomorrow"}, False),
    ],
)
def test_a_token_signs_the_cluster_info(data: dict[str, str], signs: bool) -> None:
    async def scenario(cluster: Harness) -> None:
        if PUBLIC not in await cluster.names(NAMESPACES, ""):
            await cluster.create(NAMESPACES, {"metadata": {"name": PUBLIC}}, "")
        info = {"kubeconfig": "apiVersion: v1\n", "jws-kubeconfig-gone00": "of a token that is gone"}
        await cluster.create(CONFIG_MAPS, {"metadata": {"name": "cluster-info"}, "data": info}, PUBLIC)
        await cluster.create(SECRETS, token(**data), SYSTEM)
        found = (await cluster.get(CONFIG_MAPS, "cluster-info", PUBLIC))["data"]
        expected = {"kubeconfig": info["kubeconfig"]}
        if signs:
            signature = detached_signature(info["kubeconfig"], "abcdef", "0123456789abcdef")
            expected["jws-kubeconfig-abcdef"] = signature
        assert found == expected

    run(scenario, "bootstrap-signer-controller")


def test_a_token_goes_when_its_time_is_over() -> None:
    async def scenario(cluster: Harness) -> None:
        await cluster.create(SECRETS, token(expiration=rfc3339(cluster.clock.now() + 3600)), SYSTEM)
        await cluster.advance(3590)
        assert "bootstrap-token-abcdef" in await cluster.names(SECRETS, SYSTEM)
        await cluster.advance(20)
        assert "bootstrap-token-abcdef" not in await cluster.names(SECRETS, SYSTEM)

    run(scenario, "token-cleaner-controller")
