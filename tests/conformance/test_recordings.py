"""Recordings are shortened without loss: rows that are like another one are written as the difference."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance import recordings

POD = {
    "status": 201,
    "body": {"kind": "Pod", "metadata": {"name": "a", "labels": {"app": "web", "example.com/~tier": "front"}}},
    "type": "application/json",
    "headers": {"Cache-Control": "no-cache, private", "X-Content-Type-Options": "nosniff"},
}
values = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | st.sampled_from(["", "a", "x" * 40]),
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
        ({"status": 404, "type": "text/plain"}, {"status": 404, "type": "text/plain"}),
    ],
    ids=["a value differs", "a key is missing", "short rows are written in full"],
)
def test_a_row_is_written_as(row: dict[str, Any], form: dict[str, Any]) -> None:
    assert list(recordings.shortened([POD, row])) == [POD, form]
    assert recordings.expanded([POD, form]) == [POD, row]


def test_an_answer_may_be_like_its_request() -> None:
    body = {"kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"key": "x" * 200}}
    answer = {"status": 201, "body": {**body, "immutable": True}}
    forms = list(recordings.shortened([answer], [{"method": "POST", "body": body}]))
    assert forms == [{"like": "request", "but": {"/body/immutable": True, "/status": 201}}]
    assert recordings.expanded(forms, [{"body": body}]) == [answer]


def test_the_message_of_a_status_leaves_out_its_causes(tmp_path: Path) -> None:
    causes = [{"field": "spec.a", "message": "Required value"}, {"field": "spec.b", "message": "Required value"}]
    message = 'Pod "a" is invalid: [spec.a: Required value, spec.b: Required value]'
    answer = {"status": 422, "body": {"kind": "Status", "message": message, "details": {"causes": causes}}}
    path = tmp_path / "area" / "scenario.json"
    path.parent.mkdir()
    recordings.write(path, [answer])
    assert json.loads(path.read_text())[0]["body"]["message"] == 'Pod "a" is invalid: ${causes}'
    assert recordings.read(path) == [answer]


def test_an_older_version_is_written_as_the_difference(tmp_path: Path) -> None:
    """Values that comparisons ignore become constants, so that they make no differences."""
    meta = {"uid": "0b7d5a52-3e2c-4a8f-8f0e-3f6f1a2b4c5d", "creationTimestamp": "2026-02-03T04:05:06Z"}
    newer = {"status": 200, "body": {"metadata": {**meta, "resourceVersion": "17"}, "spec": {"a": "x" * 200}}}
    older = {"status": 200, "body": {"metadata": {**meta, "resourceVersion": "99"}, "spec": {"a": "x" * 200, "b": 1}}}
    for area in ("v2", "v1"):
        (tmp_path / area).mkdir()
    recordings.write(tmp_path / "v2" / "s.json", [newer])
    recordings.write(tmp_path / "v1" / "s.json", [older], similar="v2")
    assert json.loads((tmp_path / "v1" / "s.json").read_text()) == [{"like": "v2", "but": {"/body/spec/b": 1}}]
    assert recordings.read(tmp_path / "v1" / "s.json")[0]["body"]["spec"] == {"a": "x" * 200, "b": 1}


@given(rows)
def test_any_rows_come_back(given_rows: list[dict[str, Any]]) -> None:
    """Rows from a file come back, too: its keys are sorted, so that item 10 of a list precedes item 9."""
    forms = json.loads(recordings.lines(recordings.shortened(given_rows), sort_keys=True))
    assert recordings.expanded(forms) == given_rows


@given(rows)
def test_requests_keep_the_order_of_their_keys(given_rows: list[dict[str, Any]]) -> None:
    forms = list(recordings.shortened(given_rows, ordered=True))
    assert json.dumps(recordings.expanded(forms)) == json.dumps(given_rows)
