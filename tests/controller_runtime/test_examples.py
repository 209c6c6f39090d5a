"""The examples, as users run them: their own tests, and their programs against this server and (with
FAKEAPISERVER_REFERENCE_KUBECONFIG) a real one, where they behave alike."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import yaml

from fakeapiserver import Cluster
from fakeapiserver.client import synchronous, wait
from fakeapiserver.client.errors import StatusError

EXAMPLES = Path(__file__).parent.parent / "examples"
ROOT = EXAMPLES.parent.parent
OPERATORS = ("welcome_operator", "cronjob_operator")
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}


@pytest.fixture(params=["fake", "real"])
def server(request: pytest.FixtureRequest) -> Iterator[str]:
    """Path of a kubeconfig."""
    if request.param == "real":
        path = os.environ.get("FAKEAPISERVER_REFERENCE_KUBECONFIG")
        if not path:
            pytest.skip("set FAKEAPISERVER_REFERENCE_KUBECONFIG to run the examples against a real server too")
        yield path
    else:
        with Cluster() as cluster:
            yield cluster.kubeconfig


@contextmanager
def running(*words: str, folder: Path = EXAMPLES) -> Iterator["subprocess.Popen[str]"]:
    """A program, as long as the block."""
    with subprocess.Popen(
        [sys.executable, *words], cwd=folder, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True
    ) as program:
        try:
            yield program
        finally:
            program.terminate()


@pytest.mark.slow
@pytest.mark.parametrize("operator", OPERATORS)
def test_an_operators_own_tests_pass(operator: str) -> None:
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    tests = subprocess.run(words, cwd=EXAMPLES / operator, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert tests.returncode == 0, tests.stdout + tests.stderr


def test_the_pod_printer_prints_what_comes_and_goes(server: str) -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "printed", "namespace": "default"},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    with running("pod_printer.py", server) as printer, synchronous.connect(server) as client:
        assert printer.stdout is not None
        pods = client.resource("pods", "default")
        pods.create(pod)
        assert "added default/printed\n" in iter(printer.stdout.readline, "")
        pods.delete("printed", grace_period_seconds=0)
        assert "deleted default/printed\n" in iter(printer.stdout.readline, "")


def installed(client: synchronous.Client, operator: str) -> None:
    for path in sorted((EXAMPLES / operator / "config/crd/bases").glob("*.yaml")):
        for definition in yaml.safe_load_all(path.read_text()):
            client.apply(definition, field_manager="test", force=True)
            name = definition["metadata"]["name"]
            client.resource("customresourcedefinitions").until(wait.has_condition("Established"), name=name)


def removed(client: synchronous.Client, *objects: tuple[str, str]) -> None:
    for resource, name in objects:
        with suppress(StatusError):  # the collector was faster, where there is one
            client.resource(resource, "default").delete(name)


def exists(obj: dict[str, Any] | None) -> bool:
    return obj is not None


def test_the_welcome_operator(server: str) -> None:
    folder = EXAMPLES / "welcome_operator"
    with synchronous.connect(server) as client:
        installed(client, "welcome_operator")
        operator = running(
            "-m", "welcome_operator", "--kubeconfig", server, "--health-probe-bind-address=0", folder=folder
        )
        with operator:
            sample = yaml.safe_load((folder / "config/samples/apps_v1alpha1_welcome.yaml").read_text())
            client.apply(sample, field_manager="test")
            name = sample["metadata"]["name"]
            welcomes = client.resource("welcomes.apps.example.com", "default")
            found = welcomes.until(wait.has_condition("Ready", "False"), name=name)
            assert found is not None
            assert found["status"]["conditions"][0]["message"] == "0 of 1 replicas are ready"
            service = client.resource("services", "default").until(exists, name=name)
            assert service is not None
            assert (service["spec"]["type"], service["status"]) == ("LoadBalancer", {"loadBalancer": {}})
            assert service["spec"]["clusterIP"].startswith("10.")
            assert service["spec"]["ports"][0]["nodePort"] >= 30000
            deployments = client.resource("deployments", "default")
            deployments.patch(name, {"spec": {"replicas": 9}})
            deployments.until(lambda obj: obj is not None and obj["spec"]["replicas"] == 1, name=name)
        removed(client, ("welcomes.apps.example.com", name), ("services", name), ("deployments", name))
        client.resource("crd").delete("welcomes.apps.example.com")


def test_the_cron_job_operator(server: str) -> None:
    folder = EXAMPLES / "cronjob_operator"
    with synchronous.connect(server) as client:
        installed(client, "cronjob_operator")
        operator = running(
            "-m", "cronjob_operator", "--kubeconfig", server, "--health-probe-bind-address=0", folder=folder
        )
        with operator:
            sample = yaml.safe_load((folder / "config/samples/batch_v1_cronjob.yaml").read_text())
            sample["spec"] |= {"schedule": "@every 1s", "concurrencyPolicy": "Forbid"}
            client.apply(sample, field_manager="test")
            name = sample["metadata"]["name"]
            cron_jobs = client.resource("cronjobs.v1.batch.tutorial.example.com", "default")
            found = cron_jobs.until(lambda obj: bool(((obj or {}).get("status") or {}).get("active")), name=name)
            assert found is not None
            job = found["status"]["active"][0]["name"]
            assert job.startswith(f"{name}-")
            stored = client.resource("jobs.batch", "default").get(job)
            assert stored["metadata"]["ownerReferences"][0]["uid"] == found["metadata"]["uid"]
        removed(client, ("cronjobs.v1.batch.tutorial.example.com", name), ("jobs.batch", job))
        client.resource("crd").delete("cronjobs.batch.tutorial.example.com")
