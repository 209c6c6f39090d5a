"""Faults as callers describe them: what is read, and one sentence for everything that can't be."""

from typing import Any

import pytest

from fakeapiserver.faults.fields import Fields
from fakeapiserver.faults.matching import Matcher
from fakeapiserver.faults.readers import FIELDS, Cause
from fakeapiserver.faults.rule import Fault, fault
from fakeapiserver.faults.schedule import Schedule


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"verb": "read", "status": 503}, {"verb": ("get", "list", "watch"), "status": 503}),
        ({"verb": "*", "status": 503}, {"verb": ()}),
        ({"verb": ["create", "update"], "hang": True}, {"verb": ("create", "update"), "hang": True}),
        ({"resource": "pods/status", "status": 409}, {"resource": ("pods/status",)}),
        ({"resource": "leases.coordination.k8s.io", "status": 409}, {"resource": ("leases.coordination.k8s.io",)}),
        ({"group": "", "status": 409}, {"group": ("",)}),
        ({"latency": "1m30s"}, {"latency": (90.0, 90.0)}),
        ({"latency": [0.1, "2s"]}, {"latency": (0.1, 2.0)}),
        ({"stale": True}, {"stale": 0}),
        ({"stale": 10, "verb": "get"}, {"stale": 10}),
        ({"stop_after": 0, "end": "cut"}, {"stop_after": 0, "end": "cut"}),
        ({"status": 409, "name": None}, {"name": ()}),
        ({"status": 422, "causes": [{"field": "spec.x", "message": "no"}]}, {"causes": (Cause("spec.x", "", "no"),)}),
        ({"status": 409, "times": 3, "after": "1s"}, {"schedule": Schedule(times=3, after=1.0)}),
    ],
)
def test_what_is_read(fields: dict[str, Any], expected: dict[str, Any]) -> None:
    read = fault(fields)
    assert {name: getattr(read, name) for name in expected} == expected


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({}, "this fault does nothing: say what happens"),
        ({"verb": "get"}, "this fault does nothing"),
        ({"vrb": "get"}, "a fault has no field 'vrb' (did you mean 'verb'?)"),
        ({"status": "409"}, "status is one of 400, 401"),
        ({"status": 200}, "status is one of 400, 401"),
        ({"status": True}, "status is one of 400, 401"),
        ({"status": 418}, "status is one of 400, 401"),
        ({"verb": "gett", "status": 409}, "there is no verb 'gett' (did you mean 'get'?)"),
        ({"verb": 3, "status": 409}, "verb is a text or several, with * for any part, not 3"),
        ({"verb": "", "status": 409}, "verb is empty: leave it out to choose all"),
        ({"resource": "Leases", "status": 409}, "resource is a plural name in lower case:"),
        ({"resource": "pods status", "status": 409}, "resource can't match 'pods status', which contains white space"),
        ({"resource": ["pods", 1], "status": 409}, "resource is a text or several"),
        ({"name": {}, "status": 409}, "name is a text or several"),
        ({"labels": "a in", "status": 409}, "labels is a label selector such as app=web,tier!=cache, not 'a in'"),
        ({"labels": 1, "status": 409}, "labels is a text, not 1"),
        ({"object": 1, "status": 409}, "object is a text, not 1"),
        ({"status": 409.0}, "status is one of 400, 401"),
        ({"name": [], "status": 409}, "name is an empty list, which chooses nothing: leave it out to choose all"),
        ({"verb": [], "status": 409}, "verb is an empty list"),
        ({"latency": 10**400}, "latency is a number of seconds, or a duration"),
        ({"status": 409, "after": 10**400}, "after is a number of seconds, or a duration"),
        ({"reset": "after", "verb": "get"}, 'reset="after" is for writes: leave verb out, or name create, update'),
        ({"status": 409, "when": "after", "verb": "list"}, 'when="after" is for writes: leave verb out'),
        (
            {"holder": "me", "resource": "leases", "hang": True},
            "a request ends in one way: choose one of hang and holder",
        ),
        ({"path": "/version", "resource": "pods", "status": 500}, "path chooses requests that aren't for resources"),
        (
            {"path": "/version", "labels": "a=b", "status": 500},
            "path chooses requests that aren't for resources: leave",
        ),
        (
            {"path": "/version", "object": "true", "name": "a", "status": 500},
            "path chooses requests that aren't for re",
        ),
        ({"path": "version", "status": 500}, "path begins with / or *, such as /version or /apis/*, not 'version'"),
        ({"resource": "pods/status", "subresource": "scale", "status": 409}, "resource names the subresource already"),
        ({"latency": 0}, "latency is more than 0 seconds: leave it out instead"),
        ({"latency": [0, "0s"]}, "latency is more than 0 seconds"),
        ({"delay": 0}, "this fault does nothing"),
        ({"hang": False, "bookmarks": True}, "this fault does nothing"),
        ({"status": 409, "until": 0}, "until is more than 0 seconds, since the fault would never strike"),
        ({"unreal": True}, "this fault does nothing"),
        ({"unreal": True, "status": 409}, "unreal allows duplicate, reorder and lose: add one of them"),
        ({"rate": 5, "hang": True}, "rate changes an answer, which there is not after hang: use two faults"),
        ({"stale": 5, "status": 409}, "stale changes an answer, which there is not after status"),
        ({"expire_continue": True, "reset": "before"}, "expire_continue changes an answer, which there is not after"),
        ({"holder": "me"}, 'holder takes leases: add resource="leases"'),
        ({"holder": "me too", "resource": "leases"}, "holder is a name without white space, not 'me too'"),
        ({"holder": "me", "resource": "leases", "verb": "list"}, "holder is for reads and writes of one lease"),
        ({"quota": 3}, "quota is a name without white space, not 3"),
        ({"quota": "small", "verb": "get"}, "quota refuses new objects: leave verb out, or add create to it"),
        ({"quota": "small", "status": 403}, "a request ends in one way: choose one of status and quota"),
        ({"bundled": "yes", "status": 409}, "bundled is true or false, not 'yes'"),
        ({"reason": 1, "status": 409}, "reason is a text, not 1"),
        ({"reason": "Conflict", "hang": True}, "reason is part of an answer: add status"),
        ({"message": "no", "latency": 1}, "message is part of an answer: add status"),
        ({"retry_after": 1, "hang": True}, "retry_after is part of an answer: add status"),
        ({"retry_after": 1, "status": 404}, "retry_after is for the statuses 409, 429, 500, 503 and 504, not for 404"),
        ({"retry_after": 0, "status": 429}, "retry_after is a whole number of at least 1, not 0"),
        ({"causes": ["no"], "status": 422}, "causes are objects with field, reason and message, not 'no'"),
        ({"causes": [{"why": "no"}], "status": 422}, "causes are objects with field, reason and message"),
        ({"causes": [{"field": 1}], "status": 422}, "causes.field is a text, not 1"),
        ({"when": "during", "status": 409}, "when is one of before, after, not 'during'"),
        ({"when": "after", "latency": 1}, 'when="after" is for status'),
        ({"latency": -1}, "latency is a number of seconds, or a duration such as 500ms or 1m30s, not -1"),
        ({"latency": "soon"}, "latency is a number of seconds, or a duration such as 500ms or 1m30s, not 'soon'"),
        ({"latency": float("nan")}, "latency is a number of seconds"),
        ({"latency": [1]}, "latency is a number of seconds or the least and the most, not [1]"),
        ({"latency": [2, 1]}, "latency: the least, 2 s, is more than the most, 1 s"),
        ({"hang": 1}, "hang is true or false, not 1"),
        ({"hang": True, "status": 409}, "a request ends in one way: choose one of status and hang"),
        ({"reset": "after", "truncate": 3}, "a request ends in one way: choose one of reset and truncate"),
        ({"reset": "now"}, "reset is one of before, body, after, not 'now'"),
        ({"truncate": -1}, "truncate is a whole number of at least 0, not -1"),
        ({"rate": 1.5}, "rate is a whole number of at least 1, not 1.5"),
        ({"delay": 1, "verb": "get"}, "delay is for watches: leave verb out, or add watch to it"),
        ({"lag": 0}, "lag is a whole number of at least 1, not 0"),
        ({"end": "cut"}, 'end="cut" says how a watch ends: add stop_after'),
        ({"end": "softly", "stop_after": 1}, "end is one of clean, cut, not 'softly'"),
        ({"expire": "resume", "stop_after": 1}, 'expire="resume" refuses a watch before its first event'),
        ({"bookmarks": "no"}, "bookmarks is true or false, not 'no'"),
        ({"stale": False}, "stale is a number of revisions, or true for the state of now"),
        ({"stale": 1, "verb": "update"}, "stale is for reads: leave verb out, or name get, list or watch"),
        ({"expire_continue": True, "verb": "get"}, "expire_continue is for lists"),
        ({"duplicate": True}, "duplicate is what no API server does: add unreal=True"),
        ({"lose": 1, "unreal": True}, "lose is a whole number of at least 2, not 1"),
        ({"times": 0, "status": 409}, "times is a whole number of at least 1, not 0"),
        ({"nth": 2, "every": 2, "status": 409}, "nth strikes one request: leave every and times out"),
        ({"probability": 2, "status": 409}, "probability is more than 0 and at most 1, not 2"),
        ({"seed": 1, "status": 409}, "seed is for probability"),
        ({"after": "2s", "until": "1s", "status": 409}, "until (1 s) is not later than after (2 s)"),
    ],
)
def test_what_can_not_be_read(fields: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=r"^[^\n]*$") as refused:
        fault(fields)
    assert str(refused.value).startswith(sentence)


def test_a_fault_that_is_no_object() -> None:
    with pytest.raises(
        ValueError, match="a fault is described by fields such as verb, resource and status, not by 'hang'"
    ):
        fault("hang")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("expression", "problem"),
    [("object.x >", "<input>:1:11: Syntax error"), ("size(1, 2)", "undeclared"), ("1", "must evaluate to bool")],
)
def test_an_expression_that_can_not_be_compiled(expression: str, problem: str) -> None:
    with pytest.raises(ValueError, match=r"^object is a CEL expression such as object.spec.replicas > 3, not [^\n]*$"):
        Matcher(Fault(object=expression, status=409))


def test_types_and_readers_know_the_same_fields() -> None:
    assert list(Fields.__annotations__) == list(FIELDS)
    assert set(FIELDS) == {*Fault.__struct_fields__, *Schedule.__struct_fields__} - {"schedule", "text"}
