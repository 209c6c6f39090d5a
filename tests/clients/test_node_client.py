"""@kubernetes/client-node, unmodified: requests, a watch, an informer."""

import shutil
import subprocess
from pathlib import Path

import pytest

from fakeapiserver import Cluster
from tests.clients.fetching import fetched

PROGRAM = Path(__file__).parent / "node"

pytestmark = [
    pytest.mark.skipif(shutil.which("npm") is None, reason="needs npm, Node's package manager"),
    pytest.mark.slow,  # downloads for a while
]


@pytest.mark.timeout(300)
def test_client_node(fake_cluster: Cluster, tmp_path: Path) -> None:
    project = tmp_path / "node"
    shutil.copytree(PROGRAM, project)
    fetched(["npm", "install", "--no-audit", "--no-fund", "--loglevel=error"], project)
    done = subprocess.run(["node", "main.js"], cwd=project, capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.returncode) == ("client-node: ok\n", 0), done.stderr
