"""The examples for CI systems, and the steps of the GitHub Action, run by a shell as their systems do."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.commands import output_of
from tests.example_projects.running import EXAMPLES, copied, environment

__all__ = ["environment"]

ROOT = EXAMPLES.parent
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())

needs_kubectl = pytest.mark.skipif(shutil.which("kubectl") is None, reason="needs kubectl on the PATH")


class Job:
    """The files of a runner of GitHub, and the steps of one of its jobs."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self.folder = folder
        files = ("GITHUB_OUTPUT", "GITHUB_ENV", "GITHUB_PATH")
        self._environment = {**environment, "RUNNER_TEMP": str(folder), **{name: str(folder / name) for name in files}}
        for name in files:
            (folder / name).touch()

    def run(self, step: Mapping[str, Any], inputs: Mapping[str, str], cwd: Path) -> str:
        """Runs a step as `shell: bash` does, and returns its output."""
        own = {name: _filled(value, inputs) for name, value in step.get("env", {}).items()}
        words = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", _filled(step["run"], inputs)]
        return output_of(words, cwd, {**self._environment, **self.file("GITHUB_ENV"), **own})

    def file(self, name: str) -> dict[str, str]:
        """The assignments in one of the runner's files."""
        return dict(line.split("=", 1) for line in (self.folder / name).read_text().splitlines())


def _filled(text: str, values: Mapping[str, str]) -> str:
    return re.sub(r"\$\{\{ *([\w.-]+) *\}\}", lambda match: values[match[1]], text)


def _inputs(**given: str) -> dict[str, str]:
    values = {name: row["default"] for name, row in ACTION["inputs"].items()} | given
    return {f"inputs.{name}": value for name, value in values.items()}


@pytest.fixture
def job(environment: dict[str, str], tmp_path: Path) -> Iterator[Job]:
    """A job. The server that it leaves behind is stopped, as the runner does."""
    folder = tmp_path / "job"
    folder.mkdir()
    environment["XDG_RUNTIME_DIR"] = str(folder / "state")
    yield Job(folder, environment)
    subprocess.run([sys.executable, "-m", "fakeapiserver", "stop"], env=environment, capture_output=True, check=False)


def test_the_action_starts_a_server(job: Job, environment: dict[str, str]) -> None:
    """The second step, with a command that is installed already."""
    installed = job.folder / "fakeapiserver/bin"
    installed.mkdir(parents=True)
    (installed / "fakeapiserver").symlink_to(shutil.which("fakeapiserver", path=environment["PATH"]) or "")
    (installed / "python").symlink_to(sys.executable)
    inputs = _inputs(nodes="1", **{"kubernetes-version": "1.35", "flags": "--context-name=ci --load-balancers"})
    job.run(ACTION["runs"]["steps"][1], inputs, ROOT)
    outputs = job.file("GITHUB_OUTPUT")
    assert outputs["url"].startswith("https://127.0.0.1:")
    assert job.file("GITHUB_ENV") == {"KUBECONFIG": outputs["kubeconfig"]}
    assert '"current-context": "ci"' in Path(outputs["kubeconfig"]).read_text()
    assert set(ACTION["outputs"]) == set(outputs)


@pytest.mark.slow  # makes a virtual environment and builds a wheel
def test_the_action_installs_a_path(job: Job) -> None:
    """The dependencies are those of this process: they aren't fetched again."""
    packages = Path(yaml.__file__).parents[1]
    environment = {"PIP_NO_DEPS": "1", "PYTHONPATH": str(packages)}
    checkout = job.folder / "checkout"  # a build leaves files behind
    checkout.mkdir()
    for name in ("fakeapiserver", "auth", "admission"):
        shutil.copytree(ROOT / name, checkout / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, checkout)
    step = {**ACTION["runs"]["steps"][0]}
    step["env"] = step["env"] | environment
    job.run(step, _inputs(version=str(checkout), python=sys.executable), job.folder)
    [folder] = (job.folder / "GITHUB_PATH").read_text().split()
    version = output_of([f"{folder}/fakeapiserver", "version"], job.folder, {**os.environ, **environment})
    assert "Kubernetes" in version


@pytest.mark.slow
@needs_kubectl
def test_a_workflow_of_github(job: Job, environment: dict[str, str]) -> None:
    """The steps after the action, and the action's inputs by their names."""
    workflow = yaml.safe_load((EXAMPLES / "github-actions/test.yaml").read_text())
    steps = workflow["jobs"]["test"]["steps"]
    assert set(steps[1]["with"]) <= set(ACTION["inputs"])
    values = {"steps.cluster.outputs.url": "the server"}
    commands = [_filled(step["run"], values) for step in steps if "run" in step]
    script = job.folder / "steps.sh"
    script.write_text("set -e\n" + "\n".join(commands))
    words = ["fakeapiserver", "run", "--nodes=2", "--", "bash", str(script)]
    assert "deployment.apps/web condition met" in output_of(words, EXAMPLES / "github-actions", environment)


@pytest.mark.slow
@needs_kubectl
def test_a_job_of_gitlab(environment: dict[str, str]) -> None:
    job = yaml.safe_load((EXAMPLES / "gitlab-ci/.gitlab-ci.yml").read_text())["test"]
    assert job["before_script"][-1] == "pip install --quiet fakeapiserver"
    environment["KUBERNETES"] = job["parallel"]["matrix"][0]["KUBERNETES"][0]
    [command] = job["script"]
    output = output_of(["bash", "-ec", command], EXAMPLES / "gitlab-ci", environment)
    assert output.endswith("condition met\n2\n")


@pytest.mark.slow
@needs_kubectl
@pytest.mark.skipif(shutil.which("make") is None, reason="needs make on the PATH")
def test_a_makefile(environment: dict[str, str]) -> None:
    assert "condition met" in output_of(["make", "test"], EXAMPLES / "makefile", environment)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("helm") is None, reason="needs helm on the PATH")
def test_a_helm_chart(environment: dict[str, str], tmp_path: Path) -> None:
    output = output_of(["make", "test"], copied("helm-chart", tmp_path), environment)
    assert "Phase:          Succeeded" in output
    assert 'release "web" uninstalled' in output
