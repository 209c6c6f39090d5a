"""docs/assertions.md: its examples run."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs/assertions.md").read_text()
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_the_examples_run(number: int, tmp_path: Path) -> None:
    """Each runs in a process of its own, as a script or as a module of tests."""
    script = tmp_path / "test_example.py"
    script.write_text(BLOCKS[number])
    options = ("-m", "pytest", "--update-transcripts") if "def test_" in BLOCKS[number] else ()
    command = [sys.executable, *options, str(script)]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_there_are_examples() -> None:
    assert len(BLOCKS) >= 2
