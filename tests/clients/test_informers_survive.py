"""Informers of four languages go through every fault of reads and watches that a real API server can have, and end with the right cache.

`mirror` programs run an informer of ConfigMaps and print what its cache holds. While the fault exists, and after it, objects are created,
changed and deleted.
"""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from fakeapiserver import Cluster
from tests.clients.fetching import fetched

HERE = Path(__file__).parent
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
# client-go and kube-rs wait up to 30 seconds after an error; 0.8 after the first.
SECONDS = 60.0

pytestmark = pytest.mark.timeout(900)  # the first build of a program takes minutes


def _python(_: Path) -> list[str]:
    return [sys.executable, str(HERE / "python_mirror.py")]


def _go(folder: Path) -> list[str]:
    go = shutil.which("go")
    if go is None:
        pytest.skip("no Go on the PATH to build the client with")
    program = str(folder / "go_client")
    environment = {**os.environ, "CGO_ENABLED": "0", "GOTOOLCHAIN": "local"}
    fetched([go, "build", "-buildvcs=false", "-o", program, "."], HERE / "go_client", environment)
    return [program, "mirror"]


def _java(folder: Path) -> list[str]:
    if shutil.which("mvn") is None:
        pytest.skip("needs mvn, Java's Maven")
    project = folder / "fabric8"
    shutil.copytree(HERE / "java/fabric8", project)
    fetched(["mvn", "-B", "-q", "compile", "dependency:build-classpath", "-Dmdep.outputFile=classpath"], project)
    return ["java", "-cp", f"{project}/target/classes:{(project / 'classpath').read_text()}", "Mirror"]


def _rust(_: Path) -> list[str]:
    if shutil.which("cargo") is None:
        pytest.skip("needs cargo, Rust's package manager")
    target = Path(os.environ.get("CARGO_TARGET_DIR") or CACHE / "fakeapiserver/cargo")
    fetched(["cargo", "build", "--locked", "--quiet"], HERE / "rust", {**os.environ, "CARGO_TARGET_DIR": str(target)})
    return [str(target / "debug/rust-client"), "mirror"]


BUILDERS: dict[str, Callable[[Path], list[str]]] = {"python": _python, "go": _go, "java": _java, "rust": _rust}

Fault = Callable[[Cluster], AbstractContextManager[object]]


def _rule(**fields: Any) -> Fault:
    return lambda cluster: cluster.faults.add(resource="configmaps", verb=["list", "watch"], **fields)


def _of_watches(**fields: Any) -> Fault:
    return lambda cluster: cluster.faults.add(resource="configmaps", verb="watch", **fields)


def _at_once(act: Callable[[Cluster], object]) -> Fault:
    """Something that has happened when the block begins."""

    def happen(cluster: Cluster) -> AbstractContextManager[object]:
        act(cluster)
        return nullcontext()

    return happen


FAULTS: dict[str, Fault] = {
    "delay": _of_watches(delay="300ms"),
    "lag": _of_watches(lag=3),
    "coalesce": _of_watches(coalesce="300ms"),
    "ends-cleanly": _of_watches(stop_after=2, end="clean"),
    "is-cut": _of_watches(stop_after=2, end="cut", times=2),
    "expires-now": _of_watches(expire="now", times=2),
    "expires-on-resume": _of_watches(expire="resume", times=2),
    "no-bookmarks": _of_watches(bookmarks=False),
    "no-watch-list": _of_watches(watch_list=False),
    "stale": _rule(stale=True),
    "lags-behind": _rule(stale=4),
    "reset-before": _rule(reset="before", times=2),
    "reset-in-the-body": _rule(reset="body", times=2),
    "truncated": _rule(truncate=100, times=2),
    "slow": _rule(rate=20000, times=1),
    "latency": _rule(latency="200ms"),
    "hangs": _rule(hang=True, times=1),
    "too-many-requests": _rule(status=429, retry_after=1, times=2),
    "internal-error": _rule(status=500, times=2),
    "unavailable": _rule(status=503, times=2),
    "timeout": _rule(status=504, times=2),
    "unauthorized": _rule(status=401, times=2),
    "expired-pages": _rule(expire_continue=True),
    "outage": lambda cluster: cluster.outage(),
    "bad-certificate": lambda cluster: cluster.bad_certificate("expired"),
    "restart": _at_once(lambda cluster: cluster.restart()),
    "restart-compacted": _at_once(lambda cluster: cluster.restart(compact=True)),
    "lost-watches": _at_once(lambda cluster: cluster.lose_watches()),
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(controllers=()) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], list[str]]:
    """The command that starts a mirror, by its language. A program is built once."""
    return cache(lambda language: BUILDERS[language](tmp_path_factory.mktemp(language)))


class Mirror:
    """A mirror that runs until the end of the block."""

    def __init__(self, command: list[str], cluster: Cluster) -> None:
        self._cluster = cluster
        environment = {**os.environ, "KUBECONFIG": cluster.kubeconfig}
        self._process = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def __enter__(self) -> "Mirror":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    @property
    def held(self) -> dict[str, str]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, "the program has ended"
        held: dict[str, str] = json.loads(line)
        return held

    def wait(self) -> None:
        """Returns when the cache holds what the server does."""
        until = time.monotonic() + SECONDS
        while (held := self.held) != (stored := _stored(self._cluster)):
            assert time.monotonic() < until, f"the cache holds {held}, the server {stored}"
            time.sleep(0.02)


def _stored(cluster: Cluster) -> dict[str, str]:
    return {obj["metadata"]["name"]: obj["metadata"]["resourceVersion"] for obj in cluster.list("configmaps")}


def _write(cluster: Cluster, turn: str) -> None:
    """Creates, changes and deletes objects."""
    for name in ("a", "b", "c", turn):
        cluster.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"turn": turn}})
    cluster.delete("configmaps", "b")


# The faults that all languages go through; the other ones only with FAKEAPISERVER_ALL_FAULTS set: their programs start slowly.
CHOSEN = (
    "is-cut",
    "expires-now",
    "stale",
    "reset-in-the-body",
    "too-many-requests",
    "timeout",
    "outage",
    "restart-compacted",
)
ALL = "FAKEAPISERVER_ALL_FAULTS" in os.environ
CASES = [
    pytest.param(language, fault, marks=() if language == "python" else pytest.mark.slow)
    for language in BUILDERS
    for fault in FAULTS
    if ALL or language in ("python", "go") or fault in CHOSEN
]


@pytest.mark.parametrize(("language", "fault"), CASES)
def test_the_cache_is_right_in_the_end(
    cluster: Cluster, commands: Callable[[str], list[str]], language: str, fault: str
) -> None:
    with Mirror(commands(language), cluster) as mirror:
        _write(cluster, "before")
        mirror.wait()
        with FAULTS[fault](cluster):
            _write(cluster, "during")
            time.sleep(0.3)  # the informer meets the fault
        _write(cluster, "after")
        mirror.wait()
