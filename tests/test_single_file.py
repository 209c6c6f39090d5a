"""The single file is the whole command, on a machine without Python. FAKEAPISERVER_SINGLE_FILE names it.

`python distribution/single_file/build.py` builds it, in a minute, so .ci/run doesn't.
"""

import os
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from conformance.bench.servers import free_port

FILE = Path(os.environ.get("FAKEAPISERVER_SINGLE_FILE", "")).absolute()
pytestmark = pytest.mark.skipif(
    "FAKEAPISERVER_SINGLE_FILE" not in os.environ, reason="FAKEAPISERVER_SINGLE_FILE names no file to try"
)
NO_PYTHON = "/nowhere"


def run(tmp_path: Path, *words: str, path: str = NO_PYTHON) -> str:
    """Returns the standard output of a command that finds no Python and no home but the test's."""
    environment = {"HOME": str(tmp_path), "PATH": path, "TMPDIR": str(tmp_path)}
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_it_names_its_version(tmp_path: Path) -> None:
    assert run(tmp_path, str(FILE), "version").startswith("fakeapiserver ")


def test_it_runs_a_command_beside_a_server(tmp_path: Path) -> None:
    command = ("/bin/sh", "-c", 'test -f "$KUBECONFIG" && echo "$KUBECONFIG"')
    assert "kubeconfig" in run(tmp_path, str(FILE), "run", "--nodes=1", "--", *command)


def test_it_serves_in_the_background(tmp_path: Path) -> None:
    run(tmp_path, str(FILE), "serve", "--background", "--kept-requests=10")
    try:
        assert "default" in run(tmp_path, str(FILE), "status")
        assert run(tmp_path, str(FILE), "clock", "stop")
    finally:
        run(tmp_path, str(FILE), "stop")


def test_its_programs_for_envtest_start(tmp_path: Path) -> None:
    run(tmp_path, str(FILE), "envtest-assets", str(tmp_path / "assets"))
    version = run(tmp_path, str(tmp_path / "assets/kube-apiserver"), "--version", path="/usr/bin:/bin")
    assert version.startswith("Kubernetes v1.")
    assert "etcd" in run(tmp_path, str(tmp_path / "assets/etcd"), "--help", path="/usr/bin:/bin")


def test_its_programs_live_as_long_as_their_starter(tmp_path: Path) -> None:
    run(tmp_path, str(FILE), "envtest-assets", str(tmp_path / "assets"))
    port = free_port()
    serving = f"{tmp_path}/assets/etcd --listen-client-urls=http://127.0.0.1:{port} & wait"
    with subprocess.Popen(["/bin/sh", "-c", serving], env={"TMPDIR": str(tmp_path)}) as starter:
        until(lambda: reachable(port))
        time.sleep(2)  # it looks for its starter once a second
        assert reachable(port)
        starter.kill()
    until(lambda: not reachable(port))


def reachable(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def until(happens: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not happens():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_it_leaves_nothing_behind(tmp_path: Path) -> None:
    run(tmp_path, str(FILE), "run", "--", "/bin/true")
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(("_MEI", "fakeapiserver-"))] == []
