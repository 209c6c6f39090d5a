"""Tokens that another server is asked about: a process of its own on loopback, over TLS."""

import asyncio
import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

import pytest
from msgspec.structs import replace

from conformance.players.credentials import Credentials, prepared
from fakeapiserver.auth.authenticators.webhook import WebhookTokens
from fakeapiserver.auth.interfaces import RefusedError, Response, UserInfo
from fakeapiserver.transport.client_config import Remote, checked, load_kubeconfig
from fakeapiserver.transport.webhook import Endpoint

JANE = UserInfo("jane", "7", ("dev",), {"example.com/team": ("a", "b")})


class Clock:
    time = 0.0

    def now(self) -> float:
        return self.time

    def monotonic(self) -> float:
        return self.time


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoint]:
    with prepared(tmp_path_factory.mktemp("credentials")) as credentials:
        Credentials.flags(credentials, "authn-oidc")
        yield load_kubeconfig(credentials.folder / "review.kubeconfig")


def ask(config: Endpoint, token: str, *audiences: str, version: str = "v1") -> Response | None:
    webhook = WebhookTokens(Remote(config, 30.0).post, version, ["api"], 60.0, Clock())
    return asyncio.run(webhook.authenticate_token(token, audiences or ("api",)))


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_a_known_token_is_its_users(config: Endpoint, version: str) -> None:
    assert ask(config, "hook-jane", version=version) == Response(JANE, ("api",))


@pytest.mark.parametrize(
    ("token", "audiences", "expected"),
    [
        ("hook-jane", ["api", "x"], ("api",)),
        ("hook-jane", ["x"], None),
        ("hook-elsewhere", ["api"], None),
        ("hook-elsewhere", ["api", "elsewhere"], ("elsewhere",)),
        ("hook-unknown", ["api"], None),
    ],
)
def test_audiences(config: Endpoint, token: str, audiences: list[str], expected: tuple[str, ...] | None) -> None:
    found = ask(config, token, *audiences)
    assert (found.audiences if found is not None else None) == expected


@pytest.mark.parametrize(
    ("token", "why"),
    [("hook-refused", "that one was revoked"), ("hook-odd", "cannot unmarshal string into Go struct field")],
)
def test_what_the_other_server_complains_of_is_the_reason(config: Endpoint, token: str, why: str) -> None:
    with pytest.raises(RefusedError, match=why):
        ask(config, token)


def test_a_server_with_an_untrusted_certificate_is_not_called(config: Endpoint) -> None:
    with pytest.raises(RefusedError, match="certificate signed by unknown authority"):
        ask(replace(config, ca_bundle=b""), "hook-jane")


def test_a_server_that_is_not_there(config: Endpoint) -> None:
    with pytest.raises(RefusedError, match=r'Post "https://127.0.0.1:1/\?timeout=30s": dial tcp 127.0.0.1:1: connect'):
        ask(replace(config, url="https://127.0.0.1:1/", port=1), "hook-jane")


@pytest.mark.parametrize(
    ("kind", "version", "why"),
    [
        ("Foo", "authentication.k8s.io/v1", 'no kind "Foo" is registered'),
        ("TokenReview", "authentication.k8s.io/v9", 'no kind "TokenReview" is registered'),
        ("TokenReview", "authentication.k8s.io/v1beta1", "unknown conversion"),
    ],
)
def test_an_answer_must_be_of_the_kind_that_was_asked_with(kind: str, version: str, why: str) -> None:
    review = {"kind": "TokenReview", "apiVersion": "authentication.k8s.io/v1"}
    with pytest.raises(ValueError, match=why):
        checked(json.dumps({"kind": kind, "apiVersion": version}).encode(), review)


class Counting:
    """Answers by itself, and counts how often."""

    def __init__(self, status: dict[str, Any]) -> None:
        self.status = status
        self.asked = 0

    async def post(self, review: Mapping[str, Any]) -> Mapping[str, Any]:
        self.asked += 1
        return {**review, "status": self.status}


@pytest.mark.parametrize(
    ("status", "asked"),
    [
        ({"authenticated": True, "user": {"username": "a"}}, 1),
        ({"authenticated": False}, 1),
        ({"authenticated": False, "error": "x"}, 2),
    ],
)
def test_yes_and_no_are_remembered_and_complaints_are_not(status: dict[str, Any], asked: int) -> None:
    client, clock = Counting(status), Clock()
    webhook = WebhookTokens(client.post, "v1", ["api"], 10.0, clock)

    def ask_again() -> None:
        with suppress(RefusedError):
            asyncio.run(webhook.authenticate_token("t", ["api"]))

    ask_again()
    ask_again()
    assert client.asked == asked
    clock.time += 10.1
    ask_again()
    assert client.asked == asked + 1
