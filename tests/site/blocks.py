"""Fenced blocks of the documents: what each is, and how it is tried."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from msgspec import Struct

from tests.commands import ROOT

DOCS: Final = ROOT / "docs"
# Pages with a test of their own, which follows the page from block to block.
FOLLOWED: Final = {
    "docs/operators.md": "tests/scaffold/test_operators_page.py",
    "docs/sweeps.md": "tests/sweep/test_sweeps_page.py",
}
# Languages of blocks that are executed, those whose text is parsed, and those that show what a reader sees.
EXECUTED: Final = frozenset(("python", "sh"))
PARSED: Final = frozenset(("yaml", "json", "toml", "ini"))
SHOWN: Final = frozenset(("console", "text"))
# Before a block that is not tried: the reason.
_BLOCK: Final = re.compile(
    r"^(?:<!-- not run: (?P<reason>.+?) -->\n)?```(?P<language>[\w-]*)[^\n]*\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


class Block(Struct, frozen=True):
    """A fenced block: the page's path below the repository, its line, its language, its text, and why it is not tried ("": it is)."""

    page: str
    line: int
    language: str
    text: str
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def pages() -> list[Path]:
    """README and all pages of the site."""
    return [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]


def blocks() -> Iterator[Block]:
    """Yields the blocks of all pages."""
    for path in pages():
        page = str(path.relative_to(ROOT))
        yield from blocks_of(page, path.read_text())


def blocks_of(page: str, text: str) -> Iterator[Block]:
    """Yields the blocks of a page's text."""
    for match in _BLOCK.finditer(text):
        line = text.count("\n", 0, match.start("text"))
        yield Block(page, line, match["language"], match["text"], match["reason"] or "")
