"""The examples of docs/state.md work."""

import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs/state.md").read_text()
EXAMPLES = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_works(example: str) -> None:
    exec(example, {})
