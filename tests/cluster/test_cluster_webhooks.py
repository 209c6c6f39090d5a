"""Definitions and webhook configurations that a cluster has from the start, and a webhook server on this machine that they lead to."""

import http.server
import json
import os
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from conformance.exchange import Client
from fakeapiserver import Cluster
from fakeapiserver.cluster.webhooks import Webhooks
from fakeapiserver.server.projects.local_webhooks import LocalWebhooks

Json = dict[str, Any]
CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/{}webhookconfigurations"
WIDGETS = "/apis/shop.example.com/{}/namespaces/default/widgets"

# As controller-gen writes them.
MANIFESTS = """\
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata:
  name: mutating-webhook-configuration
webhooks:
- admissionReviewVersions: [v1]
  clientConfig:
    service: {name: webhook-service, namespace: system, path: /mutate-v1-configmap}
  failurePolicy: Fail
  name: mconfigmap.kb.io
  rules:
  - {apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [configmaps]}
  sideEffects: None
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata:
  name: validating-webhook-configuration
webhooks:
- admissionReviewVersions: [v1]
  clientConfig:
    service: {name: webhook-service, namespace: system, path: /validate-v1-configmap}
  failurePolicy: Fail
  name: vconfigmap.kb.io
  rules:
  - {apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [configmaps]}
  sideEffects: None
"""
# What else lies in such a folder.
KUSTOMIZATION = "resources:\n- manifests.yaml\n- service.yaml\n"
SERVICE = "apiVersion: v1\nkind: Service\nmetadata: {name: webhook-service, namespace: system}\n"

_ANY = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.shop.example.com"},
    "spec": {
        "group": "shop.example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [
            {"name": name, "served": True, "storage": name == "v1", "schema": {"openAPIV3Schema": _ANY}}
            for name in ("v1", "v2")
        ],
        "conversion": {
            "strategy": "Webhook",
            "webhook": {
                "conversionReviewVersions": ["v1"],
                "clientConfig": {"service": {"name": "webhook-service", "namespace": "system", "path": "/convert"}},
            },
        },
    },
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """`config/webhook/` of a project."""
    place = tmp_path / "webhook"
    place.mkdir()
    for name, text in (("manifests.yaml", MANIFESTS), ("kustomization.yaml", KUSTOMIZATION), ("service.yaml", SERVICE)):
        (place / name).write_text(text)
    (place / "README.md").write_text("no manifest")
    return place


class Handler(http.server.BaseHTTPRequestHandler):
    """Labels each object, refuses those called `bad`, converts by changing the version."""

    def do_POST(self) -> None:
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        request, path = review["request"], self.path.partition("?")[0]
        response: Json = {"uid": request["uid"], "allowed": request.get("name") != "bad"}
        if path.startswith("/mutate"):
            label = '[{"op": "add", "path": "/metadata/labels", "value": {"seen": "yes"}}]'
            response |= {"allowed": True, "patchType": "JSONPatch", "patch": _base64(label)}
        if path == "/convert":
            objects = [{**obj, "apiVersion": request["desiredAPIVersion"]} for obj in request["objects"]]
            response = {"uid": request["uid"], "result": {"status": "Success"}, "convertedObjects": objects}
        answer = json.dumps({**review, "request": None, "response": response}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *arguments: Any) -> None:
        pass


def _base64(text: str) -> str:
    import base64

    return base64.b64encode(text.encode()).decode()


@contextmanager
def webhook_server(webhooks: LocalWebhooks | Webhooks) -> Iterator[None]:
    """A webhook server as controller-runtime's: it knows a host, a port and a folder with tls.crt and tls.key."""
    server = http.server.ThreadingHTTPServer((webhooks.host, webhooks.port), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(Path(webhooks.cert_dir) / "tls.crt", Path(webhooks.cert_dir) / "tls.key")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        webhooks.wait(60)
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def send(cluster: Cluster, method: str, path: str, body: Any = None) -> tuple[int, Json]:
    request = {"method": method, "path": path, **({} if body is None else {"body": body})}
    answer = Client(cluster.url, cluster.token).send(request, [])
    return answer["status"], answer["body"]


CONFIGMAPS = "/api/v1/namespaces/default/configmaps"


def test_webhooks_of_a_folder_are_asked_on_this_machine(folder: Path) -> None:
    with Cluster(webhooks=folder) as cluster, webhook_server(cluster.webhooks):
        status, made = send(cluster, "POST", CONFIGMAPS, {"metadata": {"name": "good"}})
        assert (status, made["metadata"]["labels"]) == (201, {"seen": "yes"})
        status, refused = send(cluster, "POST", CONFIGMAPS, {"metadata": {"name": "bad"}})
        assert status == 400
        assert refused["message"] == 'admission webhook "vconfigmap.kb.io" denied the request without explanation'


def test_its_port_is_outside_the_systems_range() -> None:
    """Waits until the webhook server is started, which may be seconds later."""
    one, another = LocalWebhooks(), LocalWebhooks()
    for webhooks in (one, another):
        webhooks.close()
        given = Path("/proc/sys/net/ipv4/ip_local_port_range")
        first, last = map(int, given.read_text().split()) if given.exists() else (32768, 65535)
        assert not first <= webhooks.port <= last
    assert one.port != another.port


def test_until_there_is_a_server_the_failure_policy_decides(folder: Path) -> None:
    with Cluster(webhooks=folder) as cluster:
        status, refused = send(cluster, "POST", CONFIGMAPS, {"metadata": {"name": "good"}})
        assert status == 500
        url = f"{cluster.webhooks.url}/mutate-v1-configmap?timeout=10s"
        assert refused["message"] == (
            f'Internal error occurred: failed calling webhook "mconfigmap.kb.io": failed to call webhook: Post "{url}": '
            f"dial tcp 127.0.0.1:{cluster.webhooks.port}: connect: connection refused"
        )
        with pytest.raises(
            TimeoutError, match=r"^no webhook server at https://127\.0\.0\.1:\d+, with the certificate in "
        ):
            cluster.webhooks.wait(timeout=0.1)


def test_definitions_are_served_and_converted_on_this_machine() -> None:
    with Cluster(crds=DEFINITION) as cluster, webhook_server(cluster.webhooks):
        status, _ = send(
            cluster,
            "POST",
            WIDGETS.format("v2"),
            {"apiVersion": "shop.example.com/v2", "kind": "Widget", "metadata": {"name": "w"}},
        )
        assert status == 201
        status, found = send(cluster, "GET", WIDGETS.format("v1") + "/w")
        assert (status, found["apiVersion"]) == (200, "shop.example.com/v1")


def test_a_fork_calls_a_server_of_its_own(folder: Path) -> None:
    """Both servers would refuse to start at the same port."""
    with (
        Cluster(webhooks=folder, crds=DEFINITION) as cluster,
        webhook_server(cluster.webhooks),
        cluster.fork() as fork,
        fork.fork() as another,
        webhook_server(another.webhooks),
    ):
        widget = {"apiVersion": "shop.example.com/v2", "kind": "Widget", "metadata": {"name": "w"}}
        for each, status in ((another, 201), (fork, 500)):
            assert send(each, "POST", CONFIGMAPS, {"metadata": {"name": "good"}})[0] == status
            assert send(each, "POST", WIDGETS.format("v2"), widget)[0] == status
        assert send(cluster, "GET", f"{CONFIGMAPS}/good")[0] == 404


@pytest.mark.fake_cluster(
    webhooks={
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfigurationList",
        "items": [
            {
                "apiVersion": "admissionregistration.k8s.io/v1",
                "kind": "ValidatingWebhookConfiguration",
                "metadata": {"name": "listed"},
                "webhooks": [
                    {
                        "name": "w.example.com",
                        "clientConfig": {"service": {"name": "s", "namespace": "n"}},
                        "admissionReviewVersions": ["v1"],
                        "sideEffects": "None",
                    }
                ],
            }
        ],
    }
)
def test_the_marker_takes_objects_and_lists(fake_cluster: Cluster) -> None:
    _, found = send(fake_cluster, "GET", CONFIGURATIONS.format("validating") + "/listed")
    client = found["webhooks"][0]["clientConfig"]
    assert client["url"] == f"{fake_cluster.webhooks.url}/"
    assert "service" not in client


def test_the_certificate_is_gone_with_the_cluster(folder: Path) -> None:
    with Cluster(webhooks=[folder / "manifests.yaml"]) as cluster:
        place = Path(cluster.webhooks.cert_dir)
        assert sorted(file.name for file in place.iterdir()) == ["ca.crt", "tls.crt", "tls.key"]
    assert not place.exists()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("kind: [", r"manifests\.yaml: .*yaml: "),
        (
            "apiVersion: admissionregistration.k8s.io/v1beta1\nkind: ValidatingWebhookConfiguration\nmetadata: {name: x}",
            r"ValidatingWebhookConfiguration x: there is only admissionregistration\.k8s\.io/v1, not .*v1beta1",
        ),
        (
            "apiVersion: admissionregistration.k8s.io/v1\nkind: MutatingWebhookConfiguration\nmetadata: {name: x}\n"
            "webhooks: [{name: a.example.com}]",
            r"MutatingWebhookConfiguration x: .* is invalid: .*webhooks\[0\]\.sideEffects: Required value",
        ),
        (
            "apiVersion: admissionregistration.k8s.io/v1\nkind: MutatingWebhookConfiguration\nmetadata: {name: x}\nwebhooks: 5",
            r"MutatingWebhookConfiguration x: ",
        ),
        (
            "apiVersion: admissionregistration.k8s.io/v1\nkind: MutatingWebhookConfiguration\nwebhooks: [5]",
            r"MutatingWebhookConfiguration None: ",
        ),
    ],
)
def test_a_bad_manifest_is_named(folder: Path, text: str, complaint: str) -> None:
    (folder / "manifests.yaml").write_text(text)
    with pytest.raises(ValueError, match=complaint):
        Cluster(webhooks=folder).start()


def test_a_missing_folder_is_named() -> None:
    with pytest.raises(OSError, match="there is no file or folder no/such"):
        Cluster(webhooks="no/such").start()


def test_without_manifests_there_is_nothing_to_serve() -> None:
    with Cluster() as cluster, pytest.raises(ValueError, match="this cluster has no webhooks"):
        _ = cluster.webhooks


def test_run_passes_the_command_the_address_to_serve_at(folder: Path, tmp_path: Path) -> None:
    script = "import os; print(*(os.environ[f'WEBHOOK_{name}'] for name in ('HOST', 'PORT', 'CERT_DIR')))"
    command = [sys.executable, "-m", "fakeapiserver", "run", f"--webhooks={folder}", f"--webhook-cert-dir={tmp_path}"]
    done = subprocess.run([*command, "--", sys.executable, "-c", script], capture_output=True, text=True, check=True)
    host, port, place = done.stdout.split()
    assert (host, place) == ("127.0.0.1", str(tmp_path))
    assert int(port) > 0
    assert os.path.exists(tmp_path / "tls.key")
