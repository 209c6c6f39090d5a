"""All prose of the repository is plain English: comments, docstrings, log lines, messages, names of tests, and documents."""

from pathlib import Path
from typing import Final

import pytest

from .prose import Entry, entries, problems, sources

ROOT: Final = Path(__file__).parents[2]
FOLDERS: Final = ("fakeapiserver", "auth", "admission", "conformance", "tests", "docs")


@pytest.mark.parametrize("folder", [*FOLDERS, ""], ids=[*FOLDERS, "top"])
def test_prose_is_plain_english(folder: str) -> None:
    paths = list(sources([ROOT / folder])) if folder else sorted(ROOT.glob("*.md"))
    assert paths
    flagged = [
        f"{path.relative_to(ROOT)}:{entry.line}: {entry.kind} {problem}"
        for path in paths
        for entry in entries(path)
        for problem in problems(entry)
    ]
    assert flagged == []


@pytest.mark.parametrize(
    ("kind", "text", "count"),
    [
        ("docstring", "Returns the node's name, or None if the user isn't a node.", 0),
        ("docstring", "None for who is none.", 2),
        ("docstring", "What is read.", 1),
        ("comment", "What is read.", 0),
        ("text", "The server answers a request.", 0),
        ("message", "the server answers the same, as nobody is told", 3),
    ],
)
def test_problems_are_found(kind: str, text: str, count: int) -> None:
    assert len([*problems(Entry(Path("x"), 1, kind, text))]) == count


def test_every_kind_of_prose_is_read(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text(
        '"""A module."""\n'
        "# Two lines\n"
        "# of a comment\n"
        "x = 1  # at the end\n"
        '"""An attribute."""\n'
        "def test_the_name():\n"
        '    log.info("a log line of %s", x)\n'
        '    raise ValueError("a message")\n'
        '    raise StatusError("upstream\'s words")\n'
    )
    assert sorted((entry.line, entry.kind, entry.text) for entry in entries(path)) == [
        (1, "docstring", "A module."),
        (2, "comment", "Two lines of a comment"),
        (4, "comment", "at the end"),
        (5, "attribute", "An attribute."),
        (6, "name", "test the name"),
        (7, "log", "a log line of %s"),
        (8, "message", "a message"),
    ]
    document = tmp_path / "page.md"
    document.write_text("# Heading\nA paragraph\nof `code`.\n```\ncode\n```\n- an item\n- another\n")
    assert [(entry.line, entry.text) for entry in entries(document)] == [
        (1, "# Heading"),
        (2, "A paragraph of `code`."),
        (7, "- an item"),
        (8, "- another"),
    ]
