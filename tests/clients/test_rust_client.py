"""kube-rs, unmodified: typed and custom resources, patches, apply, watches and streaming lists."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from fakeapiserver import Cluster
from tests.clients.fetching import fetched

PROGRAM = Path(__file__).parent / "rust"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")

pytestmark = [
    pytest.mark.skipif(shutil.which("cargo") is None, reason="needs cargo, Rust's package manager"),
    pytest.mark.slow,  # compiles for minutes
]


@pytest.mark.timeout(600)
def test_kube_rs(fake_cluster: Cluster) -> None:
    # what others wrote is compiled once for all clones of this repository
    target = Path(os.environ.get("CARGO_TARGET_DIR") or CACHE / "fakeapiserver/cargo")
    environment = {**os.environ, "CARGO_TARGET_DIR": str(target)}
    fetched(["cargo", "build", "--locked", "--quiet"], PROGRAM, environment)
    program = target / "debug/rust-client"
    done = subprocess.run([program], capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.returncode) == ("kube-rs: ok\n", 0), done.stderr
