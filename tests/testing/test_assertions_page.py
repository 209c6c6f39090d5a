"""docs/assertions.md: its examples run, and it names every assertion."""

import re
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]
PAGE = (Path(__file__).parents[2] / "docs/assertions.md").read_text()
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_the_examples_run(number: int, pytester: pytest.Pytester) -> None:
    code = BLOCKS[number]
    if "kubernetes" in code:
        pytest.importorskip("kubernetes")
    if "def test_" in code:
        pytester.makepyfile(code)
        pytester.runpytest("-p", "no:xdist", "-p", "no:cacheprovider").assert_outcomes(passed=code.count("def test_"))
    else:
        exec(compile(code, "docs/assertions.md", "exec"), {})
