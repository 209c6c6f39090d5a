"""Tests what pytest prints about a fake cluster when a test failed."""

from pathlib import Path

import pytest

from fakeapiserver import Cluster
from fakeapiserver.testing import report
from tests.plain_client import Client
from tests.testing.project import Project

PODS = "/api/v1/namespaces/default/pods"


def pod(name: str) -> dict[str, object]:
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "nginx"}]}}


@pytest.fixture(scope="module")
def busy_report() -> tuple[str, str]:
    """A short and a full report of a cluster with a bit of everything."""
    with Cluster(nodes=1) as cluster:
        client = Client(cluster)
        cluster.nodes.script(name="broken", pull_error="no such image")
        client.ask("POST", PODS, pod("broken"))
        client.status("GET", "/api/v1/namespaces/default/secrets?labelSelector=token%3Dhidden", token="")
        for _ in range(80):
            client.status("GET", f"{PODS}/missing")
        cluster.clock.advance("1m")
        cluster.clock.stop()
        return report.text(cluster), report.text(cluster, full=True)


@pytest.mark.parametrize(
    "shown",
    [
        "ahead of the machine, stopped",
        "last requests:",
        " more (--fake-cluster-report=full)",
        f"(system:apiserver) get {PODS}/missing 404 ",
        'NotFound pods "missing" not found',
        'refused:\n  User "system:anonymous" cannot list resource "secrets" in API group ""',
        "Warning events:\n",
        "Pod default/broken Failed: ",
        "not ready:\n  pods default/broken: phase Pending",
    ],
)
def test_the_short_report_shows(shown: str, busy_report: tuple[str, str]) -> None:
    assert shown in busy_report[0]


def test_a_pod_without_nodes_has_its_reason() -> None:
    with Cluster() as cluster:
        Client(cluster).ask("POST", PODS, pod("alone"))
        assert "pods default/alone: phase Pending; there are no nodes" in report.text(cluster)


def test_the_short_report_is_bounded(busy_report: tuple[str, str]) -> None:
    short, full = busy_report
    assert len(short.splitlines()) <= report.MAX_LINES
    assert max(map(len, short.splitlines())) <= 202
    assert full.count("/pods/missing 404") == 80
    assert "hidden" not in full


FAILING = """\
import pytest
pytestmark = pytest.mark.fake_cluster(controllers=())

def test_passes(fake_cluster):
    pass

def test_fails(fake_cluster):
    raise AssertionError

def test_fails_without():
    raise AssertionError
"""


@pytest.mark.parametrize(("choice", "sections"), [("short", 1), ("full", 1), ("off", 0)])
def test_failed_tests_with_a_cluster_show_it(choice: str, sections: int, tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.write(test_it=FAILING)
    done = project.pytest(f"--fake-cluster-report={choice}")
    assert "2 failed, 1 passed" in done.stdout
    assert done.stdout.count("- fake cluster -") == sections
