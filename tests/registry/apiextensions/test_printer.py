"""Cells of printer columns: for each JSON path of `printer_cases.json`, what a real kube-apiserver 1.36.3 prints of its object in
columns of every type. An invalid path leaves out its column and those after it."""

import json
from pathlib import Path

import pytest

from fakeapiserver.registry.apiextensions.printer import row_printer

CASES = json.loads((Path(__file__).parent / "printer_cases.json").read_text())
TYPES = ("string", "integer", "number", "boolean", "date")
OBJECT = {"metadata": {"name": "x", "annotations": {"x.y/z": "ann"}}, **CASES["object"]}


@pytest.mark.parametrize("path", CASES["cells"])
def test_cells(path: str) -> None:
    row = row_printer([{"type": kind, "jsonPath": path} for kind in TYPES])
    # Ages grow.
    assert [cell for cell in row(OBJECT, 1.8e9)[1:] if not _is_age(cell)] == [
        cell for cell in CASES["cells"][path] if not _is_age(cell)
    ]


def _is_age(cell: object) -> bool:
    return isinstance(cell, str) and cell.endswith("d")


def test_numbers_are_as_exact_as_floats() -> None:
    row = row_printer([{"type": kind, "jsonPath": ".spec.big"} for kind in ("integer", "number", "string")])
    obj = {"metadata": {"name": "x"}, "spec": {"big": 9007199254740993}}
    assert row(obj, 0.0) == ["x", 9007199254740993, 9007199254740992, "9007199254740993"]


def test_a_float_that_no_integer_holds_is_the_least_one() -> None:
    row = row_printer([{"type": "integer", "jsonPath": ".spec.big"}])
    for big, cell in ((1e30, -(1 << 63)), (-1e30, -(1 << 63)), (9.9, 9), (-9.9, -9)):
        assert row({"metadata": {"name": "x"}, "spec": {"big": big}}, 0.0) == ["x", cell]
