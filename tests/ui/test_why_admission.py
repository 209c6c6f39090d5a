"""The rules of "why" for requests that admission refuses: webhooks, Pod Security, policies, limit ranges, quotas; and lost races."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any, Final

import pytest

from conformance.players.tls_server import TLSServer
from fakeapiserver import Cluster
from tests.ui.causes import causes, problems, shown
from tests.ui.clients import NamedClient, deployment

ADMISSION: Final = "/apis/admissionregistration.k8s.io/v1"
POLICY: Final = {
    "metadata": {"name": "names"},
    "spec": {
        "failurePolicy": "Fail",
        "matchConstraints": {
            "resourceRules": [
                {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE"]}
            ]
        },
        "validations": [{"expression": "object.metadata.name != 'bad'", "message": "bad is no good name"}],
    },
}
LIMITS: Final = {
    "type": "Container",
    "max": {"cpu": "500m"},
    "min": {"memory": "16Mi"},
    "maxLimitRequestRatio": {"cpu": "2"},
}


class Denying(BaseHTTPRequestHandler):
    """Denies everything, with the status that its path names."""

    def do_POST(self) -> None:
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        status = {"code": int(self.path.strip("/").partition("?")[0]), "message": "the image has no digest"}
        response = {"uid": review["request"]["uid"], "allowed": False, "status": status}
        body = json.dumps({**review, "request": None, "response": response}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Prints nothing."""


def webhook(namespace: str, resource: str, url: str, authority: str) -> dict[str, Any]:
    """A configuration for one resource of a namespace."""
    hook = {
        "name": f"{namespace}.example.com",
        "clientConfig": {"url": url, "caBundle": authority},
        "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": [resource]}],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
    }
    return {"metadata": {"name": f"hooks-{namespace}"}, "webhooks": [hook]}


def pod(name: str, resources: Mapping[str, Any] | None = None, **spec: str) -> dict[str, Any]:
    container = {"name": "c", "image": "nginx", "resources": resources or {}}
    return {"metadata": {"name": name}, "spec": {"containers": [container], **spec}}


@contextmanager
def refusing(hook: TLSServer) -> Iterator[Cluster]:
    """A cluster in which each client's last request has been refused."""
    with Cluster(nodes=1, ui=True) as cluster:
        admin = NamedClient(cluster, "setup")

        def send(path: str, body: object) -> None:
            answer = admin.send("POST", path, body)
            assert answer["kind"] != "Status", answer

        for name in ("bounded", "guarded", "plain", "closed", "counted"):
            send("/api/v1/namespaces", {"metadata": {"name": name}})
        strict = {"name": "strict", "labels": {"pod-security.kubernetes.io/enforce": "restricted"}}
        send("/api/v1/namespaces", {"metadata": strict})
        send("/api/v1/namespaces/bounded/limitranges", {"metadata": {"name": "bounds"}, "spec": {"limits": [LIMITS]}})
        counted = {"metadata": {"name": "compute"}, "spec": {"hard": {"requests.cpu": "1"}}}
        send("/api/v1/namespaces/counted/resourcequotas", counted)
        send(f"{ADMISSION}/validatingadmissionpolicies", POLICY)
        binding = {"policyName": "names", "validationActions": ["Deny"]}
        send(f"{ADMISSION}/validatingadmissionpolicybindings", {"metadata": {"name": "everywhere"}, "spec": binding})
        hooks = f"{ADMISSION}/validatingwebhookconfigurations"
        address = f"https://127.0.0.1:{hook.port}"
        send(hooks, webhook("guarded", "pods", f"{address}/403", hook.ca_bundle))
        send(hooks, webhook("plain", "limitranges", f"{address}/400", hook.ca_bundle))
        send(hooks, webhook("closed", "services", "https://127.0.0.1:1", hook.ca_bundle))
        cluster.settle()
        for namespace in ("strict", "guarded"):
            send(f"/apis/apps/v1/namespaces/{namespace}/deployments", deployment("web", 2))
        cluster.settle()
        resources = {"limits": {"cpu": "1"}, "requests": {"cpu": "100m", "memory": "8Mi"}}
        service = {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}}
        for client, path, body in (
            ("limited", "bounded/pods", pod("p", resources)),
            ("secured", "strict/pods", pod("p")),
            ("policed", "default/configmaps", {"metadata": {"name": "bad"}}),
            ("denied", "plain/limitranges", {"metadata": {"name": "l"}, "spec": {"limits": []}}),
            ("unheard", "closed/services", service),
            ("lost", "nowhere/configmaps", {"metadata": {"name": "a"}}),
            ("uncounted", "counted/pods", pod("p")),
            ("nameless", "default/pods", pod("p", serviceAccountName="missing")),
            ("important", "default/pods", pod("p", priorityClassName="missing")),
        ):
            assert NamedClient(cluster, client).send("POST", f"/api/v1/namespaces/{path}", body)["kind"] == "Status"
        outsider = NamedClient(cluster, "outsider", user="jane")
        assert (
            outsider.send("POST", "/api/v1/namespaces/default/configmaps", {"metadata": {"name": "a"}})["code"] == 403
        )
        races(cluster)
        yield cluster


def races(cluster: Cluster) -> None:
    """`late` writes an old state of an object, and `applier` a field of another manager's."""
    path = "/api/v1/namespaces/default/configmaps"
    created = NamedClient(cluster, "setup").send("POST", path, {"metadata": {"name": "raced"}, "data": {"a": "0"}})
    late = NamedClient(cluster, "late")
    late.send("GET", f"{path}/raced")
    NamedClient(cluster, "faster").merge(f"{path}/raced", {"data": {"a": "1"}})
    assert late.send("PUT", f"{path}/raced", created)["reason"] == "Conflict"
    applied = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "raced"}, "data": {"a": "2"}}
    applier = NamedClient(cluster, "applier")
    answer = applier.send("PATCH", f"{path}/raced?fieldManager=applier", applied, "application/apply-patch+yaml")
    assert answer["reason"] == "Conflict", answer


@pytest.fixture(scope="module")
def page(browser: Any) -> Iterator[Any]:
    with TLSServer(Denying) as hook, refusing(hook) as cluster, shown(browser, cluster) as page:
        yield page


@pytest.mark.parametrize(
    ("client", "sentences"),
    [
        (
            "limited",
            [
                "An admission plugin refuses the request; RBAC allowed it.",
                "LimitRange bounds sets a minimum of 16Mi memory per Container: request is 8Mi.",
                "LimitRange bounds sets a maximum of 500m cpu per Container: limit is 1.",
                "LimitRange bounds sets a maximum of 2 for the ratio of limit to request of cpu per Container: provided ratio is 10.",
            ],
        ),
        (
            "secured",
            ["Namespace strict enforces the Pod Security Standard restricted:latest: allowPrivilegeEscalation"],
        ),
        (
            "policed",
            [
                "An admission policy refuses the request.",
                "ValidatingAdmissionPolicy names, in force by binding everywhere, denied it: bad is no good name",
            ],
        ),
        (
            "denied",
            [
                "An admission webhook refuses the request.",
                "Admission webhook plain.example.com of ValidatingWebhookConfiguration hooks-plain denied it: the image has no digest",
            ],
        ),
        (
            "unheard",
            [
                "An admission webhook is to judge the request, and can't be called.",
                "Admission webhook closed.example.com of ValidatingWebhookConfiguration hooks-closed could not be called, "
                "and its failurePolicy is Fail: failed to call webhook: Post",
            ],
        ),
        ("lost", ["Namespace nowhere does not exist."]),
        ("uncounted", ["ResourceQuota compute limits what the containers don't state: requests.cpu for: c."]),
        ("nameless", ["ServiceAccount missing does not exist in namespace default."]),
        ("important", ["PriorityClass missing does not exist."]),
        (
            "outsider",
            [
                "jane may not do this: no role is bound to it.",
                "No RBAC rule lets jane create configmaps in namespace default.",
                "No RoleBinding or ClusterRoleBinding for namespace default names jane itself.",
            ],
        ),
        (
            "late",
            [
                "The object is not as the client thought it is.",
                "After late had read the object, faster wrote it (request",
            ],
        ),
        ("applier", ["1 field of the applied configuration belongs to", ".data.a"]),
    ],
)
def test_why_a_request_was_refused(page: Any, client: str, sentences: list[str]) -> None:
    found = causes(page, {"refused": client})
    for sentence in sentences:
        assert any(sentence in text for text in found), json.dumps(found, indent=1)


@pytest.mark.parametrize(
    ("namespace", "sentence"),
    [
        ("strict", "Namespace strict enforces the Pod Security Standard restricted:latest"),
        ("guarded", "Admission webhook guarded.example.com of ValidatingWebhookConfiguration hooks-guarded denied it"),
    ],
)
def test_why_a_deployment_has_no_pods(page: Any, namespace: str, sentence: str) -> None:
    found = causes(page, {"r": "deployments.apps", "ns": namespace, "name": "web"})
    assert any(sentence in text for text in found), json.dumps(found, indent=1)
    assert any(sentence in text for text in problems(page)), "it is found without being asked for, too"
