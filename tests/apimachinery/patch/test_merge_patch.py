"""Merge patch against the RFC's own algorithm, and where upstream departs from it."""

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fakeapiserver.apimachinery.errors import StatusError
from fakeapiserver.apimachinery.patch import merge


@pytest.mark.parametrize(
    ("doc", "patch", "result"),
    [
        ({"a": 1}, {"a": None, "b": None}, {}),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": None}}, {"a": {"c": 2}}),
        ({}, {"a": {"b": None, "c": {"d": None}}}, {"a": {"c": {}}}),
        ({"a": [1]}, {"a": [None, {"b": None}]}, {"a": [None, {}]}),
        # In place of an object, a list keeps the nulls of its objects.
        ({"a": {}}, {"a": [{"b": None}]}, {"a": [{"b": None}]}),
        ({"a": 1}, [{"b": None}], [{}]),
    ],
)
def test_nulls(doc: Any, patch: Any, result: Any) -> None:
    assert merge.apply(doc, patch) == result


@pytest.mark.parametrize("patch", [None, 5, "a", True])
def test_a_patch_is_an_object_or_a_list(patch: Any) -> None:
    with pytest.raises(StatusError) as raised:
        merge.apply({}, patch)
    assert (raised.value.code, raised.value.message) == (400, "Invalid JSON Patch")


def rfc7386(target: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = rfc7386(result.get(key), value)
    return result


SCALARS = st.sampled_from([None, 1, "s", [], [1, None]])
OBJECTS = st.recursive(
    SCALARS, lambda items: st.dictionaries(st.sampled_from("abc"), items, max_size=3), max_leaves=8
).map(lambda value: value if isinstance(value, dict) else {"a": value})


@settings(max_examples=200)
@given(OBJECTS, OBJECTS)
def test_as_the_rfc_has_it_where_lists_hold_no_objects(doc: dict[str, Any], patch: dict[str, Any]) -> None:
    before = copy.deepcopy((doc, patch))
    assert merge.apply(doc, patch) == rfc7386(doc, patch)
    assert (doc, patch) == before


def test_what_does_not_change_is_shared() -> None:
    doc = {"spec": {"big": {"x": [1]}}, "data": {"a": "1"}}
    assert merge.apply(doc, {"data": {"a": "2"}})["spec"] is doc["spec"]
