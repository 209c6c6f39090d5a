"""SIGINT and SIGTERM while a server starts and stops: silence, 128 + N, and nothing left."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fakeapiserver.cli.stop_signals import StopSignals, started
from fakeapiserver.client.wait import poll_until

# Sends the signal at the moment when the module of the command is imported.
WHILE_IMPORTING = """
import os, signal, sys
import fakeapiserver
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "fakeapiserver.cli." + sys.argv[1]:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Finder())
from fakeapiserver.cli import main
sys.exit(main())
"""
COMMANDS = [["serve"], ["run", "--", "true"]]


@pytest.mark.parametrize("command", COMMANDS)
def test_ctrl_c_while_modules_are_imported(command: list[str], tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    words = [sys.executable, "-c", WHILE_IMPORTING, *command]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("command", COMMANDS)
def test_a_signal_while_the_server_starts(command: list[str], number: signal.Signals, tmp_path: Path) -> None:
    """A start that waits for a file can be interrupted for sure."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    definitions = tmp_path / "definitions.yaml"
    os.mkfifo(definitions)
    words = [sys.executable, "-m", "fakeapiserver", command[0], f"--crds={definitions}", *command[1:]]
    environment = {**os.environ, "TMPDIR": str(folder)}
    with subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        with definitions.open("w"):  # returns when the server opens it
            process.send_signal(number)
        output = process.communicate(timeout=60)
    assert (process.returncode, *output) == (128 + number, "", "")
    assert not list(folder.iterdir())


def test_a_server_without_standard_input_does_not_start() -> None:
    words = [sys.executable, "-m", "fakeapiserver", "serve", "--stop-with-stdin"]
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
    message = "fakeapiserver: standard input ended before the server was ready: --stop-with-stdin needs an open one\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", message)


@pytest.mark.parametrize(
    ("signals", "was_ready", "status"),
    [
        ([], True, 0),
        ([signal.SIGINT], True, 0),
        ([signal.SIGTERM], True, 0),
        ([signal.SIGINT], False, 130),
        ([signal.SIGTERM], False, 143),
        ([signal.SIGINT, signal.SIGINT], True, 130),
        ([signal.SIGINT, signal.SIGTERM], True, 143),
    ],
)
def test_the_status_says_what_a_signal_interrupted(signals: list[int], was_ready: bool, status: int) -> None:
    async def scenario() -> int:
        stop = StopSignals()
        for before, number in enumerate(signals):

            async def is_received(before: int = before) -> bool:
                return stop.status(before) != 0

            os.kill(os.getpid(), number)
            await poll_until(is_received, interval=0.001, timeout=60)  # the event loop reads signals from a pipe
        assert stop.is_set() == bool(signals)
        return stop.status(1 if was_ready else 0)

    assert asyncio.run(scenario()) == status


def test_what_starts_is_cancelled() -> None:
    async def scenario() -> list[str]:
        stop, seen = asyncio.Event(), []

        async def start() -> None:
            try:
                stop.set()
                await asyncio.Event().wait()
            finally:
                seen.append("cleaned up")

        assert not await started(start(), stop)
        return seen

    assert asyncio.run(scenario()) == ["cleaned up"]
