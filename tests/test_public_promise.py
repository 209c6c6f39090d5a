"""Tests the package's promise: the public modules list their names, and documents and templates import nothing else."""

import ast
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

import fakeapiserver

ROOT = Path(__file__).parent.parent
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
TEMPLATES = sorted((ROOT / "fakeapiserver/scaffold/templates").rglob("*.py.tmpl"))
_PYTHON = re.compile(r"^```(?:python|py)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_IMPORT = re.compile(r"^[ ]*((?:from|import) fakeapiserver[^\n(]*(?:\([^)]*\))?)", re.MULTILINE)
_TEMPLATE = re.compile(r"\{\{.*?\}\}|\{%.*?%\}")


def imported(text: str) -> Iterator[tuple[str, str]]:
    """(module, name) of each import of this package; without a name for `import fakeapiserver.x`."""
    for match in _IMPORT.finditer(text):
        for node in ast.walk(ast.parse(_TEMPLATE.sub("x", match[1]))):
            if isinstance(node, ast.ImportFrom):
                yield from ((node.module or "", alias.name) for alias in node.names)
            elif isinstance(node, ast.Import):
                yield from ((alias.name, "") for alias in node.names)


def is_public(module: str, name: str) -> bool:
    if name and f"{module}.{name}" in fakeapiserver.PUBLIC_MODULES:
        return True
    return module in ("fakeapiserver", *fakeapiserver.PUBLIC_MODULES) and name in ("", *import_module(module).__all__)


@pytest.mark.parametrize("module", ["fakeapiserver", *fakeapiserver.PUBLIC_MODULES])
def test_a_public_module_names_what_it_has(module: str) -> None:
    found = import_module(module)
    names = list(found.__all__)
    assert len(names) == len({*names}) > 0
    for name in names:
        if not hasattr(found, name):
            import_module(f"{module}.{name}")  # one of its modules


@pytest.mark.parametrize("document", [*DOCUMENTS, *TEMPLATES], ids=lambda path: str(path.relative_to(ROOT)))
def test_documents_and_templates_import_public_names_only(document: Path) -> None:
    text = document.read_text()
    blocks = _PYTHON.findall(text) if document.suffix == ".md" else [text]
    assert [found for block in blocks for found in imported(block) if not is_public(*found)] == []


def test_imports_are_found() -> None:
    """Imports in parentheses and in templates are found, too."""
    text = "from fakeapiserver import (\n    Cluster,\n    AsyncCluster,\n)\n"
    text += "    import fakeapiserver.server\nfrom fakeapiserver.client import {{name}}\n"
    assert [*imported(text)] == [
        ("fakeapiserver", "Cluster"),
        ("fakeapiserver", "AsyncCluster"),
        ("fakeapiserver.server", ""),
        ("fakeapiserver.client", "x"),
    ]
    assert not is_public("fakeapiserver.server", "")
    assert is_public("fakeapiserver.client", "wait")
    assert sum(len([*imported(path.read_text())]) for path in [*DOCUMENTS, *TEMPLATES]) > 20
