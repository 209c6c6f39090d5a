"""Secrets that are sent by every route appear in nothing that the server writes: its output, its audit log, its metrics, its pages.

Every secret has MARK in it, or MARK's base64. The server logs as much as it can.
"""

import base64
import json
import os
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from conformance.bench.servers import free_port, wait_ready
from conformance.exchange import Client

MARK = "hunter2"
SECRETS = "/api/v1/namespaces/default/secrets"
ADMIN = f"bench-admin-{MARK}"
PAGES = (
    *(
        "/metrics",
        "/metrics/slis",
        "/statusz",
        "/flagz",
        "/configz",
        "/debug/flags",
        "/debug/pprof/cmdline",
        "/version",
    ),
    *("/fakeapiserver/state", "/fakeapiserver/snapshots", "/fakeapiserver/openapi.json", "/fakeapiserver/docs"),
    *("/debug/api_priority_and_fairness/dump_requests", "/healthz?verbose", "/openapi/v3", "/logs/"),
)


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


# Eight characters of its base64 that depend on nothing before it, at each of three places.
FORMS = (
    MARK,
    *(base64.b64encode(b"x" * n + MARK.encode() + b"xx")[start:][:8].decode() for n, start in ((0, 0), (1, 2), (2, 3))),
)


def test_marks_are_found_wherever_they_stand() -> None:
    assert all(any(form in encoded(f"{'abcd'[:n]}{MARK}") for form in FORMS[1:]) for n in range(4))


def kubeconfig(folder: Path, name: str, server: str, user: dict[str, str]) -> Path:
    file = folder / f"{name}.kubeconfig"
    config = {
        "clusters": [{"name": "c", "cluster": {"server": server, "insecure-skip-tls-verify": True}}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "c",
    }
    file.write_text(json.dumps(config))
    return file


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[Client, int, Path]]:
    """Yields a client, the port, and the folder with the server's output."""
    port, told = free_port(), tmp_path / "told"
    told.mkdir()
    (tmp_path / "tokens.csv").write_text(f'{ADMIN},admin,1,"system:masters"\nbench-admin,probe,2,"system:masters"\n')
    (tmp_path / "policy.yaml").write_text("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n")
    closed = f"https://user:{MARK}@127.0.0.1:1/x"
    review = kubeconfig(tmp_path, "review", closed, {"token": MARK})
    audit = kubeconfig(tmp_path, "audit", closed, {})
    flags = {
        "secure-port": port,
        "v": 8,
        "write-kubeconfig": tmp_path / "admin.kubeconfig",
        "token-auth-file": tmp_path / "tokens.csv",
        "audit-policy-file": tmp_path / "policy.yaml",
        "audit-log-path": told / "audit.log",
        "audit-webhook-config-file": audit,
        "audit-webhook-mode": "blocking",
        "audit-webhook-initial-backoff": "1ms",
        "authentication-token-webhook-config-file": review,
        "authorization-mode": "RBAC,Webhook",
        "authorization-webhook-config-file": review,
    }
    command = [sys.executable, "-m", "fakeapiserver", "serve", *(f"--{name}={value}" for name, value in flags.items())]
    with (told / "out").open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, env={**os.environ, "PYTHONASYNCIODEBUG": "0"})
        try:
            wait_ready(f"https://127.0.0.1:{port}", process)
            yield Client(f"https://127.0.0.1:{port}", ADMIN), port, told
        finally:
            process.terminate()
            process.wait(60)


def attack(client: Client) -> None:
    """Sends MARK by every route of HTTP."""
    review = "/apis/authentication.k8s.io/v1/tokenreviews"
    secret = {"metadata": {"name": "s"}, "stringData": {"a": MARK}, "data": {"b": encoded(MARK)}}
    subprotocol = f"base64url.bearer.authorization.k8s.io.{encoded(MARK).rstrip('=')}, v4.channel.k8s.io"
    upgrade = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13"}
    sockets = {**upgrade, "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Protocol": subprotocol}
    token = {"method": "POST", "path": "/api/v1/namespaces/default/serviceaccounts/s/token", "body": {}}
    for request in (
        *({"method": "GET", "path": SECRETS, "token": "", "headers": {"Authorization": text}} for text in (
            f"Bearer {MARK}", f"bearer  {MARK}", f"Basic {encoded(f'user:{MARK}')}", f"Digest {MARK}", MARK,
            f"Bearer eyJhbGciOiJSUzI1NiJ9.{encoded(MARK)}.x",
        )),
        {"method": "GET", "path": SECRETS, "token": "", "headers": {"Cookie": MARK, "Proxy-Authorization": MARK}},
        {"method": "GET", "path": f"{SECRETS}?watch=1", "token": "", "headers": sockets},
        {"method": "POST", "path": SECRETS, "body": secret},
        {"method": "PUT", "path": f"{SECRETS}/s", "body": secret},
        {"method": "PATCH", "path": f"{SECRETS}/s", "body": secret, "type": "application/merge-patch+json"},
        {"method": "PATCH", "path": f"{SECRETS}/s", "text": f"{{{MARK}", "type": "application/merge-patch+json"},
        {"method": "PATCH", "path": f"{SECRETS}/s", "text": f"a: [{MARK}", "type": "application/apply-patch+yaml"},
        {"method": "POST", "path": SECRETS, "text": f'{{"data":{{"a":"{MARK}!"}}}}'},
        {"method": "POST", "path": SECRETS, "text": f"{MARK}", "type": f"application/{MARK}"},
        {"method": "GET", "path": f"{SECRETS}/s"},
        {"method": "GET", "path": SECRETS, "accept": "application/vnd.kubernetes.protobuf"},
        {"method": "GET", "path": f"{SECRETS}?watch=1&timeoutSeconds=1"},
        {"method": "POST", "path": review, "body": {"spec": {"token": MARK}}},
        {"method": "POST", "path": review, "body": {"spec": {"token": {"a": MARK}}}},
        {"method": "POST", "path": "/api/v1/namespaces/default/serviceaccounts", "body": {"metadata": {"name": "s"}}},
        {"method": "GET", "path": "/api/v1/nodes", "headers": {"Impersonate-User": "jane"}},
        {"method": "PUT", "path": "/debug/flags/v", "text": MARK},
    ):  # fmt: skip
        client.send(request, [])
    answer = client.send(token, [])
    assert answer["status"] == 201
    # The token that was just made is a secret as well: it is used, and spoilt.
    for used in (answer["body"]["status"]["token"], answer["body"]["status"]["token"][:-4]):
        client.send({"method": "GET", "path": SECRETS, "token": used}, [])
        assert used.rpartition(".")[2]


def broken_heads(port: int) -> None:
    """Sends malformed request heads."""
    for head in (
        f"GET / HTTP/1.1\r\nHost: x\r\nAuthorization: {MARK}\x00\r\n\r\n",
        f"GET / HTTP/1.1\r\nAuthorization: {MARK}\r\n\r\n",
        f"GET / HTTP/9.9\r\nAuthorization: {MARK}\r\n\r\n",
        f"{MARK}\r\n\r\n",
        f"POST / HTTP/1.1\r\nHost: x\r\nAuthorization: {MARK}\r\nContent-Length: x\r\n\r\n",
        f"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n{MARK}\r\n",
    ):
        plain = socket.create_connection(("127.0.0.1", port), timeout=60)
        with ssl._create_unverified_context().wrap_socket(plain) as connection:
            connection.sendall(head.encode())
            while connection.recv(65536):
                pass


def test_nothing_reveals_a_secret(server: tuple[Client, int, Path]) -> None:
    client, port, folder = server
    attack(client)
    broken_heads(port)
    for number, page in enumerate(PAGES):
        (folder / f"page-{number}").write_text(json.dumps(client.send({"method": "GET", "path": page}, [])))
    told = {file.name: file.read_text() for file in folder.iterdir()}
    assert '"stage":"ResponseComplete"' in told["audit.log"]
    assert "audit plugin 'webhook'" in told["out"]
    found = {(name, form) for name, text in told.items() for form in FORMS if form in text}
    assert not found, next(line for line in told[min(found)[0]].splitlines() if min(found)[1] in line)
    assert "eyJ" not in "".join(told.values())  # what tokens begin with


def test_only_audit_shows_a_token_in_a_url_as_upstreams_does(server: tuple[Client, int, Path]) -> None:
    client, _, folder = server
    client.send({"method": "GET", "path": f"{SECRETS}?access_token={MARK}"}, [])
    client.send({"method": "GET", "path": f"{SECRETS}?access_token={MARK}&limit=x"}, [])
    told = {file.name: file.read_text() for file in folder.iterdir()}
    assert {name for name, text in told.items() if MARK in text} == {"audit.log"}
    assert all(MARK in json.loads(line)["requestURI"] for line in told["audit.log"].splitlines() if MARK in line)
