"""Manifests and CustomResourceDefinitions that no one here wrote, from published Go modules, applied with kubectl."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from fakeapiserver import Cluster

pytestmark = pytest.mark.slow

# module, folder or file below it, how many CustomResourceDefinitions are in there
CRDS = [
    ("sigs.k8s.io/gateway-api@v1.2.1", "config/crd/experimental", 10),
    ("sigs.k8s.io/cluster-api@v1.9.0", "config/crd/bases", 12),
    ("github.com/prometheus-operator/prometheus-operator@v0.78.2", "example/prometheus-operator-crd", 10),
    ("github.com/kedacore/keda/v2@v2.16.0", "config/crd/bases", 6),
]
INSTALL = ("github.com/argoproj/argo-cd/v2@v2.13.1", "manifests/install.yaml")


@pytest.fixture(scope="module")
def kubectl_path() -> str:
    found = shutil.which("kubectl")
    if found is None:
        pytest.skip("no kubectl on the PATH")
    return found


def module_folder(module: str) -> Path:
    """Returns the folder of a published module in Go's module cache; skips the test if the module isn't available."""
    go = shutil.which("go")
    if go is None:
        pytest.skip("no Go on the PATH to fetch published modules with")
    command = [go, "mod", "download", "-json", module]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd="/", env={**os.environ, "GOFLAGS": "-mod=mod"}
    )
    if done.returncode:
        pytest.skip(f"{module} can't be fetched")
    return Path(json.loads(done.stdout)["Dir"])


def kubectl(program: str, *words: str) -> str:
    done = subprocess.run([program, *words], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("module", "place", "count"), CRDS, ids=lambda value: str(value).rpartition("/")[2])
def test_definitions_of_operators_are_established(
    fake_cluster: Cluster, kubectl_path: str, module: str, place: str, count: int
) -> None:
    folder = module_folder(module) / place
    files = [f"--filename={path}" for path in sorted(folder.glob("*.yaml")) if path.name != "kustomization.yaml"]
    applied = kubectl(kubectl_path, "apply", "--server-side", *files).splitlines()
    definitions = [line for line in applied if line.startswith("customresourcedefinition")]
    assert len(definitions) >= count
    kubectl(kubectl_path, "wait", "--for=condition=established", "crd", "--all", "--timeout=60s")
    served = kubectl(kubectl_path, "get", "--raw", "/apis")
    assert len(json.loads(served)["groups"]) > 20
    kubectl(kubectl_path, "apply", "--server-side", *files)


@pytest.mark.timeout(300)
def test_an_operators_whole_installation(fake_cluster: Cluster, kubectl_path: str) -> None:
    """Deployments, services, roles, network policies, secrets, definitions: applied twice, the second time unchanged."""
    module, place = INSTALL
    path = str(module_folder(module) / place)
    kubectl(kubectl_path, "create", "namespace", "argocd")
    found = []
    for _ in range(2):
        kubectl(kubectl_path, "apply", "--server-side", "-n", "argocd", "-f", path)
        fake_cluster.settle()  # its controllers have done what follows
        kinds = "deploy,sts,svc,cm,secret,sa,role,rolebinding,netpol"
        found.append(json.loads(kubectl(kubectl_path, "get", kinds, "-n", "argocd", "-o", "json")))
    assert found[0] == found[1]
    assert "argocd-server" in kubectl(kubectl_path, "get", "deployments", "-n", "argocd")
