"""Admission of connections: exec, attach, port-forward and proxies. What upstream answers and asks is in the recorded exchanges
(conformance/scenarios/admission/connect.json)."""

from collections.abc import Iterator
from typing import Any

import pytest

from conformance.exchange import Client
from conformance.players.webhook import Webhook
from fakeapiserver import Cluster

# the server alone: no controller writes
pytestmark = pytest.mark.fake_cluster(controllers=())

Json = dict[str, Any]
CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
PODS = "/api/v1/namespaces/default/pods"


@pytest.fixture
def webhook() -> Iterator[Webhook]:
    with Webhook() as started:
        yield started


@pytest.fixture
def client(fake_cluster: Cluster, webhook: Webhook) -> Client:
    """With a pod `p`, and a webhook that sees every connection."""
    client = Client(fake_cluster.url, fake_cluster.token)
    spec = {"containers": [{"name": "a", "image": "i"}]}
    client.send({"method": "POST", "path": PODS, "body": {"metadata": {"name": "p"}, "spec": spec}}, [])
    webhook.plans["seen"] = lambda review: review
    hook = {
        "name": "connect.example.com",
        "clientConfig": {"url": f"{webhook.url}/seen", "caBundle": webhook.ca_bundle},
        "rules": [{"operations": ["CONNECT"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["*/*"]}],
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
    }
    client.send({"method": "POST", "path": CONFIGURATIONS, "body": {"metadata": {"name": "c"}, "webhooks": [hook]}}, [])
    return client


@pytest.mark.parametrize(
    ("path", "options"),
    [
        ("exec", {"kind": "PodExecOptions", "command": None}),
        (
            "exec?command=sh&command=-c&stdin=true&tty=0&stdout=FALSE&stderr=&container=a",
            {"kind": "PodExecOptions", "stdin": True, "stderr": True, "container": "a", "command": ["sh", "-c"]},
        ),
        ("attach?stdin=anything", {"kind": "PodAttachOptions", "stdin": True}),
        ("portforward", {"kind": "PodPortForwardOptions"}),
        ("portforward?ports=80&ports=81,82", {"kind": "PodPortForwardOptions", "ports": [80, 81, 82]}),
        ("proxy", {"kind": "PodProxyOptions"}),
        ("proxy/", {"kind": "PodProxyOptions", "path": "/"}),
        ("proxy/a/b/?c=d&path=x", {"kind": "PodProxyOptions", "path": "/a/b/"}),
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_webhooks_see_what_a_connection_asks_for(
    client: Client, webhook: Webhook, method: str, path: str, options: Json
) -> None:
    client.send({"method": method, "path": f"{PODS}/p/{path}"}, [])
    ((_, review),) = webhook.asked
    asked = review["request"]
    assert asked["object"] == {"apiVersion": "v1", **options}
    assert (asked["operation"], asked["name"], asked["subResource"]) == (
        "CONNECT",
        "p",
        path.partition("?")[0].split("/")[0],
    )
    assert (asked["oldObject"], asked["options"]) == (None, None)


def test_a_refusal_comes_before_anything_is_looked_up(client: Client, webhook: Webhook) -> None:
    status = {"code": 403, "message": "no shells here"}
    webhook.plans["seen"] = lambda review: {
        **review,
        "response": {**review["response"], "allowed": False, "status": status},
    }
    answer = client.send({"method": "POST", "path": f"{PODS}/nobody/exec?command=sh"}, [])
    assert answer["status"] == 403
    assert answer["body"]["message"] == 'admission webhook "connect.example.com" denied the request: no shells here'


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("dryRun=All", "dryRun is not supported"),
        ("ports=x", 'cannot convert to []int32: strconv.ParseUint: parsing "x": invalid syntax'),
        ("ports=65536", 'cannot convert to []int32: strconv.ParseUint: parsing "65536": value out of range'),
    ],
)
def test_unreadable_options_reach_no_webhook(client: Client, webhook: Webhook, query: str, message: str) -> None:
    answer = client.send({"method": "POST", "path": f"{PODS}/p/portforward?{query}"}, [])
    assert (answer["status"], answer["body"]["message"]) == (400, message)
    assert webhook.asked == []
