"""Tests the audit events of requests: those of each stage, and never more than the policy demands."""

import asyncio
import json
import ssl
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from conformance.exchange import Client
from fakeapiserver import Cluster
from fakeapiserver.apimachinery.instruments import Instruments
from fakeapiserver.apis.recorded import NEWEST
from fakeapiserver.clock import SystemClock
from fakeapiserver.server.filters.audit.backends import Webhook
from fakeapiserver.server.filters.audit.counts import AuditCounts
from fakeapiserver.server.filters.audit.event import source_ips
from fakeapiserver.server.filters.audit.options import AuditOptions, BatchOptions, LogOptions, WebhookOptions
from fakeapiserver.server.options.config import Config
from fakeapiserver.server.options.webhook_clients import credentials_of
from fakeapiserver.transport.client_config import load_kubeconfig
from fakeapiserver.transport.webhook import Endpoint, Response

Json = dict[str, Any]
CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
SECRETS = "/api/v1/namespaces/default/secrets"
ALL = "- level: RequestResponse\n  omitManagedFields: true\n"


def policy(folder: Path, rules: str) -> Path:
    file = folder / "policy.yaml"
    file.write_text(f"apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n{rules}")
    return file


def events_of(
    tmp_path: Path, rules: str, *requests: tuple[Any, ...], version: str = NEWEST, **options: Any
) -> list[Json]:
    """The events of these requests, as the log has them."""
    path = tmp_path / "audit.log"
    audit = AuditOptions(policy(tmp_path, rules), LogOptions(path=str(path), **options))
    with Cluster.from_config(Config(controllers=(), audit=audit, kubernetes_version=version)) as cluster:
        client = Client(cluster.url, cluster.token)
        for method, where, *rest in requests:
            client.send({"method": method, "path": where, **(rest[0] if rest else {})}, ())
    return [json.loads(line) for line in path.read_text().splitlines()]


CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}, "data": {"a": "b"}}
SECRET = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"password": "hunter2"}}


def test_a_write_is_logged_when_it_arrives_and_when_it_is_done(tmp_path: Path) -> None:
    received, complete = events_of(
        tmp_path, ALL, ("POST", CONFIGMAPS, {"body": CONFIG_MAP, "headers": {"Audit-Id": "mine"}})
    )
    assert (received["stage"], complete["stage"]) == ("RequestReceived", "ResponseComplete")
    assert received["stageTimestamp"] == received["requestReceivedTimestamp"] < complete["stageTimestamp"]
    assert received.keys().isdisjoint({"responseStatus", "requestObject", "annotations"})
    assert received["auditID"] == complete["auditID"] == "mine"
    assert complete["objectRef"] == {
        "resource": "configmaps",
        "namespace": "default",
        "name": "one",
        "apiVersion": "v1",
    }
    assert complete["responseStatus"] == {"metadata": {}, "code": 201}
    assert complete["requestObject"] == CONFIG_MAP
    assert complete["responseObject"]["data"] == {"a": "b"}
    assert "managedFields" not in complete["responseObject"]["metadata"]
    assert complete["annotations"] == {"authorization.k8s.io/decision": "allow", "authorization.k8s.io/reason": ""}


@pytest.mark.parametrize(
    ("level", "told"),
    [
        ("None", None),
        ("Metadata", set()),
        ("Request", {"requestObject"}),
        ("RequestResponse", {"requestObject", "responseObject"}),
    ],
)
def test_a_level_logs_no_more_than_it_should(tmp_path: Path, level: str, told: set[str] | None) -> None:
    rules = f"- {{level: {level}, resources: [{{group: '', resources: [secrets]}}]}}\n"
    events = events_of(tmp_path, rules, ("POST", SECRETS, {"body": SECRET}), ("GET", CONFIGMAPS))
    if told is None:
        assert events == []
        return
    *_, complete = events
    assert complete.keys() & {"requestObject", "responseObject"} == told
    # What is stored of hunter2, since the request's object is shown as decoded.
    assert ("aHVudGVyMg" in json.dumps(events)) == bool(told)


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (("GET", f"{CONFIGMAPS}/none"), {"reason": "NotFound", "code": 404}),
        (("POST", CONFIGMAPS, {"body": {"kind": "ConfigMap", "apiVersion": "v1"}}), {"reason": "Invalid", "code": 422}),
        (("GET", f"{CONFIGMAPS}?limit=x"), {"reason": "BadRequest", "code": 400}),
        (("GET", CONFIGMAPS, {"token": "wrong"}), {"reason": "Unauthorized", "code": 401}),
        (("GET", f"{CONFIGMAPS}?timeout=x"), {"reason": "BadRequest", "code": 400}),
    ],
)
def test_a_rejection_logs_its_reason(tmp_path: Path, request_: tuple[Any, ...], status: Json) -> None:
    last = events_of(tmp_path, "- level: Metadata\n", request_)[-1]
    assert last["responseStatus"].items() >= {**status, "status": "Failure", "metadata": {}}.items()
    assert "responseObject" not in last


def test_who_is_not_known_has_one_event_without_a_user(tmp_path: Path) -> None:
    (event,) = events_of(tmp_path, ALL, ("GET", CONFIGMAPS, {"token": "wrong"}))
    assert (event["stage"], event["user"]) == ("ResponseStarted", {})
    assert "wrong" not in json.dumps(event)


@pytest.mark.parametrize(
    ("version", "of_broken"), [("v1.36", ["RequestReceived"]), ("v1.37", ["RequestReceived", "ResponseComplete"])]
)
def test_a_patch_that_is_no_json_breaks_no_line_of_the_log(tmp_path: Path, version: str, of_broken: list[str]) -> None:
    patches = ("{", "kind: ConfigMap\n", "", '{"data":\n {"a": "c"}}')
    requests = [
        ("PATCH", f"{CONFIGMAPS}/one", {"text": text, "type": "application/merge-patch+json"}) for text in patches
    ]
    events = events_of(tmp_path, ALL, ("POST", CONFIGMAPS, {"body": CONFIG_MAP}), *requests, version=version)
    stages = [event["stage"] for event in events[2:]]
    assert stages == of_broken * 3 + ["RequestReceived", "ResponseComplete"]
    assert events[-1]["requestObject"] == {"data": {"a": "c"}}


def test_the_attempted_credentials_are_logged_without_a_status(tmp_path: Path) -> None:
    request = ("GET", f"{CONFIGMAPS}?access_token=x", {"accept": "text/css", "token": "wrong"})
    (event,) = events_of(tmp_path, ALL, request)
    tried = "Authentication failed, attempted: bearer, access_token"
    assert event["responseStatus"] == {"metadata": {}, "message": tried, "code": 401}


@pytest.mark.parametrize(
    ("forwarded", "addresses"),
    [
        ("1.2.3.4, 5.6.7.8,bad, ::1", ["1.2.3.4", "5.6.7.8", "::1"]),
        ("::ffff:1.2.3.4", ["1.2.3.4"]),
        ("01.2.3.4", ["1.2.3.4"]),
        ("fe80::1%eth0, 1.2.3.4:80", []),
        ("2001:DB8::0:1", ["2001:db8::1"]),
    ],
)
def test_addresses_are_logged_as_go_reads_them(forwarded: str, addresses: list[str]) -> None:
    assert source_ips(forwarded, "", "127.0.0.1") == (*addresses, "127.0.0.1")


def test_an_answer_of_nothing_is_taken_for_a_closed_connection(tmp_path: Path) -> None:
    event = events_of(tmp_path, ALL, ("GET", "/openapi/v3/apis/apps/v1", {"accept": "garbage"}))[-1]
    told = {"metadata": {}, "status": "Success", "message": "Connection closed early", "code": 200}
    assert event["responseStatus"] == told


@pytest.mark.parametrize(
    ("options", "name"),
    [("", "one"), ("&resourceVersionMatch=Exact", "one"), ("&limit=x", ""), ("&labelSelector=a(", "")],
)
def test_a_name_is_selected_where_all_options_can_be_read(tmp_path: Path, options: str, name: str) -> None:
    path = f"{CONFIGMAPS}?fieldSelector=metadata.name%3Done{options}"
    event = events_of(tmp_path, "- level: Metadata\n", ("GET", path))[-1]
    assert event["objectRef"].get("name", "") == name


def test_a_watch_is_logged_when_it_starts(tmp_path: Path) -> None:
    events = events_of(tmp_path, ALL, ("GET", f"{CONFIGMAPS}?watch=1&timeoutSeconds=1"))
    assert [event["stage"] for event in events] == ["RequestReceived", "ResponseStarted", "ResponseComplete"]
    assert not any("responseObject" in event for event in events)


def test_impersonation_is_logged_with_the_original_user(tmp_path: Path) -> None:
    headers = {"Impersonate-User": "jane", "Impersonate-Group": "dev"}
    event = events_of(tmp_path, ALL, ("GET", CONFIGMAPS, {"headers": headers}))[-1]
    assert "system:masters" in event["user"]["groups"]
    assert event["impersonatedUser"] == {"username": "jane", "groups": ["dev", "system:authenticated"]}
    assert event["authenticationMetadata"] == {"impersonationConstraint": "impersonate:user-info"}
    assert event["annotations"]["authorization.k8s.io/decision"] == "forbid"


def test_pod_security_logs_what_it_enforces_and_what_would_violate_it(tmp_path: Path) -> None:
    labels = {f"pod-security.kubernetes.io/{mode}": "baseline" for mode in ("enforce", "audit")}
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "strict", "labels": labels}}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"hostPID": True, "containers": [{"name": "c", "image": "i"}]},
    }
    requests = (
        ("POST", "/api/v1/namespaces", {"body": namespace}),
        ("POST", "/api/v1/namespaces/strict/pods", {"body": pod}),
    )
    annotations = events_of(tmp_path, ALL, *requests)[-1]["annotations"]
    assert annotations["pod-security.kubernetes.io/enforce-policy"] == "baseline:latest"
    assert annotations["pod-security.kubernetes.io/audit-violations"] == (
        'would violate PodSecurity "baseline:latest": host namespaces (hostPID=true)'
    )


def test_a_policy_logs_the_values_of_its_expressions(tmp_path: Path) -> None:
    base = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolic"
    rule = {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}
    spec = {
        "matchConstraints": {"resourceRules": [rule]},
        "auditAnnotations": [{"key": "who", "valueExpression": "'saw ' + object.metadata.name"}],
        "validations": [{"expression": "true"}, {"expression": "false", "message": "never"}],
    }
    kind = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy"}
    binding = {"policyName": "p", "validationActions": ["Audit"]}
    written = {**kind, "metadata": {"name": "p"}, "spec": spec}
    bound = {**kind, "kind": f"{kind['kind']}Binding", "metadata": {"name": "b"}, "spec": binding}
    requests = (
        ("POST", f"{base}ies", {"body": written}),
        ("POST", f"{base}ybindings", {"body": bound}),
        ("POST", CONFIGMAPS, {"body": CONFIG_MAP}),
    )
    annotations = events_of(tmp_path, ALL, *requests)[-1]["annotations"]
    assert annotations["p/who"] == "saw one"
    (failure,) = json.loads(annotations["validation.policy.admission.k8s.io/validation_failure"])
    assert failure == {
        "message": "never",
        "policy": "p",
        "binding": "b",
        "expressionIndex": 1,
        "validationActions": ["Audit"],
    }


def test_protobuf_is_logged_as_json(tmp_path: Path) -> None:
    accept = {"accept": "application/vnd.kubernetes.protobuf"}
    requests = (("POST", CONFIGMAPS, {"body": CONFIG_MAP}), ("GET", f"{CONFIGMAPS}/one", accept))
    event = events_of(tmp_path, ALL, *requests)[-1]
    assert event["responseObject"]["data"] == {"a": "b"}


def test_a_webhook_gets_batches(tmp_path: Path) -> None:
    got: list[Json] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *args: object) -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    kubeconfig = tmp_path / "webhook.yaml"
    kubeconfig.write_text(
        f"clusters: [{{name: c, cluster: {{server: 'http://127.0.0.1:{server.server_port}/events'}}}}]\n"
        "contexts: [{name: c, context: {cluster: c}}]\ncurrent-context: c\n"
    )
    audit = AuditOptions(policy(tmp_path, ALL), webhook=WebhookOptions(config_file=str(kubeconfig)))
    with Cluster.from_config(Config(controllers=(), audit=audit)) as cluster:
        Client(cluster.url, cluster.token).send({"method": "GET", "path": CONFIGMAPS}, ())
    server.shutdown()
    server.server_close()
    (batch,) = got
    assert (batch["kind"], batch["apiVersion"]) == ("EventList", "audit.k8s.io/v1")
    assert [event["stage"] for event in batch["items"]] == ["RequestReceived", "ResponseComplete"]
    assert not any({"kind", "apiVersion"} & event.keys() for event in batch["items"])


def test_events_of_open_streams_are_flushed_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    log = LogOptions(
        path=str(path), mode="batch", batch=BatchOptions(max_size=400, max_wait=30.0, throttle_enable=False)
    )
    with Cluster.from_config(Config(controllers=(), audit=AuditOptions(policy(tmp_path, ALL), log))) as cluster:
        url = f"{cluster.url}{CONFIGMAPS}?watch=1&timeoutSeconds=300"
        request = urllib.request.Request(url, headers={"Authorization": f"Bearer {cluster.token}"})
        watch = urllib.request.urlopen(request, context=ssl._create_unverified_context())
    watch.close()
    events = [json.loads(line) for line in path.read_text().splitlines()]
    stages = [event["stage"] for event in events if "watch=1" in event["requestURI"]]
    assert stages == ["RequestReceived", "ResponseStarted", "ResponseComplete"]


class Moved(SystemClock):
    """A clock that can be moved forward."""

    seconds = 0.0

    def now(self) -> float:
        return super().now() + self.seconds

    def monotonic(self) -> float:
        return super().monotonic() + self.seconds


def test_a_webhook_receives_the_token_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("first")
    kubeconfig = tmp_path / "webhook.yaml"
    kubeconfig.write_text(
        "clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}]\n"
        "users: [{name: u, user: {tokenFile: token}}]\n"
        "contexts: [{name: c, context: {cluster: c, user: u}}]\ncurrent-context: c\n"
    )
    seen: list[str] = []

    class Client:
        async def send(self, endpoint: Endpoint, body: bytes, timeout: float) -> Response:
            seen.append(endpoint.identity.authorization)
            return Response(200)

    endpoint = load_kubeconfig(kubeconfig)
    clock = Moved()
    webhook = Webhook(endpoint, 0.0, AuditCounts(Instruments()), credentials_of(kubeconfig, endpoint, clock))
    webhook._client = Client()  # type: ignore[assignment]
    for token in ("first", "second"):
        (tmp_path / "token").write_text(token)
        clock.seconds += 600
        assert asyncio.run(webhook.process([{}]))
    assert seen == ["Bearer first", "Bearer second"]
