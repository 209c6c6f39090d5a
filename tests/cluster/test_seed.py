"""`Cluster(seed=…)`: the same again, in another process."""

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from fakeapiserver import Cluster
from fakeapiserver.client import kubeconfig, synchronous

SCENARIO = """
import sys
from fakeapiserver import Cluster
from tests.cluster.test_faults import Client
from tests.cluster.test_seed import JOB, SERVICE, WEB

with Cluster(seed=int(sys.argv[1]), stopped_at="2026-01-01T00:00:00Z", nodes=2, load_balancers=True) as cluster:
    cluster.settle()
    cluster.nodes.script(selector="job-name=nightly", runs_for=60, exit_codes=(1, 0))
    cluster.apply([SERVICE, WEB, JOB])
    cluster.settle()
    cluster.clock.advance("10m")
    client = Client(cluster)  # over HTTPS
    with cluster.faults.add(verb="create", resource="configmaps", status=409, probability=0.5):
        for number in range(10):
            client.create(f"map-{number}")
    cluster.delete("deploy/web")
    cluster.settle()
    cluster.clock.advance("1h")
    for entry in cluster.requests.all():
        print(entry.time, entry.verb, entry.path, entry.status)
    cluster.save(sys.argv[2])
"""
SERVICE = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "web"},
    "spec": {"type": "LoadBalancer", "selector": {"app": "web"}, "ports": [{"port": 80}]},
}
TEMPLATE = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "web", "image": "nginx"}]}}
WEB = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web"},
    "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "template": TEMPLATE},
}
JOB = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "nightly"},
    "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "nightly"}]}}},
}
# Certificates and keys are truly random; a bundle is named by a checksum over one, and the file has a checksum over them.
_RANDOM = re.compile(
    r'-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----|"sha256":"\w+"'
    r'|{"key":"/registry/clustertrustbundles/kubernetes.io:kube-apiserver-serving:.*'
)
_ROOT = Path(__file__).parents[2]


def run(seed: int, folder: Path, hash_seed: str) -> tuple[str, str]:
    """The transcript and the saved state of the scenario, in a process of its own."""
    path = folder / f"{seed}-{hash_seed}.json"
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(_ROOT)}
    ran = subprocess.run(
        [sys.executable, "-c", SCENARIO, str(seed), str(path)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout, _RANDOM.sub("", path.read_text())


def test_two_runs_are_byte_identical(tmp_path: Path) -> None:
    first, second = run(7, tmp_path, "1"), run(7, tmp_path, "2")
    assert first[0] == second[0]
    differences = [
        pair for pair in zip(first[1].splitlines(), second[1].splitlines(), strict=False) if len({*pair}) > 1
    ]
    assert differences[:3] == []
    assert first == second


def test_another_seed_gives_other_values() -> None:
    found = set()
    for seed in (1, 2):
        with Cluster(seed=seed, controllers=()) as cluster:
            service = cluster.apply(SERVICE)[0]
            found |= {service["metadata"]["uid"], service["spec"]["clusterIP"], cluster.url}
            found.add(service["spec"]["ports"][0]["nodePort"])
    assert len(found) == 8


def test_the_port_follows_from_the_seed() -> None:
    urls = set()
    for _ in range(2):
        with Cluster(seed=20260731, controllers=()) as cluster:
            urls.add(cluster.url)
    assert len(urls) == 1


def test_a_port_that_is_in_use_is_left_alone() -> None:
    with Cluster(seed=3, controllers=()) as first, Cluster(seed=3, controllers=()) as second:
        assert first.url != second.url
        port = int(first.url.rpartition(":")[2])
        socket.create_connection(("127.0.0.1", port)).close()
        with pytest.raises(OSError, match=f"port {port} is in use"), Cluster(port=port, controllers=()):
            pass


def test_a_fork_has_uids_of_its_own() -> None:
    """An object that is created in both must not get the uid of a deleted object."""
    with Cluster(seed=3, controllers=()) as cluster:
        made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
        uid = cluster.apply(made)[0]["metadata"]["uid"]
        cluster.delete("cm/a")
        with cluster.fork() as fork:
            assert fork.apply(made)[0]["metadata"]["uid"] != uid


def test_the_time_of_a_stopped_clock() -> None:
    with Cluster(stopped_at="2026-01-01T00:00:00Z", controllers=()) as cluster:
        assert cluster.clock.now() == 1767225600.0
        assert cluster.get("ns/default")["metadata"]["creationTimestamp"] == "2026-01-01T00:00:00Z"
        mark = cluster.mark()
        cluster.clock.advance("1h")
        assert cluster.clock.now() == 1767229200.0
        cluster.reset(mark)
        assert cluster.clock.now() == pytest.approx(1767225600.0)
        cluster.clock.start()
        assert 0 <= cluster.clock.now() - 1767225600.0 < 10
        cluster.clock.stop()
        stopped = cluster.clock.now()
        assert cluster.clock.now() == stopped


def test_certificates_hold_at_any_time_of_the_clock() -> None:
    with Cluster(stopped_at="2001-01-01T00:00:00Z", controllers=()) as cluster:
        config = kubeconfig.load(cluster.user("jane", groups=["system:masters"]))
        with synchronous.connect(config) as jane:
            assert jane.resource("namespaces").get("default")["metadata"]["name"] == "default"


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"seed": -1}, ValueError, "seed must be 0 or more, not -1"),
        ({"seed": "seven"}, TypeError, "seed must be a whole number, not 'seven'"),
        ({"stopped_at": "soon"}, ValueError, "stopped_at must be a time such as 2026-01-01T00:00:00Z, not 'soon'"),
        ({"stopped_at": "2026-01-01"}, ValueError, "stopped_at must have a time zone"),
        ({"stopped_at": True}, TypeError, "stopped_at must be a time such as"),
    ],
)
def test_bad_options(options: dict[str, object], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Cluster(**options)  # type: ignore[arg-type]
