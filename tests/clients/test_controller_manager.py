"""The real kube-controller-manager, which speaks only protobuf to built-in kinds, runs its controllers against this server.

It is looked for where KUBEBUILDER_ASSETS names a folder, and on the PATH.
"""

import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from conformance.exchange import Client
from fakeapiserver import Cluster

PROGRAM = shutil.which(
    "kube-controller-manager", path=f"{os.environ.get('KUBEBUILDER_ASSETS', '')}:{os.environ['PATH']}"
)
SHOP = "/api/v1/namespaces/shop"
TEMPLATE = {
    "metadata": {"labels": {"app": "web"}},
    "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "nginx", "ports": [{"containerPort": 80}]}]},
}
SELECTOR = {"matchLabels": {"app": "web"}}
OBJECTS: list[tuple[str, dict[str, Any]]] = [
    ("/api/v1/nodes", {"metadata": {"name": "n1"}}),
    ("/api/v1/namespaces", {"metadata": {"name": "shop"}}),
    (f"{SHOP}/resourcequotas", {"metadata": {"name": "q"}, "spec": {"hard": {"services": "5"}}}),
    (f"{SHOP}/services", {"metadata": {"name": "web"}, "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}}),
    (
        "/apis/apps/v1/namespaces/shop/deployments",
        {"metadata": {"name": "web"}, "spec": {"replicas": 2, "selector": SELECTOR, "template": TEMPLATE}},
    ),
    (
        "/apis/policy/v1/namespaces/shop/poddisruptionbudgets",
        {"metadata": {"name": "web"}, "spec": {"minAvailable": 1, "selector": SELECTOR}},
    ),
]
READY = [{"type": "Ready", "status": "True"}]
# Log lines that show that the two don't understand each other.
MISUNDERSTANDING = re.compile(
    r"proto: |unable to decode|unexpected EOF|failed to (watch|list)|cannot be handled|panic", re.I
)

pytestmark = [
    pytest.mark.skipif(PROGRAM is None, reason="no kube-controller-manager in KUBEBUILDER_ASSETS or on the PATH"),
]


@pytest.fixture
def api(fake_cluster: Cluster) -> Client:
    return Client(fake_cluster.url, fake_cluster.token)


@pytest.fixture
def manager_log(fake_cluster: Cluster, tmp_path: Path) -> Iterator[Path]:
    """The manager, running with every controller; what it logs must show no misunderstanding."""
    assert PROGRAM is not None
    log, key = tmp_path / "manager.log", tmp_path / "sa.key"
    subprocess.run(["openssl", "genrsa", "-out", key, "2048"], check=True, capture_output=True)
    kubeconfig = fake_cluster.kubeconfig
    flags = [f"--{name}kubeconfig={kubeconfig}" for name in ("", "authentication-", "authorization-")]
    flags += ["--controllers=*", "--secure-port=0", f"--service-account-private-key-file={key}"]
    with log.open("w") as out, subprocess.Popen([PROGRAM, *flags], stderr=out) as manager:
        yield log
        manager.terminate()
    misunderstood = [line for line in log.read_text().splitlines() if MISUNDERSTANDING.search(line)]
    assert not misunderstood, "\n".join(misunderstood[:10])


def eventually(ask: Callable[[], object], expected: object, seconds: float = 60.0) -> None:
    """Controllers work in their own time: asks again until the answer is the expected one."""
    deadline = time.monotonic() + seconds
    while (found := ask()) != expected:
        assert time.monotonic() < deadline, f"{found!r} instead of {expected!r}"
        time.sleep(0.05)


@pytest.mark.usefixtures("manager_log")
def test_controllers_do_their_work(api: Client) -> None:
    """A Deployment gets its ReplicaSet and Pods, a Service its EndpointSlice; owned objects go with their owner, and a
    namespace with all that is in it."""

    def read(path: str) -> Any:
        return api.send({"method": "GET", "path": path}, []).get("body", {})

    def items(path: str) -> list[Any]:
        return list(read(path).get("items", ()))

    for path, obj in OBJECTS:
        assert api.send({"method": "POST", "path": path, "body": obj}, [])["status"] == 201, path
    eventually(lambda: len(items(f"{SHOP}/pods")), 2)
    for number, pod in enumerate(items(f"{SHOP}/pods"), 7):
        status = {
            "phase": "Running",
            "conditions": READY,
            "podIP": f"10.1.0.{number}",
            "podIPs": [{"ip": f"10.1.0.{number}"}],
        }
        path = f"{SHOP}/pods/{pod['metadata']['name']}/status"
        merge = {"method": "PATCH", "path": path, "type": "application/merge-patch+json", "body": {"status": status}}
        assert api.send(merge, [])["status"] == 200
    web = "/apis/apps/v1/namespaces/shop/deployments/web"
    eventually(lambda: read(web)["status"].get("availableReplicas"), 2)
    slices = "/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices"
    eventually(
        lambda: sorted(
            address
            for found in items(slices)
            for endpoint in found["endpoints"] or ()
            for address in endpoint["addresses"]
        ),
        ["10.1.0.7", "10.1.0.8"],
    )
    eventually(
        lambda: read("/apis/policy/v1/namespaces/shop/poddisruptionbudgets/web")["status"]["disruptionsAllowed"], 1
    )
    eventually(lambda: read(f"{SHOP}/resourcequotas/q")["status"].get("used"), {"services": "1"})
    eventually(lambda: read(f"{SHOP}/serviceaccounts/default").get("kind"), "ServiceAccount")
    eventually(lambda: list(read(f"{SHOP}/configmaps/kube-root-ca.crt").get("data", ())), ["ca.crt"])

    assert api.send({"method": "DELETE", "path": web}, [])["status"] == 200
    eventually(lambda: items("/apis/apps/v1/namespaces/shop/replicasets"), [])
    # There is no kubelet to end pods on a node; without a grace period they go at once.
    eventually(lambda: [bool(pod["metadata"].get("deletionTimestamp")) for pod in items(f"{SHOP}/pods")], [True, True])
    for pod in items(f"{SHOP}/pods"):
        path = f"{SHOP}/pods/{pod['metadata']['name']}"
        assert api.send({"method": "DELETE", "path": path, "body": {"gracePeriodSeconds": 0}}, [])["status"] == 200
    assert api.send({"method": "DELETE", "path": SHOP}, [])["status"] == 200
    eventually(lambda: read(SHOP).get("code"), 404)
