"""fabric8's client for Java, unmodified: it watches over WebSockets."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from fakeapiserver import Cluster
from tests.clients.fetching import fetched

PROGRAM = Path(__file__).parent / "java"

pytestmark = [
    pytest.mark.skipif(shutil.which("mvn") is None, reason="needs mvn, Java's Maven"),
    pytest.mark.skipif(
        not os.environ.get("FAKEAPISERVER_SLOW_TESTS"), reason="downloads for minutes; set FAKEAPISERVER_SLOW_TESTS=1"
    ),
]


@pytest.mark.timeout(600)
def test_fabric8(fake_cluster: Cluster, tmp_path: Path) -> None:
    project = tmp_path / "java"
    shutil.copytree(PROGRAM, project)
    maven = ["mvn", "--batch-mode", "--quiet", "compile", "dependency:build-classpath", "-Dmdep.outputFile=classpath"]
    fetched(maven, project)
    classpath = f"target/classes:{(project / 'classpath').read_text()}"
    (project / "ca.pem").write_bytes(fake_cluster.ca)
    # a token, since it can read no elliptic client key without more libraries
    environment = {
        **os.environ,
        "KUBERNETES_AUTH_TRYKUBECONFIG": "false",
        "KUBERNETES_MASTER": fake_cluster.url,
        "KUBERNETES_AUTH_TOKEN": fake_cluster.token,
        "KUBERNETES_CERTS_CA_FILE": str(project / "ca.pem"),
    }
    program = ["java", "-cp", classpath, "Main"]
    done = subprocess.run(
        program, cwd=project, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.stdout, done.returncode) == ("fabric8: ok\n", 0), done.stderr
