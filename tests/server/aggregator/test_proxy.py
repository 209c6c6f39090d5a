"""Tests what goes through the aggregator to a server and back: a real kube-apiserver with the same server behind it did the same."""

import asyncio
import json
import socket
import ssl
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import pytest

from conformance.exchange import Client
from fakeapiserver import Cluster
from fakeapiserver.server.aggregator.proxy import redirected
from fakeapiserver.server.proxies.reverse_proxy import sniffed
from fakeapiserver.transport.round_trip import Target

from .backend import GROUP, ROOT, Asked, Backend
from .trust import whom_to_believe

Json = dict[str, Any]
SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"


class Setting(NamedTuple):
    cluster: Cluster
    client: Client
    backend: Backend

    def raw(self, text: str) -> bytes:
        """Everything that comes back to a request of exactly these bytes, until the connection ends."""
        context = ssl.create_default_context(cadata=self.cluster.ca.decode())
        port = int(self.cluster.url.rpartition(":")[2])
        with (
            socket.create_connection(("127.0.0.1", port), timeout=60) as plain,
            context.wrap_socket(plain, server_hostname="127.0.0.1") as connection,
        ):
            connection.sendall(text.replace("TOKEN", self.cluster.token).encode())
            return b"".join(iter(lambda: connection.recv(65536), b""))


@pytest.fixture(scope="module")
def setting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Setting]:
    with Cluster(controllers=()) as cluster:
        client = Client(cluster.url, cluster.token)
        told = whom_to_believe(client)
        backend = Backend(tmp_path_factory.mktemp("backend"), told["body"]["data"]["requestheader-client-ca-file"])
        outside = {"type": "ExternalName", "externalName": "127.0.0.1"}
        service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "raw"}, "spec": outside}
        send(client, "POST", "/api/v1/namespaces/default/services", service)
        spec = {
            "group": GROUP,
            "version": "v1",
            "groupPriorityMinimum": 1500,
            "versionPriority": 10,
            "caBundle": backend.ca_bundle,
            "service": {"name": "raw", "namespace": "default", "port": backend.port},
        }
        created = {
            "apiVersion": "apiregistration.k8s.io/v1",
            "kind": "APIService",
            "metadata": {"name": f"v1.{GROUP}"},
            "spec": spec,
        }
        send(client, "POST", SERVICES, created)
        found = client.send({"method": "GET", "path": f"{SERVICES}/v1.{GROUP}"}, [])
        while found["body"].get("status", {}).get("conditions", [{}])[0].get("reason") != "Passed":
            found = client.send({"method": "GET", "path": f"{SERVICES}/v1.{GROUP}"}, [])
        yield Setting(cluster, client, backend)
        backend.stop()


def send(client: Client, method: str, path: str, body: Any = None, **more: Any) -> Json:
    found: Json = client.send(
        {"method": method, "path": path, **more} | ({"body": body} if body is not None else {}), []
    )
    return found


async def shown(asked: Asked) -> None:
    length = int(asked.headers.get("Content-Length", ["0"])[0])
    body = (await asked.rest.readexactly(length)).decode()
    await asked.answer(
        json.dumps({"target": asked.target, "headers": asked.headers, "client": asked.client, "body": body})
    )


def test_the_callers_identity_goes_along_and_no_claim_or_credential_does(setting: Setting) -> None:
    setting.backend.answers["shown"] = shown
    claims = {
        "X-Remote-User": "evil",
        "X-Remote-Group": "system:masters",
        "X-Remote-Extra-Foo": "evil",
        "X-Remote-Uid": "7",
    }
    who = {
        "Impersonate-User": "zoë".encode().decode("latin-1"),
        "Impersonate-Group": "system:masters",
        "Impersonate-Extra-Some%2fThing": "v",
    }
    hops = {
        "Connection": "X-Hop, keep-alive",
        "X-Hop": "1",
        "Keep-Alive": "4",
        "Proxy-Authorization": "p",
        "Te": "trailers",
    }
    before = {"X-Forwarded-For": "192.0.2.9", "X-Forwarded-Host": "elsewhere", "Audit-ID": "abc"}
    found = send(setting.client, "GET", f"{ROOT}/a%20b/shown?b=1&a=2&c", headers={**claims, **who, **hops, **before})
    headers = found["body"]["headers"]
    authority = f"127.0.0.1:{setting.backend.port}"
    assert found["body"]["client"] == "front-proxy-client"
    assert found["body"]["target"] == f"{ROOT}/a%20b/shown?a=2&b=1&c="
    assert {
        name: values for name, values in headers.items() if name not in ("Accept", "User-Agent", "Accept-Encoding")
    } == {
        "Host": [authority],
        "Te": ["trailers"],
        "Audit-Id": ["abc"],
        "X-Forwarded-For": ["192.0.2.9, 127.0.0.1"],
        "X-Forwarded-Host": [authority],
        "X-Forwarded-Proto": ["https"],
        "X-Forwarded-Uri": [f"{ROOT}/a%20b/shown"],
        "X-Remote-User": ["zoë"],
        "X-Remote-Group": ["system:masters", "system:authenticated"],
        "X-Remote-Extra-Some%2fthing": ["v"],
    }


def test_a_body_goes_along_as_it_is(setting: Setting) -> None:
    setting.backend.answers["shown"] = shown
    assert send(setting.client, "POST", f"{ROOT}/shown", text="{not json", type="text/x")["body"]["body"] == "{not json"


async def _redirects(asked: Asked) -> None:
    await asked.answer("{}", "302 Found", "Location: /elsewhere")


async def _teapot(asked: Asked) -> None:
    await asked.answer("{}", "418 I'm a teapot")


async def _dies(asked: Asked) -> None:
    raise EOFError


async def _babbles(asked: Asked) -> None:
    await asked.send("babble\r\n\r\n")


UNREACHABLE = "error trying to reach service: "


@pytest.mark.parametrize(
    ("answer", "status", "text"),
    [
        (_redirects, 502, "the backend attempted to redirect this request, which is not permitted"),
        (_dies, 503, UNREACHABLE + "EOF\n"),
        (
            _babbles,
            503,
            UNREACHABLE + 'net/http: HTTP/1.x transport connection broken: malformed HTTP response "babble"\n',
        ),
    ],
)
def test_an_invalid_response_is_reported_as_text(setting: Setting, answer: Any, status: int, text: str) -> None:
    setting.backend.answers["bad"] = answer
    found = send(setting.client, "GET", f"{ROOT}/bad")
    assert (found["status"], found["text"]) == (status, text)


@pytest.mark.parametrize(
    ("body", "media_type"),
    [
        (b"", ""),
        (b'{"a": 1}', "text/plain; charset=utf-8"),
        (b"\n <HTML>", "text/html; charset=utf-8"),
        (b"k8s\x00\n", "application/octet-stream"),
    ],
)
def test_a_body_without_a_type_gets_the_one_that_go_finds_in_it(body: bytes, media_type: str) -> None:
    assert sniffed(body) == media_type


@pytest.mark.parametrize(
    ("location", "handed_on"),
    [
        (b"/x?y#z", b"https://192.0.2.1:443/x?y#z"),
        (b"https://192.0.2.1:443/x", b"https://192.0.2.1:443/x"),
        (b"http://192.0.2.1:443/x", b"https://192.0.2.1:443/x"),
        (b"https://example.com/x", b"https://example.com/x"),
        (b"x/y", b"x/y"),
    ],
)
def test_a_redirect_that_may_be_leads_to_the_server_it_comes_from(location: bytes, handed_on: bytes) -> None:
    assert redirected(location, Target("192.0.2.1", 443, "raw.default.svc")) == handed_on


def test_any_status_is_handed_on(setting: Setting) -> None:
    setting.backend.answers["teapot"] = _teapot
    assert send(setting.client, "GET", f"{ROOT}/teapot")["status"] == 418


def test_an_answer_that_breaks_off_breaks_off_for_the_client_too(setting: Setting) -> None:
    async def breaks(asked: Asked) -> None:
        await asked.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n")
        raise EOFError

    setting.backend.answers["half"] = breaks
    got = setting.raw(f"GET {ROOT}/half HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer TOKEN\r\n\r\n")
    assert got.endswith(b"4\r\nhalf\r\n")


def test_a_response_that_breaks_off_in_its_head_is_invalid(setting: Setting) -> None:
    async def breaks(asked: Asked) -> None:
        await asked.send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n")
        raise EOFError

    setting.backend.answers["half"] = breaks
    assert setting.raw(f"GET {ROOT}/half HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer TOKEN\r\n\r\n") == b""


def test_chunks_come_one_by_one(setting: Setting) -> None:
    """The second piece is only sent when the client has seen the first."""
    seen = asyncio.Event()

    async def pieces(asked: Asked) -> None:
        await asked.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n")
        await asyncio.wait_for(seen.wait(), 60)
        await asked.send("6\r\nsecond\r\n0\r\n\r\n")

    async def signal(asked: Asked) -> None:
        seen.set()
        await asked.answer("{}")

    setting.backend.answers |= {"pieces": pieces, "signal": signal}
    context = ssl.create_default_context(cadata=setting.cluster.ca.decode())
    port = int(setting.cluster.url.rpartition(":")[2])
    with (
        socket.create_connection(("127.0.0.1", port), timeout=60) as plain,
        context.wrap_socket(plain, server_hostname="127.0.0.1") as connection,
    ):
        head = f"GET {ROOT}/pieces HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {setting.cluster.token}\r\n\r\n"
        connection.sendall(head.encode())
        got = b""
        while b"first" not in got:
            got += connection.recv(65536)
        assert b"second" not in got
        send(setting.client, "GET", f"{ROOT}/signal")
        while b"second" not in got:
            got += connection.recv(65536)


@pytest.mark.parametrize("end", ["timeout", "client"])
def test_a_request_that_ends_here_ends_there(setting: Setting, end: str) -> None:
    setting.backend.answers["hang"] = setting.backend.hang
    if end == "timeout":
        is_there = False
        while not is_there:  # a busy machine may need longer to ask
            found = send(setting.client, "GET", f"{ROOT}/hang?timeout=300ms")
            assert found["status"] == 504
            is_there = setting.backend.started.acquire(timeout=1)
    else:
        context = ssl.create_default_context(cadata=setting.cluster.ca.decode())
        port = int(setting.cluster.url.rpartition(":")[2])
        with (
            socket.create_connection(("127.0.0.1", port), timeout=60) as plain,
            context.wrap_socket(plain, server_hostname="127.0.0.1") as connection,
        ):
            head = f"GET {ROOT}/hang HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {setting.cluster.token}\r\n\r\n"
            connection.sendall(head.encode())
            assert setting.backend.started.acquire(timeout=60)
    assert setting.backend.gone.acquire(timeout=60)


async def _shouts(asked: Asked) -> None:
    """Another protocol: everything comes back in capitals."""
    await asked.send("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: Shouting/1\r\n\r\nHello ")
    while b"\n" not in (data := await asked.rest.read(1000)):
        asked.writer.write(data.upper())
    asked.writer.write(data.upper())
    raise EOFError


async def _refuses(asked: Asked) -> None:
    await asked.answer("nope", "403 Forbidden")
    raise EOFError


async def _ignores(asked: Asked) -> None:
    await asked.answer("okay")


UPGRADE = "Host: x\r\nAuthorization: Bearer TOKEN\r\nConnection: Upgrade\r\nUpgrade: Shouting/1\r\nX-Remote-User: evil\r\n\r\n"


def test_a_connection_can_change_its_protocol(setting: Setting) -> None:
    setting.backend.answers["up"] = _shouts
    got = setting.raw(f"GET {ROOT}/up?x=1 HTTP/1.1\r\n{UPGRADE}world\n")
    assert got == (
        b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: Shouting/1\r\n\r\nHello WORLD\n"
    )
    headers = setting.backend.asked[-1].headers
    assert len(headers["X-Remote-User"]) == 1
    assert headers["X-Remote-User"] != ["evil"]
    assert "Authorization" not in headers
    assert headers["Upgrade"] == ["Shouting/1"]


def test_a_refusal_to_change_it_is_handed_on_as_it_is(setting: Setting) -> None:
    setting.backend.answers["up"] = _refuses
    got = setting.raw(f"GET {ROOT}/up HTTP/1.1\r\n{UPGRADE}")
    assert got == b"HTTP/1.1 403 Forbidden\r\nContent-Type: application/json\r\nContent-Length: 4\r\n\r\nnope"


def test_an_answer_in_the_old_protocol_is_no_answer(setting: Setting) -> None:
    setting.backend.answers["up"] = _ignores
    got = setting.raw(
        f"GET {ROOT}/up HTTP/1.1\r\n{UPGRADE.replace('Connection: Upgrade', 'Connection: Upgrade, close')}"
    )
    assert got.startswith(b"HTTP/1.1 503 ")
    assert got.endswith(b"invalid upgrade response: status code 200\n")


def test_a_kept_connection_that_the_server_has_closed_costs_nothing(setting: Setting) -> None:
    connections: list[asyncio.StreamWriter] = []

    async def once(asked: Asked) -> None:
        connections.append(asked.writer)
        await asked.answer("{}")
        if len(connections) % 2 == 0:
            raise EOFError

    setting.backend.answers["once"] = once
    assert [send(setting.client, "GET", f"{ROOT}/once")["status"] for _ in range(20)] == [200] * 20
    # Most are: a client's next request may be faster than the end of the one before.
    assert any(first is second for first, second in pairwise(connections))
