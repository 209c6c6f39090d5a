"""Every block of README and of the site is tried, or says why not."""

import configparser
import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from tests.commands import output_of, own_commands
from tests.site.blocks import EXECUTED, FOLLOWED, PARSED, ROOT, SHOWN, Block, blocks, blocks_of

BLOCKS = [block for block in blocks() if block.page not in FOLLOWED]
TRIED = [block for block in BLOCKS if not block.reason]
PARSERS = {
    "yaml": lambda text: [*yaml.safe_load_all(text)],
    "json": json.loads,
    "toml": tomllib.loads,
    "ini": lambda text: configparser.ConfigParser().read_string(text),
}
# Packages of other people that a block imports, which an environment may lack.
CLIENTS = ("kopf", "kr8s", "kubernetes", "kubernetes_asyncio", "lightkube")


@pytest.mark.parametrize("block", [block for block in TRIED if block.language == "python"], ids=str)
def test_a_python_block_runs(block: Block, tmp_path: Path) -> None:
    """Each runs in a process of its own, in an empty folder: as a script, or as a module of tests."""
    for client in CLIENTS:
        if f"import {client}" in block.text or f"from {client}" in block.text:
            pytest.importorskip(client, reason=f"{client} is not installed: pip install -e '.[clients]'")
    script = tmp_path / "test_example.py"
    script.write_text(block.text)
    words = (
        ("-m", "pytest", "-q", "-p", "no:cacheprovider", "--update-transcripts") if "def test_" in block.text else ()
    )
    output_of([sys.executable, *words, script], tmp_path, {**os.environ, "PYTHONPATH": str(ROOT)})


@pytest.mark.parametrize("block", [block for block in TRIED if block.language == "sh"], ids=str)
def test_a_shell_block_runs(block: Block, tmp_path: Path) -> None:
    """In an empty folder, with our commands, and with a home that has no servers in the background and no kubeconfig."""
    if "kubectl" in block.text and shutil.which("kubectl") is None:
        pytest.skip("there is no kubectl on the PATH")
    folders = {name: str(tmp_path) for name in ("HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME", "XDG_CACHE_HOME")}
    environment = {**own_commands(tmp_path / "bin"), **folders, "KUBECONFIG": ""}
    (tmp_path / "work").mkdir()
    try:
        output_of(["sh", "-ec", block.text], tmp_path / "work", environment)
    finally:  # what a block that failed has left running
        subprocess.run(["fakeapiserver", "stop", "--all"], env=environment, capture_output=True, check=False)


@pytest.mark.parametrize("block", [block for block in TRIED if block.language in PARSED], ids=str)
def test_a_block_of_data_is_valid(block: Block) -> None:
    PARSERS[block.language](block.text)


def test_a_block_of_another_language_is_part_of_an_example() -> None:
    """Blocks in other languages are copied from examples/, whose projects have tests of their own."""
    others = [block for block in TRIED if block.language not in EXECUTED | PARSED | SHOWN]
    texts = [path.read_text() for path in sorted((ROOT / "examples").rglob("*")) if others and is_source(path)]
    assert [str(block) for block in others if not any(block.text in text for text in texts)] == []


def is_source(path: Path) -> bool:
    return path.is_file() and path.stat().st_size < 100_000 and not {"node_modules", "target", ".venv"} & {*path.parts}


def test_a_reason_is_a_sentence() -> None:
    assert [str(block) for block in BLOCKS if block.reason and len(block.reason.split()) < 3] == []


def test_blocks_are_found() -> None:
    page = "# Title\n```sh\ntrue\n```\ntext\n<!-- not run: it needs a network -->\n```python\nx\n```\n"
    assert [*blocks_of("page.md", page)] == [
        Block("page.md", 2, "sh", "true\n"),
        Block("page.md", 7, "python", "x\n", "it needs a network"),
    ]
    assert len(TRIED) > 20
