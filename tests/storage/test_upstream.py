"""docs/storage.md names upstream's tests of storages: what it says is here is here, and each check is named there."""

import re
from pathlib import Path
from typing import Final

import pytest

from fakeapiserver.testing import storage_suite

ROOT: Final = Path(__file__).parents[2]
DOCUMENT: Final = (ROOT / "docs" / "storage.md").read_text()
# Section, name of the test, and where its expectation is.
ROWS: Final = [
    (section.partition("\n")[0].strip(), name, cells[1])
    for section in DOCUMENT.split("\n## ")[1:]
    for cells in (line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| `"))
    for name in re.findall(r"`(\w+)`", cells[0])
]


def test_each_of_upstreams_tests_has_one_row() -> None:
    tests = [(section, name) for section, name, _ in ROWS]
    assert len(set(tests)) == len(tests)
    assert len([name for section, name in tests if section == "pkg/storage/testing"]) == 55


@pytest.mark.parametrize(("section", "name", "here"), ROWS)
def test_a_row_leads_to_tests_or_a_reason(section: str, name: str, here: str) -> None:
    named = re.findall(r"`([^`]+)`", here)
    assert named or here == "not here"
    checks = {check.__name__ for check in storage_suite.checks()}
    for place in named:
        path, _, function = place.rpartition("::")
        assert f"def {function}(" in (ROOT / path).read_text() if path else function in checks, place


def test_each_check_is_in_the_document() -> None:
    named = set(re.findall(r"`(run_test_\w+)`", DOCUMENT))
    assert {check.__name__ for check in storage_suite.checks()} == named
