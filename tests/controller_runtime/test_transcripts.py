"""The examples, as kubectl shows them: run as a ServiceAccount that has the generated roles and nothing else, with their webhooks.

`transcripts/` holds what was seen on a real server; every server must show the same. FAKEAPISERVER_REFERENCE_KUBECONFIG names a real
one to run them on too; with FAKEAPISERVER_RECORD set, what it shows is written down. Names, times and numbers that servers choose are
left out.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import yaml

from fakeapiserver import Cluster
from fakeapiserver.client import synchronous, wait
from fakeapiserver.client.errors import StatusError
from fakeapiserver.server.projects.local_webhooks import LocalWebhooks

EXAMPLES = Path(__file__).parent.parent / "examples"
TRANSCRIPTS = Path(__file__).parent / "transcripts"
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(EXAMPLES.parent.parent), "PYTHONDONTWRITEBYTECODE": "1"}
pytestmark = [
    pytest.mark.timeout(300),  # programs are started
    pytest.mark.skipif(shutil.which("kubectl") is None, reason="there is no kubectl on this machine"),
]
# What a pod would need that runs the operator, or cert-manager.
NOT_INSTALLED = ("Deployment", "Certificate", "Issuer", "Service")
CHOSEN = (
    (r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "UID"),
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "TIME"),
    (r"(?<=resourceVersion: )\"\d+\"", "VERSION"),
    (r"https://127\.0\.0\.1:\d+", "SERVER"),  # whose port may look like a service's
    (r"\b10\.\d+\.\d+\.\d+\b", "ADDRESS"),
    (r"(?<=:|\s)3\d{4}\b", "PORT"),
    (r"(?<=-)\d{10}\b", "MOMENT"),
    (r"(?<=\s)(\d+[smh])+(?=\s|$)", "AGE"),
    (r"(?<=[^\n ]) {2,}", "  "),
    (r" from \w+ namespace", ""),  # newer kubectls say it
)


@pytest.fixture(params=["fake", "real"])
def server(request: pytest.FixtureRequest) -> Iterator[str]:
    """Path of a kubeconfig."""
    if request.param == "real":
        path = os.environ.get("FAKEAPISERVER_REFERENCE_KUBECONFIG")
        if not path:
            pytest.skip("set FAKEAPISERVER_REFERENCE_KUBECONFIG to run the examples on a real server too")
        yield path
    else:
        with Cluster(controllers=(), kubernetes_version="1.36") as cluster:  # as the real one that was looked at
            yield cluster.kubeconfig


class Transcript:
    """The commands of kubectl and their output."""

    def __init__(self, kubeconfig: str) -> None:
        self._kubeconfig = kubeconfig
        self.text = ""

    def __call__(self, *words: str, stdin: str = "") -> None:
        """Runs kubectl, and writes it down."""
        found = self.quiet(*words, stdin=stdin)
        said = (found.stdout + found.stderr).rstrip("\n")
        self.text += f"$ kubectl {' '.join(words)}\n{said}\n"

    def quiet(self, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        command = ["kubectl", "--kubeconfig", self._kubeconfig, *words]
        return subprocess.run(command, input=stdin, capture_output=True, text=True, check=False)

    def normalized(self) -> str:
        text = self.text
        for pattern, word in CHOSEN:
            text = re.sub(pattern, word, text)
        return text


@contextmanager
def installed(client: synchronous.Client, operator: str, webhooks: LocalWebhooks) -> Iterator[str]:
    """Installs what `make deploy` installs, as far as the manager can run here; yields the namespace."""
    command = ["kubectl", "kustomize", str(EXAMPLES / operator / "config/default")]
    built = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    objects = [obj for obj in yaml.safe_load_all(built) if obj["kind"] not in NOT_INSTALLED]
    objects.sort(key=lambda obj: (obj["kind"] != "Namespace", obj["kind"].endswith("WebhookConfiguration")))
    try:
        for obj in objects:
            client.apply(webhooks.localized(obj), field_manager="test", force=True)
            if obj["kind"] == "CustomResourceDefinition":
                name = obj["metadata"]["name"]
                client.resource("crd").until(wait.has_condition("Established"), name=name)
        yield f"{operator.replace('_', '-')}-system"
    finally:
        for obj in reversed(objects):
            if obj["kind"] != "Namespace":  # which only a controller could take away
                group = obj["apiVersion"].rpartition("/")[0]
                resource = f"{obj['kind'].lower()}.{group}".strip(".")
                with suppress(StatusError):
                    client.resource(resource, obj["metadata"].get("namespace", "")).delete(obj["metadata"]["name"])


@contextmanager
def running(kubectl: Transcript, server: str, folder: Path, operator: str, webhooks: LocalWebhooks) -> Iterator[None]:
    """The operator, as the ServiceAccount that it is installed for."""
    name = operator.replace("_", "-")
    token = kubectl.quiet("create", "token", f"{name}-controller-manager", "-n", f"{name}-system").stdout.strip()
    config = yaml.safe_load(Path(server).read_text())
    config["users"] = [{"name": row["name"], "user": {"token": token}} for row in config["users"]]
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(config))
    words = [sys.executable, "-m", operator, "--kubeconfig", str(path), "--health-probe-bind-address=0"]
    served = (EXAMPLES / operator / "config/webhook").exists()
    if served:
        words += ["--webhook-cert-path", webhooks.cert_dir, "--webhook-port", str(webhooks.port)]
    log = folder / "log"
    with (
        log.open("w") as stream,
        subprocess.Popen(words, cwd=EXAMPLES / operator, env=ENVIRONMENT, stdout=stream, stderr=stream) as program,
    ):
        try:
            if served:
                webhooks.wait(60)
            yield
        finally:
            program.terminate()
    assert "Traceback" not in log.read_text(), log.read_text()
    assert "orbidden" not in log.read_text(), log.read_text()


def until(client: synchronous.Client, resource: str, name: str, *path: str | int, value: Any = ...) -> None:
    """Waits until something in an object is there, or has a value."""

    def holds(obj: Any) -> bool:
        for step in path:
            try:
                obj = obj[step]
            except (KeyError, IndexError, TypeError):
                return False
        return bool(obj is not None if value is ... else obj == value)

    client.resource(resource, "default").until(holds, name=name)


def sample(operator: str, name: str, **spec: Any) -> str:
    obj = yaml.safe_load((EXAMPLES / operator / "config/samples" / name).read_text())
    obj["spec"] |= spec
    return yaml.safe_dump(obj)


def welcome(kubectl: Transcript, client: synchronous.Client) -> None:
    """A page, brought back when it is changed; ready when its Deployment is."""
    kind, name = "welcomes.apps.example.com", "welcome-sample"
    kubectl("apply", "-f", "-", stdin=sample("welcome_operator", "apps_v1alpha1_welcome.yaml", replicas=2))
    until(client, kind, name, "status", "conditions", 0, "status", value="False")
    for shown in ("welcomes", "deployments", "services"):
        kubectl("get", shown, name)
    for shown in ("welcome", "deployment", "service"):
        kubectl("get", shown, name, "-o", "yaml")
    kubectl("scale", "deployment", name, "--replicas=7")
    until(client, "deployments", name, "spec", "replicas", value=2)
    kubectl(
        "patch",
        "deployment",
        name,
        "--subresource=status",
        "--type=merge",
        "-p",
        '{"status":{"replicas":2,"readyReplicas":2}}',
    )
    until(client, kind, name, "status", "conditions", 0, "status", value="True")
    kubectl("get", "welcomes")
    kubectl("patch", "welcome", name, "--type=merge", "-p", '{"spec":{"replicas":3}}')
    until(client, kind, name, "status", "observedGeneration", value=2)
    until(client, "deployments", name, "spec", "replicas", value=3)
    kubectl("get", "welcome", name, "-o", "jsonpath={.status}")
    kubectl("apply", "-f", "-", stdin=sample("welcome_operator", "apps_v1alpha1_welcome.yaml", replicas=-1))
    kubectl("get", "events")
    kubectl("delete", "welcome", name)
    for left in ("deployment", "service"):
        kubectl.quiet("delete", left, name, "--ignore-not-found")


def cron_job(kubectl: Transcript, client: synchronous.Client) -> None:
    """Two versions, converted into each other; defaults, refusals, and jobs when they are due."""
    v1, v2, operator = (
        "cronjobs.v1.batch.tutorial.example.com",
        "cronjobs.v2.batch.tutorial.example.com",
        "cronjob_operator",
    )
    kubectl("apply", "-f", "-", stdin=sample(operator, "batch_v2_cronjob.yaml", suspend=True))
    for version in (v1, v2):
        kubectl("get", version, "cronjob-sample-v2")
        kubectl("get", version, "cronjob-sample-v2", "-o", "yaml")
    kubectl("patch", v1, "cronjob-sample-v2", "--type=merge", "-p", '{"spec":{"schedule":"5 4 * * 1"}}')
    kubectl("get", v2, "cronjob-sample-v2", "-o", "jsonpath={.spec.schedule}")
    kubectl("label", v2, "cronjob-sample-v2", "a=b")
    kubectl("get", v1, "-l", "a=b")
    kubectl("apply", "-f", "-", stdin=sample(operator, "batch_v1_cronjob.yaml", schedule="every hour"))
    kubectl("apply", "-f", "-", stdin=sample(operator, "batch_v1_cronjob.yaml", concurrencyPolicy="Sometimes"))
    wanted = sample(operator, "batch_v1_cronjob.yaml", schedule="@every 1s", concurrencyPolicy="Forbid")
    kubectl("apply", "-f", "-", stdin=wanted)
    until(client, v1, "cronjob-sample", "status", "active", 0, "name")
    kubectl("patch", v1, "cronjob-sample", "--type=merge", "-p", '{"spec":{"suspend":true}}')
    kubectl("get", v1, "cronjob-sample", "-o", "yaml")
    kubectl("get", v2, "cronjob-sample")
    kubectl("get", "jobs.batch")
    kubectl("get", "jobs.batch", "-o", "jsonpath={.items[0].metadata.ownerReferences}{.items[0].metadata.annotations}")
    kubectl("delete", v1, "cronjob-sample")
    kubectl("delete", v1, "cronjob-sample-v2")
    kubectl.quiet("delete", "jobs.batch", "--all")


@pytest.mark.slow
@pytest.mark.parametrize(("operator", "story"), [("welcome_operator", welcome), ("cronjob_operator", cron_job)])
def test_an_operator_shows_the_same(
    tmp_path: Path, server: str, operator: str, story: Callable[[Transcript, synchronous.Client], None]
) -> None:
    kubectl = Transcript(server)
    webhooks = LocalWebhooks()
    with (
        synchronous.connect(server) as client,
        installed(client, operator, webhooks),
        running(kubectl, server, tmp_path, operator, webhooks),
    ):
        story(kubectl, client)
    compare(operator, server, kubectl.normalized())


def test_the_pod_printer_shows_the_same(server: str) -> None:
    kubectl = Transcript(server)
    words: Sequence[str] = [sys.executable, "pod_printer.py", server]
    with subprocess.Popen(words, cwd=EXAMPLES, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True) as printer:
        try:
            assert printer.stdout is not None
            lines: list[str] = []
            for name in ("one", "two"):
                kubectl("run", name, "--image=i")
                lines.append(next(line for line in printer.stdout if name in line))
            for name in ("one", "two"):
                kubectl("delete", "pod", name, "--force")
                lines.append(next(line for line in printer.stdout if name in line))
        finally:
            printer.terminate()
    compare("pod_printer", server, kubectl.normalized() + "".join(lines))


def compare(name: str, server: str, found: str) -> None:
    recorded = TRANSCRIPTS / f"{name}.txt"
    if "FAKEAPISERVER_RECORD" in os.environ and server == os.environ.get("FAKEAPISERVER_REFERENCE_KUBECONFIG"):
        recorded.parent.mkdir(exist_ok=True)
        recorded.write_text(found)
    assert found == recorded.read_text()
