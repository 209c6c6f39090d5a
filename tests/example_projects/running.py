"""Runs the projects in `examples/` as their users do: with their tool chains, and the command `fakeapiserver` on the PATH."""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """The environment of this process, with this tree's command first on the PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    command = folder / "fakeapiserver"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m fakeapiserver "$@"\n')
    command.chmod(0o755)
    search = os.pathsep.join([str(folder), str(Path(sys.executable).parent), os.environ["PATH"]])
    return {**os.environ, "PATH": search, "PYTHONPATH": str(EXAMPLES.parent)}


def copied(name: str, folder: Path) -> Path:
    """Returns a copy of an example, without what was built in it."""
    return shutil.copytree(EXAMPLES / name, folder / name, ignore=shutil.ignore_patterns("node_modules", "target"))


def output_of(command: Sequence[str | Path], cwd: Path, environment: Mapping[str, str]) -> str:
    """Runs a command and returns its output. Fails the test with the output if the command fails."""
    done = subprocess.run(
        command, cwd=cwd, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-5000:]
    return done.stdout
