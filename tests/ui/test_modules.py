"""The page's modules keep the forms from which a saved file is made, and the page stays small."""

import re
import zlib
from collections import Counter
from typing import Final

import pytest

from tests.ui.conftest import STATIC

MODULES: Final = sorted(STATIC.glob("*.js"))
_IMPORT: Final = re.compile(r'^import \{ [\w, ]+ \} from "\./[\w]+\.js";$')
_TOP_LEVEL: Final = re.compile(
    r"^(?:export )?(?:async )?(?:function\*?|class|const|let) (?:\[(?P<several>[^\]]+)\]|(?P<name>\w+))"
)


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.name)
def test_imports_have_the_form_that_a_saved_file_strips(module):
    lines = [line for line in module.read_text().splitlines() if line.startswith("import")]
    assert [line for line in lines if not _IMPORT.match(line)] == []


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.name)
def test_exports_are_declarations(module):
    exports = [line for line in module.read_text().splitlines() if line.startswith("export")]
    assert [line for line in exports if not _TOP_LEVEL.match(line)] == []


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.name)
def test_no_markup_is_made_of_values(module):
    text = module.read_text()
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|srcdoc", text)


def test_top_level_names_are_unique_over_all_modules():
    names = Counter()
    for module in MODULES:
        for line in module.read_text().splitlines():
            if match := _TOP_LEVEL.match(line):
                names.update(name.strip() for name in (match["several"] or match["name"]).split(","))
    assert [name for name, number in names.items() if number > 1] == []


def test_the_page_takes_less_than_300_kb_of_the_wheel():
    assert sum(len(zlib.compress(path.read_bytes())) for path in STATIC.iterdir()) < 300_000
