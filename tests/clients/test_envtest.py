"""Go's own envtest, unmodified, through the assets that the command writes. The program is in envtest_program/."""

import json
import os
import shutil
import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parent / "envtest_program"
# What it takes to fetch and build controller-runtime and client-go the first time.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built program; skips where Go or the modules can't be had."""
    if shutil.which("go") is None:
        pytest.skip("Go is not installed; this test builds a small Go program")
    fetched = subprocess.run(["go", "mod", "download"], cwd=PROGRAM, capture_output=True, text=True, check=False)
    if fetched.returncode:
        pytest.skip(f"Go can't fetch controller-runtime: {fetched.stderr.strip().splitlines()[-1]}")
    built = tmp_path_factory.mktemp("built") / "program"
    subprocess.run(["go", "build", "-o", built, "."], cwd=PROGRAM, check=True)
    return built


@pytest.fixture(scope="module")
def assets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("assets")
    subprocess.run([sys.executable, "-m", "fakeapiserver", "envtest-assets", folder], check=True, capture_output=True)
    return folder


@pytest.fixture
def environment(assets: Path, tmp_path: Path) -> dict[str, str]:
    """envtest's temporary folders go to the test's own."""
    return {**os.environ, "KUBEBUILDER_ASSETS": str(assets), "TMPDIR": str(tmp_path)}


def test_a_test_run_from_start_to_stop(
    program: Path, assets: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    done = subprocess.run([program], env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    report = json.loads(done.stdout)
    assert report.pop("url").startswith("https://127.0.0.1:")
    assert report == {
        "cached": "on",
        "custom": 3,
        "forbidden": True,
        "kubectlSays": "namespace/default" if shutil.which("kubectl") else "",
        "controlPlane": str(assets / "kube-apiserver"),
    }
    assert not list(tmp_path.glob("k8s_test_framework_*"))


def test_an_older_version_by_the_name_and_flags_of_setup_envtest(
    program: Path, assets: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    """The Makefiles of kubebuilder's projects call it in this way."""
    setup = [assets / "setup-envtest", "use", "1.34", "--bin-dir", tmp_path / "bin", "-p", "path"]
    folder = subprocess.run(setup, capture_output=True, text=True, check=True).stdout.strip()
    environment["KUBEBUILDER_ASSETS"] = folder
    done = subprocess.run([program], env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["controlPlane"] == f"{folder}/kube-apiserver"
    version = subprocess.run([f"{folder}/kube-apiserver", "--version"], capture_output=True, text=True, check=True)
    assert version.stdout.startswith("Kubernetes v1.34.")


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 0), (signal.SIGKILL, -signal.SIGKILL)])
def test_three_at_a_time_leave_no_process_behind(
    program: Path, environment: dict[str, str], number: signal.Signals, status: int
) -> None:
    """On SIGTERM envtest stops its servers; when it is killed, they notice. Standard output is theirs too: it ends with the last."""
    environment["KUBEBUILDER_ATTACH_CONTROL_PLANE_OUTPUT"] = "true"
    with ExitStack() as stack:
        runs = []
        for _ in range(3):
            run = stack.enter_context(
                subprocess.Popen([program, "-hold"], env=environment, stdout=subprocess.PIPE, text=True)
            )
            stack.callback(run.kill)
            runs.append(run)
        reports = [json.loads(run.stdout.readline()) for run in runs if run.stdout is not None]
        assert len({report["url"] for report in reports}) == 3
        for run in runs:
            run.send_signal(number)
        assert [run.communicate(timeout=100) for run in runs] == [("", None)] * 3
        assert [run.returncode for run in runs] == [status] * 3
