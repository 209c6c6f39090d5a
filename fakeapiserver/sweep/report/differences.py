"""The differences of states in a report, as some lines for people."""

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

from fakeapiserver.sweep import kinds
from fakeapiserver.sweep.judging import Comparison
from fakeapiserver.sweep.states import Difference

_MOST_LINES: Final = 20
_MOST_CHARACTERS: Final = 110
# The members of an object that are not its content.
_SURROUNDINGS: Final = frozenset(("apiVersion", "kind", "metadata", "status"))


def lines_of(comparisons: Sequence[Comparison]) -> list[str]:
    """The differences like those of `diff`, as a part of a report: `-` marks the wanted values, `+` the actual ones."""
    lines: list[str] = []
    for compared in comparisons:
        lines.append(f"   the state {compared.when}, - {compared.wanted}, + {compared.actual}:")
        shown = [*_lines(compared.differences)]
        lines += [f"     {line}" for line in shown[:_MOST_LINES]]
        if len(shown) > _MOST_LINES:
            lines.append(f"     and {len(shown) - _MOST_LINES} more lines")
    return lines


def content_of(text: str) -> list[str]:
    """The fields of a missing or additional object, one a line and each in short, without its metadata and status."""
    obj = json.loads(text)
    return [_short(f"{name}: {_json(value)}") for name, value in obj.items() if name not in _SURROUNDINGS]


def named(difference: Difference) -> str:
    """`ConfigMap default/db-config`"""
    return kinds.spoken(difference.title, difference.kind).removeprefix("the ")


def _lines(differences: Sequence[Difference]) -> Iterator[str]:
    title = ""
    for each in differences:
        if each.change != "changed":
            sign = "-" if each.change == "missing" else "+"
            yield f"{sign} {named(each)}"
            yield from (f"{sign}   {line}" for line in content_of(each.wanted or each.actual))
            continue
        if each.title != title:
            title = each.title
            yield f"  {named(each)}"
        yield from (
            _short(f"{sign}   {each.path}: {value}")
            for sign, value in (("-", each.wanted), ("+", each.actual))
            if value
        )


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _short(line: str) -> str:
    return line if len(line) <= _MOST_CHARACTERS else f"{line[:_MOST_CHARACTERS]}…"
