"""Templates to files: `{{name}}` is replaced, `# if flag` … `# end` is kept or left out."""

import re
from collections.abc import Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Final

Values = Mapping[str, str]
_SUFFIX: Final = ".tmpl"  # so that tools don't read templates as Python


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


class Changes:
    """Files that are to be written into a project, together or not at all: nothing is written before `write`.

    replaces: a file that is there already is replaced, rather than refused.
    """

    def __init__(self, folder: Path, *, replaces: bool = False) -> None:
        self._folder = folder
        self._replaces = replaces
        self._texts: dict[Path, str] = {}

    def add_tree(
        self, tree: str, values: Values, names: Values, flags: Mapping[str, bool] | None = None, *, shared: bool = False
    ) -> None:
        """A folder of templates; `names` are replaced in their paths. A file that is there already stays if it is `shared` or
        makes a package; else ValueError, with one sentence."""
        for path, template in _templates(files(__package__) / "templates" / tree, Path()):
            target = Path(*(_named(part, names) for part in path.parts))
            if (self._folder / target).exists():
                if shared or target.name == "__init__.py":
                    continue
                if not self._replaces:
                    raise ValueError(f"{target} is there already: edit it, or replace it with --force")
            self._texts[target] = render(template, values, flags)

    def insert(self, path: Path, marker: str, line: str) -> None:
        """Puts a line before `# scaffold:MARKER`, with its indentation, unless it is there. ValueError when the marker is gone."""
        lines = self._read(path).splitlines()
        place = next((number for number, row in enumerate(lines) if row.strip() == f"# scaffold:{marker}"), None)
        row = line if place is None else lines[place][: -len(lines[place].lstrip())] + line
        if row in lines:
            return
        if place is None:
            raise ValueError(
                f"{path} has no line `# scaffold:{marker}` any more: put it back, or add `{line}` yourself"
            )
        lines.insert(place, row)
        self._texts[path] = "\n".join(lines) + "\n"

    def put(self, path: Path, text: str) -> None:
        """A file that is the scaffold's alone."""
        self._texts[path] = text

    def write(self) -> list[Path]:
        """The paths of the files that changed, within the folder. OSError."""
        changed = [path for path, text in self._texts.items() if not _holds(self._folder / path, text)]
        for path in changed:
            (self._folder / path).parent.mkdir(parents=True, exist_ok=True)
            (self._folder / path).write_text(self._texts[path], encoding="utf-8")
        return changed

    def _read(self, path: Path) -> str:
        if path in self._texts:
            return self._texts[path]
        try:
            return (self._folder / path).read_text(encoding="utf-8")
        except FileNotFoundError:
            raise ValueError(f"there is no {path} any more") from None


def _holds(path: Path, text: str) -> bool:
    return path.exists() and path.read_text(encoding="utf-8") == text


def _named(part: str, names: Values) -> str:
    """`test_module.py` is the test of `module`."""
    return re.sub("[a-z]+", lambda word: names.get(word[0], word[0]), part)


def _templates(folder: Traversable, path: Path) -> list[tuple[Path, str]]:
    templates = []
    for item in sorted(folder.iterdir(), key=lambda item: item.name):
        if item.name == "__pycache__":
            continue
        if item.is_dir():
            templates += _templates(item, path / item.name)
        else:
            templates.append((path / item.name.removesuffix(_SUFFIX), item.read_text(encoding="utf-8")))
    return templates
