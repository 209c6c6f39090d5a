"""The patches that `conformance.compare.updates` sends say what they should."""

from typing import Any

import pytest

from conformance.random.updates import json_patch, merge_patch, merged

CASES: list[tuple[Any, Any]] = [
    ({}, {"a": 1}),
    ({"a": 1}, {}),
    ({"a": {"b": 1, "c": 2}}, {"a": {"b": 2}}),
    ({"a": [1, 2]}, {"a": [2]}),
    ({"a": {"b": 1}}, {"a": "text"}),
    ({"a": "text", "b": {}}, {"a": {"c": []}, "b": {}}),
]


@pytest.mark.parametrize(("old", "new"), CASES)
def test_a_merge_patch_makes_the_new_of_the_old(old: Any, new: Any) -> None:
    assert merged(old, merge_patch(old, new)) == new


def test_a_json_patch_names_each_change_once() -> None:
    old, new = {"a": {"b/c": 1, "d": 2}, "e": 3}, {"a": {"b/c": 4}, "f": [5]}
    assert list(json_patch(old, new, "")) == [
        {"op": "replace", "path": "/a/b~1c", "value": 4},
        {"op": "remove", "path": "/a/d"},
        {"op": "remove", "path": "/e"},
        {"op": "add", "path": "/f", "value": [5]},
    ]
