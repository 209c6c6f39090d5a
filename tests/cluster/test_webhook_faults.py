"""Faults of webhooks: clients get the same answer as when the webhook's server does it, and the server isn't called."""

import re
import time
from collections.abc import Iterator
from typing import Any

import pytest

from conformance.exchange import Client
from conformance.players.webhook import Webhook
from fakeapiserver import Cluster

CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
MAPS = "/api/v1/namespaces/default/configmaps"
CREATE = {"method": "POST", "path": MAPS, "body": {"metadata": {"generateName": "c-"}}}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(controllers=()) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def webhook() -> Iterator[Webhook]:
    with Webhook() as started:
        yield started


def configuration(url: str, bundle: str, **more: Any) -> dict[str, Any]:
    hook = {
        "name": "h.example.com",
        "clientConfig": {"url": url, "caBundle": bundle},
        "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}],
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "timeoutSeconds": 1,
        **more,
    }
    return {"metadata": {"name": "c"}, "webhooks": [hook]}


@pytest.fixture
def client(cluster: Cluster, webhook: Webhook) -> Iterator[Client]:
    client = Client(cluster.url, cluster.token)
    body = configuration(f"{webhook.url}/allow", webhook.ca_bundle)
    client.send({"method": "POST", "path": CONFIGURATIONS, "body": body}, [])
    yield client
    cluster.faults.clear()
    client.send({"method": "DELETE", "path": f"{CONFIGURATIONS}/c"}, [])


@pytest.mark.parametrize(
    ("mode", "fields"),
    [
        ("500", {"status": 500, "message": "broken\n"}),
        ("503", {"status": 503, "message": "later"}),
        ("429", {"status": 429, "message": "slowly"}),
        ("404", {"status": 404, "message": "not found"}),
        ("words", {"malformed": True}),
        ("closes", {"reset": "before"}),
    ],
)
def test_the_answer_is_that_of_a_webhook_that_does_it(
    cluster: Cluster, client: Client, webhook: Webhook, mode: str, fields: Any
) -> None:
    webhook.fault = mode
    try:
        expected = client.send(CREATE, [])
    finally:
        webhook.fault = ""
    calls = webhook.calls
    with cluster.faults.add(webhook="h.example.com", **fields) as fault:
        got = client.send(CREATE, [])
        assert (got["status"], got["body"]) == (expected["status"], expected["body"])
        assert (fault.hits, webhook.calls) == (1, calls)
    assert client.send(CREATE, [])["status"] == 201


FAILED = 'Internal error occurred: failed calling webhook "h.example.com": failed to call webhook: '


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"hang": True}, 'Post "URL": context deadline exceeded'),
        ({"latency": 30}, 'Post "URL": context deadline exceeded'),
        (
            {"certificate": "unknown"},
            'Post "URL": tls: failed to verify certificate: x509: certificate signed by unknown authority',
        ),
        (
            {"certificate": "expired"},
            'Post "URL": tls: failed to verify certificate: x509: certificate has expired or is not yet valid: '
            "current time TIME is after TIME",
        ),
    ],
)
def test_the_message_for_a_client(cluster: Cluster, client: Client, webhook: Webhook, fields: Any, said: str) -> None:
    with cluster.faults.add(webhook="*.example.com", **fields):
        answer = client.send(CREATE, [])
    message = answer["body"]["message"].replace(f"{webhook.url}/allow?timeout=1s", "URL")
    message = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "TIME", message)
    assert (answer["status"], message) == (500, FAILED + said)


def test_a_slow_webhook_is_called(cluster: Cluster, client: Client, webhook: Webhook) -> None:
    calls = webhook.calls
    with cluster.faults.add(webhook="*", latency="100ms"):
        begun = time.monotonic()
        assert client.send(CREATE, [])["status"] == 201
        assert time.monotonic() - begun >= 0.1
    assert webhook.calls == calls + 1


def test_other_webhooks_are_called(cluster: Cluster, client: Client) -> None:
    with cluster.faults.add(webhook="other.example.com", status=500) as fault:
        assert client.send(CREATE, [])["status"] == 201
        assert fault.hits == 0


def test_a_struck_request_is_marked(cluster: Cluster, client: Client) -> None:
    with cluster.faults.add(webhook="*", status=500):
        client.send(CREATE, [])
    entry = cluster.requests["create configmaps"][-1]
    assert entry.fault.endswith("(webhook=* status=500)")


def test_a_fault_of_a_conversion_webhook(cluster: Cluster, client: Client, webhook: Webhook) -> None:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    versions = [
        {"name": name, "served": True, "storage": name == "v1", "schema": schema} for name in ("v1", "v2")
    ]  # fmt: skip
    conversion = {
        "strategy": "Webhook",
        "webhook": {
            "conversionReviewVersions": ["v1"],
            "clientConfig": {"url": f"{webhook.url}/convert", "caBundle": webhook.ca_bundle},
        },
    }
    names = {"plural": "widgets", "kind": "Widget"}
    spec = {"group": "example.com", "scope": "Cluster", "names": names, "versions": versions, "conversion": conversion}
    cluster.apply(
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "widgets.example.com"},
            "spec": spec,
        }
    )
    cluster.wait("crd", "widgets.example.com", "Established")
    path = "/apis/example.com/{}/widgets"
    body = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}}
    assert client.send({"method": "POST", "path": path.format("v1"), "body": body}, [])["status"] == 201
    with cluster.faults.add(webhook="widgets.example.com", status=500, message="broken"):
        answer = client.send({"method": "GET", "path": f"{path.format('v2')}/w"}, [])
    assert answer["status"] == 500
    assert "conversion webhook for example.com/v1, Kind=Widget failed" in answer["body"]["message"]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"webhook": "*"}, "this fault does nothing"),
        ({"malformed": True}, 'malformed is what a webhook\'s server does wrong: add webhook, for example webhook="*"'),
        ({"certificate": "expired"}, "certificate is what a webhook's server does wrong"),
        ({"webhook": "*", "certificate": "old"}, "certificate is one of unknown, expired, name, not 'old'"),
        ({"webhook": "*", "status": 500, "verb": "create"}, "there is no verb: leave it out"),
        ({"webhook": "*", "status": 500, "when": "after"}, "there is no when: leave it out"),
        ({"webhook": "*", "reset": "after"}, "reset=\"before\", not 'after'"),
        (
            {"webhook": "*", "hang": True, "malformed": True},
            "a request ends in one way: choose one of hang and malformed",
        ),
    ],
)
def test_a_bad_fault_is_refused(cluster: Cluster, fields: Any, said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        cluster.faults.add(**fields)
    assert cluster.faults.list() == []
