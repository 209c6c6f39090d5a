"""The clients for Java, unmodified: fabric8's, which watches over WebSockets, and Kubernetes' own."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from fakeapiserver import Cluster
from tests.clients.fetching import fetched

PROGRAMS = Path(__file__).parent / "java"

pytestmark = [
    pytest.mark.skipif(shutil.which("mvn") is None, reason="needs mvn, Java's Maven"),
    pytest.mark.slow,  # downloads for minutes
]


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("folder", "main"), [("fabric8", "Main"), ("official", "Official")])
def test_java(fake_cluster: Cluster, tmp_path: Path, folder: str, main: str) -> None:
    project = tmp_path / folder
    shutil.copytree(PROGRAMS / folder, project)
    maven = ["mvn", "--batch-mode", "--quiet", "compile", "dependency:build-classpath", "-Dmdep.outputFile=classpath"]
    fetched(maven, project)
    classpath = f"target/classes:{(project / 'classpath').read_text()}"
    # the kubeconfig itself, with its client certificate
    environment = {**os.environ, "KUBECONFIG": fake_cluster.kubeconfig}
    program = ["java", "-cp", classpath, main]
    done = subprocess.run(
        program, cwd=project, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.stdout, done.returncode) == (f"{folder}: ok\n", 0), done.stderr
