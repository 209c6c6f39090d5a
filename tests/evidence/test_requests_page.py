"""docs/requests.md: its examples run, and it names every detector and every field of a budget."""

import re
from pathlib import Path

import pytest

from fakeapiserver.evidence.findings import Limits
from fakeapiserver.testing.budgets import Budget

pytest_plugins = ["pytester"]
ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs/requests.md").read_text()
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def test_it_names_every_detector_and_field() -> None:
    named = set(re.findall(r"`([a-z_]+)", PAGE))
    assert {*Limits.__annotations__, *Budget.__struct_fields__} - named == set()


@pytest.mark.parametrize("number", range(2))
def test_the_examples_run(number: int, pytester: pytest.Pytester) -> None:
    code = BLOCKS[number]
    if "def test_" in code:
        pytester.makepyfile(code)
        pytester.runpytest("-p", "no:xdist", "-p", "no:cacheprovider").assert_outcomes(passed=1)
    else:
        exec(compile(code, "docs/requests.md", "exec"), {})
