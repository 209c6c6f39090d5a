"""Figures of servers side by side."""

import json
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

Note = Callable[[str, float], None]
"""Puts a figure down, by its key."""

Figures = dict[str, list[float]]
"""The values of each key, one of each round."""


@dataclass(frozen=True, slots=True)
class Row:
    """`key` of the figures; `more` says that a larger figure is the better one."""

    key: str
    title: str
    unit: str
    more: bool = False


def noter(figures: Figures) -> Note:
    """Returns a function that adds a value to those of its key."""
    return lambda key, value: figures.setdefault(key, []).append(value)


def report(rows: Sequence[Row], figures: dict[str, Figures], output: str, ratio: str = "times better") -> None:
    """Prints the medians, a column for each server, as Markdown or (`json`) for programs.

    The last column compares the first server with the last one, unless `ratio`, its title, is empty or there is one server.
    """
    medians = {
        name: {key: statistics.median(values) for key, values in found.items()} for name, found in figures.items()
    }
    if output == "json":
        print(json.dumps(medians, indent=1))
        return
    names = list(medians)
    compares = bool(ratio) and len(names) > 1
    print("| " + " | ".join(["", *names] + ([ratio] if compares else [])) + " |")
    print("|---" * (len(names) + (2 if compares else 1)) + "|")
    for row in rows:
        values = [medians[name].get(row.key) for name in names]
        shown = ["" if value is None else f"{value:,.{_digits(value)}f} {row.unit}" for value in values]
        ours, other = values[0], values[-1]
        if compares:
            shown.append("" if not ours or not other else f"{ours / other if row.more else other / ours:.1f}")
        print("| " + " | ".join([row.title, *shown]) + " |")


def _digits(value: float) -> int:
    return 0 if value >= 100 else 1 if value >= 10 else 2
