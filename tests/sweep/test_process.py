"""Operators as processes: what they are given, and that nothing is left of them."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from fakeapiserver.cluster.processes.process import CommandLine, Process
from fakeapiserver.sweep.process import PANICS, Command, unanswered

SHOW = "import os, sys; print(os.environ['KUBECONFIG'], sys.argv[1:]); sys.stdout.flush()"


def until(holds: Callable[[], object]) -> None:
    deadline = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return (
        Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z" if Path("/proc").exists() else True
    )


def test_placeholders_and_the_environment() -> None:
    process = Process(CommandLine.of([sys.executable, "-c", SHOW, "{kubeconfig}", "{port:a}", "{port:a}", "{port:b}"]))
    process.launch("/tmp/config")
    assert process.wait(20)
    environment, arguments = process.output().strip().split(" ", 1)
    path, first, again, second = eval(arguments)
    assert (environment, path, process.ended) == ("/tmp/config", "/tmp/config", 0)
    assert first == again != second
    process.close()


def test_a_killed_operator_takes_its_children_along() -> None:
    script = "sleep 1000 & echo $!; wait"
    process = Process(CommandLine.of(["sh", "-c", script]))
    process.launch("config")
    until(process.output)
    child = int(process.output())
    assert is_alive(child)
    process.kill()
    until(lambda: not is_alive(child))
    assert process.ended is None
    process.close()


def test_nothing_is_left_when_the_sweep_is_killed(tmp_path: Path) -> None:
    told = tmp_path / "pid"
    code = f"""
import time
from fakeapiserver.cluster.processes.process import CommandLine, Process
process = Process(CommandLine.of(["sh", "-c", "echo $$ > {told}; sleep 1000"]))
process.launch("config")
time.sleep(1000)
"""
    sweep = subprocess.Popen([sys.executable, "-c", code])
    until(lambda: told.exists() and told.read_text().strip())
    operator = int(told.read_text())
    assert is_alive(operator)
    sweep.send_signal(signal.SIGKILL)
    sweep.wait()
    until(lambda: not is_alive(operator))


@pytest.mark.parametrize("text", ["", '"./manager'])
def test_a_command_that_cannot_be_read(text: str) -> None:
    with pytest.raises(ValueError, match="the operator's command"):
        Command(text)


@pytest.mark.parametrize(
    "line",
    [
        "panic: runtime error: invalid memory address or nil pointer dereference",
        '2026-11-23T12:00:00Z ERROR Observed a panic {"controller": "web"}',
        "fatal error: concurrent map writes",
        'Exception in thread "main" java.lang.NullPointerException',
        "thread 'tokio-runtime-worker' panicked at src/main.rs:1:2:",
    ],
)
def test_traces_of_crashes_are_found(line: str) -> None:
    assert PANICS.search(f"first\n{line}\nlast")


def test_temporary_files_go_with_a_killed_process(tmp_path: Path) -> None:
    note = tmp_path / "path"
    code = f"""
import pathlib, tempfile, time
from fakeapiserver.cluster.processes.process import own_temporary_folder
with own_temporary_folder():
    pathlib.Path({str(note)!r}).write_text(tempfile.mkdtemp())
    time.sleep(1000)
"""
    process = subprocess.Popen([sys.executable, "-c", code])
    until(lambda: note.exists() and note.read_text())
    folder = Path(note.read_text())
    assert folder.is_dir()
    process.kill()
    process.wait()
    until(lambda: not folder.exists())
    until(lambda: not folder.parent.exists())


@pytest.mark.parametrize(
    ("line", "address"),
    [
        ("Failed to connect: dial tcp 10.96.255.254:2181: connect: connection refused", "10.96.255.254:2181"),
        ("dial tcp: lookup db.default.svc on 10.0.0.2:53: no such host", "db.default.svc"),
        ('Get "https://127.0.0.1:6443/api": dial tcp 127.0.0.1:6443: connect: connection refused', ""),
        ("connected to 10.96.255.254:2181", ""),
    ],
)
def test_calls_that_nothing_answers(line: str, address: str) -> None:
    assert unanswered(f"starts\n{line}\n") == address
