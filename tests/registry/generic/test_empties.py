"""Empty lists and maps that a body had, put back for the texts of refusals."""

from typing import Any

import pytest

from fakeapiserver.registry.generic.empties import as_sent


@pytest.mark.parametrize(
    ("obj", "empties", "expected"),
    [
        ({"spec": {}}, {("spec", "modes"): []}, {"spec": {"modes": []}}),
        ({"spec": {"modes": None}}, {("spec", "modes"): []}, {"spec": {"modes": []}}),
        ({"spec": {"modes": ["x"]}}, {("spec", "modes"): []}, {"spec": {"modes": ["x"]}}),
        ({"terms": [{}]}, {("terms", 0, "values"): []}, {"terms": [{"values": []}]}),
        # What was around it is gone: the server keeps another status, or fewer items.
        ({"terms": [{}]}, {("terms", 1, "values"): [], ("status", "sizes"): {}}, {"terms": [{}]}),
    ],
)
def test_as_sent(obj: dict[str, Any], empties: dict[tuple[str | int, ...], Any], expected: dict[str, Any]) -> None:
    before = str(obj)
    assert as_sent(obj, empties) == expected
    assert str(obj) == before
