"""Bootstrap tokens: which secret makes one good."""

import asyncio
import base64
from typing import Any

import pytest

from fakeapiserver.auth.authenticators.bootstrap import BootstrapTokens
from fakeapiserver.auth.interfaces import UserInfo

TOKEN = "abcdef.0123456789abcdef"
GOOD = {"token-id": "abcdef", "token-secret": "0123456789abcdef", "usage-bootstrap-authentication": "true"}
NOW = 1_800_000_000.0  # 2027-01-15T08:00:00Z


class Clock:
    def now(self) -> float:
        return NOW

    def monotonic(self) -> float:
        return NOW


class Secrets:
    def __init__(self, secret: dict[str, Any]) -> None:
        self.secret = secret

    def get(self, resource: str, namespace: str, name: str) -> dict[str, Any] | None:
        known = (resource, namespace, name) == ("secrets", "kube-system", "bootstrap-token-abcdef")
        return self.secret if known else None


def user(
    token: str = TOKEN, *, kind: str = "bootstrap.kubernetes.io/token", deleted: str = "", **data: str
) -> UserInfo | None:
    """The user of a token whose secret has this data beside what is good; an empty text leaves a key out."""
    wanted = {key: value for key, value in {**GOOD, **data}.items() if value}
    encoded = {key: base64.b64encode(value.encode()).decode() for key, value in wanted.items()}
    secret = {"metadata": {"deletionTimestamp": deleted}, "type": kind, "data": encoded}
    response = asyncio.run(BootstrapTokens(Secrets(secret), Clock()).authenticate_token(token, ["api"]))
    return response.user if response is not None else None


def test_a_good_token_is_a_bootstrapper() -> None:
    assert user() == UserInfo("system:bootstrap:abcdef", groups=("system:bootstrappers",))


def test_extra_groups_are_sorted_and_taken_once() -> None:
    extra = "system:bootstrappers:w,system:bootstrappers:a,system:bootstrappers:w"
    found = user(**{"auth-extra-groups": extra})
    assert found is not None
    assert found.groups == ("system:bootstrappers", "system:bootstrappers:a", "system:bootstrappers:w")


@pytest.mark.parametrize("expiration", ["2027-01-15T08:00:01Z", "2027-01-15T09:30:00+01:00", "2027-01-15T08:00:00.5Z"])
def test_not_expired_yet(expiration: str) -> None:
    assert user(expiration=expiration) is not None


@pytest.mark.parametrize(
    "data",
    [
        {"expiration": "2027-01-15T08:00:00Z"},
        {"expiration": "2027-01-15"},
        {"expiration": "tomorrow"},
        {"token-id": "abcdeg"},
        {"token-id": ""},
        {"token-secret": "0123456789abcdeg"},
        {"token-secret": ""},
        {"usage-bootstrap-authentication": "True"},
        {"usage-bootstrap-authentication": ""},
        {"auth-extra-groups": "system:masters"},
        {"auth-extra-groups": "system:bootstrappers:ok,system:bootstrappers:a-"},
        {"auth-extra-groups": "system:bootstrappers:ok,"},
        {"auth-extra-groups": "system:bootstrappers:Upper"},
        {"kind": "Opaque"},
        {"deleted": "2027-01-15T08:00:00Z"},
    ],
)
def test_secrets_that_make_no_token_good(data: dict[str, str]) -> None:
    assert user(**data) is None


@pytest.mark.parametrize(
    "token",
    [
        "abcdef.0123456789abcde",
        "abcdef.0123456789abcdeff",
        "ABCDEF.0123456789abcdef",
        "abcdef0123456789abcdef",
        f"{TOKEN}\n",
        "",
    ],
)
def test_what_is_no_bootstrap_token(token: str) -> None:
    assert user(token) is None
