"""Recordings are shortened without loss: rows that are like another one are written as the difference."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance import exchange, recordings
from conformance.free_values import neutral
from conformance.rows import Sources, expanded, shortened

POD = {
    "status": 201,
    "body": {"kind": "Pod", "metadata": {"name": "a", "labels": {"app": "web", "example.com/~tier": "front"}}},
    "type": "application/json",
    "headers": {"Cache-Control": "no-cache, private", "X-Content-Type-Options": "nosniff"},
}
CONFIG_MAP = {
    "kind": "ConfigMap",
    "metadata": {"name": "a", "annotations": {"of": "web"}},
    "data": {"key": "y z " * 50},
}
values = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | st.sampled_from(["", "a", "x" * 100, "one two", "one three"]),
    lambda inner: st.lists(inner, max_size=12) | st.dictionaries(st.sampled_from(["a", "b", "a/b", "~", "0"]), inner),
    max_leaves=20,
)
rows = st.lists(st.dictionaries(st.sampled_from(["status", "body", "text"]), values, min_size=1), max_size=6)


@pytest.mark.parametrize(
    ("row", "form"),
    [
        ({**POD, "status": 200}, {"like": 0, "but": {"/status": 200}}),
        (
            {**POD, "body": {"kind": "Pod", "metadata": {"name": "a", "labels": {"app": "web"}}}},
            {"like": 0, "without": ["/body/metadata/labels/example.com~1~0tier"]},
        ),
        ({**POD, "text": "web", "type": "text/web"}, {"like": 0, "but": {"/text": "web", "/type": "text/web"}}),
        ({"status": 404, "type": "text/plain"}, {"status": 404, "type": "text/plain"}),
    ],
    ids=["a value differs", "a key is missing", "a key is new", "short rows are written in full"],
)
def test_a_row_is_written_as(row: dict[str, Any], form: dict[str, Any]) -> None:
    assert list(shortened([POD, row], Sources())) == [POD, form]
    assert expanded([POD, form], Sources()) == [POD, row]


def test_a_word_that_differs_everywhere_is_written_once() -> None:
    first = {"body": {**CONFIG_MAP, "message": 'configmaps "sv1" not found', "of": "sv1"}, "path": "/configmaps/sv1"}
    second = {"body": {**CONFIG_MAP, "message": 'configmaps "sv2" not found', "of": "sv2"}, "path": "/configmaps/sv2"}
    forms = list(shortened([first, second], Sources()))
    assert forms[1] == {"like": 0, "replace": {"sv1": "sv2"}}
    assert expanded(forms, Sources()) == [first, second]


def test_a_value_in_a_row_may_be_like_another() -> None:
    listed = {"status": 200, "body": {"kind": "ConfigMapList", "items": [CONFIG_MAP]}}
    forms = list(shortened([{"body": CONFIG_MAP}, listed], Sources()))
    assert forms[1] == {"status": 200, "body": {"kind": "ConfigMapList", "items": [{"like": "0/body"}]}}
    assert expanded(forms, Sources()) == [{"body": CONFIG_MAP}, listed]


def test_differences_in_one_place_are_grouped() -> None:
    meta = {"managedFields": [{"fieldsV1": {"f:data": {}, "f:immutable": {}, "f:metadata": {}}}], "name": "long " * 30}
    other = {**meta, "managedFields": [{"fieldsV1": {"f:spec": {}, "f:status": {}, "f:metadata": {}, "f:type": {}}}]}
    forms = list(shortened([{"body": {"metadata": meta}}, {"body": {"metadata": other}}], Sources()))
    changes = {"but": {"/f:spec": {}, "/f:status": {}, "/f:type": {}}, "without": ["/f:immutable", "/f:data"]}
    assert forms[1] == {"like": 0, "but": {"/body/metadata/managedFields/0/fieldsV1": changes}}
    assert expanded(forms, Sources())[1] == {"body": {"metadata": other}}


def test_an_answer_may_be_like_its_request() -> None:
    answer = {"status": 201, "body": {**CONFIG_MAP, "immutable": True}}
    sources = Sources([{"method": "POST", "body": CONFIG_MAP}])
    forms = list(shortened([answer], sources))
    assert forms == [{"like": "request", "but": {"/body/immutable": True, "/status": 201}}]
    assert expanded(forms, sources) == [answer]


def test_a_row_may_be_like_a_common_value() -> None:
    sources = Sources(common={"Pod 201": POD})
    assert list(shortened([{**POD, "status": 200}], sources)) == [{"like": "Pod 201", "but": {"/status": 200}}]
    assert expanded([{"like": "Pod 201/body"}], sources) == [POD["body"]]


def test_values_that_read_as_forms_are_refused() -> None:
    with pytest.raises(ValueError, match="reads as a form"):
        list(shortened([{"body": {"like": 1}}], Sources()))


def test_the_message_of_a_status_leaves_out_its_causes(tmp_path: Path) -> None:
    causes = [{"field": "spec.a", "message": "Required value"}, {"field": "spec.b", "message": "Required value"}]
    message = 'Pod "a" is invalid: [spec.a: Required value, spec.b: Required value]'
    answer = {"status": 422, "body": {"kind": "Status", "message": message, "details": {"causes": causes}}}
    path = tmp_path / "area" / "scenario.json"
    path.parent.mkdir()
    recordings.write(path, [answer])
    assert json.loads(path.read_text())[0]["body"]["message"] == 'Pod "a" is invalid: ${causes}'
    assert recordings.read(path) == [answer]


@pytest.mark.parametrize("name", ["RFC 1123 subdomain", "struct of kind"])
def test_phrases_and_repetitions_are_abbreviated(name: str) -> None:
    text = recordings.spelled_out(f'{{"a": "x: ${{phrase: {name}}}", "b": "${{253 * x}}"}}')
    assert json.loads(text)["b"] == "x" * 253
    assert len(json.loads(text)["a"]) > 100
    assert recordings.abbreviated(text) == f'{{"a": "x: ${{phrase: {name}}}", "b": "${{253 * x}}"}}'


def test_an_older_version_is_written_as_the_difference(tmp_path: Path) -> None:
    """Values that comparisons ignore become constants, so that they make no differences."""
    meta = {"uid": "0b7d5a52-3e2c-4a8f-8f0e-3f6f1a2b4c5d", "creationTimestamp": "2026-02-03T04:05:06Z"}
    newer = {"status": 200, "body": {"metadata": {**meta, "resourceVersion": "17"}, "spec": {"a": "x y " * 50}}}
    older = {"status": 200, "body": {"metadata": {**meta, "resourceVersion": "9"}, "spec": {"a": "x y " * 50, "b": 1}}}
    for area in ("v2", "v1"):
        (tmp_path / area).mkdir()
    recordings.write(tmp_path / "v2" / "s.json", [newer])
    recordings.write(tmp_path / "v1" / "s.json", [older], similar="v2")
    assert json.loads((tmp_path / "v1" / "s.json").read_text()) == [{"like": "v2", "but": {"/body/spec/b": 1}}]
    assert recordings.read(tmp_path / "v1" / "s.json")[0]["body"]["spec"] == {"a": "x y " * 50, "b": 1}


@given(rows)
def test_any_rows_come_back(given_rows: list[dict[str, Any]]) -> None:
    """Rows from a file come back, too: its keys are sorted, so that item 10 of a list precedes item 9."""
    forms = json.loads(recordings.spelled_out(recordings.lines(shortened(given_rows, Sources()), sort_keys=True)))
    assert json.dumps(expanded(forms, Sources()), sort_keys=True) == json.dumps(given_rows, sort_keys=True)


@given(rows)
def test_requests_keep_the_order_of_their_keys(given_rows: list[dict[str, Any]]) -> None:
    forms = list(shortened(given_rows, Sources(), ordered=True))
    assert json.dumps(expanded(forms, Sources())) == json.dumps(given_rows)


@pytest.mark.parametrize("path", ["apply/managers.json", "patches/shown.json", "subresources/pods.json"])
def test_recordings_come_back(path: str, tmp_path: Path) -> None:
    scenario = exchange.HERE / "scenarios" / path
    requests = recordings.scenario(scenario.read_text())["requests"]
    answers = exchange.recorded(scenario)
    recordings.write(tmp_path / "s.json", answers, requests)
    assert recordings.read(tmp_path / "s.json", requests) == answers
    assert [neutral(answer) for answer in answers] == answers


def test_the_text_that_a_request_waits_for_is_in_its_recorded_answer() -> None:
    missing = []
    for area, path in exchange.scenarios():
        requests = recordings.scenario(path.read_text())["requests"]
        if any("until" in request for request in requests):
            for number, (request, answer) in enumerate(zip(requests, exchange.recorded(path), strict=True)):
                if request.get("until", "") not in json.dumps(answer):
                    missing.append(f"{area}/{path.stem} request {number}")
    assert not missing, "these would be repeated until their time is over"
