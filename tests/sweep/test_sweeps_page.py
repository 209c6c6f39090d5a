"""docs/sweeps.md: its test is swept, and passes."""

import re
import subprocess
import sys
from pathlib import Path

PAGE = (Path(__file__).parents[2] / "docs/sweeps.md").read_text()


def test_the_example_runs(tmp_path: Path) -> None:
    code, _of_explore = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    (tmp_path / "test_example.py").write_text(code)
    command = [sys.executable, "-m", "pytest", "-s", "-p", "no:cacheprovider", "test_example.py"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert re.search(r"\b0 findings in \d+ cases, ", ran.stdout), ran.stdout
