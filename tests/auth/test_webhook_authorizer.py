"""The mode Webhook: what is asked, what is remembered, and what a failure means."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from fakeapiserver.auth.authorizers.webhook import Settings, Webhook, review_spec
from fakeapiserver.auth.interfaces import Attributes, Decision, EvaluationError, UserInfo
from fakeapiserver.auth.match_conditions import MatchConditions
from fakeapiserver.auth.selectors import Selectors

JANE = UserInfo("jane", "7", ("dev",), {"team": ("a", "b")})
PODS = Attributes(JANE, "list", "/api/v1/pods", True, "", "v1", "pods", "", "shop")


class Clock:
    now_ = 0.0

    def now(self) -> float:
        return self.now_

    def monotonic(self) -> float:
        return self.now_


class Remote:
    """Answers with a status, or fails with an error; keeps what it was sent."""

    def __init__(self, answer: Mapping[str, Any] | Exception) -> None:
        self.answer = answer
        self.sent: list[Mapping[str, Any]] = []

    async def post(self, review: Mapping[str, Any]) -> Mapping[str, Any]:
        self.sent.append(review)
        if isinstance(self.answer, Exception):
            raise self.answer
        return {"status": self.answer}


def ask(webhook: Webhook, attributes: Attributes = PODS) -> tuple[Decision, str]:
    return asyncio.run(webhook.authorize(attributes))


def test_a_review_says_who_wants_what() -> None:
    selected = Selectors("spec.nodeName=n1", "app in (b,a),!old,size>3")
    wanted = Attributes(JANE, "list", "/api/v1/pods", True, "", "v1", "pods", "", "shop", "", selected)
    assert review_spec(wanted) == {
        "resourceAttributes": {
            "namespace": "shop",
            "verb": "list",
            "version": "v1",
            "resource": "pods",
            "fieldSelector": {"requirements": [{"key": "spec.nodeName", "operator": "In", "values": ["n1"]}]},
            "labelSelector": {
                "requirements": [
                    {"key": "app", "operator": "In", "values": ["a", "b"]},
                    {"key": "old", "operator": "DoesNotExist"},
                ]
            },
        },
        "user": "jane",
        "groups": ["dev"],
        "extra": {"team": ["a", "b"]},
        "uid": "7",
    }
    assert review_spec(Attributes(JANE, "get", "/logs"))["nonResourceAttributes"] == {"path": "/logs", "verb": "get"}


@pytest.mark.parametrize(("version", "groups"), [("v1", "groups"), ("v1beta1", "group")])
def test_both_versions_are_spoken(version: str, groups: str) -> None:
    remote = Remote({"allowed": True, "reason": "she may"})
    assert ask(Webhook(remote.post, Settings(version=version), Clock())) == (Decision.ALLOW, "she may")
    (sent,) = remote.sent
    assert sent["apiVersion"] == f"authorization.k8s.io/{version}"
    assert sent["spec"][groups] == ["dev"]


@pytest.mark.parametrize(
    ("status", "decision"),
    [
        ({"allowed": True}, Decision.ALLOW),
        ({"allowed": False}, Decision.NO_OPINION),
        ({"allowed": False, "denied": True}, Decision.DENY),
        ({}, Decision.NO_OPINION),
    ],
)
def test_answers(status: Mapping[str, Any], decision: Decision) -> None:
    assert ask(Webhook(Remote(status).post, Settings(), Clock())) == (decision, "")


@pytest.mark.parametrize(
    ("answer", "on_error", "decision", "text"),
    [
        (ValueError("no route"), Decision.NO_OPINION, Decision.NO_OPINION, "no route"),
        (ValueError("no route"), Decision.DENY, Decision.DENY, "no route"),
        (
            {"allowed": True, "denied": True},
            Decision.NO_OPINION,
            Decision.DENY,
            "webhook subject access review returned both allow and deny response",
        ),
        (
            {"allowed": "false"},
            Decision.NO_OPINION,
            Decision.NO_OPINION,
            "json: cannot unmarshal string into Go struct field SubjectAccessReviewStatus.status.allowed of type bool",
        ),
    ],
)
def test_failures(answer: Any, on_error: Decision, decision: Decision, text: str) -> None:
    with pytest.raises(EvaluationError, match=text) as failed:
        ask(Webhook(Remote(answer).post, Settings(on_error=on_error), Clock()))
    assert failed.value.decision is decision


@pytest.mark.parametrize(("allowed", "seconds"), [(True, 300), (False, 30)])
def test_answers_are_remembered_for_their_time(allowed: bool, seconds: int) -> None:
    remote, clock = Remote({"allowed": allowed}), Clock()
    webhook = Webhook(remote.post, Settings(), clock)
    for at, asked in ((0, 1), (seconds - 1, 1), (seconds, 2)):
        clock.now_ = at
        ask(webhook)
        assert len(remote.sent) == asked


def test_what_a_client_could_fill_memory_with_is_not_remembered() -> None:
    remote = Remote({"allowed": True})
    webhook = Webhook(remote.post, Settings(), Clock())
    for _ in range(2):
        ask(webhook, Attributes(JANE, "get", "/" + "x" * 10_000))
    assert len(remote.sent) == 2


@pytest.mark.parametrize(
    ("conditions", "asked"),
    [
        (["request.user == 'jane'", "'dev' in request.groups"], True),
        (["has(request.resourceAttributes)", "request.resourceAttributes.namespace != 'shop'"], False),
        (["request.resourceAttributes.subresource == ''", "request.extra['team'][1] == 'b'"], True),
        (["request.extra['none'][0] == 'b'", "request.user == 'joe'"], False),
    ],
)
def test_conditions_decide_whether_it_is_called(conditions: list[str], asked: bool) -> None:
    remote = Remote({"allowed": True})
    webhook = Webhook(remote.post, Settings(), Clock(), MatchConditions(conditions).match)
    assert ask(webhook) == ((Decision.ALLOW if asked else Decision.NO_OPINION), "")
    assert len(remote.sent) == asked


def test_a_condition_that_fails_is_a_failure() -> None:
    conditions = MatchConditions(["request.extra['none'][0] == 'b'"])
    webhook = Webhook(Remote({}).post, Settings(on_error=Decision.DENY), Clock(), conditions.match)
    with pytest.raises(EvaluationError, match="resulted in error: no such key: none") as failed:
        ask(webhook)
    assert failed.value.decision is Decision.DENY


def test_conditions_are_in_the_language_of_the_version() -> None:
    expression = "duration(size(request.user)) == duration('7s')"
    MatchConditions([expression], "v1.36")
    with pytest.raises(ValueError, match="found no matching overload for 'duration'"):
        MatchConditions([expression], "v1.37")
