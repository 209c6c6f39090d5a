"""Requests in other forms: HTTP Archives, audit events, the least roles."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from fakeapiserver import Cluster
from fakeapiserver.evidence.requests import RequestList
from fakeapiserver.server.filters.audit.options import AuditOptions, LogOptions
from fakeapiserver.server.options.config import Config
from tests.plain_client import Client

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
SECRETS = "/api/v1/namespaces/default/secrets"
APPLY = "application/apply-patch+yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(controllers=()) as cluster:
        yield cluster


@pytest.fixture
def requests(cluster: Cluster) -> RequestList:
    """A create, a read with protobuf, a refusal, a watch, and a Secret."""
    client, mark = Client(cluster), cluster.requests.mark()
    client.status("DELETE", f"{CONFIG_MAPS}/a")
    client.status("DELETE", f"{SECRETS}/s")
    mark = cluster.requests.mark()
    client.status("POST", CONFIG_MAPS, {"metadata": {"name": "a"}, "data": {"size": "1"}})
    client.status("GET", f"{CONFIG_MAPS}/a", accept=PROTOBUF)
    client.status("GET", f"{CONFIG_MAPS}/none")
    client.status("GET", f"{CONFIG_MAPS}?watch=true&timeoutSeconds=1&resourceVersion=0")
    client.status("POST", SECRETS, {"metadata": {"name": "s"}, "stringData": {"k": "hidden"}})
    return cluster.requests.since(mark)


def test_an_archive(requests: RequestList, tmp_path: Path) -> None:
    requests.har(tmp_path / "requests.har")
    text = (tmp_path / "requests.har").read_text()
    assert "hidden" not in text
    archive = json.loads(text)["log"]
    assert archive["version"] == "1.2"
    created, read, missing, watch, secret = archive["entries"]
    assert created["request"]["method"] == "POST"
    assert json.loads(created["request"]["postData"]["text"])["data"] == {"size": "1"}
    assert json.loads(read["response"]["content"]["text"])["data"] == {"size": "1"}
    assert (missing["response"]["status"], missing["response"]["statusText"]) == (404, "Not Found")
    assert json.loads(missing["response"]["content"]["text"])["reason"] == "NotFound"
    assert {"name": "timeoutSeconds", "value": "1"} in watch["request"]["queryString"]
    assert "postData" not in secret["request"]
    for entry in archive["entries"]:
        assert entry["time"] == sum(entry["timings"].values())


def test_a_refusal_has_its_answer_and_size(requests: RequestList) -> None:
    refused = requests[2]
    assert refused.answer["message"] == refused.message == 'configmaps "none" not found'
    assert refused.response_bytes == len(json.dumps(refused.answer, separators=(",", ":")))


def test_audit_events_are_those_of_the_servers_own_log(tmp_path: Path) -> None:
    """Both are made of the same requests; the log's policy is to log all bodies."""
    policy, own_log = tmp_path / "policy.yaml", tmp_path / "audit.log"
    rules = [
        {"level": "Metadata", "resources": [{"resources": ["secrets"]}]},
        {"level": "RequestResponse", "omitStages": ["RequestReceived"]},
    ]
    policy.write_text(json.dumps({"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": rules}))
    audit = AuditOptions(policy, LogOptions(path=str(own_log)))
    with Cluster.from_config(Config(controllers=(), audit=audit, kept_requests=100)) as cluster:
        client = Client(cluster)
        client.status("POST", CONFIG_MAPS, {"metadata": {"name": "a"}, "data": {"size": "1"}})
        client.status("GET", f"{CONFIG_MAPS}/none")
        client.status("PUT", f"{CONFIG_MAPS}/a", {"metadata": {"name": "a", "resourceVersion": "1"}})
        client.status("POST", SECRETS, {"metadata": {"name": "s"}, "stringData": {"k": "hidden"}})
        client.status("DELETE", f"{CONFIG_MAPS}/a")
        ours = cluster.requests.all().audit_events()
    theirs = [json.loads(line) for line in own_log.read_text().splitlines()]
    theirs = [
        event
        for event in theirs
        if event["userAgent"].startswith("Python-urllib") and event["stage"] != "RequestReceived"
    ]
    assert [*map(outline, ours)] == [*map(outline, theirs)]


def outline(event: dict[str, object]) -> dict[str, object]:
    compared = (
        "kind",
        "apiVersion",
        "level",
        "stage",
        "requestURI",
        "verb",
        "sourceIPs",
        "userAgent",
        "responseObject",
    )
    status = event["responseStatus"]
    assert isinstance(status, dict)
    return {name: event.get(name) for name in compared} | {"code": status["code"], "reason": status.get("reason")}


@pytest.mark.parametrize(
    ("method", "path", "body", "content_type"),
    [
        ("GET", CONFIG_MAPS, None, ""),
        ("GET", "/api/v1/configmaps?watch=true&timeoutSeconds=1", None, ""),
        ("POST", CONFIG_MAPS, {"metadata": {"name": "b"}}, ""),
        ("PATCH", f"{CONFIG_MAPS}/c", {"apiVersion": "v1", "kind": "ConfigMap"}, APPLY),
        ("PUT", f"{LEASES}/l", {"metadata": {"name": "l"}}, ""),
        ("GET", "/api/v1/nodes", None, ""),
        ("GET", "/metrics", None, ""),
        ("GET", "/apis", None, ""),
    ],
)
def test_roles_of_requests_are_those_that_the_authorizers_saw(
    method: str, path: str, body: object, content_type: str, cluster: Cluster
) -> None:
    mark = cluster.requests.mark()
    cluster.rbac.forget()
    query = "&fieldManager=x" if "?" in path else "?fieldManager=x"
    Client(cluster).status(method, path + query * bool(content_type), body, content_type or "application/json")
    assert cluster.requests.since(mark).roles() == cluster.rbac.used()


def test_roles_are_written_as_yaml(requests: RequestList, tmp_path: Path) -> None:
    requests.roles("operator", path=tmp_path / "roles.yaml")
    [role] = yaml.safe_load_all((tmp_path / "roles.yaml").read_text())
    assert role["metadata"] == {"name": "operator", "namespace": "default"}
    assert role["rules"] == [
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create", "get", "watch"]},
        {"apiGroups": [""], "resources": ["secrets"], "verbs": ["create"]},
    ]


def test_generated_names_are_numbered_in_transcripts(cluster: Cluster) -> None:
    client, mark = Client(cluster), cluster.requests.mark()
    names = [client.ask("POST", CONFIG_MAPS, {"metadata": {"generateName": "web-"}})["metadata"]["name"] for _ in "ab"]
    client.status("GET", f"{CONFIG_MAPS}/{names[1]}", accept=PROTOBUF)
    client.status("DELETE", f"{CONFIG_MAPS}/{names[0]}")
    client.status("GET", f"{CONFIG_MAPS}/{names[0]}")
    lines = cluster.requests.since(mark).transcript().splitlines()
    assert [line.removeprefix("Python-urllib ") for line in lines] == [
        "create configmaps default/web-<1> -> 201",
        "create configmaps default/web-<2> -> 201",
        "get configmaps default/web-<2> -> 200",
        "delete configmaps default/web-<1> -> 200",
        "get configmaps default/web-<1> -> 404 NotFound",
    ]
