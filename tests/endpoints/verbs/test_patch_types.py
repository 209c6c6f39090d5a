"""The types of patches by themselves: what they read, what they refuse, and what they make of an object."""

import json
from typing import Any

import pytest

from fakeapiserver.apimachinery.errors import StatusError
from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.apimachinery.gvk import GroupVersionKind
from fakeapiserver.apis.scheme import load
from fakeapiserver.endpoints.verbs.patch_types import JSONPatch, MergePatch, PatchType, StrategicMergePatch
from fakeapiserver.registry.generic.kind import BuiltinKind

POD = BuiltinKind(GroupVersionKind("", "v1", "Pod"), "io.k8s.api.core.v1.Pod", load().definitions, lambda obj, _: None)


def read(kind: str, text: str, validation: str = "Strict") -> PatchType:
    if kind == "json":
        return JSONPatch.read(text.encode(), validation)
    if kind == "merge":
        return MergePatch.read(text.encode(), validation)
    return StrategicMergePatch.read(text.encode(), POD)


APPLIED: list[tuple[str, Any, Any, Any]] = [
    ("json", [{"op": "add", "path": "/data", "value": {"a": "1"}}], {"kind": "X"}, {"kind": "X", "data": {"a": "1"}}),
    ("json", [{"op": "remove", "path": "/data/a"}], {"data": {"a": "1", "b": "2"}}, {"data": {"b": "2"}}),
    ("merge", {"data": {"a": None, "c": "3"}}, {"data": {"a": "1", "b": "2"}}, {"data": {"b": "2", "c": "3"}}),
    ("merge", {"items": [1]}, {"items": [2, 3]}, {"items": [1]}),
    (
        "strategic",
        {"spec": {"containers": [{"name": "b", "image": "new"}]}},
        {"spec": {"containers": [{"name": "a", "image": "x"}, {"name": "b", "image": "old"}]}},
        {"spec": {"containers": [{"name": "a", "image": "x"}, {"name": "b", "image": "new"}]}},
    ),
    (
        "strategic",
        {"spec": {"containers": [{"name": "a", "$patch": "delete"}]}},
        {"spec": {"containers": [{"name": "a"}, {"name": "b"}]}},
        {"spec": {"containers": [{"name": "b"}]}},
    ),
]


@pytest.mark.parametrize(("kind", "patch", "before", "after"), APPLIED)
def test_a_patch_is_a_function_of_the_object(kind: str, patch: Any, before: Any, after: Any) -> None:
    """The patch can be applied again, after a lost race, and leaves the object as it was."""
    change, untouched = read(kind, json.dumps(patch)), json.loads(json.dumps(before))
    assert change.apply(before) == change.apply(before) == after
    assert before == untouched


REFUSED = [
    ("json", "{}", "Strict", "cannot unmarshal object into Go value of type []handlers.jsonPatchOp"),
    ("merge", "null", "Strict", "Invalid JSON Patch"),
    (
        "merge",
        "[]",
        "Strict",
        "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}",
    ),
    ("merge", "7", "Ignore", "Invalid JSON Patch"),
    ("merge", "{", "Ignore", "Invalid JSON Patch"),
    ("merge", "{", "Warn", "error decoding patch: unexpected end of JSON input"),
    ("strategic", "[]", "Strict", "json: cannot unmarshal array into Go value of type map[string]interface {}"),
    ("strategic", "{", "Strict", "unexpected end of JSON input"),
]


@pytest.mark.parametrize(("kind", "text", "validation", "message"), REFUSED)
def test_what_is_no_patch_is_refused(kind: str, text: str, validation: str, message: str) -> None:
    with pytest.raises(StatusError) as refused:
        read(kind, text, validation)
    assert refused.value.code == 400
    assert message in refused.value.message


@pytest.mark.parametrize(("kind", "text"), [("merge", '{"a":1,"a":2}'), ("strategic", '{"a":1,"a":2}')])
def test_duplicate_fields_are_complained_of(kind: str, text: str) -> None:
    assert read(kind, text).complaints == ['duplicate field "a"']


def test_a_merge_patch_may_be_a_list_if_fields_are_not_validated() -> None:
    assert read("merge", "[1]", "Ignore").apply({"kind": "X"}) == [1]


def test_bytes_that_are_not_utf_8_are_escaped_where_a_refused_patch_is_shown() -> None:
    """kube-apiserver 1.37.2 shows this text."""
    change = MergePatch.read(b'{"xx": "a\xf4b"}', "Strict")
    written = change.written({"kind": "ConfigMap"}, change.apply({"kind": "ConfigMap"}), None, load().definitions)
    assert go_quote(change.shown(written)) == r'"{\"kind\":\"ConfigMap\",\"xx\":\"a\xf4b\"}"'
