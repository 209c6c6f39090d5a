"""Differences between two servers: each kind once, with the request that shows it and the place in our tree that decides it."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from conformance.exchange import HERE
from conformance.new_version.places import place_of

# The beginning of a difference in the output of a tool in `conformance/compare`: maybe a number or a label, then the request.
_REQUEST: Final = re.compile(r"^(?:[\w-]+ )?(GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS) (\S+) ?(.*)$")
_PRINTED: Final = re.compile(r"^(text|tables|random|create): (.*)$")
_REFUSED: Final = re.compile(r"^refused: (\S+) \d+: (.*)$")
_CHOSEN: Final = re.compile(r"\d+|\"[^\"]*\"|\[[^\]]*\]")
_SHORT: Final = 90


@dataclass
class Finding:
    """A kind of difference. `tool`: the comparison that found it; `request`: the first that shows it; `count`: how many do."""

    tool: str
    request: str
    difference: str
    place: str
    count: int = 1

    def as_row(self) -> dict[str, Any]:
        return asdict(self)


def finding(tool: str, request: str, difference: str) -> Finding:
    """A difference in the answers to a request, whose text begins with method and path."""
    _, _, rest = request.partition(" ")
    return Finding(tool, request, difference.strip(), place_of(rest.partition(" ")[0], difference))


def read_output(tool: str, text: str) -> Iterator[Finding]:
    """The differences that a tool of `conformance/compare` has printed."""
    blocks: list[list[str]] = []
    for line in text.splitlines():
        if _REQUEST.match(line) or _PRINTED.match(line) or _REFUSED.match(line):
            blocks.append([line])
        elif blocks and line.startswith((" ", "-", "+")):
            blocks[-1].append(line)
    for first, *more in blocks:
        rest = "\n".join(more)
        if match := _REFUSED.match(first):
            yield finding(tool, f"POST {match[1]}", f"the real server refuses this rich object: {match[2]}")
        elif match := _PRINTED.match(first):
            what, _, found = match[2].partition(": ")
            if more or found:
                yield Finding(tool, what, f"{found}\n{rest}".strip(), "fakeapiserver/registry: the kind's table_row")
        elif match := _REQUEST.match(first):
            yield finding(tool, f"{match[1]} {match[2]}", f"{match[3]}\n{rest}")


def unexplained(findings: Iterable[Finding]) -> list[Finding]:
    """Each kind of difference once, the most frequent first, without those that `explanations.json` explains."""
    explained = [re.compile(row["match"]) for row in json.loads((HERE / "explanations.json").read_text())]
    kinds: dict[str, Finding] = {}
    for found in findings:
        text = f"{found.tool} {found.request}: {found.difference}"
        if any(pattern.search(text) for pattern in explained):
            continue
        key = f"{found.place} {_CHOSEN.sub('N', found.difference)[:_SHORT]}"
        if key in kinds:
            kinds[key].count += 1
        else:
            kinds[key] = found
    return sorted(kinds.values(), key=lambda found: (-found.count, found.place))


def listed(findings: Sequence[Finding]) -> str:
    """The differences by the place that decides them, as text."""
    by_place: dict[str, list[Finding]] = {}
    for found in findings:
        by_place.setdefault(found.place, []).append(found)
    lines = []
    for place, group in sorted(by_place.items()):
        lines.append(place)
        for found in group:
            lines.append(f"  {found.count} × {found.request[:200]} ({found.tool})")
            lines += [f"      {line[:400]}" for line in found.difference.splitlines()[:6]]
    return "\n".join(lines)
