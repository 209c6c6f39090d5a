"""`fakeapiserver completion`: the scripts complete commands, flags and values in their shells."""

import shutil
import subprocess
from pathlib import Path

import pytest

from fakeapiserver import cli
from fakeapiserver.cli import completion
from fakeapiserver.cli.manual.commands import commands

COMPLETE = """
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
_fakeapiserver
printf '%s\\n' "${COMPREPLY[@]}"
"""
# the words up to the cursor, and what bash offers; bash takes = for a word of its own
LINES = [
    ("ex", {"explore"}),
    ("s", {"serve", "state", "status", "stop", "sweep"}),
    ("co", {"controller-manager", "completion"}),
    ("create ", {"api", "webhook"}),
    ("create api --na", {"--namespaced"}),
    ("serve --kubernetes-v", {"--kubernetes-version"}),
    ("serve --kubernetes-version = ", {"1.33", "1.34", "1.35", "1.36", "1.37"}),
    ("serve --kubernetes-version =", {"1.33", "1.34", "1.35", "1.36", "1.37"}),
    ("run --output j", {"json"}),
    ("serve --authorization-mode Node,R", {"Node,RBAC"}),
    ("controller-manager --controllers deployment", {"deployment-controller"}),
    ("nodes --du", {"--dual-stack"}),
    ("envtest-assets us", {"use"}),
    ("envtest-assets use --print = p", {"path"}),
    ("completion b", {"bash"}),
    ("help env", {"envtest", "envtest-assets"}),
    ("serve --crds ./file", {"./file.yaml"}),
    ("run -- ./file", {"./file.yaml"}),
]


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
@pytest.mark.parametrize(("line", "offered"), LINES)
def test_bash(line: str, offered: set[str], tmp_path: Path) -> None:
    (tmp_path / "file.yaml").touch()
    words = ["fakeapiserver", *line.split(" ")]
    command = ["bash", "--norc", "-c", completion.bash() + COMPLETE, "bash", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert (set(done.stdout.split()), done.stderr) == (offered, "")


@pytest.mark.skipif(shutil.which("fish") is None, reason="there is no fish")
@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("create ", {"api", "webhook"}),
        ("completion ", {"bash", "zsh", "fish"}),
        ("serve --kubernetes-version=", {f"--kubernetes-version=1.{minor}" for minor in range(33, 37)}),
        ("help env", {"envtest", "envtest-assets"}),
    ],
)
def test_fish(line: str, offered: set[str], tmp_path: Path) -> None:
    script = f'{completion.fish()}\ncomplete -C "fakeapiserver {line}"'
    environment = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        ["fish", "--no-config", "-c", script], capture_output=True, text=True, check=True, env=environment, cwd=tmp_path
    )
    assert ({row.partition("\t")[0] for row in done.stdout.splitlines()}, done.stderr) == (offered, "")


@pytest.mark.skipif(shutil.which("zsh") is None, reason="there is no zsh")
def test_zsh_reads_it() -> None:
    done = subprocess.run(["zsh", "-f", "-n"], input=completion.zsh(), capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_script_knows_every_flag(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["completion", shell]) == 0
    script = capsys.readouterr().out
    for command in commands().values():
        for topic in command.topics.values():
            for flag in topic:
                assert f"-l {flag} " in script if shell == "fish" else f"--{flag}" in script
