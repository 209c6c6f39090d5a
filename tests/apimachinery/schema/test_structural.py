"""Custom resources are pruned, defaulted and validated as a real server (v1.36.3) did it.

structural_cases.json: one CRD's schema, and for each body's spec what the server said: the fields it warned of, the spec it
would have stored (`result`), or the causes of its 422. ratcheting_cases.json: the same for updates, by their spec's old and
new values.
"""

import copy
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fakeapiserver.apimachinery.field import ErrorList
from fakeapiserver.apimachinery.schema.list_type import leading_to_unique_lists
from fakeapiserver.apimachinery.schema.structural import StructuralType, compile_structural

RECORDED = json.loads(Path(__file__).with_name("structural_cases.json").read_bytes())
RATCHETING = json.loads(Path(__file__).with_name("ratcheting_cases.json").read_bytes())
RICH = compile_structural(RECORDED["schema"])
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["name", "a", "b", "x"]), inner, max_size=4)
    ),
    max_leaves=15,
)
FIELDS = sorted(RECORDED["schema"]["properties"]["spec"]["properties"])


def causes(errors: ErrorList) -> list[dict[str, str]]:
    return [{"reason": e.reason, "message": e.body(), "field": e.field} for e in errors]


def of(**properties: Any) -> StructuralType:
    return compile_structural({"type": "object", "properties": properties})


@pytest.mark.parametrize("case", RECORDED["cases"])
def test_answers_as_the_server_does(case: dict[str, Any]) -> None:
    obj = {
        "apiVersion": "example.com/v1",
        "kind": "Rich",
        "metadata": {"name": "x"},
        "spec": copy.deepcopy(case["spec"]),
    }
    assert RICH.prune(obj) == case.get("unknown", [])
    RICH.default(obj)
    found = causes(RICH.validate(obj))
    # Upstream visits properties in no order.
    assert sorted(found, key=str) == sorted(case.get("causes", []), key=str)
    if "result" in case:
        assert obj.get("spec") == case["result"]


def test_the_resource_itself_keeps_its_metadata() -> None:
    obj = {"apiVersion": "v1", "kind": "A", "metadata": {"labels": {}}, "extra": 1}
    assert of().prune(obj) == ['unknown field "extra"']
    assert obj == {"apiVersion": "v1", "kind": "A", "metadata": {"labels": {}}}


def test_defaults_are_copies() -> None:
    first: dict[str, Any] = {}
    second: dict[str, Any] = {}
    schema = of(tags={"type": "array", "items": {"type": "string"}, "default": ["a"]})
    schema.default(first)
    first["tags"].append("b")
    schema.default(second)
    assert second == {"tags": ["a"]}


def test_maps_in_messages_are_sorted() -> None:
    schema = of(inner={"type": "object", "x-kubernetes-embedded-resource": True})
    with pytest.raises(ValueError, match=re.escape('inner.kind: Invalid value: {"a":-0.5,"x":true}: must be a string')):
        schema.prune({"inner": {"kind": {"x": True, "a": -0.5}}})


@pytest.mark.parametrize("case", RATCHETING["cases"])
def test_what_was_wrong_before_and_did_not_change_is_let_pass(case: dict[str, Any]) -> None:
    found = causes(compile_structural(RATCHETING["schema"]).validate({"spec": case["new"]}, {"spec": case["old"]}))
    assert sorted(found, key=str) == sorted(case["causes"], key=str)


@settings(max_examples=150)
@given(spec=st.dictionaries(st.sampled_from(FIELDS), JSON_VALUES, max_size=6))
def test_any_spec_is_judged_and_pruning_and_defaulting_settle(spec: dict[str, Any]) -> None:
    obj: dict[str, Any] = {"spec": spec}
    RICH.prune(obj)
    RICH.default(obj)
    settled = copy.deepcopy(obj)
    assert RICH.prune(obj) == []
    RICH.default(obj)
    assert obj == settled
    # An update that changes nothing is excused the errors that can be correlated with the old object, and reports no new ones.
    assert {error.field for error in RICH.validate(obj, settled)} <= {error.field for error in RICH.validate(obj)}


def test_only_what_leads_to_sets_and_maps_is_walked_through_for_duplicates() -> None:
    tags = {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}
    plain = {"type": "array", "items": {"type": "string"}}
    spec = {"type": "object", "properties": {"tags": tags, "plain": plain}}
    deep = {"type": "object", "properties": {"spec": spec, "more": {"type": "object", "additionalProperties": tags}}}
    assert leading_to_unique_lists(deep) == {
        "properties": {
            "spec": {"properties": {"tags": {"x-kubernetes-list-type": "set"}}},
            "more": {"additionalProperties": {"x-kubernetes-list-type": "set"}},
        }
    }
    assert leading_to_unique_lists(plain) == {}
