"""Upstream's prose about built-in kinds and their fields, read from the package lightkube-models.

Its modules have a class for each definition, whose docstring describes the definition and each of its fields. No module is imported:
a class's docstring is found in the module's text when its definition is first asked for.
"""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, Protocol

Schema = dict[str, Any]

_PACKAGE: Final = "lightkube"
# Docstrings are wrapped at this width, without their indentation.
_WIDTH: Final = 78
_INDENT: Final = " " * 6
_FIELDS: Final = "\n      **parameters**\n"
_FIELD: Final = re.compile(r"^ {6}\* \*\*([^*]+)\*\* ``[^`]*`` - ", re.MULTILINE)
# A line break that is left when lines are joined again was a paragraph's end, unless a list or an example goes on.
_PARAGRAPH: Final = re.compile(r"(?<!\n)\n(?![\n ])")


def folder() -> Path | None:
    """Returns the folder of the package's modules, or None if the package isn't installed."""
    spec = find_spec(_PACKAGE)
    for location in (spec.submodule_search_locations or ()) if spec else ():
        path = Path(location) / "models"
        if path.is_dir():
            return path
    return None


class Descriptions(Protocol):
    """Descriptions by the name of a definition (`io.k8s.api.core.v1.Pod`)."""

    def get(self, name: str, default: Schema, /) -> Schema:
        """Returns `{"description": …, "properties": {field: {"description": …}}}`, or the default for an unknown definition."""


class Prose:
    """The package's descriptions."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: dict[str, Schema | None] = {}

    def get(self, name: str, default: Schema, /) -> Schema:
        """See Descriptions."""
        if name not in self._known:
            self._known[name] = self._read(name)
        return self._known[name] or default

    def _read(self, name: str) -> Schema | None:
        *_, group, version, kind = ["", "", *name.split(".")]
        text = _module(self._path / f"{group}_{version}.py")
        _, _, rest = text.partition(f'\nclass {kind}(DictMixin):\n    r"""')
        docstring, end, _ = rest.partition('"""')
        return _described(docstring) if end else None


@lru_cache(maxsize=1)
def installed() -> Prose | None:
    """Returns upstream's descriptions, or None if the package isn't installed."""
    path = folder()
    return Prose(path) if path else None


@lru_cache(maxsize=2)
def _module(path: Path) -> str:
    """The module's text; nothing where there is no such module."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""


def _described(docstring: str) -> Schema:
    head, _, fields = docstring.partition(_FIELDS)
    parts = _FIELD.split(fields)[1:]
    properties = {
        name: {"description": _joined(text, _INDENT + "  ")} for name, text in zip(parts[::2], parts[1::2], strict=True)
    }
    return {"description": _joined(head, _INDENT), "properties": properties}


def _joined(text: str, indent: str) -> str:
    """The text as it was before its lines were wrapped: a line was continued on the next if that line's first word didn't fit."""
    lines = [line.removeprefix(indent).rstrip() for line in text.rstrip().split("\n")]
    return _PARAGRAPH.sub("\n\n", "".join(_with_breaks(lines)).strip())


def _with_breaks(lines: Iterable[str]) -> Iterator[str]:
    rows = list(lines)
    yield rows[0]
    for before, line in pairwise(rows):
        word = line.split(maxsplit=1)[0] if line else ""
        wrapped = before and word and len(before) + 1 + len(word) > _WIDTH
        yield f" {line.lstrip()}" if wrapped else f"\n{line}"
