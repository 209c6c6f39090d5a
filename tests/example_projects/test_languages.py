"""The examples in Go, Java, Rust and Node, with their helpers' own tests. Other tests of these clients use what is built here."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from fakeapiserver import Cluster
from tests.clients.fetching import fetched
from tests.commands import output_of
from tests.example_projects.running import EXAMPLES, copied, environment

__all__ = ["environment"]

CLIENTS = Path(__file__).parents[1] / "clients"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]  # the first build compiles for minutes


def needs(program: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(shutil.which(program) is None, reason=f"needs {program} on the PATH")


@needs("go")
def test_go(environment: dict[str, str], tmp_path: Path) -> None:
    """The suite runs with the helper, and as it is with envtest."""
    project = EXAMPLES / "go-controller-runtime"
    environment |= {"GOTOOLCHAIN": "local", "GINKGO_NO_COLOR": "true"}
    fetched(["go", "test", "-buildvcs=false", "-c", "-o", f"{tmp_path}/", "./..."], project, environment)
    output_of([tmp_path / "fakecluster.test"], project / "fakecluster", environment)
    suite = [tmp_path / "greeting.test"]
    assert "2 Passed | 0 Failed | 0 Pending | 0 Skipped" in output_of(suite, project, environment)
    assets = [sys.executable, "-m", "fakeapiserver", "envtest-assets", tmp_path / "assets"]
    subprocess.run(assets, env=environment, check=True, capture_output=True)
    environment["KUBEBUILDER_ASSETS"] = str(tmp_path / "assets")
    assert "1 Passed | 0 Failed | 0 Pending | 1 Skipped" in output_of(suite, project, environment)


@needs("mvn")
def test_java(environment: dict[str, str], fake_cluster: Cluster, tmp_path: Path) -> None:
    """The example, and with what was fetched for it more of fabric8's client, which watches over WebSockets."""
    project = copied("java-fabric8", tmp_path)
    shutil.copytree(CLIENTS / "java/fabric8/src/main", project / "src/main")
    goals = ["test", "dependency:build-classpath", "-Dmdep.outputFile=classpath"]
    fetched(["mvn", "--batch-mode", "--quiet", *goals], project, environment)
    reports = [ElementTree.parse(path).getroot() for path in project.glob("target/surefire-reports/*.xml")]
    assert sum(int(report.attrib["tests"]) for report in reports) == 5
    classpath = f"target/classes:{(project / 'classpath').read_text()}"
    environment["KUBECONFIG"] = fake_cluster.kubeconfig
    assert "fabric8: ok\n" in output_of(["java", "-cp", classpath, "Main"], project, environment)


@needs("cargo")
def test_rust(environment: dict[str, str]) -> None:
    project = EXAMPLES / "rust-kube-rs"
    # what others wrote is compiled once for all clones of this repository, and for tests/clients/rust
    environment["CARGO_TARGET_DIR"] = os.environ.get("CARGO_TARGET_DIR") or str(CACHE / "fakeapiserver/cargo")
    fetched(["cargo", "build", "--tests", "--locked", "--quiet"], project, environment)
    output = output_of(["cargo", "test", "--tests", "--locked"], project, environment)
    for name in ("a_conflict_is_tried_again", "the_helper"):
        assert f"test {name} ... ok" in output


@needs("npm")
def test_node(environment: dict[str, str], fake_cluster: Cluster, tmp_path: Path) -> None:
    """The example, and with what was fetched for it requests, a watch and an informer."""
    project = copied("node-vitest", tmp_path)
    fetched(["npm", "install", "--no-audit", "--no-fund", "--loglevel=error"], project, environment)
    environment["NO_COLOR"] = "1"
    output = output_of(["npm", "test"], project, environment)
    assert "Tests  5 passed (5)" in output
    shutil.copy(CLIENTS / "node/main.js", project)
    environment["KUBECONFIG"] = fake_cluster.kubeconfig
    assert output_of(["node", "main.js"], project, environment) == "client-node: ok\n"
