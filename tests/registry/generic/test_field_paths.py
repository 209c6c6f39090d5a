"""Removing fields by their paths, and those of features that are off (upstream: dropDisabledFields in every strategy)."""

import copy
from typing import Any

import pytest

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.registry.generic.field_paths import FieldPath, drop_disabled_fields, drop_fields, touches, tree_of

_LISTS: list[FieldPath] = [("spec", "rows", "*", "a"), ("spec", "rows", "*", "b")]


@pytest.mark.parametrize(
    ("obj", "old", "paths", "left"),
    [
        ({"spec": {"a": 1, "b": 2}}, None, [("spec", "a")], {"spec": {"b": 2}}),
        ({"spec": {"a": 1}}, {"spec": {"a": 3}}, [("spec", "a")], {"spec": {"a": 1}}),
        ({"spec": {"a": 1}}, {"spec": {"a": {}}}, [("spec", "a")], {"spec": {}}),
        ({"spec": {"a": 1}}, {"spec": {"a": False}}, [("spec", "a")], {"spec": {"a": 1}}),
        # One field in use keeps all of the feature's.
        ({"spec": {"rows": [{"a": 1}]}}, {"spec": {"rows": [{"b": 1}]}}, _LISTS, {"spec": {"rows": [{"a": 1}]}}),
        ({"spec": {"rows": [{"a": 1, "b": 1}]}}, {"spec": {"rows": [{}]}}, _LISTS, {"spec": {"rows": [{}]}}),
        ({"x": {"y": 1}}, None, [("x?", "y")], {}),
        ({"x": {"y": 1, "z": 1}}, None, [("x?", "y")], {"x": {"z": 1}}),
        ({"x": [{"y": "keep"}, {"y": "other"}]}, None, [("x", "*", "y!keep")], {"x": [{"y": "keep"}, {}]}),
        ({"x": [{"y": "a"}, {"y": "b"}, {}]}, None, [("x", "*", "y=a")], {"x": [{"y": "a"}, {"y": "a"}, {}]}),
        ({"x": {"y": "b"}}, {"x": {"y": "b"}}, [("x", "y=a")], {"x": {"y": "b"}}),
        ({"x": {"y": "b"}}, {"x": {"y": "a"}}, [("x", "y=a")], {"x": {"y": "a"}}),
        ({"x": "text"}, None, [("x", "y"), ("x", "*")], {"x": "text"}),
    ],
)
def test_fields_are_dropped_unless_in_use(
    obj: Object, old: Object | None, paths: list[FieldPath], left: Object
) -> None:
    before = copy.deepcopy(old)
    drop_disabled_fields(obj, old, [paths])
    assert (obj, old) == (left, before)


@pytest.mark.parametrize(
    ("obj", "found"),
    [
        ({"a": {}}, False),
        ({"a": {"b": []}}, True),
        ({"x": [{}, {"y": 1}]}, True),
        ({"x": [{}]}, False),
        ({"z": [{}, {"image": {}}]}, True),
        ({"z": [{"name": "v"}]}, False),
        ({}, False),
    ],
)
def test_a_quick_check_finds_fields_that_may_be_dropped(obj: Object, found: bool) -> None:
    assert (
        touches(obj, tree_of([[("a", "b", "*", "c"), ("a", "b")], [("x", "*", "y!keep")], [("z?", "*~image")]]))
        is found
    )


@pytest.mark.parametrize(
    ("path", "left"),
    [
        (("spec", "a"), {"spec": {"b": [{"c": {"d": 1}}, {"c": {"d": 1, "e": 2}}, {"c": {}}]}}),
        (("spec", "b", "*", "c", "d"), {"spec": {"a": 1, "b": [{"c": {}}, {"c": {"e": 2}}, {"c": {}}]}}),
        # What holds the field goes along only where the field was the last in it.
        (("spec", "b", "*", "c?", "d"), {"spec": {"a": 1, "b": [{}, {"c": {"e": 2}}, {"c": {}}]}}),
        (("spec", "a", "*", "x"), {"spec": {"a": 1, "b": [{"c": {"d": 1}}, {"c": {"d": 1, "e": 2}}, {"c": {}}]}}),
        (("spec", "b", "*~c"), {"spec": {"a": 1, "b": []}}),
        (("no", "such"), {"spec": {"a": 1, "b": [{"c": {"d": 1}}, {"c": {"d": 1, "e": 2}}, {"c": {}}]}}),
    ],
)
def test_fields_are_dropped(path: tuple[str, ...], left: dict[str, Any]) -> None:
    obj = {"spec": {"a": 1, "b": [{"c": {"d": 1}}, {"c": {"d": 1, "e": 2}}, {"c": {}}]}}
    drop_fields(obj, [path])
    assert obj == left
