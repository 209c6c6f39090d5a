"""Secrets that hold a service account's token, and unused tokens."""

import base64
import json
from typing import Any

from msgspec.structs import replace

from fakeapiserver.component_helpers.objects import PODS, SECRETS, SERVICE_ACCOUNTS
from tests.controllers.harness import Harness, Object, run

TYPE = "kubernetes.io/service-account-token"
NAME = "kubernetes.io/service-account.name"
CLEANER = "legacy-serviceaccount-token-cleaner-controller"
DAY = 86400.0


def token_secret(name: str = "token", account: str = "robot") -> Object:
    return {"metadata": {"name": name, "annotations": {NAME: account}}, "type": TYPE}


async def create_account(cluster: Harness, **fields: Any) -> Object:
    return await cluster.create(SERVICE_ACCOUNTS, {"metadata": {"name": "robot"}, **fields})


def claims(secret: Object) -> Object:
    payload = base64.b64decode(secret["data"]["token"]).split(b".")[1]
    found: Object = json.loads(base64.urlsafe_b64decode(payload + b"=="))
    return found


def test_a_secret_gets_a_token_of_its_account() -> None:
    async def scenario(cluster: Harness) -> None:
        account = await create_account(cluster)
        await cluster.create(SECRETS, token_secret())
        secret = await cluster.get(SECRETS, "token")
        assert secret["metadata"]["annotations"]["kubernetes.io/service-account.uid"] == account["metadata"]["uid"]
        assert base64.b64decode(secret["data"]["namespace"]) == b"default"
        assert b"BEGIN CERTIFICATE" in base64.b64decode(secret["data"]["ca.crt"])
        assert claims(secret) == {
            "iss": "kubernetes/serviceaccount",
            "sub": "system:serviceaccount:default:robot",
            "kubernetes.io/serviceaccount/namespace": "default",
            "kubernetes.io/serviceaccount/secret.name": "token",
            "kubernetes.io/serviceaccount/service-account.name": "robot",
            "kubernetes.io/serviceaccount/service-account.uid": account["metadata"]["uid"],
        }

    run(scenario, "serviceaccount-token-controller")


def test_tokens_go_with_their_account_and_references_with_their_token() -> None:
    async def scenario(cluster: Harness) -> None:
        await create_account(cluster, secrets=[{"name": "token"}, {"name": "other"}])
        for name in ("token", "other"):
            await cluster.create(SECRETS, token_secret(name))
        await cluster.create(SECRETS, token_secret("orphan", "nobody"))
        assert await cluster.names(SECRETS) == ["other", "token"]
        await cluster.of(SECRETS).delete("token")
        await cluster.settle()
        assert (await cluster.get(SERVICE_ACCOUNTS, "robot"))["secrets"] == [{"name": "other"}]
        await cluster.of(SERVICE_ACCOUNTS).delete("robot")
        await cluster.settle()
        assert await cluster.names(SECRETS) == []

    run(scenario, "serviceaccount-token-controller")


def test_a_long_unused_token_is_marked_and_later_deleted() -> None:
    async def scenario(cluster: Harness) -> None:
        shared = cluster.manager._shared
        shared.configuration = replace(shared.configuration, legacy_service_account_token_clean_up_period=2 * DAY)
        await cluster.manager.set_mode(CLEANER, "run")
        await create_account(cluster, secrets=[{"name": "unused"}, {"name": "mounted"}])
        for name in ("unused", "mounted", "by-hand"):
            await cluster.create(SECRETS, token_secret(name))
        volume = {"name": "v", "secret": {"secretName": "mounted"}}
        spec = {"serviceAccountName": "robot", "containers": [{"name": "c", "image": "i"}], "volumes": [volume]}
        await cluster.create(PODS, {"metadata": {"name": "user"}, "spec": spec})
        await cluster.advance(5 * DAY)
        assert (
            "kubernetes.io/legacy-token-invalid-since" in (await cluster.get(SECRETS, "unused"))["metadata"]["labels"]
        )
        for name in ("mounted", "by-hand"):  # in use; not named by its account, so not made for every account
            assert "labels" not in (await cluster.get(SECRETS, name))["metadata"]
        await cluster.advance(5 * DAY)
        assert await cluster.names(SECRETS) == ["by-hand", "mounted"]

    run(scenario, "serviceaccount-token-controller")
