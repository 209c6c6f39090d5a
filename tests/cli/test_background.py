"""`serve --background`, `status` and `stop`."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

OTHERS = "# mine\nkind: Config\nclusters: [{name: prod, cluster: {}}]\ncurrent-context: prod\n"
Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    """Runs the command with a state folder of the test's own."""
    for name in ("state", "temporary"):
        (tmp_path / name).mkdir()
    environment = {**os.environ, "XDG_RUNTIME_DIR": f"{tmp_path}/state", "TMPDIR": f"{tmp_path}/temporary"}

    def command(*words: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-m", "fakeapiserver", *words],
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    yield command
    command("stop", "--all")


def test_a_server_in_the_background(run: Run, tmp_path: Path) -> None:
    kubeconfig = tmp_path / "config"
    kubeconfig.write_text(OTHERS)
    done = run("serve", "--background", f"--write-kubeconfig={kubeconfig}", "--context-name=mine", "--output=json")
    facts = json.loads(done.stdout)
    assert (done.returncode, facts["name"], facts["context"]) == (0, "default", "mine")
    assert '"mine"' in kubeconfig.read_text()
    [status] = json.loads(run("status", "--output=json").stdout)
    assert status == facts
    again = run("serve", "--background")
    message = "fakeapiserver: 'default' runs already; stop it with fakeapiserver stop --name=default\n"
    assert (again.returncode, again.stderr) == (1, message)
    assert json.loads(run("stop", "--output=json").stdout) == {"stopped": ["default"]}
    assert kubeconfig.read_text() == OTHERS
    assert not [*(tmp_path / "state").iterdir(), *(tmp_path / "temporary").iterdir()]


def test_says_where_webhooks_are_called(run: Run, tmp_path: Path) -> None:
    configuration = tmp_path / "webhooks.yaml"
    configuration.write_text(
        "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata: {name: policy}\n"
    )
    done = run("serve", "--background", f"--webhooks={configuration}", "--controllers=none")
    [facts] = json.loads(run("status", "--output=json").stdout)
    where = facts["webhooks"]
    line = f"https://127.0.0.1:{where['port']}; serve them with the certificate in {where['certDir']}."
    assert line in done.stdout


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_waiting_ends_the_server_too(number: signal.Signals, tmp_path: Path) -> None:
    """A start that waits for a file can be interrupted for sure."""
    definitions = tmp_path / "definitions.yaml"
    os.mkfifo(definitions)
    words = [sys.executable, "-m", "fakeapiserver", "serve", "--background", f"--crds={definitions}"]
    environment = {**os.environ, "XDG_RUNTIME_DIR": f"{tmp_path}/state", "TMPDIR": str(tmp_path)}
    with subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        with definitions.open("w"):  # returns when the server opens it
            process.send_signal(number)
        output = process.communicate(timeout=60)
    assert (process.returncode, *output) == (128 + number, "", "")
    assert [path.name for path in tmp_path.iterdir()] == ["definitions.yaml"] or not any((tmp_path / "state").iterdir())


@pytest.mark.parametrize("command", ["status", "stop"])
def test_nothing_runs(run: Run, command: str, tmp_path: Path) -> None:
    done = run(command, "--name=other")
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "fakeapiserver: no server 'other' runs\n")
    assert not list((tmp_path / "state").iterdir())


def test_a_killed_server_is_not_mistaken_for_a_running_one(run: Run) -> None:
    facts = json.loads(run("serve", "--background", "--output=json").stdout)
    os.kill(facts["pid"], signal.SIGKILL)
    assert run("status").returncode == 1
    assert run("serve", "--background").returncode == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["serve", "--background", "--name=../x"], "--name must be letters, digits, dots, dashes and underscores"),
        (["serve", "--background", "--enable-admission-plugins=ImagePolicyWebhook"], "no config specified"),
        (["serve", "--background", "--stop-with-stdin"], "--background has no standard input"),
        (["serve", "--name=x"], "--name is for a server in the background: add --background"),
        (["run", "--background", "--", "true"], "run has no --background"),
        (["run", "--stop-with-stdin", "--", "true"], "it ends with its command"),
    ],
)
def test_what_cannot_start_says_so_itself(run: Run, tmp_path: Path, words: list[str], message: str) -> None:
    done = run(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert not list((tmp_path / "state").iterdir())
