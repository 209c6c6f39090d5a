"""Measures how time and memory grow: `python -m conformance.bench growth`.

Processor time of the server for each request, and its memory, against the number of objects, watchers, definitions, namespaces, nodes,
clients, bytes and pods; beside each point the longest step of the event loop in processor time, during which no other client is served. A
figure that grows with a higher power of the number than it should is marked. The load comes from the Go program of bench/loader.
"""

import argparse
import json
import math
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final

from conformance.bench.building import build_loader
from conformance.bench.growth import running
from conformance.bench.growth.curves import CURVES, Curve, Point, Row
from conformance.bench.growth.pictures import picture

_DOCS: Final = Path(__file__).parents[3] / "docs"
# By how much the measured power of a figure may be above the allowed one: logarithms, noise, and what is done once.
_TOLERANCE: Final = 0.3
# Smaller figures are noise.
_LEAST: Final = 1e-3
# Milliseconds of a step that are marked.
_LONG_STEP: Final = 50.0


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m conformance.bench growth",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("curves", nargs="*", metavar="CURVE", help=f"some of {', '.join(CURVES)} (default: all)")
    parser.add_argument("--more", action="store_true", help="also the largest numbers, which take long")
    parser.add_argument("--counts", type=_numbers, help="these numbers instead, separated by commas")
    parser.add_argument("--pictures", action="store_true", help="write docs/pictures/growth-CURVE.svg")
    parser.add_argument("--output", choices=("text", "json"), default="text")
    arguments = parser.parse_args(words)
    if unknown := sorted(set(arguments.curves) - set(CURVES)):
        parser.error(f"{unknown[0]} is not one of {', '.join(CURVES)}")
    measured: dict[str, list[Point]] = {}
    with tempfile.TemporaryDirectory() as folder:
        program = build_loader(Path(folder))
        for name in arguments.curves or CURVES:
            curve = CURVES[name]
            counts = arguments.counts or [*curve.counts, *(curve.more if arguments.more else ())]
            points = measured[name] = []
            for point in curve.measure(lambda flags: running.running(program, flags), counts):
                print(f"{name}: {point}", file=sys.stderr, flush=True)
                points.append(point)
            if arguments.pictures:
                (_DOCS / "pictures" / f"growth-{name}.svg").write_text(_picture(curve, points))
    if arguments.output == "json":
        print(json.dumps({name: [asdict(point) for point in points] for name, points in measured.items()}, indent=1))
    else:
        print("\n\n".join("\n".join(table(CURVES[name], points)) for name, points in measured.items()))
    return 1 if any(steep(CURVES[name], points) for name, points in measured.items()) else 0


def _numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def _picture(curve: Curve, points: Sequence[Point]) -> str:
    lines = {
        f"{row.title}, {row.unit}": [
            (point.count, point.figures[key]) for point in points if point.figures.get(key, 0.0) > 0
        ]
        for key, row in curve.rows.items()
    }
    lines["longest step, ms"] = [(point.count, point.step) for point in points]
    return picture(curve.title, curve.axis, {name: line for name, line in lines.items() if line})


def table(curve: Curve, points: Sequence[Point]) -> Iterator[str]:
    """Yields the lines of a table: a column for each number, and the power with which each figure grows between the last two."""
    found = steep(curve, points)
    yield f"| {curve.title} | " + " | ".join(f"{point.count:,}" for point in points) + " | power |"
    yield "|---" * (len(points) + 2) + "|"
    for key, row in curve.rows.items():
        values = [f"{_shown(point.figures[key])} {row.unit}" if key in point.figures else "" for point in points]
        power = f"{growth(points, key):.2f}" if len(points) > 1 else ""
        yield f"| {row.title} | {' | '.join(values)} | {power}{' (steep)' if key in found else ''} |"
    yield "| longest step | " + " | ".join(f"{_shown(point.step)} ms{_long(point)}" for point in points) + " | |"


def _long(point: Point) -> str:
    return f" ({point.step_name})" if point.step > _LONG_STEP else ""


def steep(curve: Curve, points: Sequence[Point]) -> Mapping[str, Row]:
    """The figures that grow faster than they may, by the last two points."""
    if len(points) < 2:
        return {}
    return {key: row for key, row in curve.rows.items() if growth(points, key) > row.power + _TOLERANCE}


def growth(points: Sequence[Point], key: str) -> float:
    """The power of the number with which a figure grows between the last two points."""
    before, after = points[-2], points[-1]
    if key not in before.figures:
        return 0.0
    ratio = max(after.figures[key], _LEAST) / max(before.figures[key], _LEAST)
    return math.log(ratio) / math.log(after.count / before.count)


def _shown(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


if __name__ == "__main__":
    sys.exit(main())
