"""The site is built without a warning, its reference is up to date, and nothing in it is loaded from elsewhere."""

import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml

from tests.site import reference_pages
from tests.site.blocks import DOCS, ROOT

CONFIGURATION = yaml.safe_load((ROOT / "mkdocs.yml").read_text())
# What a browser loads by itself; links may lead anywhere.
LOADED = re.compile(
    r'<(?:script|img|iframe|source)[^>]* src="(https?:)?//|<link[^>]* href="https?://[^"]*"[^>]*rel="stylesheet"'
)


def test_the_reference_is_up_to_date() -> None:
    """If not, `python -m tests.site.reference_pages` writes it."""
    assert [path.name for path, text in reference_pages.pages() if not path.exists() or path.read_text() != text] == []


def test_every_page_is_in_the_navigation() -> None:
    def named(entry: object) -> list[str]:
        if isinstance(entry, str):
            return [entry]
        values = entry.values() if isinstance(entry, dict) else entry if isinstance(entry, list) else ()
        return [name for value in values for name in named(value)]

    assert sorted(named(CONFIGURATION["nav"])) == sorted(str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md"))


@pytest.mark.skipif(find_spec("zensical") is None, reason="zensical is not installed: pip install -e '.[docs]'")
def test_the_site_is_built(tmp_path: Path) -> None:
    """`--strict` refuses links to pages and headings that don't exist."""
    shutil.copytree(DOCS, tmp_path / "docs")
    (tmp_path / "mkdocs.yml").write_text((ROOT / "mkdocs.yml").read_text().replace("paths: [.]", f"paths: [{ROOT}]"))
    built = subprocess.run(
        [sys.executable, "-m", "zensical", "build", "--strict"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stdout + built.stderr
    site = tmp_path / "build/site"
    pages = [*site.rglob("*.html")]
    assert len(pages) > 30
    assert [str(page.relative_to(site)) for page in pages if LOADED.search(page.read_text())] == []
    # docstrings are there
    assert "A private API server with ports" in (site / "reference/python/index.html").read_text()
