"""Writes the maps of the packages from the first lines of their docstrings: `python tests/shape/package_map.py`.

ARCHITECTURE.md has the packages by layer, docs/map.md all of them with the packages in them. The layers are those of import-linter in
pyproject.toml. `tests/shape/test_documents.py` fails if a map is out of date.
"""

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
PACKAGE: Final = ROOT / "fakeapiserver"
BEGIN: Final = "<!-- map -->"
END: Final = "<!-- end of map -->"


def summary(path: Path) -> str:
    """The first line of a module's docstring; a paragraph that is wrapped counts as one line."""
    text = ast.get_docstring(ast.parse(path.read_text())) or ""
    return " ".join(text.split("\n\n")[0].split()).rstrip(":").replace("|", "\\|")


def packages(folder: Path = PACKAGE) -> Iterator[Path]:
    """Yields the folders of a package and of all packages in it, in order."""
    yield folder
    for child in sorted(folder.iterdir()):
        if (child / "__init__.py").exists():
            yield from packages(child)


def layers() -> list[tuple[int, list[str]]]:
    """The layers, highest first: a number, and the packages that are in it."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    rows: list[str] = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    return [
        (len(rows) - 1 - number, [name.strip() for name in row.replace(":", "|").split("|")])
        for number, row in enumerate(rows)
    ]


def layer_table() -> str:
    """The table of ARCHITECTURE.md: layer, package, what is in it."""
    rows = ["| layer | package | what is in it |", "|---|---|---|"]
    for number, names in layers():
        for name in names:
            place = PACKAGE / name
            module = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
            shown = f"fakeapiserver/{name}" if place.is_dir() else f"fakeapiserver/{name}.py"
            rows.append(f"| {number} | `{shown}` | {summary(module)} |")
    return "\n".join(rows)


def whole_map() -> str:
    """The text of docs/map.md: a row for each package."""
    rows = [f"| `{folder.relative_to(ROOT).as_posix()}` | {summary(folder / '__init__.py')} |" for folder in packages()]
    return (
        "# The map\n\nAll packages; `python tests/shape/package_map.py` makes this page from their docstrings. The first line of "
        "a module says what the module is: `head -1 fakeapiserver/server/*.py` shows a room.\n\n| package | what is in it |\n|---|---|\n"
        + "\n".join(rows)
        + "\n"
    )


def with_table(document: str) -> str:
    """ARCHITECTURE.md's text with the current table between its two markers."""
    before, _, rest = document.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{layer_table()}\n{END}{after}"


def main() -> None:
    """Writes both maps."""
    architecture = ROOT / "ARCHITECTURE.md"
    architecture.write_text(with_table(architecture.read_text()))
    (ROOT / "docs" / "map.md").write_text(whole_map())


if __name__ == "__main__":
    main()
