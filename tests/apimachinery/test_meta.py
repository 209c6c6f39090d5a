"""Tests the accessors for objects of any kind."""

from typing import Any

import pytest

from fakeapiserver.apimachinery.meta import same


@pytest.mark.parametrize(
    ("a", "b", "equal", "exactly"),
    [
        (1, True, False, False),
        (0, False, False, False),
        (1, 1.0, True, False),
        ([1, {"a": 0}], [1, {"a": False}], False, False),
        ({"a": [1.0]}, {"a": [1]}, True, False),
        ({"a": None}, {}, False, False),
        ({"a": [True, "x", None]}, {"a": [True, "x", None]}, True, True),
    ],
)
def test_values_are_the_same_as_json(a: Any, b: Any, equal: bool, exactly: bool) -> None:
    assert same(a, b) is same(b, a) is equal
    assert same(a, b, exact=True) is exactly
