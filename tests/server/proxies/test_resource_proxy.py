"""Proxies to pods, services and nodes: simulated ones answer as they are scripted."""

import asyncio
import gzip
import http.client
import json
import socket
import ssl
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from fakeapiserver import Cluster
from fakeapiserver.client import synchronous

PODS, SERVICES = "/api/v1/namespaces/default/pods", "/api/v1/namespaces/default/services"


async def echoing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answers with the request; `/zip` packed, `/page` with a link, `/up` with another protocol, which echoes."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    lines = head.split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines[1:-2])
    body = await reader.readexactly(int(headers.get("Content-Length", 0)))
    path = lines[0].split(" ")[1]
    extra = b""
    text = json.dumps({"line": lines[0], "headers": headers, "body": body.decode()}).encode()
    if path == "/up":
        writer.write(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
        while data := await reader.read(100):
            writer.write(data)
        return
    if path == "/zip":
        text, extra = gzip.compress(b"unpacked"), b"Content-Encoding: gzip\r\n"
    if path == "/page":
        text, extra = b"<a href=/next>", b"Content-Type: text/html\r\nAccess-Control-Allow-Origin: *\r\n"
    if path == "/away":
        text, extra = b"", b"Location: /next\r\n"
    writer.write(b"HTTP/1.1 200 OK\r\n%bContent-Length: %d\r\n\r\n%b" % (extra, len(text), text))
    await writer.drain()


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(nodes=1) as running, synchronous.connect(running.kubeconfig) as client:
        running.nodes.script(name="web", ports={8080: echoing, 81: b"HTTP/1.0 418 Teapot\r\n\r\nshort"})
        labels = {"app": "web"}
        container = {"name": "c", "image": "i", "ports": [{"containerPort": 8080}]}
        made = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "labels": labels}}
        client.resource("pods", "default").create({**made, "spec": {"containers": [container]}})
        ports = [{"name": "http", "port": 80, "targetPort": 8080}]
        service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}}
        client.resource("services", "default").create({**service, "spec": {"selector": labels, "ports": ports}})
        running.settle()
        yield running


def ask(cluster: Cluster, method: str, path: str, body: bytes | None = None, **headers: str) -> tuple[int, Any, bytes]:
    url = urlsplit(cluster.url)
    connection = http.client.HTTPSConnection(url.netloc, context=ssl._create_unverified_context(), timeout=60)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.putrequest(method, path, skip_accept_encoding=True)
    for name, value in {"Authorization": f"Bearer {cluster.token}", **named}.items():
        connection.putheader(name, value)
    if body is not None:
        connection.putheader("Content-Length", str(len(body)))
    connection.endheaders(body)
    response = connection.getresponse()
    try:
        return response.status, response.headers, response.read()
    finally:
        connection.close()


@pytest.mark.parametrize(
    ("path", "line", "uri"),
    [
        (f"{PODS}/web/proxy/", "GET / HTTP/1.1", f"{PODS}/web/proxy/"),
        (f"{PODS}/web:8080/proxy/a//b/../c%2Fd%3Fe?q=1;2&x=%zz", "GET /a/c/d%3Fe?q=1;2&x=%zz HTTP/1.1", None),
        (f"{PODS}/http:web:8080/proxy/x/", "GET /x/ HTTP/1.1", f"{PODS}/http:web:8080/proxy/x/"),
        (f"{SERVICES}/web:http/proxy/x", "GET /x HTTP/1.1", f"{SERVICES}/web:http/proxy/x"),
        (f"{SERVICES}/web:80/proxy/x", "GET /x HTTP/1.1", f"{SERVICES}/web:80/proxy/x"),
    ],
)
def test_what_a_pod_is_asked(cluster: Cluster, path: str, line: str, uri: str | None) -> None:
    status, _, body = ask(cluster, "GET", path, X_Forwarded_For="1.2.3.4", Keep_Alive="1")
    told = json.loads(body)
    assert (status, told["line"]) == (200, line)
    assert told["headers"]["X-Forwarded-For"] == "1.2.3.4, 127.0.0.1"
    assert not told["headers"].keys() & {"Authorization", "Keep-Alive"}
    assert uri is None or told["headers"]["X-Forwarded-Uri"] == uri


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_every_method_and_its_body(cluster: Cluster, method: str) -> None:
    status, _, body = ask(cluster, method, f"{PODS}/web/proxy/x", b"said")
    assert (status, json.loads(body)["body"]) == (200, "said")


def test_what_a_client_sees(cluster: Cluster) -> None:
    _, _, unpacked = ask(cluster, "GET", f"{PODS}/web/proxy/zip")
    assert unpacked == b"unpacked"
    _, headers, packed = ask(cluster, "GET", f"{PODS}/web/proxy/zip", Accept_Encoding="gzip")
    assert (headers["Content-Encoding"], gzip.decompress(packed)) == ("gzip", b"unpacked")
    _, headers, page = ask(cluster, "GET", f"{PODS}/web/proxy/page")
    assert (headers["Access-Control-Allow-Origin"], page) == (None, f'<a href="{PODS}/web/proxy/next">'.encode())
    _, headers, _ = ask(cluster, "GET", f"{PODS}/web/proxy/away")
    assert headers["Location"] == f"{PODS}/web/proxy/next"
    assert ask(cluster, "GET", f"{PODS}/web:81/proxy/")[::2] == (418, b"short")
    status, headers, _ = ask(cluster, "GET", f"{PODS}/web/proxy?a=b")
    assert (status, headers["Location"]) == (301, f"{PODS}/web/proxy/?a=b")


@pytest.mark.parametrize(
    ("path", "status", "message"),
    [
        (
            f"{PODS}/web:9/proxy/",
            503,
            "error trying to reach service: dial tcp 100.64.0.1:9: connect: connection refused",
        ),
        (f"{PODS}/web:http/proxy/", 400, 'invalid port "http"'),
        (f"{PODS}/web:70000/proxy/", 503, "error trying to reach service: dial tcp: address 70000: invalid port"),
        (f"{PODS}/ftp:web:1/proxy/", 400, 'invalid pod request "ftp:web:1"'),
        (f"{PODS}/none/proxy/", 404, 'pods "none" not found'),
        (f"{SERVICES}/web/proxy/", 503, 'no endpoints available for service "web"'),
        (f"{SERVICES}/web:81/proxy/", 503, 'no service port 81 found for service "web"'),
        (f"{SERVICES}/none/proxy/", 503, 'no endpoints available for service "none"'),
        (f"{SERVICES}/http:none:80/proxy/", 404, 'services "none" not found'),
    ],
)
def test_refusals(cluster: Cluster, path: str, status: int, message: str) -> None:
    found, _, body = ask(cluster, "GET", path)
    assert (found, json.loads(body)["message"]) == (status, message)


def test_a_connection_that_changes_its_protocol(cluster: Cluster) -> None:
    url = urlsplit(cluster.url)
    head = f"GET {PODS}/web/proxy/up HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {cluster.token}\r\n"
    raw = socket.create_connection((url.hostname, url.port), 10)
    with ssl._create_unverified_context().wrap_socket(raw) as connection:
        connection.sendall(f"{head}Connection: Upgrade\r\nUpgrade: echo\r\n\r\n".encode())
        assert connection.recv(1000).startswith(b"HTTP/1.1 101 ")
        connection.sendall(b"ping")
        assert connection.recv(100) == b"ping"


def test_a_simulated_node(cluster: Cluster) -> None:
    assert ask(cluster, "GET", "/api/v1/nodes/node-1/proxy/healthz")[::2] == (200, b"ok")
    assert [
        pod["metadata"]["name"]
        for pod in json.loads(ask(cluster, "GET", "/api/v1/nodes/node-1/proxy/pods")[2])["items"]
    ] == ["web"]
    cluster.nodes.stop("node-1")
    status, _, body = ask(cluster, "GET", "/api/v1/nodes/node-1/proxy/healthz")
    cluster.nodes.start("node-1")
    assert (status, json.loads(body)["message"].partition(": ")[0]) == (503, "error trying to reach service")
