"""Admission webhooks: the reviews that they receive, and the effects of their answers. The recorded exchanges
(conformance/scenarios/writes/webhooks.json) show which webhooks are called.
"""

import base64
import http.server
import json
import ssl
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from conformance.exchange import Client
from fakeapiserver import Cluster
from fakeapiserver.transport.certificates import create_authority, issue_server, save
from fakeapiserver.transport.webhook import check_host, endpoint_of

Json = dict[str, Any]
# the API server alone: controllers would ask the webhooks too
pytestmark = pytest.mark.fake_cluster(controllers=())

CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/{}webhookconfigurations"
CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
RULE = {"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"]}


def patch(*operations: Json) -> Json:
    return {
        "allowed": True,
        "patchType": "JSONPatch",
        "patch": base64.b64encode(json.dumps(operations).encode()).decode(),
    }


def add(path: str, value: Any) -> Json:
    return patch({"op": "add", "path": path, "value": value})


class Webhooks:
    """An HTTPS server; each path has an answer, and `asked` are the paths and requests of the reviews that came."""

    def __init__(self, folder: Path) -> None:
        self.authority = create_authority()
        save(folder, "serving", issue_server(self.authority, ["127.0.0.1", "hook.default.svc"]))
        self.answers: dict[str, Json | bytes] = {}
        self.asked: list[tuple[str, Json]] = []
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "serving.crt", folder / "serving.key")
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def _handler(self) -> type[http.server.BaseHTTPRequestHandler]:
        webhooks = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                path = self.path.partition("?")[0].strip("/")
                webhooks.asked.append((path, review["request"]))
                answer = webhooks.answers[path]
                if isinstance(answer, dict):
                    response = {"uid": review["request"]["uid"], **answer}
                    answer = json.dumps({**review, "request": None, "response": response}).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *arguments: Any) -> None:
                pass

        return Handler

    def hook(self, path: str, **over: Any) -> Json:
        """A webhook's configuration."""
        return {
            "name": f"{path}.example.com",
            "clientConfig": {
                "url": f"https://127.0.0.1:{self._server.server_address[1]}/{path}",
                "caBundle": base64.b64encode(self.authority.certificate).decode(),
            },
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "rules": [RULE],
            **over,
        }

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def webhooks(tmp_path: Path) -> Iterator[Webhooks]:
    started = Webhooks(tmp_path)
    yield started
    started.close()


Ask = Callable[..., tuple[int, Json]]


@pytest.fixture
def ask(fake_cluster: Cluster) -> Ask:
    client = Client(fake_cluster.url, fake_cluster.token)

    def send(method: str, path: str, body: Any = None, **more: Any) -> tuple[int, Json]:
        request = {"method": method, "path": path, **({} if body is None else {"body": body}), **more}
        answer = client.send(request, [])
        return answer["status"], answer.get("body", {}) | {"warnings": answer.get("warnings")}

    return send


def configure(ask: Ask, sort: str, *hooks: Json, name: str = "hooks") -> None:
    status, answer = ask("POST", CONFIGURATIONS.format(sort), {"metadata": {"name": name}, "webhooks": list(hooks)})
    assert status == 201, answer


FAILED = 'Internal error occurred: failed calling webhook "hook.example.com": '


@pytest.mark.parametrize(
    ("answer", "status", "message"),
    [
        (
            {"allowed": False, "status": {"message": "no"}},
            400,
            'admission webhook "hook.example.com" denied the request: no',
        ),
        ({"allowed": False}, 400, 'admission webhook "hook.example.com" denied the request without explanation'),
        (
            {"allowed": False, "status": {"code": 403, "reason": "Forbidden"}},
            403,
            'admission webhook "hook.example.com" denied the request: Forbidden',
        ),
        ({"allowed": True, "uid": "x"}, 500, FAILED + "received invalid webhook response: expected response.uid="),
        (
            {"allowed": "yes"},
            500,
            FAILED + "failed to call webhook: json: cannot unmarshal string into Go struct field ",
        ),
        (
            b"{",
            500,
            FAILED + "failed to call webhook: couldn't get version/kind; json parse error: unexpected end of JSON",
        ),
        (b"", 500, FAILED + "failed to call webhook: 0-length response with status code: 200 and content type: "),
        (b'{"kind":"ConfigMap","apiVersion":"v1"}', 500, FAILED + 'failed to call webhook: no kind "ConfigMap" is'),
        (b"{}", 500, FAILED + "received invalid webhook response: webhook response was absent"),
    ],
)
@pytest.mark.parametrize("sort", ["validating", "mutating"])
def test_refusals_and_failures(
    ask: Ask, webhooks: Webhooks, sort: str, answer: Json | bytes, status: int, message: str
) -> None:
    webhooks.answers["hook"] = answer
    configure(ask, sort, webhooks.hook("hook"))
    found, body = ask("POST", CONFIGMAPS, {"metadata": {"name": "a"}})
    assert (found, body["message"][: len(message)]) == (status, message)
    assert ask("GET", f"{CONFIGMAPS}/a")[0] == 404


@pytest.mark.parametrize(
    ("answer", "status", "message"),
    [
        (patch({"op": "remove", "path": "/nope"}), 500, "Internal error occurred: error in remove for path: '/nope'"),
        (
            patch({"op": "test", "path": "/kind", "value": 1}),
            500,
            "Internal error occurred: testing value /kind failed",
        ),
        (add("/data", "text"), 500, "Internal error occurred: json: cannot unmarshal string into Go struct field"),
        (
            {**patch(), "patchType": None},
            500,
            FAILED + "received invalid webhook response: webhook returned response.patch",
        ),
        (
            {"allowed": True, "patchType": "JSONPatch"},
            500,
            FAILED + "received invalid webhook response: webhook returned",
        ),
        ({**add("/data", {}), "patchType": "Merge"}, 500, FAILED + 'unsupported patch type "Merge"'),
        (add("/metadata/namespace", "other"), 400, "the namespace of the provided object does not match"),
    ],
)
def test_patches_that_do_not_fit(ask: Ask, webhooks: Webhooks, answer: Json, status: int, message: str) -> None:
    webhooks.answers["hook"] = answer
    configure(ask, "mutating", webhooks.hook("hook"))
    found, body = ask("POST", CONFIGMAPS, {"metadata": {"name": "a"}})
    assert (found, body["message"][: len(message)]) == (status, message)


def test_a_patch_changes_what_is_stored(ask: Ask, webhooks: Webhooks) -> None:
    """Added items get defaults, unknown fields are dropped, and the changes have no field manager."""
    webhooks.answers["hook"] = add("/spec/ports/-", {"port": 81, "name": "b", "nope": 1})
    configure(ask, "mutating", webhooks.hook("hook", rules=[{**RULE, "resources": ["services"]}]))
    body = {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80, "name": "a"}]}}
    status, stored = ask("POST", "/api/v1/namespaces/default/services", body)
    assert status == 201
    assert stored["spec"]["ports"][1] == {"name": "b", "port": 81, "protocol": "TCP", "targetPort": 81}
    assert "81" not in json.dumps(stored["metadata"]["managedFields"])


def test_mutating_webhooks_see_what_earlier_ones_did_and_some_are_called_again(ask: Ask, webhooks: Webhooks) -> None:
    webhooks.answers |= {
        "first": {"allowed": True},
        "second": add("/metadata/labels", {"seen": "yes"}),
        "third": {"allowed": True, "warnings": ["mind"]},
    }
    configure(ask, "mutating", webhooks.hook("second"), name="b")
    configure(ask, "mutating", webhooks.hook("first", reinvocationPolicy="IfNeeded"), name="a")
    selector = {"matchLabels": {"seen": "yes"}}
    configure(ask, "mutating", webhooks.hook("third", objectSelector=selector, reinvocationPolicy="IfNeeded"), name="c")
    status, stored = ask("POST", CONFIGMAPS, {"metadata": {"generateName": "a-"}})
    seen = [(path, request["object"]["metadata"].get("labels")) for path, request in webhooks.asked]
    labels = {"seen": "yes"}
    assert seen == [("first", None), ("second", None), ("third", labels), ("first", labels)]
    assert (status, stored["metadata"]["labels"], stored["warnings"]) == (201, labels, ['299 - "mind"'])
    # What it will be called, and who it is, is decided afterwards.
    assert all({"name", "uid", "creationTimestamp"}.isdisjoint(r["object"]["metadata"]) for _, r in webhooks.asked)


def test_what_a_webhook_is_asked(ask: Ask, webhooks: Webhooks) -> None:
    """The client's request in the version that the webhook knows, and its options."""
    webhooks.answers["hook"] = {"allowed": True}
    rules = [{**RULE, "apiGroups": ["autoscaling"], "apiVersions": ["v2"]}]
    configure(ask, "validating", webhooks.hook("hook", rules=rules))
    path = "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers"
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}
    spec = {"maxReplicas": 3, "targetCPUUtilizationPercentage": 50, "scaleTargetRef": target}
    assert ask("POST", path, {"metadata": {"name": "h"}, "spec": spec})[0] == 201
    merge = {"spec": {"maxReplicas": 5}}
    assert ask("PATCH", f"{path}/h?fieldManager=me", merge, type="application/merge-patch+json")[0] == 200
    assert ask("DELETE", f"{path}/h", {"propagationPolicy": "Orphan", "dryRun": ["All"]})[0] == 200
    created, patched, deleted = (request for _, request in webhooks.asked)
    resource = {"group": "autoscaling", "version": "v2", "resource": "horizontalpodautoscalers"}
    for request in (created, patched, deleted):
        assert (request["resource"], request["requestResource"]) == (resource, {**resource, "version": "v1"})
        assert "system:masters" in request["userInfo"]["groups"]
        assert (request["namespace"], request["name"]) == ("default", "h")
    assert created["object"]["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"] == 50
    assert (created["operation"], created["oldObject"], created["dryRun"]) == ("CREATE", None, False)
    assert created["options"] == {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"}
    assert [patched[key]["spec"]["maxReplicas"] for key in ("oldObject", "object")] == [3, 5]
    assert patched["options"] == {"kind": "UpdateOptions", "apiVersion": "meta.k8s.io/v1", "fieldManager": "me"}
    assert (deleted["operation"], deleted["object"], deleted["dryRun"]) == ("DELETE", None, True)
    assert deleted["options"]["propagationPolicy"] == "Orphan"


def test_scaling_is_shown_as_a_scale_and_can_be_changed(ask: Ask, webhooks: Webhooks) -> None:
    path = "/apis/apps/v1/namespaces/default/deployments"
    pod = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": pod}
    assert ask("POST", path, {"metadata": {"name": "d"}, "spec": spec})[0] == 201
    webhooks.answers |= {"up": patch({"op": "replace", "path": "/spec/replicas", "value": 7}), "see": {"allowed": True}}
    rules = [{**RULE, "resources": ["deployments/scale"]}]
    configure(ask, "mutating", webhooks.hook("up", rules=rules))
    configure(ask, "validating", webhooks.hook("see", rules=rules))
    status, scale = ask("PATCH", f"{path}/d/scale", {"spec": {"replicas": 2}}, type="application/merge-patch+json")
    assert (status, scale["spec"]["replicas"]) == (200, 7)
    assert [(r["kind"]["kind"], r["object"]["spec"]["replicas"]) for _, r in webhooks.asked] == [
        ("Scale", 2),
        ("Scale", 7),
    ]


def test_garbled_owners_are_restored_with_a_warning(ask: Ask, webhooks: Webhooks) -> None:
    webhooks.answers["hook"] = add("/metadata/managedFields", [{"manager": "x", "operation": "Bad"}])
    configure(ask, "mutating", webhooks.hook("hook"))
    status, stored = ask("POST", CONFIGMAPS, {"metadata": {"name": "a"}, "data": {"k": "v"}})
    assert (status, stored["metadata"]["managedFields"][0]["operation"]) == (201, "Update")
    assert ".metadata.managedFields was in an invalid state after admission" in stored["warnings"][0]


def test_a_dry_run_asks_no_webhook_with_side_effects(ask: Ask, webhooks: Webhooks) -> None:
    webhooks.answers["hook"] = {"allowed": True}
    client = {**webhooks.hook("hook"), "sideEffects": "NoneOnDryRun"}
    configure(ask, "validating", client)
    assert ask("POST", f"{CONFIGMAPS}?dryRun=All", {"metadata": {"name": "a"}})[0] == 201
    assert webhooks.asked[0][1]["dryRun"] is True


@pytest.mark.parametrize(
    ("names", "host", "problem"),
    [
        ([("DNS", "a.example.com")], "a.example.com", ""),
        ([("DNS", "*.example.com")], "a.example.com", ""),
        ([("DNS", "*.example.com")], "b.a.example.com", "certificate is valid for *.example.com, not b.a.example.com"),
        ([("IP Address", "127.0.0.1")], "127.0.0.1", ""),
        ([("IP Address", "127.0.0.1")], "127.0.0.2", "certificate is valid for 127.0.0.1, not 127.0.0.2"),
        (
            [("DNS", "a")],
            "127.0.0.1",
            "cannot validate certificate for 127.0.0.1 because it doesn't contain any IP SANs",
        ),
        ([], "a", "certificate relies on legacy Common Name field, use SANs instead"),
    ],
)
def test_the_names_in_a_certificate(names: list[tuple[str, str]], host: str, problem: str) -> None:
    certificate = {"subjectAltName": tuple(names)}
    if not problem:
        check_host(host, certificate)
        return
    with pytest.raises(OSError, match="x509") as raised:
        check_host(host, certificate)
    assert str(raised.value) == f"tls: failed to verify certificate: x509: {problem}"


@pytest.mark.parametrize(
    ("client", "url", "place"),
    [
        ({"url": "https://h/a//b/"}, "https://h/a/b", ("h", 443)),
        ({"url": "https://[::1]:8443"}, "https://[::1]:8443/", ("::1", 8443)),
        ({"service": {"namespace": "n", "name": "s"}}, "https://s.n.svc:443/", ("s.n.svc", 443)),
        ({"service": {"namespace": "n", "name": "s", "port": 9, "path": "p"}}, "https://s.n.svc:9/p", ("s.n.svc", 9)),
    ],
)
def test_where_a_client_config_leads(client: Json, url: str, place: tuple[str, int]) -> None:
    found = endpoint_of(client)
    assert (found.url, (found.host, found.port)) == (url, place)
