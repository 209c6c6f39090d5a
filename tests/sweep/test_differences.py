"""The differences of states as lines for people."""

from typing import Any

import pytest

from fakeapiserver.sweep import states
from fakeapiserver.sweep.judging import Comparison
from fakeapiserver.sweep.report import differences

CONFIG: dict[str, Any] = {"kind": "ConfigMap", "metadata": {"name": "db"}, "data": {"size": "1"}}
LARGE: dict[str, Any] = {**CONFIG, "data": {f"key-{number}": "x" * 500 for number in range(40)}}


def compared(wanted: dict[str, Any], actual: dict[str, Any]) -> Comparison:
    return Comparison("in the end", "undisturbed", "with it", states.differences(wanted, actual, frozenset()))


@pytest.mark.parametrize(
    ("wanted", "actual", "lines"),
    [
        pytest.param(
            {"configmaps a/db": CONFIG},
            {"configmaps a/db": {**CONFIG, "data": {"size": "3"}}},
            ["  ConfigMap a/db", '-   data.size: "1"', '+   data.size: "3"'],
            id="changed",
        ),
        pytest.param(
            {"configmaps a/db": CONFIG},
            {"configmaps a/db": {**CONFIG, "immutable": True}},
            ["  ConfigMap a/db", "+   immutable: true"],
            id="set",
        ),
        pytest.param(
            {"configmaps a/db": CONFIG}, {}, ["- ConfigMap a/db", '-   data: {"size": "1"}'], id="missing, with its content"
        ),
        pytest.param(
            {},
            {"widgets.example.com a/w": {"kind": "Widget", "metadata": {}, "status": {"size": 1}}},
            ["+ Widget a/w"],
            id="additional",
        ),
        pytest.param(
            {"secrets a/s": {"kind": "Secret", "metadata": {}, "data": {"key": "b25l"}}},
            {"secrets a/s": {"kind": "Secret", "metadata": {}, "data": {"key": "dHdv"}}},
            ["  Secret a/s", '-   data.key: "(secret)"', '+   data.key: "(another secret)"'],
            id="a Secret",
        ),
    ],
)  # fmt: skip
def test_lines(wanted: dict[str, Any], actual: dict[str, Any], lines: list[str]) -> None:
    title, *rest = differences.lines_of([compared(wanted, actual)])
    assert title == "   the state in the end, - undisturbed, + with it:"
    assert [line.removeprefix("     ") for line in rest] == lines


def test_lines_are_bounded() -> None:
    lines = differences.lines_of([compared({"configmaps a/db": CONFIG}, {"configmaps a/db": LARGE})])
    assert lines[-1] == "     and 22 more lines"
    assert max(map(len, lines)) < 130
