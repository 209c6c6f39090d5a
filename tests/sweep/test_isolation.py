"""Operators in namespaces of their own: fixed ports, the files of a pod, and nothing that is left behind."""

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from fakeapiserver import Cluster
from fakeapiserver.cluster.processes import pod
from fakeapiserver.cluster.processes.process import CommandLine
from fakeapiserver.sweep import case, sweep
from fakeapiserver.sweep.case import Target
from fakeapiserver.sweep.exploring import explore
from fakeapiserver.sweep.process import Command, OperatorProcess
from fakeapiserver.sweep.surroundings import Surroundings
from tests.sweep import test_webhooks
from tests.sweep.test_process import is_alive, until

FIXED_PORT = 8080
# What a program finds: the API server as in a pod, a port that is taken outside, and addresses of pods.
IN_CLUSTER = """
import os, ssl, urllib.request
account = "/var/run/secrets/kubernetes.io/serviceaccount/"
server = f"https://{os.environ['KUBERNETES_SERVICE_HOST']}:{os.environ['KUBERNETES_SERVICE_PORT']}"
namespace, token = (open(account + name).read() for name in ("namespace", "token"))
headers = {"Authorization": f"Bearer {token}"}
request = urllib.request.Request(f"{server}/api/v1/namespaces/{namespace}/configmaps", headers=headers)
context = ssl.create_default_context(cafile=account + "ca.crt")
print(urllib.request.urlopen(request, context=context).status, namespace)
"""
PORTS = f"""
import socket
listener = socket.create_server(("0.0.0.0", {FIXED_PORT}))
print("listens", flush=True)
listener.accept()
"""
ADDRESS = """
import socket, sys
try:
    socket.create_connection((sys.argv[1], 6379), timeout=20)
except OSError as error:
    print(type(error).__name__)
"""
SIDECAR = """
import socket, sys
listener = socket.create_server(("0.0.0.0", 6379))
while True:
    connection, _ = listener.accept()
    connection.sendall(b"pong")
    connection.close()
"""
CALL = """
import socket, sys, time
deadline = time.monotonic() + 20
while True:
    try:
        print(socket.create_connection((sys.argv[1], 6379)).recv(9).decode())
        break
    except ConnectionRefusedError:
        assert time.monotonic() < deadline
"""
NAME = """
import socket, sys
try:
    print(socket.gethostbyname(sys.argv[1]))
except OSError as error:
    print(type(error).__name__)
"""
FAREWELL = """
import os, signal, sys, urllib.request
def stop(*_):
    try:
        urllib.request.urlopen(f"http://127.0.0.1:{sys.argv[1]}/")
    except Exception as error:
        print(type(error).__name__, flush=True)
    sys.exit(7)
signal.signal(signal.SIGTERM, stop)
print("runs", flush=True)
while True:
    signal.pause()
"""


@pytest.fixture(autouse=True)
def _namespaces_are_allowed() -> None:
    if problem := pod.problem():
        pytest.skip(problem)


@contextmanager
def operator_in(
    cluster: Cluster, script: str, *arguments: str, sidecar: Sequence[str] = ()
) -> Iterator[OperatorProcess]:
    """The script as an operator that runs in a pod."""
    command = CommandLine.of([sys.executable, "-c", script, *arguments])
    operator = OperatorProcess(command, surroundings=Surroundings(is_isolated=True, namespace="shop", sidecar=sidecar))
    try:
        operator.start(cluster, "operator", ["system:masters"])
        yield operator
    finally:
        operator.close()


def test_a_program_finds_the_api_server_as_in_a_pod() -> None:
    with Cluster() as cluster, operator_in(cluster, IN_CLUSTER) as operator:
        assert operator.wait(20)
        assert (operator.output().strip(), operator.ended) == ("200 shop", 0)
        assert len(cluster.requests.all().by(user="operator")) == 1


def test_fixed_ports_do_not_collide() -> None:
    with Cluster() as cluster, ExitStack() as stack:
        operators = [stack.enter_context(operator_in(cluster, PORTS)) for _ in range(3)]
        for operator in operators:
            until(lambda operator=operator: operator.output() or operator.ended is not None)  # type: ignore[misc]
        assert [operator.output().strip() for operator in operators] == ["listens"] * 3


@pytest.mark.parametrize("address", ["10.244.0.7", "10.96.0.10", "172.18.0.3", "192.168.1.1", "100.64.0.1"])
def test_addresses_of_pods_refuse_connections(address: str) -> None:
    with Cluster() as cluster, operator_in(cluster, ADDRESS, address) as operator:
        assert operator.wait(20)
        assert operator.output().strip() == "ConnectionRefusedError"


@pytest.mark.parametrize("address", ["10.244.0.7", "db-0.db", "db.shop.svc", "db.other.svc.cluster.local"])
def test_a_sidecar_answers_for_pods_and_services(address: str) -> None:
    sidecar = [sys.executable, "-c", SIDECAR]
    with Cluster() as cluster, operator_in(cluster, CALL, address, sidecar=sidecar) as operator:
        assert operator.wait(20)
        assert operator.output().strip() == "pong"


@pytest.mark.parametrize(("name", "address"), [("localhost", "127.0.0.1"), ("example.com.", "gaierror")])
def test_other_names(name: str, address: str) -> None:
    with Cluster() as cluster, operator_in(cluster, NAME, name) as operator:
        assert operator.wait(20)
        assert operator.output().strip() == address


def test_the_api_server_is_there_until_a_stopped_program_has_ended() -> None:
    with Cluster() as cluster:
        port = cluster.url.rpartition(":")[2]
        with operator_in(cluster, FAREWELL, port) as operator:
            until(operator.output)
            process = operator.group
            assert process is not None
            os.killpg(process, signal.SIGTERM)
            assert operator.wait(20)
            # the 400 for HTTP at a port for HTTPS
            assert (operator.output().split(), operator.ended) == (["runs", "HTTPError"], 7)


def test_mounts_and_ports_go_with_a_killed_sweep(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    port = free()
    code = f"""
import time
from fakeapiserver.cluster.processes.pod import Pod
from fakeapiserver.cluster.processes.process import CommandLine, Process
class Address:
    port, cert_dir = {port}, {str(tmp_path)!r}
process = Process(CommandLine.of(["sh", "-c", "echo $$ > {note}; sleep 1000"]))
process.launch("config", Address(), Pod(1, "token", "ca"))
time.sleep(1000)
"""
    child = subprocess.Popen([sys.executable, "-c", code])
    until(lambda: note.exists() and note.read_text().strip())
    group = int(note.read_text())
    members = [pid for pid in pids() if group_of(pid) == group]
    assert len(members) >= 3  # the program and the two processes that join the namespaces
    child.send_signal(signal.SIGKILL)
    child.wait()
    until(lambda: not any(is_alive(pid) for pid in members))
    socket.create_server(("127.0.0.1", port)).close()
    assert not Path("/var/run/secrets/kubernetes.io/serviceaccount/token").exists()


def test_the_processes_around_a_program_end_with_it() -> None:
    with Cluster() as cluster, operator_in(cluster, "print(1)") as operator:
        group = operator.group
        assert operator.wait(20)
        until(lambda: not any(group_of(pid) == group for pid in pids() if is_alive(pid)))


@pytest.mark.parametrize("fields", [{"webhookPort": 9443}, {}], ids=["fixed port", "given port"])
def test_webhooks_in_a_pod_are_called(fields: dict[str, Any], tmp_path: Path) -> None:
    command = test_webhooks.COMMAND if not fields else [*test_webhooks.COMMAND[:-1], "9443"]
    scenario = test_webhooks.read(tmp_path, isolate=True, **fields)
    runs = in_parallel([lambda: case.run(Target(Command(command), scenario))] * 2)
    assert [(run.problems, test_webhooks.sizes(run)) for run in runs] == [([], ["2", "3"])] * 2


@pytest.mark.slow
def test_an_operator_with_fixed_ports_is_swept_in_parallel(tmp_path: Path) -> None:
    command = Command([*test_webhooks.COMMAND[:-1], "9443"])
    target = Target(command, test_webhooks.read(tmp_path, isolate=True, webhookPort=9443))
    known = sweep.learn(target, ["crash", "restart"])
    report = sweep.sweep(target, known, known.plan, jobs=2)
    assert [finding.title for finding in report.findings] == []
    assert [each.error for each in report.results] == [""] * len(known.plan)


@pytest.mark.slow
def test_an_operator_with_a_fixed_port_is_explored_in_two_clusters_at_once(tmp_path: Path) -> None:
    command = Command([*test_webhooks.COMMAND[:-1], "9443"])
    steps = [{"apply": {**test_webhooks.DATABASE, "spec": {"size": 3}}}]
    scenario = test_webhooks.read(tmp_path, isolate=True, webhookPort=9443, steps=steps)
    with explore.learn(Target(command, scenario)) as learnt:
        report = explore.explore(learnt, explore.plan(learnt, 5), jobs=1)
    assert [(each.symptoms, each.error) for each in report.results] == [([], "")] * 5


@pytest.mark.parametrize(
    ("value", "problem", "sentence"),
    [
        ("yes", "", r"scenario.yaml: isolate is true or false, not 'yes'"),
        (True, "only Linux has namespaces", r"scenario.yaml: isolate: only Linux has namespaces"),
    ],
)
def test_a_scenario_that_cannot_be_isolated(
    value: object, problem: str, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pod, "problem", lambda: problem)
    with pytest.raises(ValueError, match=sentence):
        test_webhooks.read(tmp_path, isolate=value)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"sidecar": "./redis"}, "a sidecar needs a network that it shares with the operator: add `isolate: true`"),
        ({"sidecar": ["./redis"], "isolate": True}, "sidecar is a command, not"),
        ({"sidecar": "'./redis", "isolate": True}, "sidecar: No closing quotation"),
    ],
)
def test_a_wrong_sidecar(fields: dict[str, Any], sentence: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=sentence):
        test_webhooks.read(tmp_path, **fields)


@pytest.mark.parametrize("fields", [{}, {"isolate": True}], ids=["shared", "isolated"])
def test_a_fixed_port_is_for_one_operator_at_a_time(fields: dict[str, Any], tmp_path: Path) -> None:
    assert test_webhooks.read(tmp_path, webhookPort=9443, **fields).runs_alone == (not fields)


def free() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def pids() -> list[int]:
    return [int(entry) for entry in os.listdir("/proc") if entry.isdecimal()]


def group_of(pid: int) -> int:
    try:
        return os.getpgid(pid)
    except ProcessLookupError:
        return 0


def in_parallel(calls: list[Callable[[], case.Run]]) -> list[case.Run]:
    results: list[case.Run] = []
    threads = [threading.Thread(target=lambda call=call: results.append(call())) for call in calls]  # type: ignore[misc]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results
