"""docs/faults.md: its examples run, and it names every field of a fault."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from fakeapiserver.faults.readers import FIELDS, STATUSES

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs/faults.md").read_text()
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def test_it_names_every_field_and_status() -> None:
    named = set(re.findall(r"`([a-z_]+)", PAGE))
    assert set(FIELDS) - named == set()
    assert [status for status in STATUSES if str(status) not in PAGE] == []


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_the_examples_run(number: int, tmp_path: Path) -> None:
    """Each runs in a process of its own, as a script or as a module of tests."""
    script = tmp_path / "test_example.py"
    script.write_text(BLOCKS[number])
    options = ("-m", "pytest") if "def test_" in BLOCKS[number] else ()
    command = [sys.executable, *options, str(script)]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_there_are_examples() -> None:
    assert len(BLOCKS) == 4
