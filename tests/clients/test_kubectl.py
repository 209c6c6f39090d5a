"""Sessions with an unmodified kubectl, as people type them."""

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from fakeapiserver import Cluster

# kubectl prints what was written: no controller writes
pytestmark = pytest.mark.fake_cluster(controllers=())

MANIFESTS = """\
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: c, image: "nginx:1", ports: [{containerPort: 80}], resources: {requests: {cpu: 100m}}}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {selector: {app: web}, ports: [{port: 80}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: conf, namespace: shop}
data: {a: "1"}
"""

CRD = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, kind: Widget, shortNames: [wd]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}, scale: {specReplicasPath: .spec.size, statusReplicasPath: .status.size}}
    additionalPrinterColumns: [{name: Size, type: integer, jsonPath: .spec.size}]
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {size: {type: integer, minimum: 1}, color: {type: string, default: red}}}
          status: {type: object, properties: {size: {type: integer}}}
"""

Kubectl = Callable[..., subprocess.CompletedProcess[str]]


def programs() -> list[str]:
    """The kubectl on the PATH, and the one among envtest's assets where KUBEBUILDER_ASSETS names them."""
    assets = os.environ.get("KUBEBUILDER_ASSETS", "")
    found = [shutil.which("kubectl") or "", shutil.which("kubectl", path=assets) or "" if assets else ""]
    return list(dict.fromkeys(filter(None, found)))


@pytest.fixture(params=programs() or [pytest.param("", marks=pytest.mark.skip(reason="no kubectl on the PATH"))])
def kubectl(request: pytest.FixtureRequest, fake_cluster: Cluster, tmp_path: Path) -> Kubectl:
    """Runs kubectl against a fresh cluster; fails the test when kubectl fails, unless `fails=True`."""

    def run(*words: str, stdin: str = "", fails: bool = False, **environment: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [request.param, *words],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            cwd=tmp_path,
            env={**os.environ, "HOME": str(tmp_path), **environment},
        )
        assert bool(done.returncode) == fails, f"kubectl {' '.join(words)}: {done.stdout}{done.stderr}"
        return done

    return run


@pytest.fixture
def shop(kubectl: Kubectl, tmp_path: Path) -> Kubectl:
    """A cluster with the manifests applied."""
    (tmp_path / "all.yaml").write_text(MANIFESTS)
    kubectl("apply", "-f", "all.yaml")
    return kubectl


def test_apply_creates_then_leaves_unchanged(shop: Kubectl) -> None:
    again = shop("apply", "-f", "all.yaml").stdout.splitlines()
    assert [line.rpartition(" ")[2] for line in again] == ["unchanged"] * 4


def test_server_side_apply_conflicts_and_force(shop: Kubectl) -> None:
    changed = 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: conf, namespace: shop}\ndata: {a: "2"}\n'
    me = ["apply", "--server-side", "--field-manager=me", "-f", "-"]
    refused = shop(*me, stdin=changed, fails=True)
    assert 'conflict with "kubectl-client-side-apply" using v1: .data.a' in refused.stderr
    shop(*me, "--force-conflicts", stdin=changed)
    assert shop("get", "cm", "conf", "-n", "shop", "-o", "jsonpath={.data.a}").stdout == "2"


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["get", "deploy", "-n", "shop"], "web    0/2     0            0"),
        (["get", "deploy", "-n", "shop", "-o", "wide"], "nginx:1"),
        (["get", "svc", "-n", "shop"], "ClusterIP"),
        (["get", "cm", "-A"], "shop          conf"),
        (["get", "cm", "-n", "shop", "-o", "name"], "configmap/conf"),
        (["get", "cm", "conf", "-n", "shop", "-o", "yaml"], "kind: ConfigMap"),
        (["get", "cm", "-n", "shop", "-o", "custom-columns=N:.metadata.name"], "conf"),
        (["get", "deploy", "-n", "shop", "-l", "app=web", "-o", "name"], "deployment.apps/web"),
        (["get", "cm", "-n", "shop", "--field-selector", "metadata.name=conf", "-o", "name"], "configmap/conf"),
        (["get", "cm", "-A", "--chunk-size=1", "-o", "name"], "configmap/conf"),
        (["get", "all", "-n", "shop"], "service/web"),
        (["describe", "deploy", "web", "-n", "shop"], "RollingUpdateStrategy:  25% max unavailable, 25% max surge"),
        (["describe", "svc", "web", "-n", "shop"], "TargetPort:"),
        (["explain", "deployment.spec.replicas"], "replicas <integer>"),
        (["api-versions"], "rbac.authorization.k8s.io/v1"),
        (["api-resources"], "deployments"),
        (["auth", "can-i", "create", "pods"], "yes"),
        (["auth", "can-i", "--list"], "*.*"),
        (["auth", "whoami"], "kubernetes-admin"),
        (["version"], "Server Version: v1.37.2"),
        (["get", "--raw", "/readyz?verbose"], "readyz check passed"),
        (["diff", "-f", "all.yaml"], ""),
        (["wait", "--for=jsonpath={.data.a}=1", "cm/conf", "-n", "shop", "--timeout=60s"], "condition met"),
        (["rollout", "history", "deploy/web", "-n", "shop"], "deployment.apps/web"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_reads(shop: Kubectl, words: list[str], shown: str) -> None:
    assert shown in shop(*words).stdout


@pytest.mark.parametrize(
    ("words", "path", "value"),
    [
        (["scale", "deploy", "web", "--replicas=5"], "{.spec.replicas}", "5"),
        (["patch", "deploy", "web", "-p", '{"spec":{"paused":true}}'], "{.spec.paused}", "true"),
        (
            ["patch", "deploy", "web", "--type=merge", "-p", '{"spec":{"minReadySeconds":3}}'],
            "{.spec.minReadySeconds}",
            "3",
        ),
        (
            ["patch", "deploy", "web", "--type=json", "-p", '[{"op":"replace","path":"/spec/replicas","value":7}]'],
            "{.spec.replicas}",
            "7",
        ),
        (["label", "deploy", "web", "tier=front"], "{.metadata.labels.tier}", "front"),
        (["annotate", "deploy", "web", "note=hello"], "{.metadata.annotations.note}", "hello"),
        (["set", "image", "deploy/web", "c=nginx:2"], "{.spec.template.spec.containers[0].image}", "nginx:2"),
        (["set", "env", "deploy/web", "A=b"], "{.spec.template.spec.containers[0].env[0].value}", "b"),
        (["rollout", "pause", "deploy/web"], "{.spec.paused}", "true"),
        (["edit", "deploy", "web"], "{.spec.replicas}", "4"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_changes(shop: Kubectl, tmp_path: Path, words: list[str], path: str, value: str) -> None:
    editor = tmp_path / "editor"
    editor.write_text("#!/bin/sh\nsed -i 's/replicas: 2/replicas: 4/' \"$1\"\n")
    editor.chmod(0o755)
    shop(*words, "-n", "shop", EDITOR=str(editor))
    assert shop("get", "deploy", "web", "-n", "shop", "-o", f"jsonpath={path}").stdout == value


@pytest.mark.parametrize(
    "words",
    [
        ["namespace", "n1"],
        ["configmap", "c1", "--from-literal=a=b"],
        ["secret", "generic", "s1", "--from-literal=a=b"],
        ["deployment", "d1", "--image=nginx"],
        ["service", "clusterip", "v1", "--tcp=80"],
        ["serviceaccount", "a1"],
        ["role", "r1", "--verb=get", "--resource=pods"],
        ["clusterrolebinding", "b1", "--clusterrole=view", "--user=jane"],
        ["job", "j1", "--image=busybox"],
        ["cronjob", "k1", "--image=busybox", "--schedule=* * * * *"],
        ["ingress", "i1", "--rule=example.com/=web:80"],
        ["quota", "q1", "--hard=pods=3"],
        ["poddisruptionbudget", "p1", "--selector=app=web", "--min-available=1"],
        ["priorityclass", "pc1", "--value=10"],
    ],
    ids=lambda words: words[0],
)
def test_create(kubectl: Kubectl, words: list[str]) -> None:
    assert kubectl("create", *words).stdout.endswith(" created\n")
    refused = kubectl("create", *words, fails=True)
    assert "already exists" in refused.stderr


def test_run_and_expose(kubectl: Kubectl) -> None:
    kubectl("run", "p1", "--image=nginx", "--port=80")
    kubectl("expose", "pod", "p1")
    assert kubectl("get", "pod", "p1", "-o", "jsonpath={.status.phase}").stdout == "Pending"
    assert kubectl("get", "svc", "p1", "-o", "jsonpath={.spec.ports[0].port}").stdout == "80"


def test_delete_waits_until_it_is_gone(shop: Kubectl) -> None:
    shop("delete", "cm", "conf", "-n", "shop", "--wait")
    gone = shop("get", "cm", "conf", "-n", "shop", fails=True)
    assert gone.stderr == 'Error from server (NotFound): configmaps "conf" not found\n'


def test_delete_of_a_file(shop: Kubectl) -> None:
    shop("delete", "-f", "all.yaml", "--wait=false")
    assert "Terminating" in shop("get", "ns", "shop").stdout


def test_watch_shows_changes(shop: Kubectl) -> None:
    shown = shop("get", "cm", "-n", "shop", "-w", "--request-timeout=2s", fails=False).stdout
    assert "conf" in shown


def test_kustomize(kubectl: Kubectl, tmp_path: Path) -> None:
    (tmp_path / "all.yaml").write_text(MANIFESTS)
    (tmp_path / "kustomization.yaml").write_text("resources: [all.yaml]\nnameSuffix: -x\n")
    kubectl("apply", "-k", ".")
    assert kubectl("get", "deploy", "-A", "-o", "name").stdout == "deployment.apps/web-x\n"


def test_a_custom_resource_from_definition_to_table(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=CRD)
    kubectl("wait", "--for=condition=established", "crd/widgets.example.com", "--timeout=60s")
    widget = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: w}\nspec: {size: 2}\n"
    kubectl("apply", "-f", "-", stdin=widget)
    assert kubectl("get", "wd", "w", "-o", "jsonpath={.spec.color}").stdout == "red"
    assert kubectl("get", "wd").stdout.split() == ["NAME", "SIZE", "w", "2"]
    kubectl("scale", "widget", "w", "--replicas=3")
    assert kubectl("get", "wd", "w", "-o", "jsonpath={.spec.size}").stdout == "3"
    assert "size" in kubectl("explain", "widget.spec").stdout
    refused = kubectl("apply", "-f", "-", stdin=widget.replace("size: 2", "size: 0"), fails=True)
    assert "spec.size in body should be greater than or equal to 1" in refused.stderr
    kubectl("delete", "crd", "widgets.example.com")
    kubectl("get", "widgets", fails=True)


@pytest.mark.parametrize(
    ("manifest", "complaint"),
    [
        ("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: Big}\n", "a lowercase RFC 1123 subdomain must consist of"),
        (
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: 1}\n",
            "cannot unmarshal number into Go struct field",
        ),
        ("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\nfoo: 1\n", 'unknown field "foo"'),
        (
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: nowhere}\n",
            'namespaces "nowhere" not found',
        ),
    ],
)
def test_bad_manifests_are_refused_as_upstream_words_it(kubectl: Kubectl, manifest: str, complaint: str) -> None:
    assert complaint in kubectl("create", "-f", "-", stdin=manifest, fails=True).stderr


def test_answers_as_json(shop: Kubectl) -> None:
    found = json.loads(shop("get", "deploy,svc,cm", "-n", "shop", "-o", "json").stdout)
    assert sorted(item["kind"] for item in found["items"]) == ["ConfigMap", "Deployment", "Service"]
