"""Follows docs/operators.md block by block, as a reader would."""

import shutil
from pathlib import Path

import pytest

from tests.commands import ROOT, output_of, own_commands
from tests.site.blocks import blocks_of

PAGE = ROOT / "docs/operators.md"


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("kubectl") is None or shutil.which("make") is None, reason="needs kubectl and make")
@pytest.mark.timeout(600)
def test_every_block_does_what_it_says(tmp_path: Path) -> None:
    environment = own_commands(tmp_path / "bin")
    environment["MYPY_CACHE_DIR"] = str(ROOT / ".mypy_cache")
    environment["PYTHON"] = "python"  # instead of an environment of the project's own, which takes minutes to fill
    project = tmp_path / "project"
    project.mkdir()
    blocks = [*blocks_of(PAGE.name, PAGE.read_text())]
    assert {block.language for block in blocks} == {"sh", "python"}
    for block in blocks:
        if block.language == "python":
            path, _, code = block.text.partition("\n")
            (project / path.removeprefix("# ")).write_text(code)
        else:
            output_of(["sh", "-ec", block.text], project, environment)
