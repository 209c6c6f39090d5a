"""Tests the metrics of successful and failed authentication."""

import asyncio

from fakeapiserver.apimachinery.errors import new_unauthorized
from fakeapiserver.apis import scheme
from fakeapiserver.apis.resource_table import ResourceTable
from fakeapiserver.auth.authorizers.instrumented import Decisions, Instrumented
from fakeapiserver.auth.interfaces import Attributes, Decision, EvaluationError, UserInfo
from fakeapiserver.server.metrics import Metrics


def test_only_a_few_users_are_counted_by_name() -> None:
    metrics = Metrics(ResourceTable(scheme.load()), lambda _: 0, 0.0)
    for name in ("admin", "jane@example.com", "system:serviceaccount:a:b", "jane"):
        metrics.authentication.succeeded(name, 0.001)
    refused = new_unauthorized()
    refused.__cause__ = ValueError("expired")
    metrics.authentication.refused(refused, 0.001)
    metrics.authentication.refused(new_unauthorized(), 0.001)
    lines = [line for line in metrics.render().decode().splitlines() if line.startswith("authenti")]
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
    metrics = Metrics(ResourceTable(scheme.load()), lambda _: 0, 0.0).authorization
    for decision in Decision:
        metrics.decided(decision, 0.001)
    metrics.failed(0.001)
    metrics.decisions["RBAC", "rbac", "allowed"] += 2
    counted = {
        (sample.name, *sample.labels.values()): sample.value
        for family in metrics.metrics()
        for sample in family.samples
    }
    attempts = {
        labels[0]: value for (name, *labels), value in counted.items() if name == "authorization_attempts_total"
    }
    assert attempts == {"allowed": 1, "denied": 1, "error": 1, "no-opinion": 1}
    assert counted["authorization_duration_seconds_count", "allowed"] == 1
    assert counted["apiserver_authorization_decisions_total", "allowed", "rbac", "RBAC"] == 2


class Says:
    def __init__(self, decision: Decision, error: str = "") -> None:
        self.decision, self.error = decision, error

    async def authorize(self, attributes: Attributes) -> tuple[Decision, str]:
        if self.error:
            raise EvaluationError(self.error, self.decision)
        return self.decision, ""


def test_only_decisions_count() -> None:
    decisions = Decisions()
    for said in (Says(Decision.ALLOW), Says(Decision.DENY), Says(Decision.NO_OPINION), Says(Decision.DENY, "away")):
        counted = Instrumented("Webhook", "default", said, decisions)
        try:
            asyncio.run(counted.authorize(Attributes(UserInfo("jane"), "get")))
        except EvaluationError as error:
            assert str(error) == said.error  # noqa: PT017
    assert decisions == {("Webhook", "default", "allowed"): 1, ("Webhook", "default", "denied"): 2}
