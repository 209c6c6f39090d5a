"""Token webhooks whose kubeconfig names an exec plugin, a file with a token, or a proxy."""

import asyncio
import json
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from conformance.players.tls_server import TLSServer
from fakeapiserver.clock import SystemClock
from fakeapiserver.server.options.webhook_clients import remote

REVIEW = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": "x"}}
CREDENTIAL = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential"}


class Asked(BaseHTTPRequestHandler):
    """Responds with the credentials of the request; the token `old` is rejected, so that the client fetches another one."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        name = self.headers.get("Authorization", "nobody")
        status = {"authenticated": True, "user": {"username": name}}
        body = json.dumps({**REVIEW, "status": status}).encode()
        self.send_response(401 if name == "Bearer old" else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture(scope="module")
def server() -> Iterator[TLSServer]:
    with TLSServer(Asked) as running:
        yield running


def kubeconfig(folder: Path, server: TLSServer, user: dict[str, Any], **cluster: Any) -> Path:
    where = {
        "server": f"https://127.0.0.1:{server.port}/review",
        "certificate-authority-data": server.ca_bundle,
        **cluster,
    }
    config = {
        "clusters": [{"name": "c", "cluster": where}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    file = folder / "kubeconfig"
    file.write_text(json.dumps(config))
    return file


def plugin(folder: Path, status: dict[str, Any] | None) -> dict[str, Any]:
    """A program that prints an ExecCredential, and counts how often it was asked."""
    script = folder / "plugin.py"
    script.write_text(
        f"import json, pathlib\ncount = pathlib.Path({str(folder / 'count')!r})\n"
        "count.write_text(count.read_text() + 'x' if count.exists() else 'x')\n"
        f"print(json.dumps({ ({**CREDENTIAL, **({'status': status} if status else {})})!r}))\n"
    )
    return {
        "exec": {
            "apiVersion": CREDENTIAL["apiVersion"],
            "command": sys.executable,
            "args": [str(script)],
            "interactiveMode": "Never",
        }
    }


def asked(file: Path, times: int = 1) -> list[str]:
    """Returns for each call the user name that the webhook saw, or the error."""

    async def main() -> list[str]:
        webhook, found = remote(file, 10.0, SystemClock()), []
        for _ in range(times):
            try:
                found.append(str((await webhook.post(REVIEW))["status"]["user"]["username"]))
            except ValueError as error:
                found.append(str(error))
        return found

    return asyncio.run(main())


def test_a_plugin_is_asked_once_for_a_credential_that_is_good(tmp_path: Path, server: TLSServer) -> None:
    file = kubeconfig(tmp_path, server, plugin(tmp_path, {"token": "new"}))
    assert asked(file, 2) == ["Bearer new"] * 2
    assert (tmp_path / "count").read_text() == "x"


@pytest.mark.parametrize("status", [{"token": "old"}, {"token": "new", "expirationTimestamp": "2020-01-01T00:00:00Z"}])
def test_a_plugin_is_asked_again_after_a_refusal_and_when_its_credential_has_expired(
    tmp_path: Path, server: TLSServer, status: dict[str, Any]
) -> None:
    asked(kubeconfig(tmp_path, server, plugin(tmp_path, status)), 2)
    assert (tmp_path / "count").read_text() == "xx"


def test_a_plugin_without_output_is_reported(tmp_path: Path, server: TLSServer) -> None:
    [complaint] = asked(kubeconfig(tmp_path, server, plugin(tmp_path, None)))
    assert complaint.endswith("getting credentials: exec plugin didn't return a status field")


def test_a_token_file_is_read(tmp_path: Path, server: TLSServer) -> None:
    (tmp_path / "token").write_text("from-file\n")
    assert asked(kubeconfig(tmp_path, server, {"tokenFile": "token", "token": "from-config"})) == ["Bearer from-file"]


def test_names_are_those_of_the_certificate(tmp_path: Path, server: TLSServer) -> None:
    [wrong] = asked(kubeconfig(tmp_path, server, {}, **{"tls-server-name": "other"}))
    assert "certificate is valid for" in wrong
    assert asked(kubeconfig(tmp_path, server, {}, **{"tls-server-name": "localhost"})) == ["nobody"]
