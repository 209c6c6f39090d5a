"""Kubernetes' own client for Java, unmodified. That of fabric8 is in tests/example_projects/test_languages.py."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from fakeapiserver import Cluster
from tests.clients.fetching import fetched

PROGRAM = Path(__file__).parent / "java/official"

pytestmark = [
    pytest.mark.skipif(shutil.which("mvn") is None, reason="needs mvn, Java's Maven"),
    pytest.mark.slow,  # downloads for minutes
]


@pytest.mark.timeout(600)
def test_java(fake_cluster: Cluster, tmp_path: Path) -> None:
    project = tmp_path / "official"
    shutil.copytree(PROGRAM, project)
    maven = ["mvn", "--batch-mode", "--quiet", "compile", "dependency:build-classpath", "-Dmdep.outputFile=classpath"]
    fetched(maven, project)
    classpath = f"target/classes:{(project / 'classpath').read_text()}"
    # the kubeconfig itself, with its client certificate
    environment = {**os.environ, "KUBECONFIG": fake_cluster.kubeconfig}
    program = ["java", "-cp", classpath, "Official"]
    done = subprocess.run(
        program, cwd=project, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.stdout, done.returncode) == ("official: ok\n", 0), done.stderr
