"""A project made with kubebuilder's words: its tests pass at once, its manifests follow its code."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from fakeapiserver import Cluster, cli
from fakeapiserver.client import synchronous

INIT = "init --domain example.com --repo github.com/me/welcome-operator"
KIND = "--group apps --version v1alpha1 --kind Welcome"
EVERYTHING = (
    INIT,
    f"create api {KIND}",
    f"create webhook {KIND} --defaulting --programmatic-validation",
    "create api --version v1 --kind Policy --namespaced=false",
    "create webhook --version v1 --kind Policy --programmatic-validation",
    "create api --group apps --version v1beta1 --kind Welcome --controller=false",
    f"create webhook {KIND} --conversion",
)


def made(folder: Path, *commands: str) -> Path:
    for command in commands:
        assert cli.main([*command.split(), "--folder", str(folder)]) == 0
    return folder


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """A program in the project's folder, with this package and no other configuration."""
    path = Path(__file__).parent.parent.parent
    environment = {**os.environ, "PYTHONPATH": str(path), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", *words]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("commands", [EVERYTHING[:1], EVERYTHING[:2], EVERYTHING], ids=["init", "api", "everything"])
def test_a_new_project_passes_its_own_tests(tmp_path: Path, commands: Sequence[str]) -> None:
    folder = made(tmp_path, *commands)
    tests = run(folder, "pytest", "-q", "-p", "no:cacheprovider")
    assert tests.returncode == 0, tests.stdout + tests.stderr
    checked = run(folder, "ruff", "check", "--no-cache", ".")
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.skipif("FAKEAPISERVER_SLOW_TESTS" not in os.environ, reason="set FAKEAPISERVER_SLOW_TESTS to check types")
@pytest.mark.timeout(300)
def test_a_new_project_has_real_types(tmp_path: Path) -> None:
    folder = made(tmp_path, *EVERYTHING)
    checked = run(folder, "mypy", f"--cache-dir={tmp_path / 'cache'}", "welcome_operator")
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_a_server_takes_every_manifest(tmp_path: Path, fake_cluster: Cluster) -> None:
    folder = made(tmp_path, *EVERYTHING)
    with synchronous.connect(fake_cluster.kubeconfig) as client:
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "system"}}
        client.apply(namespace, field_manager="test")
        paths = [path for path in sorted(folder.glob("config/**/*.yaml")) if path.name != "kustomization.yaml"]
        paths = [path for path in paths if path.parts[-2] not in ("samples", "webhook")]
        for path in paths:
            for obj in yaml.safe_load_all(path.read_text()):
                client.apply(obj, field_manager="test")
        definition = client.resource("crd").get("welcomes.apps.example.com")
    assert [row["name"] for row in definition["spec"]["versions"]] == ["v1alpha1", "v1beta1"]
    assert definition["spec"]["conversion"]["strategy"] == "Webhook"


def test_manifests_that_differ_from_the_code_are_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = made(tmp_path, *EVERYTHING[:2])
    check = ["manifests", "--check", "--folder", str(folder)]
    assert cli.main(check) == 0
    model = folder / "welcome_operator/api/v1alpha1/welcome.py"
    model.write_text(model.read_text().replace("max_length=253", "max_length=100"))
    (folder / "config/crd/bases/old.yaml").write_text("a: b\n")
    capsys.readouterr()
    assert cli.main(check) == 1
    expected = ["config/crd/bases/apps.example.com_welcomes.yaml", "config/crd/bases/old.yaml"]
    assert capsys.readouterr().out.split() == expected
    made(folder, "manifests")
    assert cli.main(check) == 0
    crd = yaml.safe_load((folder / expected[0]).read_text())
    spec = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    assert spec["properties"]["message"]["maxLength"] == 100


def test_roles_are_what_the_markers_ask_for(tmp_path: Path) -> None:
    folder = made(tmp_path, *EVERYTHING[:2])
    role = yaml.safe_load((folder / "config/rbac/role.yaml").read_text())
    assert role["rules"] == [
        {
            "apiGroups": ["apps.example.com"],
            "resources": ["welcomes"],
            "verbs": ["create", "delete", "get", "list", "patch", "update", "watch"],
        },
        {"apiGroups": ["apps.example.com"], "resources": ["welcomes/finalizers"], "verbs": ["update"]},
        {"apiGroups": ["apps.example.com"], "resources": ["welcomes/status"], "verbs": ["get", "patch", "update"]},
    ]


@pytest.mark.parametrize(
    ("before", "command", "message"),
    [
        ((), f"create api {KIND}", "there is no file PROJECT here: run `fakeapiserver init` first"),
        ((INIT,), INIT, "holds a project already"),
        ((), "init --domain not_a_domain --repo x", "--domain 'not_a_domain'"),
        ((), "init --domain example.com --repo 1x", "begin with a letter"),
        ((INIT,), "create api --group apps --version one --kind Welcome", "--version 'one': must be like v1"),
        ((INIT,), "create api --group apps --version v1 --kind welcome", "must be in CamelCase"),
        ((INIT, f"create api {KIND}"), f"create api {KIND}", "Welcome v1alpha1 is there already"),
        ((INIT,), f"create api {KIND} --resource=false", "there is no Welcome v1alpha1 to control"),
        ((INIT,), f"create webhook {KIND} --defaulting", "there is no Welcome v1alpha1"),
        ((INIT, f"create api {KIND}"), f"create webhook {KIND}", "say what the webhook is for"),
        ((INIT, f"create api {KIND}"), f"create webhook {KIND} --conversion", "needs another version of Welcome"),
    ],
)
def test_what_cannot_be_done_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], before: Sequence[str], command: str, message: str
) -> None:
    made(tmp_path, *before)
    assert cli.main([*command.split(), "--folder", str(tmp_path)]) == 1
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_code_that_cannot_be_imported_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = made(tmp_path, *EVERYTHING[:2])
    (folder / "welcome_operator/setup.py").write_text("import nothing_of_the_sort\n")
    assert cli.main(["manifests", "--folder", str(folder)]) == 1
    assert capsys.readouterr().err == "fakeapiserver manifests: No module named 'nothing_of_the_sort'\n"


def test_files_are_listed_for_programs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made(tmp_path, INIT)
    capsys.readouterr()
    made(tmp_path, f"create api {KIND} --output json")
    found: dict[str, Any] = yaml.safe_load(capsys.readouterr().out)
    assert "welcome_operator/controllers/welcome.py" in found["files"]
