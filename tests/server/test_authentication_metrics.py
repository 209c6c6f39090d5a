"""Tests the metrics of successful and failed authentication."""

import asyncio

from fakeapiserver.apimachinery.errors import new_unauthorized
from fakeapiserver.apimachinery.instruments import Instruments
from fakeapiserver.apis import scheme
from fakeapiserver.apis.resource_table import ResourceTable
from fakeapiserver.auth.authorizers.instrumented import Instrumented
from fakeapiserver.auth.interfaces import Attributes, Decision, EvaluationError, UserInfo
from fakeapiserver.auth.measures import DECISIONS
from fakeapiserver.server.exposition import render
from fakeapiserver.server.metrics import Metrics


def test_only_a_few_users_are_counted_by_name() -> None:
    metrics = Metrics(ResourceTable(scheme.load()), lambda _: 0, 0.0)
    for name in ("admin", "jane@example.com", "system:serviceaccount:a:b", "jane"):
        metrics.authentication.succeeded(name, 0.001)
    refused = new_unauthorized()
    refused.__cause__ = ValueError("expired")
    metrics.authentication.refused(refused, 0.001)
    metrics.authentication.refused(new_unauthorized(), 0.001)
    lines = [line for line in render(metrics).decode().splitlines() if line.startswith("authenti")]
    assert [line for line in lines if "bucket" not in line and "_sum" not in line] == [
        'authenticated_user_requests{username="admin"} 1.0',
        'authenticated_user_requests{username="email_id"} 1.0',
        'authenticated_user_requests{username="other"} 2.0',
        'authentication_attempts{result="error"} 1.0',
        'authentication_attempts{result="failure"} 1.0',
        'authentication_attempts{result="success"} 4.0',
        'authentication_duration_seconds_count{result="error"} 1.0',
        'authentication_duration_seconds_count{result="failure"} 1.0',
        'authentication_duration_seconds_count{result="success"} 4.0',
    ]


def test_authorizations_are_counted_by_result_and_authorizer() -> None:
    metrics = Metrics(ResourceTable(scheme.load()), lambda _: 0, 0.0)
    for decision in Decision:
        metrics.authorization.decided(decision, 0.001)
    metrics.authorization.failed(0.001)
    metrics.instruments.count(DECISIONS, "allowed", "rbac", "RBAC", by=2)
    lines = render(metrics).decode().splitlines()
    assert [line for line in lines if line.startswith(("authorization_attempts", "apiserver_authorization_dec"))] == [
        'apiserver_authorization_decisions_total{decision="allowed",name="rbac",type="RBAC"} 2.0',
        'authorization_attempts_total{result="allowed"} 1.0',
        'authorization_attempts_total{result="denied"} 1.0',
        'authorization_attempts_total{result="error"} 1.0',
        'authorization_attempts_total{result="no-opinion"} 1.0',
    ]
    assert 'authorization_duration_seconds_count{result="allowed"} 1.0' in lines


class Says:
    def __init__(self, decision: Decision, error: str = "") -> None:
        self.decision, self.error = decision, error

    async def authorize(self, attributes: Attributes) -> tuple[Decision, str]:
        if self.error:
            raise EvaluationError(self.error, self.decision)
        return self.decision, ""


def test_only_decisions_count() -> None:
    instruments = Instruments()
    for said in (Says(Decision.ALLOW), Says(Decision.DENY), Says(Decision.NO_OPINION), Says(Decision.DENY, "away")):
        counted = Instrumented("Webhook", "default", said, instruments)
        try:
            asyncio.run(counted.authorize(Attributes(UserInfo("jane"), "get")))
        except EvaluationError as error:
            assert str(error) == said.error  # noqa: PT017
    assert instruments.numbers[DECISIONS] == {
        ("allowed", "default", "Webhook"): 1,
        ("denied", "default", "Webhook"): 2,
    }
