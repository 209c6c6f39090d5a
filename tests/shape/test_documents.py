"""The documents of the house are true: maps are up to date, and rows of "where is …?" lead to their lines."""

import re

import pytest

from tests.shape import comparison_tools, package_map, version_pages
from tests.shape.package_map import ROOT

WHERE: list[tuple[str, str]] = re.findall(
    r"^\| .+ \| `([\w/.]+)` \| `(.+)` \|$", (ROOT / "docs" / "where-is.md").read_text(), re.MULTILINE
)


def test_the_maps_are_up_to_date() -> None:
    """If not, `python tests/shape/package_map.py` writes them."""
    architecture = (ROOT / "ARCHITECTURE.md").read_text()
    assert package_map.with_table(architecture) == architecture
    assert (ROOT / "docs" / "map.md").read_text() == package_map.whole_map()


def test_the_pages_of_versions_are_up_to_date() -> None:
    """If not, `python tests/shape/version_pages.py` writes them."""
    for path, text in version_pages.pages():
        assert path.read_text() == text, path


def test_the_comparison_tools_are_listed() -> None:
    """If not, `python tests/shape/comparison_tools.py` writes them."""
    assert comparison_tools.PAGE.read_text() == comparison_tools.page()


def test_architecture_can_be_read_at_once() -> None:
    assert len((ROOT / "ARCHITECTURE.md").read_text().splitlines()) <= 120


def test_there_are_rows() -> None:
    assert len(WHERE) >= 12


@pytest.mark.parametrize(("file", "name"), WHERE)
def test_a_question_leads_to_a_line(file: str, name: str) -> None:
    assert any(name in line for line in (ROOT / file).read_text().splitlines())


@pytest.mark.parametrize("document", ["ARCHITECTURE.md", "docs/design.md"])
def test_paths_below_the_package_exist(document: str) -> None:
    """Paths like `storage/mvcc.py` are relative to `fakeapiserver/` or to the top of the repository."""
    named = set(re.findall(r"`((?:[\w-]+/)+[\w.]+\.\w+)`", (ROOT / document).read_text()))
    assert named
    missing = {path for path in named if not ((ROOT / path).exists() or (ROOT / "fakeapiserver" / path).exists())}
    assert missing == set()
