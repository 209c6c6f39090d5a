"""Watches over WebSockets, with other people's clients and with raw bytes, as a real server answered them."""

import asyncio
import base64
import json
import ssl
from collections.abc import Iterator
from typing import Any

import pytest

from fakeapiserver import Cluster

websockets = pytest.importorskip("websockets.asyncio.client")

PATH = "/api/v1/namespaces/default/configmaps"
HANDSHAKE = {
    "Upgrade": "websocket",
    "Connection": "Upgrade",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
    "Origin": "http://x",
}
ACCEPTED = (
    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"
)
GOODBYE = b"\x88\x02\x03\xe8"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(controllers=()) as cluster:
        yield cluster


def client_context(cluster: Cluster) -> ssl.SSLContext:
    return ssl.create_default_context(cadata=cluster.ca.decode())


async def ask(cluster: Cluster, path: str, headers: dict[str, str], body: bytes = b"", method: str = "GET") -> bytes:
    """Everything that comes back, until the server closes."""
    port = int(cluster.url.rpartition(":")[2])
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=client_context(cluster))
    lines = [f"{method} {path} HTTP/1.1", "Host: x", f"Authorization: Bearer {cluster.token}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
    try:
        return await asyncio.wait_for(reader.read(), 60)
    finally:
        writer.close()


def masked(opcode: int, payload: bytes, *, final: bool = True) -> bytes:
    """A client's frame; the mask is zero, so the payload is legible."""
    return bytes([final << 7 | opcode, 0x80 | len(payload)]) + bytes(4) + payload


def create(cluster: Cluster, name: str) -> None:
    client, config = pytest.importorskip("kubernetes.client"), pytest.importorskip("kubernetes.config")
    with config.new_client_from_config(str(cluster.kubeconfig)) as api:
        client.CoreV1Api(api).create_namespaced_config_map("default", {"metadata": {"name": name}})


def test_each_event_is_a_text_message(cluster: Cluster) -> None:
    async def main() -> list[str]:
        address = cluster.url.replace("https", "wss") + f"{PATH}?watch=true&timeoutSeconds=300"
        headers = {"Authorization": f"Bearer {cluster.token}"}
        options = {"origin": "http://localhost", "additional_headers": headers, "open_timeout": 60}
        connecting = websockets.connect(address, ssl=client_context(cluster), **options)
        async with connecting as socket:
            await asyncio.to_thread(create, cluster, "a")
            await asyncio.to_thread(create, cluster, "b")
            await (await socket.ping())
            return [await socket.recv(), await socket.recv()]

    events = [json.loads(message) for message in asyncio.run(main())]
    assert [(event["type"], event["object"]["metadata"]["name"]) for event in events] == [
        ("ADDED", "a"),
        ("ADDED", "b"),
    ]


def test_websocket_client_watches(cluster: Cluster) -> None:
    websocket = pytest.importorskip("websocket")
    address = cluster.url.replace("https", "wss") + "/api/v1/namespaces?watch=1&fieldSelector=metadata.name%3Ddefault"
    socket = websocket.create_connection(
        address,
        header=[f"Authorization: Bearer {cluster.token}"],
        sslopt={"cert_reqs": ssl.CERT_NONE},
        timeout=60,
        subprotocols=["base64.binary.k8s.io"],
    )
    assert socket.getsubprotocol() == "base64.binary.k8s.io"
    assert json.loads(socket.recv())["object"]["metadata"]["name"] == "default"
    socket.close()


BAD_VERSION = b"HTTP/1.1 400 Bad Request\r\nSec-WebSocket-Version: 13\r\n\r\nmissing or bad WebSocket Version"
TOKEN = "base64url.bearer.authorization.k8s.io."
REFUSED: list[tuple[str, dict[str, str], bytes]] = [
    ("no origin", {"Origin": ""}, b"HTTP/1.1 403 Forbidden\r\n\r\n"),
    ("the origin of a sandbox", {"Origin": "null"}, b"HTTP/1.1 403 Forbidden\r\n\r\n"),
    ("an origin that is no URL", {"Origin": "example.com"}, b"HTTP/1.1 403 Forbidden\r\n\r\n"),
    ("no key", {"Sec-WebSocket-Key": ""}, b"HTTP/1.1 400 Bad Request\r\n\r\nmismatch challenge/response"),
    ("version 8", {"Sec-WebSocket-Version": "8"}, BAD_VERSION),
    ("two subprotocols without a name", {"Sec-WebSocket-Protocol": ","}, b"HTTP/1.1 400 Bad Request\r\n\r\n"),
    ("a token that nobody needed", {"Sec-WebSocket-Protocol": f"{TOKEN}eA, a"}, b"HTTP/1.1 400 Bad Request\r\n\r\n"),
    ("two subprotocols", {"Sec-WebSocket-Protocol": "a, b"}, b"HTTP/1.1 400 Bad Request\r\n\r\n"),
]  # fmt: skip


@pytest.mark.parametrize(("headers", "answer"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_a_bad_handshake_is_refused_as_go_does(cluster: Cluster, headers: dict[str, str], answer: bytes) -> None:
    asked = {name: value for name, value in {**HANDSHAKE, **headers}.items() if value}
    assert asyncio.run(ask(cluster, f"{PATH}?watch=1", asked)) == answer


FRAMES = {
    "nothing": (b"", GOODBYE),
    "a ping": (masked(9, b"hi"), b"\x8a\x02hi" + GOODBYE),
    "messages nobody wants": (masked(1, b"hello") + masked(9, b"x"), b"\x8a\x01x" + GOODBYE),
    "a message in two frames": (masked(1, b"he", final=False) + masked(0, b"llo") + masked(9, b"x"), b"\x8a\x01x" + GOODBYE),
    "a farewell": (masked(8, b"\x03\xe8"), GOODBYE),
    "a farewell of one byte": (masked(8, b"\x03"), GOODBYE),
    "a farewell with a code that nobody knows": (masked(8, b"\x00\x01"), GOODBYE),
    "a frame without a mask": (b"\x81\x05hello", b"\x88\x02\x03\xea" + GOODBYE),
    "junk": (b"GET / HTTP/1.1\r\n\r\n", b"\x88\x02\x03\xea" + GOODBYE),
    "a text that is none, then a ping": (masked(1, b"\xff") + masked(9, b"x"), b"\x8a\x01x" + GOODBYE),
    "a text within a text": (masked(1, b"he", final=False) + masked(1, b"llo") + masked(9, b"x"), b"\x8a\x01x" + GOODBYE),
    "a continuation of nothing": (masked(0, b"x") + masked(9, b"x"), b"\x8a\x01x" + GOODBYE),
    "reserved opcodes": (masked(3, b"x") + masked(11, b"x") + masked(9, b"x"), b"\x8a\x01x" + GOODBYE),
    "half a frame": (masked(9, b"hello")[:-1], GOODBYE),
    "more than a message may have": (b"\x81\xff" + (1 << 40).to_bytes(8) + bytes(9), GOODBYE),
}  # fmt: skip


@pytest.mark.parametrize(("sent", "received"), FRAMES.values(), ids=FRAMES.keys())
def test_frames(cluster: Cluster, sent: bytes, received: bytes) -> None:
    path = "/api/v1/namespaces/kube-public/secrets?watch=1&timeoutSeconds=1"
    assert asyncio.run(ask(cluster, path, HANDSHAKE, sent)) == ACCEPTED + received


def test_errors_before_the_upgrade_are_plain_answers_and_the_connection_stays(cluster: Cluster) -> None:
    second = b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    answer = asyncio.run(ask(cluster, "/api/v1/foos?watch=1", HANDSHAKE, second))
    assert answer.startswith(b"HTTP/1.1 404 Not Found\r\n")
    assert b'"reason":"NotFound"' in answer
    assert answer.endswith(b"\r\n\r\nok")


@pytest.mark.parametrize(
    ("framing", "body"),
    [("Content-Length: 30", b"%b"), ("Transfer-Encoding: chunked", b"1e\r\n%b\r\n0\r\n\r\n")],
)
def test_a_body_is_a_body_whatever_the_request_asks_for(cluster: Cluster, framing: str, body: bytes) -> None:
    """Otherwise the body could contain another request."""
    name, _, value = framing.partition(": ")
    hidden = b"GET /hidden HTTP/1.1\r\nHost:x\r\n\r\n"[:30]
    second = b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    answer = asyncio.run(ask(cluster, PATH, {**HANDSHAKE, name: value}, body % hidden + second, "POST"))
    assert answer.count(b"HTTP/1.1 ") == 2
    assert answer.endswith(b"\r\n\r\nok")


@pytest.mark.parametrize(
    ("protocols", "status"),
    [
        ([TOKEN + "TOKEN", "base64.binary.k8s.io"], b"101"),
        ([TOKEN + "TOKEN"], b"401"),
        ([TOKEN + "TOKEN", TOKEN + "TOKEN", "x"], b"401"),
        ([TOKEN + "!!!", "x"], b"401"),
        ([TOKEN + "bm9wZQ", "x"], b"401"),
    ],
)
def test_a_browser_sends_its_token_as_a_subprotocol(cluster: Cluster, protocols: list[str], status: bytes) -> None:
    token = base64.urlsafe_b64encode(cluster.token.encode()).decode().rstrip("=")
    sent = ",".join(protocols).replace("TOKEN", token)

    async def main() -> bytes:
        port = int(cluster.url.rpartition(":")[2])
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=client_context(cluster))
        lines = [f"GET {PATH}?watch=1&timeoutSeconds=1 HTTP/1.1", "Host: x", f"Sec-WebSocket-Protocol: {sent}"]
        lines += [f"{name}: {value}" for name, value in HANDSHAKE.items()]
        writer.write("\r\n".join(lines).encode() + b"\r\n\r\n")
        head = await reader.readuntil(b"\r\n\r\n")
        writer.close()
        return head

    head = asyncio.run(main())
    assert head.split()[1] == status
    assert (b"Sec-WebSocket-Protocol: base64.binary.k8s.io" in head) == (status == b"101")


def test_a_binary_watch_has_messages_without_lengths(cluster: Cluster) -> None:
    path = "/api/v1/namespaces?watch=1&timeoutSeconds=1&fieldSelector=metadata.name%3Ddefault"
    accept: dict[str, Any] = {**HANDSHAKE, "Accept": "application/vnd.kubernetes.protobuf;stream=watch"}
    answer = asyncio.run(ask(cluster, path, accept))
    frame = answer.removeprefix(ACCEPTED)
    assert frame[:1] == b"\x82"
    assert frame[4:].startswith(b"\n\x05ADDED")
