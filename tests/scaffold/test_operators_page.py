"""Follows docs/operators.md block by block, as a reader would."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
PAGE = ROOT / "docs/operators.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("kubectl") is None or shutil.which("make") is None, reason="needs kubectl and make")
@pytest.mark.timeout(600)
def test_every_block_does_what_it_says(tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, words in (("python", ""), ("fakeapiserver", " -m fakeapiserver")):
        (programs / name).write_text(f'#!/bin/sh\nexec {sys.executable}{words} "$@"\n')
        (programs / name).chmod(0o755)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "MYPY_CACHE_DIR": str(ROOT / ".mypy_cache")}
    environment["PYTHON"] = "python"  # instead of an environment of the project's own, which takes minutes to fill
    environment["PATH"] = f"{programs}:{environment['PATH']}"
    project = tmp_path / "project"
    project.mkdir()
    blocks = BLOCK.findall(PAGE.read_text())
    assert {language for language, _ in blocks} == {"sh", "python"}
    for language, text in blocks:
        if language == "python":
            path, _, code = text.partition("\n")
            (project / path.removeprefix("# ")).write_text(code)
        else:
            done = subprocess.run(
                ["sh", "-ec", text], cwd=project, env=environment, capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}"
