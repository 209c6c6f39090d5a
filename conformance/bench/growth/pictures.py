"""Curves as SVG: one picture with logarithmic axes for each, without any library."""

import math
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Final

_WIDTH: Final = 720
_HEIGHT: Final = 400
_LEFT: Final = 70
_TOP: Final = 40
_RIGHT: Final = 250
_BOTTOM: Final = 50
_COLORS: Final = ("#1f6feb", "#d1242f", "#1a7f37", "#9a6700", "#8250df", "#57606a")
_TEXT: Final = 'font-family="sans-serif" font-size="12" fill="#24292f"'


def picture(title: str, axis: str, lines: Mapping[str, Sequence[tuple[float, float]]]) -> str:
    """Returns the text of a picture. `axis` names what is counted; each line has its unit in its name, and (x, y) above 0."""
    points = [point for line in lines.values() for point in line]
    horizontal, vertical = _decades([x for x, _ in points]), _decades([y for _, y in points])
    shapes = [*_frame(title, axis, horizontal, vertical)]
    for number, (name, line) in enumerate(lines.items()):
        color = _COLORS[number % len(_COLORS)]
        places = [(_across(x, horizontal), _up(y, vertical)) for x, y in line]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        shapes.append(f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2"/>')
        shapes += (f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{color}"/>' for x, y in places)
        row = _TOP + 14 + 20 * number
        left = _WIDTH - _RIGHT + 15
        shapes.append(f'<rect x="{left}" y="{row - 9}" width="12" height="4" fill="{color}"/>')
        shapes.append(f'<text x="{left + 18}" y="{row - 3}" {_TEXT}>{escape(name)}</text>')
    body = "\n".join(shapes)
    size = f'width="{_WIDTH}" height="{_HEIGHT}" viewBox="0 0 {_WIDTH} {_HEIGHT}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}>\n{body}\n</svg>\n'


def _decades(values: Sequence[float]) -> tuple[int, int]:
    """Returns the powers of ten between which all values are."""
    least, most = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return least, max(most, least + 1)


def _across(x: float, decades: tuple[int, int]) -> float:
    return _LEFT + (math.log10(x) - decades[0]) / (decades[1] - decades[0]) * (_WIDTH - _LEFT - _RIGHT)


def _up(y: float, decades: tuple[int, int]) -> float:
    height = _HEIGHT - _TOP - _BOTTOM
    return _TOP + height - (math.log10(y) - decades[0]) / (decades[1] - decades[0]) * height


def _frame(title: str, axis: str, horizontal: tuple[int, int], vertical: tuple[int, int]) -> Iterator[str]:
    """Yields the background, the title, and a grid with a line for each power of ten."""
    right, bottom = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
    yield f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#ffffff"/>'
    yield f'<text x="{_LEFT}" y="24" {_TEXT} font-weight="bold">{escape(title)}</text>'
    yield f'<text x="{(_LEFT + right) / 2}" y="{_HEIGHT - 12}" {_TEXT} text-anchor="middle">{escape(axis)}</text>'
    for power in range(horizontal[0], horizontal[1] + 1):
        x = _across(10.0**power, horizontal)
        yield f'<line x1="{x:.1f}" y1="{_TOP}" x2="{x:.1f}" y2="{bottom}" stroke="#d0d7de"/>'
        yield f'<text x="{x:.1f}" y="{bottom + 18}" {_TEXT} text-anchor="middle">{_label(power)}</text>'
    for power in range(vertical[0], vertical[1] + 1):
        y = _up(10.0**power, vertical)
        yield f'<line x1="{_LEFT}" y1="{y:.1f}" x2="{right}" y2="{y:.1f}" stroke="#d0d7de"/>'
        yield f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" {_TEXT} text-anchor="end">{_label(power)}</text>'


def _label(power: int) -> str:
    return f"{10**power:,}" if power >= 0 else f"{10.0**power:g}"
