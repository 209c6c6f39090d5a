"""Templates to files: `{{name}}` is replaced, `# if flag` … `# end` is kept or left out."""

from collections.abc import Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Final

Values = Mapping[str, str]
_SUFFIX: Final = ".tmpl"  # no tool takes a template for what it becomes


def render(template: str, values: Values, flags: Mapping[str, bool] | None = None) -> str:
    """KeyError for a name or flag that isn't given."""
    lines, kept = [], True
    for line in template.splitlines():
        word = line.strip()
        if word.startswith("# if "):
            kept = (flags or {})[word.removeprefix("# if ")]
        elif word == "# end":
            kept = True
        elif kept:
            lines.append(_filled(line, values))
    return "\n".join(lines) + "\n"


def _filled(line: str, values: Values) -> str:
    first, *rest = line.split("{{")
    return first + "".join(values[name] + text for name, _, text in (part.partition("}}") for part in rest))


def write_tree(
    tree: str,
    folder: Path,
    values: Values,
    names: Values,
    flags: Mapping[str, bool] | None = None,
    *,
    replaces: bool = False,
) -> list[Path]:
    """Writes a folder of templates; `names` are replaced in their paths. What is there already stays, unless `replaces`. The
    files written, within `folder`. OSError."""
    written = []
    for path, template in _templates(files(__package__) / "templates" / tree, Path()):
        target = Path(*(_named(part, names) for part in path.parts))
        if (folder / target).exists() and not replaces:
            continue
        (folder / target).parent.mkdir(parents=True, exist_ok=True)
        (folder / target).write_text(render(template, values, flags))
        written.append(target)
    return written


def _named(part: str, names: Values) -> str:
    """`test_module.py` is the test of `module`."""
    for name, value in names.items():
        stem, dot, suffix = part.partition(".")
        if stem == name:
            return f"{value}{dot}{suffix}"
        if f"_{name}" in part:
            return part.replace(f"_{name}", f"_{value}")
    return part


def _templates(folder: Traversable, path: Path) -> list[tuple[Path, str]]:
    found = []
    for item in sorted(folder.iterdir(), key=lambda item: item.name):
        if item.name == "__pycache__":
            continue
        if item.is_dir():
            found += _templates(item, path / item.name)
        else:
            found.append((path / item.name.removesuffix(_SUFFIX), item.read_text()))
    return found


def insert(path: Path, marker: str, line: str) -> None:
    """Puts a line before `# scaffold:MARKER`, with its indentation, unless it is there. ValueError when the marker is gone."""
    lines = path.read_text().splitlines()
    place = next((number for number, row in enumerate(lines) if row.strip() == f"# scaffold:{marker}"), None)
    if place is None:
        raise ValueError(f"{path} has no line `# scaffold:{marker}` any more: add `{line}` yourself")
    row = lines[place][: -len(lines[place].lstrip())] + line
    if row not in lines:
        lines.insert(place, row)
        path.write_text("\n".join(lines) + "\n")
