"""Runs the projects in `examples/` as their users do: with their tool chains, and the command `fakeapiserver` on the PATH."""

import os
import shutil
import sys
from pathlib import Path

import pytest

from tests.commands import ROOT, own_commands

EXAMPLES = ROOT / "examples"


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """The environment of this process, with this tree's command first on the PATH, and then the programs of this Python."""
    own = own_commands(tmp_path / "bin")
    own["PATH"] += os.pathsep + str(Path(sys.executable).parent)
    return own


def copied(name: str, folder: Path) -> Path:
    """Returns a copy of an example, without what was built in it."""
    return shutil.copytree(EXAMPLES / name, folder / name, ignore=shutil.ignore_patterns("node_modules", "target"))
