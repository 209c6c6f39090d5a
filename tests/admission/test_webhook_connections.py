"""Connections to webhooks: one is used for many calls, and what one webhook does is no other request's concern."""

import itertools
import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from conformance.exchange import Client
from conformance.players.tls_server import TLSServer
from fakeapiserver import Cluster
from fakeapiserver.testing.background import running_server

# the server alone: no controller writes
pytestmark = pytest.mark.fake_cluster(controllers=())

Json = dict[str, Any]
CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
ANSWER = '{"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "response": {"uid": "%s", "allowed": true}}'


class Hook(TLSServer):
    """Allows everything. `connections` counts those it has had; it hangs up after each answer if `hangs_up` (telling so if `tells`),
    and holds back answers about objects called `held` until `released`."""

    def __init__(self) -> None:
        self.connections = 0
        self.calls = 0
        self.authorizations: list[str | None] = []
        self.timeouts: list[str] = []
        self.hangs_up = self.tells = False
        self.held, self.released = threading.Event(), threading.Event()
        super().__init__(_handler(self))

    def webhook(self, name: str = "h.example.com", **more: Any) -> Json:
        return {
            "name": name,
            "clientConfig": {"url": f"https://127.0.0.1:{self.port}/", "caBundle": self.ca_bundle},
            "rules": [{"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}],
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            **more,
        }


def _handler(hook: Hook) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def setup(self) -> None:
            super().setup()
            hook.connections += 1

        def do_POST(self) -> None:
            review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            hook.calls += 1
            hook.authorizations.append(self.headers["Authorization"])
            hook.timeouts.append(self.path.partition("?timeout=")[2])
            if review["request"]["name"] == "held":
                hook.held.set()
                hook.released.wait(60)
            answer = (ANSWER % review["request"]["uid"]).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            if hook.tells:
                self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(answer)
            self.close_connection = hook.hangs_up

        def log_message(self, *arguments: Any) -> None:
            pass

    return Handler


@pytest.fixture
def hook() -> Iterator[Hook]:
    with Hook() as started:
        yield started
        started.released.set()


@pytest.fixture
def client(fake_cluster: Cluster) -> Client:
    return Client(fake_cluster.url, fake_cluster.token)


def send(client: Client, method: str, path: str, body: Any = None, **more: Any) -> tuple[int, Json]:
    answer = client.send({"method": method, "path": path, "body": body, **more}, [])
    return answer["status"], answer["body"]


def configure(client: Client, *webhooks: Json) -> None:
    status, answer = send(client, "POST", CONFIGURATIONS, {"metadata": {"name": "hooks"}, "webhooks": list(webhooks)})
    assert status == 201, answer


def named(name: str) -> Json:
    return {"metadata": {"name": name}}


def test_one_connection_serves_many_calls(client: Client, hook: Hook) -> None:
    configure(client, hook.webhook())
    for number in range(20):
        assert send(client, "POST", CONFIGMAPS, named(f"c{number}"))[0] == 201
    assert (hook.connections, hook.calls) == (1, 20)


@pytest.mark.parametrize("tells", [True, False])
def test_a_webhook_may_hang_up_after_each_answer(client: Client, hook: Hook, tells: bool) -> None:
    hook.hangs_up, hook.tells = True, tells
    configure(client, hook.webhook())
    assert [send(client, "POST", CONFIGMAPS, named(f"c{number}"))[0] for number in range(10)] == [201] * 10
    assert (hook.connections, hook.calls) == (10, 10)


def test_another_authority_is_another_connection(client: Client, hook: Hook) -> None:
    configure(client, hook.webhook())
    assert send(client, "POST", CONFIGMAPS, named("trusted"))[0] == 201
    with Hook() as other:
        bundle = {"clientConfig": {"url": f"https://127.0.0.1:{hook.port}/", "caBundle": other.ca_bundle}}
        merge = {"type": "application/merge-patch+json"}
        assert (
            send(client, "PATCH", f"{CONFIGURATIONS}/hooks", {"webhooks": [hook.webhook(**bundle)]}, **merge)[0] == 200
        )
        status, refused = send(client, "POST", CONFIGMAPS, named("untrusted"))
    assert status == 500
    assert refused["message"].endswith("x509: certificate signed by unknown authority")


def test_a_hanging_webhook_delays_no_other_request(client: Client, hook: Hook, fake_cluster: Cluster) -> None:
    """Not even writes to the object that waits: the last to be admitted finds it changed, and starts over."""
    name = {
        "name": "only-held",
        "expression": "request.dryRun == false && has(object.data) && 'who' in object.data",
    }
    send(client, "POST", CONFIGMAPS, named("held"))
    configure(client, hook.webhook(matchConditions=[name], timeoutSeconds=30))
    slow = Client(fake_cluster.url, fake_cluster.token)
    with ThreadPoolExecutor(1) as pool:
        merge = {"type": "application/merge-patch+json"}
        waiting = pool.submit(send, slow, "PATCH", f"{CONFIGMAPS}/held", {"data": {"who": "slow"}}, **merge)
        assert hook.held.wait(60)
        assert send(client, "POST", CONFIGMAPS, named("other"))[0] == 201
        assert send(client, "GET", f"{CONFIGMAPS}/held")[0] == 200
        assert send(client, "PATCH", f"{CONFIGMAPS}/held", {"data": {"more": "x"}}, **merge)[0] == 200
        assert not waiting.done()
        hook.released.set()
        status, found = waiting.result(60)
    assert (status, found["data"]) == (200, {"who": "slow", "more": "x"})
    assert hook.calls == 2


def test_a_hundred_webhooks(client: Client, hook: Hook) -> None:
    configure(client, *(hook.webhook(f"h{number}.example.com", timeoutSeconds=30) for number in range(100)))
    assert send(client, "POST", CONFIGMAPS, named("c"))[0] == 201
    assert hook.calls == 100


def test_webhooks_are_called_as_the_user_of_the_configuration(hook: Hook, tmp_path: Path) -> None:
    user = {"name": f"127.0.0.1:{hook.port}", "user": {"token": "secret"}}
    (tmp_path / "users").write_text(json.dumps({"apiVersion": "v1", "kind": "Config", "users": [user]}))
    group = {"apiVersion": "apiserver.config.k8s.io/v1"}
    users = {**group, "kind": "WebhookAdmissionConfiguration", "kubeConfigFile": str(tmp_path / "users")}
    plugins = [{"name": "ValidatingAdmissionWebhook", "configuration": users}]
    file = tmp_path / "admission"
    file.write_text(json.dumps({**group, "kind": "AdmissionConfiguration", "plugins": plugins}))
    with running_server(admission_control_config_file=file) as server:
        client = Client(server.url, server.admin_token)
        configure(client, hook.webhook())
        assert send(client, "POST", CONFIGMAPS, named("c"))[0] == 201
    assert hook.authorizations == ["Bearer secret"]


def test_webhooks_receive_the_clients_timeout(client: Client, hook: Hook) -> None:
    configure(client, hook.webhook(timeoutSeconds=10))
    names = (f"c{number}" for number in itertools.count())

    def told(query: str) -> str:
        """While a write takes so long that less of its time is left, it is written again."""
        seconds = 1.0
        while seconds > 0.4:
            began = time.monotonic()
            assert send(client, "POST", f"{CONFIGMAPS}{query}", named(next(names)))[0] == 201
            seconds = time.monotonic() - began
        return hook.timeouts[-1]

    assert [told(query) for query in ("", "?timeout=9s", "?timeout=8500ms", "?timeout=20s")] == [
        "10s",
        "9s",
        "9s",
        "10s",
    ]
