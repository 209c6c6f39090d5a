"""The order of keys in two answers."""

from typing import Any

import pytest

from conformance.compare.key_order import answer_disorder


@pytest.mark.parametrize(
    ("expected", "got", "found"),
    [
        ({"a": 1, "b": 2}, {"a": 3, "b": 4}, ""),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, ".body: a, b != b, a"),
        ({"a": 1, "b": 2}, {"b": 2, "c": 0}, ""),
        ({"a": [{}, {"x": 1, "y": 2}]}, {"a": [{}, {"y": 1, "x": 2}]}, ".body.a[1]: x, y != y, x"),
        (
            {'k:{"uid":"00000000-0000-4000-8000-000000000000"}': 1, "v": 1},
            {'k:{"uid":"ffffffff-0000-4000-8000-000000000000"}': 1, "v": 1},
            "",
        ),
    ],
)
def test_the_first_disorder_is_named(expected: Any, got: Any, found: str) -> None:
    assert answer_disorder({"body": expected}, {"body": got}) == found
