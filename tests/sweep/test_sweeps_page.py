"""docs/sweeps.md: its test is swept, and passes."""

import os
import re
import sys
from pathlib import Path

from tests.commands import output_of
from tests.site.blocks import DOCS, blocks_of

PAGE = DOCS / "sweeps.md"


def test_the_example_runs(tmp_path: Path) -> None:
    code, _of_explore = (block.text for block in blocks_of(PAGE.name, PAGE.read_text()) if block.language == "python")
    (tmp_path / "test_example.py").write_text(code)
    command = [sys.executable, "-m", "pytest", "-s", "-p", "no:cacheprovider", "test_example.py"]
    output = output_of(command, tmp_path, os.environ)
    assert re.search(r"\b0 findings in \d+ cases, ", output), output
