"""The webhook that is asked about images: what it is asked, what becomes of its answers, and configurations that won't do."""

import json
import re
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from conformance.exchange import Client
from conformance.players.tls_server import TLSServer
from fakeapiserver.admission.interfaces import Initializer
from fakeapiserver.admission.plugins.imagepolicywebhook import ImagePolicyWebhook
from fakeapiserver.testing.background import running_server

Json = dict[str, Any]
PODS = "/api/v1/namespaces/default/pods"


class Backend(TLSServer):
    """Sends `status` as the answer to each review; if `status` is bytes, sends these with the status code `code`."""

    def __init__(self) -> None:
        self.asked: list[Json] = []
        self.code = 200
        self.status: Json | bytes = {"allowed": True}
        super().__init__(_handler(self))

    def kubeconfig(self, path: Path) -> Path:
        cluster = {"server": f"https://127.0.0.1:{self.port}/review", "certificate-authority-data": self.ca_bundle}
        config = {
            "clusters": [{"name": "c", "cluster": cluster}],
            "users": [{"name": "u", "user": {"token": "secret"}}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "x",
        }
        path.write_text(json.dumps(config))
        return path


def _handler(backend: Backend) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            backend.asked.append({"authorization": self.headers["Authorization"], **review})
            answer = backend.status
            if isinstance(answer, dict):
                answer = json.dumps({**review, "status": answer}).encode()
            self.send_response(backend.code)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *arguments: Any) -> None:
            pass

    return Handler


@pytest.fixture
def backend() -> Iterator[Backend]:
    with Backend() as started:
        yield started


Create = Callable[..., tuple[int, str]]


@pytest.fixture
def create(backend: Backend, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Create]:
    """POST of a pod with these images and annotations: status and message. A parameter is the plugin's own configuration."""
    policy = {"kubeConfigFile": str(backend.kubeconfig(tmp_path / "kubeconfig")), "retryBackoff": 1}
    policy |= getattr(request, "param", {})
    plugin = {"name": "ImagePolicyWebhook", "configuration": {"imagePolicy": policy}}
    file = tmp_path / "admission.json"
    document = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration", "plugins": [plugin]}
    file.write_text(json.dumps(document))
    options = {"admission_control_config_file": file, "enable_admission_plugins": ("ImagePolicyWebhook",)}
    with running_server(**options) as server:
        client = Client(server.url, server.admin_token)

        def create(*images: str, **annotations: str) -> tuple[int, str]:
            spec = {"containers": [{"name": f"c{i}", "image": image} for i, image in enumerate(images)]}
            body = {"metadata": {"generateName": "p-", "annotations": annotations}, "spec": spec}
            answer = client.send({"method": "POST", "path": PODS, "body": body}, [])
            return answer["status"], answer["body"].get("message", "")

        yield create


def test_what_the_webhook_is_asked(create: Create, backend: Backend) -> None:
    assert create("one", "two", **{"a.image-policy.k8s.io/ticket": "7", "other": "x"})[0] == 201
    (review,) = backend.asked
    assert review["authorization"] == "Bearer secret"
    assert review["spec"] == {
        "containers": [{"image": "one"}, {"image": "two"}],
        "annotations": {"a.image-policy.k8s.io/ticket": "7"},
        "namespace": "default",
    }


def test_answers_are_remembered_by_the_question(create: Create, backend: Backend) -> None:
    for _ in range(3):
        create("one")
    assert len(backend.asked) == 1
    create("two")
    assert len(backend.asked) == 2


@pytest.mark.parametrize("create", [{"allowTTL": -1, "denyTTL": -1}], indirect=True)
def test_answers_need_not_be_remembered(create: Create, backend: Backend) -> None:
    for _ in range(3):
        create("one")
    assert len(backend.asked) == 3


@pytest.mark.parametrize(
    ("code", "status", "message"),
    [
        (200, {"allowed": False}, "one or more images rejected by webhook backend"),
        (200, {"allowed": False, "reason": "old"}, "image policy webhook backend denied one or more images: old"),
        (
            200,
            {"allowed": "no"},
            "json: cannot unmarshal string into Go struct field ImageReviewStatus.status.allowed of type bool",
        ),
        (200, b"", "0-length response with status code: 200 and content type: application/json"),
        (404, b"no", "the server could not find the requested resource"),
    ],
)
def test_what_forbids_a_pod(create: Create, backend: Backend, code: int, status: Json | bytes, message: str) -> None:
    backend.code, backend.status = code, status
    answered, text = create("one")
    assert (answered, text.partition(" is forbidden: ")[2]) == (403, message)


@pytest.mark.parametrize("create", [{"defaultAllow": True}], indirect=True)
def test_failures_can_be_taken_for_a_yes(create: Create, backend: Backend) -> None:
    backend.code, backend.status = 404, b"no"
    assert create("one") == (201, "")


_RANGE = "valid value is between {} and {}, got {}"


@pytest.mark.parametrize(
    ("policy", "complaint"),
    [
        (None, "no config specified"),
        (
            {},
            "invalid configuration: no configuration has been provided, try setting KUBERNETES_MASTER environment variable",
        ),
        ({"kubeConfigFile": "/no/such"}, "stat /no/such: no such file or directory"),
        ({"allowTTL": 5000}, _RANGE.format("1s", "30m0s", "1h23m20s")),
        ({"denyTTL": -5}, _RANGE.format("1s", "30m0s", "-5s")),
        ({"retryBackoff": 600_000}, _RANGE.format("1ns", "5m0s", "10m0s")),
        (
            {"allowTTL": "30s"},
            "json: cannot unmarshal string into Go struct field imagePolicyWebhookConfig.imagePolicy.allowTTL of type time.Duration",
        ),
        (
            {"allowTTL": 1.5},
            "json: cannot unmarshal number 1.5 into Go struct field imagePolicyWebhookConfig.imagePolicy.allowTTL of type time.Duration",
        ),
        (
            {"defaultAllow": "yes"},
            "json: cannot unmarshal string into Go struct field imagePolicyWebhookConfig.imagePolicy.defaultAllow of type bool",
        ),
    ],
)
def test_configurations_that_will_not_do(policy: Json | None, complaint: str) -> None:
    configuration = {} if policy is None else {"ImagePolicyWebhook": {"imagePolicy": policy}}
    with pytest.raises(ValueError, match=re.escape(complaint)):
        ImagePolicyWebhook(Initializer(getter=None, configuration=configuration))  # type: ignore[arg-type]
