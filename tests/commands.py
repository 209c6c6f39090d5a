"""Commands as users run them: `python` and `fakeapiserver` of this tree, and what a command prints."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
_COMMANDS: Final = {"python": "", "fakeapiserver": " -m fakeapiserver"}


def own_commands(folder: Path) -> dict[str, str]:
    """Writes the commands into a new folder, and returns the environment of this process with that folder first on its PATH."""
    folder.mkdir()
    for name, words in _COMMANDS.items():
        (folder / name).write_text(f'#!/bin/sh\nexec "{sys.executable}"{words} "$@"\n')
        (folder / name).chmod(0o755)
    return {**os.environ, "PYTHONPATH": str(ROOT), "PATH": os.pathsep.join([str(folder), os.environ["PATH"]])}


def output_of(command: Sequence[str | Path], cwd: Path, environment: Mapping[str, str]) -> str:
    """Runs a command and returns its output. Fails the test with the output if the command fails."""
    done = subprocess.run(
        command, cwd=cwd, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    assert done.returncode == 0, f"{command}\n{done.stdout[-5000:]}"
    return done.stdout
