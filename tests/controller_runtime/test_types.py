"""Users of `mypy --strict` get real types."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parent / "typed_operator.py"


@pytest.mark.slow
@pytest.mark.timeout(300)  # without mypy's cache it checks the package first
def test_an_operators_types_are_what_its_comments_say() -> None:
    pytest.importorskip("mypy", reason="mypy is not installed: pip install -e '.[dev]'")
    words = (
        "--strict",
        "--no-error-summary",
        "--no-pretty",
        str(PROGRAM),
    )  # as the package is checked: from the same cache
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *words],
        capture_output=True,
        text=True,
        cwd=PROGRAM.parent.parent.parent,
        check=False,
    )
    found: dict[int, set[str]] = {}
    for line in done.stdout.splitlines():
        number, sort, text = re.fullmatch(r".*?:(\d+):(?:\d+:)? (note|error): (.*)", line).groups()  # type: ignore[union-attr]
        if revealed := re.fullmatch(r'Revealed type is "(.*)"', text):
            found.setdefault(int(number), set()).add(f"is {_short(revealed[1])}")
        elif sort == "error":
            found.setdefault(int(number), set()).add(f"refused: {text.rpartition('[')[2].rstrip(']')}")
    expected = {
        number: {comment[1]}
        for number, line in enumerate(PROGRAM.read_text().splitlines(), 1)
        if (comment := re.search(r"# ((?:is|refused:) .*)$", line))
    }
    assert found == expected, done.stdout + done.stderr


def _short(name: str) -> str:
    """Without modules."""
    return re.sub(r"[\w.]+\.(?=\w)|\?", "", name)
