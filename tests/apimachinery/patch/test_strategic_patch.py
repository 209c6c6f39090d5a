"""Tests what the recorded strategic merge patches don't show: how values are printed, odd orders, sharing, and unchanged inputs."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fakeapiserver
from fakeapiserver.apimachinery.errors import StatusError
from fakeapiserver.apimachinery.patch import strategic
from fakeapiserver.apimachinery.patch.go_format import go_string, go_value

SCHEMAS = Path(fakeapiserver.__file__).parent / "apis" / "versions" / "v1.36" / "schemas.json"
DEFINITIONS = json.loads(SCHEMAS.read_text())
POD = {"$ref": "#/components/schemas/io.k8s.api.core.v1.Pod"}


def patched(original: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    return strategic.apply(original, patch, POD, DEFINITIONS)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ({"b": [1, None, True], "a": "x y"}, "map[a:x y b:[1 <nil> true]]"),
        ([1.5, 1.0, 1e21, 1e20, 1e-5, 0.0001, -2.5e30], "[1.5 1 1e+21 1e+20 1e-05 0.0001 -2.5e+30]"),
        ({}, "map[]"),
    ],
)
def test_values_are_shown_as_go_shows_them(value: Any, shown: str) -> None:
    assert go_value(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [("x", "x"), (5, "%!s(int64=5)"), (True, "%!s(bool=true)"), (None, "%!s(<nil>)"), ([1.5], "[%!s(float64=1.5)]")],
)
def test_what_is_no_string_is_shown_with_its_type(value: Any, shown: str) -> None:
    assert go_string(value) == shown


def test_the_rest_is_shared() -> None:
    pod = {"spec": {"containers": [{"name": "a"}, {"name": "b"}], "volumes": []}, "metadata": {}}
    result = patched(pod, {"spec": {"containers": [{"name": "b", "image": "x"}]}})
    assert result["spec"]["containers"] == [{"name": "a"}, {"name": "b", "image": "x"}]
    assert result["metadata"] is pod["metadata"]
    assert result["spec"]["volumes"] is pod["spec"]["volumes"]
    assert result["spec"]["containers"][0] is pod["spec"]["containers"][0]


def test_a_map_inside_a_map_cannot_be_merged() -> None:
    definition = {"$ref": "#/components/schemas/io.k8s.api.apps.v1.ControllerRevision"}
    with pytest.raises(StatusError) as raised:
        strategic.apply({"data": {"a": {"b": 1}}}, {"data": {"a": {"c": 1}}}, definition, DEFINITIONS)
    text = 'unable to find api field in struct RawExtension for the json field "a"'
    assert (raised.value.code, raised.value.message) == (500, text)


def test_new_values_of_any_depth_are_applied() -> None:
    patch: dict[str, Any] = {}
    for _ in range(9000):
        patch = {"a": patch}
    found, depth = patched({}, patch), 0
    while found:
        found, depth = found["a"], depth + 1
    assert depth == 9000


NAMES = st.sampled_from("abcd")
ELEMENTS = st.fixed_dictionaries(
    {"name": NAMES},
    optional={
        "image": st.sampled_from(["1", "2", None]),
        "$patch": st.sampled_from(["delete", "replace"]),
        "env": st.lists(st.fixed_dictionaries({"name": NAMES, "value": st.sampled_from(["1", None])}), max_size=2),
    },
)
ORDERS = st.lists(st.fixed_dictionaries({"name": NAMES}), max_size=4)
SPECS = st.fixed_dictionaries(
    {}, optional={"containers": st.lists(ELEMENTS, max_size=4), "$setElementOrder/containers": ORDERS}
)


@settings(max_examples=200)
@given(SPECS)
def test_any_patch_of_a_list_keeps_the_object_and_all_that_it_does_not_name(spec: dict[str, Any]) -> None:
    pod = {"spec": {"containers": [{"name": name, "image": "0", "env": []} for name in "abc"]}}
    patch = {"spec": spec}
    before = copy.deepcopy(pod)
    elements = spec.get("containers", [])
    replaced = any(element.get("$patch") == "replace" for element in elements)
    left, code = set("abc"), 200
    try:
        left = {element["name"] for element in patched(pod, patch)["spec"]["containers"]}
    except StatusError as error:
        code = error.code
    assert code in (200, 500)
    assert replaced or set("abc") - {element["name"] for element in elements} <= left
    assert pod == before
