"""Tests what the recorded patches don't show: limits, errors, laxer decoding, and what a result shares with the document."""

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fakeapiserver.apimachinery.errors import StatusError
from fakeapiserver.apimachinery.patch import json as json_patch
from fakeapiserver.apimachinery.serializer import json as serializer


def refusal(data: bytes, doc: Any = None, **options: str) -> tuple[int, str]:
    with pytest.raises(StatusError) as raised:
        json_patch.apply(doc, json_patch.decode(data, **options))
    return raised.value.code, raised.value.message


def steps(*operations: dict[str, Any]) -> bytes:
    return json.dumps(operations).encode()


REJECTED = (422, "the server rejected our request due to an error in our request")
COPY = {"op": "copy", "from": "/a", "path": "/b"}


def test_operations_are_limited_to_10000() -> None:
    operation = {"op": "add", "path": "/a", "value": 1}
    assert json_patch.apply({}, json_patch.decode(steps(*[operation] * 10_000))) == {"a": 1}
    text = "Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001"
    assert refusal(steps(*[operation] * 10_001)) == (413, text)


def test_copies_are_limited_to_three_mebibytes_in_all() -> None:
    fits = {"a": "x" * (3 * 1024 * 1024 - 2)}
    assert len(json_patch.apply(fits, json_patch.decode(steps(COPY)))["b"]) == len(fits["a"])
    assert refusal(steps(COPY, {**COPY, "path": "/c"}), {"a": "x" * 2 * 1024 * 1024}) == REJECTED
    # `<` is counted as Go writes it, in six bytes.
    assert refusal(steps(COPY), {"a": "<" * (600 * 1024)}) == REJECTED


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"{}", "json: cannot unmarshal object into Go value of type jsonpatch.Patch"),
        (b"[5]", "json: cannot unmarshal number into Go value of type jsonpatch.Operation"),
        (b"[", "unexpected end of JSON input"),
    ],
)
def test_without_field_validation_the_texts_are_the_library_s(data: bytes, text: str) -> None:
    assert refusal(data, field_validation="Ignore") == (400, text)


@pytest.mark.parametrize("operation", [{"op": 5}, {"op": "add", "path": 5, "value": 1}])
def test_without_field_validation_wrong_types_fail_when_applied(operation: dict[str, Any]) -> None:
    assert refusal(steps(operation), {}, field_validation="Ignore") == REJECTED


@pytest.mark.parametrize(
    ("data", "texts"),
    [
        (b'[{"op":"add","path":"/a","value":{"x":1}}]', []),
        (b'[{"op":"add","path":"/a","value":1,"foo":1}]', ['json patch unknown field "[0].foo"']),
        (b'[{"op":"add","op":"add","path":"/a","value":1}]', ['json patch duplicate field "[0].op"']),
        (b"null", []),
    ],
)
def test_complaints(data: bytes, texts: list[str]) -> None:
    assert json_patch.complaints(data) == texts


def test_what_does_not_change_is_shared() -> None:
    doc = {"a": {"b": [{"c": 1}, {"d": 2}]}, "e": {"f": 1}}
    result = json_patch.apply(doc, json_patch.decode(steps({"op": "add", "path": "/a/b/0/x", "value": 1})))
    assert result == {"a": {"b": [{"c": 1, "x": 1}, {"d": 2}]}, "e": {"f": 1}}
    assert result["e"] is doc["e"]
    assert result["a"]["b"][1] is doc["a"]["b"][1]


def test_a_copy_is_independent_of_its_source() -> None:
    result = json_patch.apply({"a": {"c": [1]}}, json_patch.decode(steps(COPY)))
    assert result == {"a": {"c": [1]}, "b": {"c": [1]}}
    assert result["a"]["c"] is not result["b"]["c"]


def test_values_of_operations_stay_as_they_are() -> None:
    operations = json_patch.decode(
        steps({"op": "add", "path": "/a", "value": {}}, {"op": "add", "path": "/a/b", "value": 1})
    )
    assert json_patch.apply({}, operations) == json_patch.apply({}, operations) == {"a": {"b": 1}}
    assert operations[0].value == {}


@pytest.mark.parametrize(("written", "tested", "equal"), [("1.0", "1.0", True), ("1.0", "1", False), ("1", "1", True)])
def test_a_number_is_tested_by_its_text(written: str, tested: str, equal: bool) -> None:
    data = b'[{"op":"add","path":"/a","value":[%b]},{"op":"test","path":"/a","value":[%b]}]'
    data %= (written.encode(), tested.encode())
    if equal:
        assert json_patch.apply({}, json_patch.decode(data)) == {"a": [json.loads(written)]}
    else:
        assert refusal(data, {}) == REJECTED


@pytest.mark.parametrize(("tested", "equal"), [(9000, True), (8999, False)])
def test_deep_values_are_tested_as_others_are(tested: int, equal: bool) -> None:
    added, compared = (b"[" * depth + b"1" + b"]" * depth for depth in (9000, tested))
    data = b'[{"op":"add","path":"/a","value":%b},{"op":"test","path":"/a","value":%b}]' % (added, compared)
    if equal:
        assert serializer.encode(json_patch.apply({}, json_patch.decode(data))["a"]) == added
    else:
        assert refusal(data, {}) == REJECTED


POINTERS = st.sampled_from(["", "/a", "/a/0", "/a/-", "/a/-1", "/a/01", "/b", "/b/c", "/b/c/d", "a", "/a~1b", "/x/y"])
VALUES = st.sampled_from([None, 1, 1.5, "s", [], [1, None], {}, {"c": {"d": [1]}}])
OPERATIONS = st.fixed_dictionaries(
    {"op": st.sampled_from(["add", "remove", "replace", "move", "copy", "test"]), "path": POINTERS},
    optional={"from": POINTERS, "value": VALUES},
)


@settings(max_examples=150)
@given(st.lists(OPERATIONS, max_size=6))
def test_any_patch_applies_or_is_refused_and_changes_no_input(operations: list[dict[str, Any]]) -> None:
    doc = {"a": [1, [2], {"c": 3}], "b": {"c": {"d": 1}}}
    before, decoded = copy.deepcopy(doc), json_patch.decode(steps(*operations))
    values = copy.deepcopy([operation.value for operation in decoded])
    code = 200
    try:
        json.dumps(json_patch.apply(doc, decoded))
    except StatusError as error:
        code = error.code
    assert code in (200, 400, 422)
    assert doc == before
    assert values == [operation.value for operation in decoded]
