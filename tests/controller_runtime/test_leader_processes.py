"""Managers in processes of their own, one killed, one stopped for a while, one asked to end: never do two of them lead."""

import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from itertools import groupby
from pathlib import Path

import pytest

from fakeapiserver import Cluster
from fakeapiserver.client import synchronous

PROGRAM = Path(__file__).parent / "leading.py"
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(PROGRAM.parent.parent.parent), "PYTHONDONTWRITEBYTECODE": "1"}


@pytest.fixture(params=["fake", "real"])
def server(request: pytest.FixtureRequest) -> Iterator[str]:
    """Path of a kubeconfig."""
    if request.param == "real":
        path = os.environ.get("FAKEAPISERVER_REFERENCE_KUBECONFIG")
        if not path:
            pytest.skip("set FAKEAPISERVER_REFERENCE_KUBECONFIG to elect leaders on a real server too")
        yield path
    else:
        with Cluster() as cluster:
            yield cluster.kubeconfig


@pytest.fixture
def namespace(server: str) -> Iterator[str]:
    name = f"leading-{uuid.uuid4().hex[:8]}"
    with synchronous.connect(server) as client:
        client.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}, field_manager="test")
        for kind in ("one", "another"):
            metadata = {"name": kind, "namespace": name}
            client.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}, field_manager="test")
        yield name
        client.resource("namespaces").delete(name)


class Managers:
    """Processes by name, and what they have left behind."""

    def __init__(self, server: str, namespace: str, path: Path) -> None:
        self._words = [sys.executable, str(PROGRAM), server, namespace]
        self._path = path
        self._path.touch()
        self.processes: dict[str, subprocess.Popen[str]] = {}

    def start(self, name: str) -> None:
        self.processes[name] = subprocess.Popen(
            [*self._words, name, str(self._path)], env=ENVIRONMENT, stderr=subprocess.PIPE, text=True
        )

    def signal(self, name: str, number: signal.Signals) -> float:
        """When it was sent, by the clock of the stamps."""
        self.processes[name].send_signal(number)
        return time.monotonic()

    def stamps(self) -> list[tuple[float, str, str]]:
        """(when, who, what) in order."""
        rows = [line.split() for line in self._path.read_text().splitlines()]
        return sorted((int(when) / 1e9, who, what) for who, what, when in rows)

    def works(self, name: str) -> None:
        """Waits until it has reconciled."""
        until(lambda: any((who, what) == (name, "reconcile") for _, who, what in self.stamps()))

    def end(self) -> None:
        for process in self.processes.values():
            process.kill()
            process.communicate()


@pytest.fixture
def managers(server: str, namespace: str, tmp_path: Path) -> Iterator[Managers]:
    found = Managers(server, namespace, tmp_path / "stamps")
    yield found
    found.end()


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline, "it takes too long"
        time.sleep(0.05)


@pytest.mark.slow
def test_never_two_leaders(server: str, namespace: str, managers: Managers) -> None:
    managers.start("killed")
    managers.works("killed")
    managers.start("stopped")
    managers.signal("killed", signal.SIGKILL)
    managers.works("stopped")

    managers.start("asked")
    paused = managers.signal("stopped", signal.SIGSTOP)
    managers.works("asked")
    managers.signal("stopped", signal.SIGCONT)
    _, errors = managers.processes["stopped"].communicate(timeout=60)
    assert managers.processes["stopped"].returncode == 1
    assert errors.strip().endswith("RuntimeError: leader election lost")
    # a turn of the event loop that it was stopped in goes on where it was: one look of each of the two, no more (a lease can't
    # prevent that: upstream's package says so of itself)
    late = [row for row in managers.stamps() if row[1] == "stopped" and row[0] > paused + 0.1]
    assert len({what for _, _, what in late}) == len(late)

    managers.signal("asked", signal.SIGTERM)
    assert managers.processes["asked"].wait(60) == 0
    with synchronous.connect(server) as client:
        lease = client.resource("leases.coordination.k8s.io", namespace).get("leading")
    assert (lease["spec"]["holderIdentity"], lease["spec"]["leaseTransitions"]) == ("", 2)  # given back

    managers.start("last")
    managers.works("last")
    worked = [row for row in managers.stamps() if row not in late]
    assert [who for who, _ in groupby(worked, key=lambda row: row[1])] == [*managers.processes]
