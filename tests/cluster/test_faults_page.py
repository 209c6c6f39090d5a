"""docs/faults.md: its examples run, and it names every field of a fault."""

import re
from pathlib import Path

import pytest

from fakeapiserver.faults.rule import FIELDS, STATUSES

pytest_plugins = ["pytester"]
ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs/faults.md").read_text()
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def test_it_names_every_field_and_status() -> None:
    named = set(re.findall(r"`([a-z_]+)", PAGE))
    assert set(FIELDS) - named == set()
    assert [status for status in STATUSES if str(status) not in PAGE] == []


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_the_examples_run(number: int, pytester: pytest.Pytester) -> None:
    code = BLOCKS[number]
    if "def test_" in code:
        pytester.makepyfile(code)
        pytester.runpytest("-p", "no:xdist", "-p", "no:cacheprovider").assert_outcomes(passed=1)
    else:
        exec(compile(code, "docs/faults.md", "exec"), {})


def test_there_are_examples() -> None:
    assert len(BLOCKS) == 4
