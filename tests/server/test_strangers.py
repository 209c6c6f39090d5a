"""A server that others can reach: what they may do without credentials or rights, and what they find on its machine."""

import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import httpx
import pytest

from fakeapiserver.cluster import Cluster

# Without credentials, as with kube-apiserver: system:public-info-viewer.
PUBLIC: Final = {"/healthz", "/livez", "/readyz", "/version"}
# With any: system:discovery.
DISCOVERY: Final = ("/api", "/apis", "/openapi")


class Reached:
    """A running server with everything that can be reached, and its paths."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.clients = {
            "anonymous": self._client({}),
            "without rights": self._client({"Authorization": f"Bearer {cluster.user_token('jane')}"}),
        }
        admin = self._client({"Authorization": f"Bearer {cluster.token}"})
        self.paths: list[str] = admin.get("/").json()["paths"]
        control = admin.get("/fakeapiserver/openapi.json").json()["paths"]
        self.control = [
            (method.upper(), path.replace("{", "").replace("}", ""))
            for path, methods in control.items()
            for method in methods
        ]

    def _client(self, headers: dict[str, str]) -> httpx.Client:
        return httpx.Client(base_url=self.cluster.url, verify=False, headers=headers, timeout=20)


@pytest.fixture(scope="module")
def reached() -> Iterator[Reached]:
    with Cluster(nodes=1, ui=True, kept_requests=100) as cluster:
        yield Reached(cluster)


def test_without_credentials_only_health_and_version_are_readable(reached: Reached) -> None:
    client = reached.clients["anonymous"]
    assert {path for path in reached.paths if client.get(path).status_code not in (401, 403)} == PUBLIC


def test_without_rights_only_discovery_is_readable_besides(reached: Reached) -> None:
    client = reached.clients["without rights"]
    readable = {path for path in reached.paths if client.get(path).status_code not in (401, 403)}
    assert readable > PUBLIC
    assert {path for path in readable - PUBLIC if not path.startswith(DISCOVERY)} == set()


@pytest.mark.parametrize("who", ["anonymous", "without rights"])
def test_the_test_control_is_for_administrators(reached: Reached, who: str) -> None:
    client = reached.clients[who]
    assert len(reached.control) > 40
    answers = {(method, path): client.request(method, path, json={}).status_code for method, path in reached.control}
    assert {key: status for key, status in answers.items() if status != 403} == {}


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD", "TRACE", "CONNECTED"])
@pytest.mark.parametrize(
    "path", ["/fakeapiserver", "/fakeapiserver/", "/fakeapiserver/no-such", "/fakeapiserver/clock/..%2fstate"]
)
def test_paths_and_methods_that_are_not_there_show_nothing(reached: Reached, method: str, path: str) -> None:
    status = reached.clients["anonymous"].request(method, path).status_code
    assert status in (400, 401, 403, 404, 405)


def test_what_a_server_writes_is_for_its_user_alone(tmp_path: Path) -> None:
    """Keys, kubeconfigs, state, and folders of its own."""
    kubeconfig, folder = tmp_path / "kubeconfig", tmp_path / "certificates"
    data, tokens = tmp_path / "data", tmp_path / "tokens.csv"
    tokens.write_text("very-secret-token,jane,1\n")
    command = [
        *(sys.executable, "-m", "fakeapiserver", "serve", f"--cert-dir={folder}", f"--data-dir={data}"),
        *(f"--write-kubeconfig={kubeconfig}", f"--token-auth-file={tokens}"),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            assert process.stdout is not None
            printed = [process.stdout.readline()]
            deadline = time.monotonic() + 60
            while not kubeconfig.exists() and time.monotonic() < deadline and process.poll() is None:
                time.sleep(0.05)
            assert kubeconfig.exists(), printed
            modes = {path: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.rglob("*") if path != tokens}
        finally:
            process.terminate()
    private = [path for path in modes if path.suffix in {".key", ".db", ""} and path.is_file()]
    assert len(private) >= 3, modes
    assert {path.name: oct(modes[path]) for path in private if modes[path] & 0o077} == {}
    assert {path.name: oct(modes[path]) for path in (folder, data) if modes[path] & 0o077} == {}
