"""Attacks that would block the server: connections that never send anything, and servers that never respond to it.

Requests with valid credentials are still served.
"""

import asyncio
import json
import logging
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from fakeapiserver import Cluster
from fakeapiserver.server.options.config import Config

HELLO = bytes.fromhex("1603010200010001")  # the start of a TLS handshake
HEAD = b"GET /api/v1/secrets HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "
PATIENCE = 20.0  # seconds; below every time limit of the server's own


@pytest.fixture(scope="module")
def silent() -> Iterator[int]:
    """The port of a server that takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


@pytest.fixture(scope="module")
def cluster(silent: int, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Starts a server that gets its OpenID provider's keys and the reviews of unknown tokens from the silent server."""
    folder = tmp_path_factory.mktemp("slow")
    where = {"server": f"http://127.0.0.1:{silent}/review"}
    kubeconfig = {
        "clusters": [{"name": "c", "cluster": where}],
        "contexts": [{"name": "x", "context": {"cluster": "c"}}],
        "current-context": "x",
    }
    (folder / "kubeconfig").write_text(json.dumps(kubeconfig))
    (folder / "tokens.csv").write_text('known,jane,1,"system:masters"\n')
    config = Config(
        authentication_token_webhook_config_file=folder / "kubeconfig",
        token_auth_file=folder / "tokens.csv",
        oidc_issuer_url=f"https://127.0.0.1:{silent}",
        oidc_client_id="app",
        given=frozenset({"oidc-issuer-url", "oidc-client-id"}),
    )
    with Cluster.from_config(config) as running:
        yield running


def listed(cluster: Cluster, token: str = "known") -> int:
    """The status of a list within PATIENCE; 0 for none."""
    context = ssl.create_default_context(cadata=cluster.ca.decode())
    request = Request(f"{cluster.url}/api/v1/namespaces", headers={"Authorization": f"Bearer {token}"})
    try:
        with urlopen(request, context=context, timeout=PATIENCE) as response:
            return int(response.status)
    except HTTPError as error:
        return error.code
    except TimeoutError:
        return 0


def tls(cluster: Cluster, said: bytes) -> socket.socket:
    context = ssl.create_default_context(cadata=cluster.ca.decode())
    port = int(cluster.url.rpartition(":")[2])
    secure = context.wrap_socket(socket.create_connection(("127.0.0.1", port)), server_hostname="127.0.0.1")
    secure.sendall(said)
    return secure


def plain(cluster: Cluster, said: bytes) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", int(cluster.url.rpartition(":")[2])))
    connection.sendall(said)
    return connection


@pytest.mark.parametrize(
    ("connect", "said", "count"),
    [
        (plain, b"", 500),
        (plain, HELLO, 500),
        (plain, b"GET / HTTP/1.1\r\n", 200),
        (tls, b"", 60),
        (tls, HEAD + b"x", 60),
        (tls, HEAD + b"known\r\nContent-Length: 1000000\r\n\r\n{", 60),
    ],
    ids=["silent", "half a handshake", "no TLS", "no request", "half a head", "half a body"],
)
def test_stalled_connections_delay_no_other_request(
    cluster: Cluster, connect: Callable[[Cluster, bytes], socket.socket], said: bytes, count: int
) -> None:
    with ExitStack() as open_ones:
        for _ in range(count):
            open_ones.enter_context(connect(cluster, said))
        assert listed(cluster) == 200


def test_a_webhook_that_never_answers_delays_no_other_request(cluster: Cluster) -> None:
    with ExitStack() as waiting:
        for number in range(40):
            waiting.enter_context(tls(cluster, HEAD + b"unknown-%d\r\n\r\n" % number))
        assert listed(cluster) == 200


def test_tokens_of_a_provider_that_never_answers_are_refused_at_once(cluster: Cluster, silent: int) -> None:
    """Only the webhook is left to be called then, which this test doesn't wait for."""
    from jwt import api_jws

    from fakeapiserver.auth.authenticators.oidc import ALGORITHMS, JWTAuthenticator
    from fakeapiserver.auth.interfaces import RefusedError
    from fakeapiserver.clock import SystemClock

    issuer = {"url": f"https://127.0.0.1:{silent}", "audiences": ["app"]}
    jwt = {"issuer": issuer, "claimMappings": {"username": {"claim": "sub", "prefix": ""}}}
    authenticator = JWTAuthenticator(jwt, ALGORITHMS, (), SystemClock())
    token = api_jws.encode(json.dumps({"iss": issuer["url"]}).encode(), "x" * 32, "HS256")

    async def main() -> None:
        asking = asyncio.create_task(authenticator.run())
        await asyncio.sleep(0)
        began = time.monotonic()
        with pytest.raises(RefusedError, match="authenticator not initialized"):
            await authenticator.authenticate_token(token, ["api"])
        assert time.monotonic() - began < PATIENCE
        asking.cancel()

    asyncio.run(main())
    assert listed(cluster) == 200


def test_what_a_webhook_was_asked_is_in_no_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Its failure is, without the token."""
    caplog.set_level(logging.DEBUG)
    where = {"server": "https://127.0.0.1:1/review"}
    kubeconfig = {
        "clusters": [{"name": "c", "cluster": where}],
        "users": [{"name": "u", "user": {"token": "token-of-the-server"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    (tmp_path / "kubeconfig").write_text(json.dumps(kubeconfig))
    config = Config(authentication_token_webhook_config_file=tmp_path / "kubeconfig")
    with Cluster.from_config(config) as running:
        assert listed(running, "token-of-a-user") == 401
    assert "failed to make webhook authenticator request" in caplog.text
    assert "token-of" not in caplog.text
