"""A project made with kubebuilder's words: its tests pass at once, its manifests follow its code."""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from fakeapiserver import Cluster, cli
from fakeapiserver.client import synchronous
from fakeapiserver.scaffold import source

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
    "create api --version v2 --kind Policy --controller=false",
    "create webhook --version v1 --kind Policy --conversion --spoke v2",
)
OTHERS = (
    INIT,
    "create api --group apps --version v1 --kind Deployment --resource=false",
    "create api --group core --version v1 --kind Pod --resource=false",
    "create api --version v1 --kind Certificate --resource=false --external-api-domain cert-manager.io",
    "create webhook --group core --version v1 --kind Pod --defaulting",
    "create webhook --group apps --version v1 --kind Deployment --defaulting --programmatic-validation",
)
# Kinds whose names mean something in Python, or here, or are another group's too.
NAMES = (
    INIT,
    *(f"create api --group apps --version v1 --kind {kind}" for kind in ("Class", "Manager", "Cluster", "Manifests")),
    "create api --group batch --version v1 --kind Cluster",
    "create webhook --group apps --version v1 --kind Class --defaulting",
)


def made(folder: Path, *commands: str) -> Path:
    for command in commands:
        assert cli.main([*command.split(), "--folder", str(folder)]) == 0
    return folder


def contents(folder: Path) -> dict[str, str]:
    """The files of a project."""
    files = (path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {str(path.relative_to(folder)): path.read_text() for path in files}


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """A program in the project's folder, with this package and no other configuration."""
    path = Path(__file__).parent.parent.parent
    environment = {**os.environ, "PYTHONPATH": str(path), "MYPY_CACHE_DIR": str(path / ".mypy_cache")}
    command = [sys.executable, "-m", *words]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.timeout(300)  # a program with tests of its own is started
@pytest.mark.parametrize(
    "commands",
    [
        pytest.param(EVERYTHING[:1], id="init", marks=pytest.mark.slow),
        pytest.param(EVERYTHING[:2], id="api"),
        pytest.param(EVERYTHING, id="everything", marks=pytest.mark.slow),
        pytest.param(OTHERS, id="kinds of others", marks=pytest.mark.slow),
        pytest.param(NAMES, id="names", marks=pytest.mark.slow),
    ],
)
def test_a_new_project_passes_its_own_tests(tmp_path: Path, commands: Sequence[str]) -> None:
    folder = made(tmp_path, *commands)
    tests = run(folder, "pytest", "-q", "-p", "no:cacheprovider")
    assert tests.returncode == 0, tests.stdout + tests.stderr
    checked = run(folder, "ruff", "check", "--no-cache", ".")
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("commands", [EVERYTHING, OTHERS], ids=["everything", "kinds of others"])
def test_a_new_project_has_real_types(tmp_path: Path, commands: Sequence[str]) -> None:
    folder = made(tmp_path, *commands)
    checked = run(folder, "mypy", "welcome_operator", "tests")
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_a_server_takes_every_manifest(tmp_path: Path, fake_cluster: Cluster) -> None:
    folder = made(tmp_path, *EVERYTHING)
    with synchronous.connect(fake_cluster.kubeconfig) as client:
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "system"}}
        client.apply(namespace, field_manager="test")
        paths = [
            path for part in ("crd/bases", "rbac", "manager") for path in sorted(folder.glob(f"config/{part}/*.yaml"))
        ]
        paths = [path for path in paths if path.name != "kustomization.yaml"]
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
        {"apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["create", "patch"]},
    ]


@pytest.mark.parametrize("name", [".git", ".venv", "README.md", "LICENSE"])
def test_a_project_begins_in_a_new_repository(tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch()
    assert (made(tmp_path, INIT) / "PROJECT").exists()
    assert (tmp_path / name).read_text() == ""


def test_a_project_begins_among_other_files_only_by_force(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("Makefile", "b", "c", "d"):
        (tmp_path / name).write_text("mine")
    before = contents(tmp_path)
    assert cli.main([*INIT.split(), "--folder", str(tmp_path)]) == 1
    assert capsys.readouterr().err == (
        f"fakeapiserver init: {tmp_path} isn't empty (Makefile, b, c, …): begin in an empty folder, or say --force\n"
    )
    assert contents(tmp_path) == before
    made(tmp_path, f"{INIT} --force")
    assert contents(tmp_path)["b"] == "mine"
    assert contents(tmp_path)["Makefile"] != "mine"


def test_each_command_says_what_comes_next(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made(tmp_path, INIT)
    assert "Next: fakeapiserver create api --group" in capsys.readouterr().out
    made(tmp_path, EVERYTHING[1])
    assert "`make manifests` and `make test`" in capsys.readouterr().out


def test_make_installs_the_source_that_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sources = tmp_path / "sources"
    sources.mkdir()
    (sources / "pyproject.toml").touch()
    (sources / "fakeapiserver-0.1.0-py3-none-any.whl").touch()
    for number, (named, installed) in enumerate(
        [
            ("fakeapiserver>=0.1", "fakeapiserver>=0.1"),
            (str(sources), str(sources)),
            (
                str(sources / "fakeapiserver-0.1.0-py3-none-any.whl"),
                str(sources / "fakeapiserver-0.1.0-py3-none-any.whl"),
            ),
        ]
    ):
        folder = made(tmp_path / str(number), f"{INIT} --fakeapiserver-source {named}")
        assert f"FAKEAPISERVER ?= {installed}\n" in (folder / "Makefile").read_text()
    capsys.readouterr()
    assert cli.main([*INIT.split(), "--folder", str(tmp_path / "4"), "--fakeapiserver-source", "nowhere"]) == 1
    assert capsys.readouterr().err.startswith(
        "fakeapiserver init: --fakeapiserver-source 'nowhere': neither a requirement"
    )


@pytest.mark.parametrize(
    ("recorded", "expected"),
    [
        (None, "fakeapiserver"),  # from an index
        ('{"url": "https://example.com/fakeapiserver.tar.gz"}', "fakeapiserver"),
        ('{"url": "file:///does/not/exist", "dir_info": {"editable": true}}', "fakeapiserver"),
        ('{"url": "file://HERE", "dir_info": {"editable": true}}', "HERE"),
    ],
)
def test_by_default_make_installs_what_is_running(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recorded: str | None, expected: str
) -> None:
    class Distribution:
        def read_text(self, name: str) -> str | None:
            assert name == "direct_url.json"
            return recorded and recorded.replace("HERE", str(tmp_path))

    monkeypatch.setattr(source, "distribution", lambda name: Distribution())
    assert source.installable("") == expected.replace("HERE", str(tmp_path))


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="there is no kubectl on this machine")
def test_what_is_deployed_names_its_own_service(tmp_path: Path) -> None:
    folder = made(tmp_path, *EVERYTHING)
    command = ["kubectl", "kustomize", str(folder / "config/default")]
    built = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    objects = {(obj["kind"], obj["metadata"]["name"]): obj for obj in yaml.safe_load_all(built)}
    service = {"name": "welcome-operator-webhook-service", "namespace": "welcome-operator-system"}
    assert ("Service", service["name"]) in objects
    authority = {"cert-manager.io/inject-ca-from": "welcome-operator-system/welcome-operator-serving-cert"}
    for name in ("welcomes.apps.example.com", "policies.example.com"):
        definition = objects["CustomResourceDefinition", name]
        conversion = definition["spec"]["conversion"]["webhook"]["clientConfig"]["service"]
        assert (definition["metadata"]["annotations"], conversion) == (authority, {**service, "path": "/convert"})
    for sort in ("mutating", "validating"):
        found = objects[f"{sort.title()}WebhookConfiguration", f"welcome-operator-{sort}-webhook-configuration"]
        assert found["metadata"]["annotations"] == authority
        assert all(hook["clientConfig"]["service"].items() >= service.items() for hook in found["webhooks"])
    manager = objects["Deployment", "welcome-operator-controller-manager"]["spec"]["template"]["spec"]
    assert "--webhook-cert-path=/tmp/k8s-webhook-server/serving-certs" in manager["containers"][0]["args"]
    assert manager["volumes"][0]["secret"]["secretName"] == "webhook-server-cert"


WEBHOOK = f"create webhook {KIND}"
API = f"create api {KIND}"


@pytest.mark.parametrize(
    ("before", "command", "message", "status"),
    [
        ((), API, "there is no file PROJECT here: run `fakeapiserver init` first", 1),
        ((INIT,), INIT, "holds a project already", 1),
        ((), "init --domain not_a_domain --repo x", "--domain 'not_a_domain'", 2),
        ((), "init --domain example.com --repo 1x", "begin with a letter", 2),
        ((), "init --domain example.com --repo tests", "can't be called 'tests' here", 2),
        ((), "init --domain example.com --repo json", "can't be called 'json' here", 2),
        ((), f"init --domain example.com --repo {'x' * 60}", "must be no more than 63", 2),
        ((INIT,), "create api --group apps --version one --kind Welcome", "--version 'one': must be like v1", 2),
        ((INIT,), "create api --group apps --version v1 --kind welcome", "must be in CamelCase", 2),
        ((INIT,), "create api --group apps --version v1 --kind None", "must be in CamelCase", 2),
        ((INIT,), "create api --group Apps --version v1 --kind Welcome", "--group 'Apps'", 2),
        ((INIT,), f"{API} --plural Welcomes", "--plural 'Welcomes'", 2),
        ((INIT, API), API, "Welcome v1alpha1 is there already", 1),
        (
            (INIT, API),
            "create api --group apps --version v1 --kind Welcome",
            "controllers/welcome.py is there already",
            1,
        ),
        ((INIT,), f"{API} --resource=false", "there is no Welcome v1alpha1, neither in this project nor among", 1),
        ((INIT,), f"{API} --external-api-domain x.io", "say --resource=false too", 1),
        ((INIT,), f"{WEBHOOK} --defaulting", "there is no Welcome v1alpha1", 1),
        ((INIT, API), WEBHOOK, "say what the webhook is for", 1),
        ((INIT, API), f"{WEBHOOK} --conversion", "needs another version of Welcome", 1),
        ((INIT, API), f"{WEBHOOK} --defaulting --spoke v1", "--spoke is for --conversion", 1),
        (
            (INIT, API, f"{WEBHOOK} --defaulting"),
            f"{WEBHOOK} --programmatic-validation",
            "or replace it with --force",
            1,
        ),
        ((INIT,), "create webhook --group core --version v1 --kind Pod --conversion", "Pod isn't this project's", 1),
    ],
)
def test_errors_are_reported_and_nothing_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], before: Sequence[str], command: str, message: str, status: int
) -> None:
    made(tmp_path, *before)
    files = contents(tmp_path)
    assert cli.main([*command.split(), "--folder", str(tmp_path)]) == status
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert contents(tmp_path) == files


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("init --bogus", "fakeapiserver: unknown flag: --bogus (see fakeapiserver init --help)"),
        ("init here", "unexpected argument 'here'"),
        ("create api --group apps", "create api needs --version and --kind, e.g. --version=v1alpha1 --kind=CronJob"),
        (f"{API} --controller=maybe", 'invalid argument "maybe" for "--controller" flag'),
        ("create", "create api or create webhook: choose one"),
        ("create operator", "create api or create webhook, not create operator: choose one"),
    ],
)
def test_a_wrong_command_line_is_reported_in_a_line(
    capsys: pytest.CaptureFixture[str], command: str, message: str
) -> None:
    assert cli.main(command.split()) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import nothing_of_the_sort\n", "setup.py:1: ModuleNotFoundError: No module named 'nothing_of_the_sort'"),
        ("\nnothing()\n", "setup.py:2: NameError: name 'nothing' is not defined"),
        ("def setup(\n", "setup.py:1: SyntaxError: '(' was never closed"),
        ("raise SystemExit('done')\n", "setup.py:1: SystemExit: done"),
    ],
)
def test_code_that_cannot_be_imported_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, message: str
) -> None:
    folder = made(tmp_path, *EVERYTHING[:2])
    setup = folder / "welcome_operator/setup.py"
    setup.write_text(f"{text}# scaffold:imports\n# scaffold:controllers\n")
    files = contents(folder)
    for command in ("manifests", "create api --version v1 --kind Policy"):
        assert cli.main([*command.split(), "--folder", str(folder)]) == 1
        assert capsys.readouterr().err.endswith(f": welcome_operator/{message}\n")
    assert contents(folder) == files


@pytest.mark.timeout(300)
@pytest.mark.slow
def test_what_a_user_changed_stays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = made(tmp_path, *EVERYTHING[:2])
    edited = [
        *("welcome_operator/api/v1alpha1/welcome.py", "welcome_operator/controllers/welcome.py"),
        *("welcome_operator/setup.py", "config/default/kustomization.yaml", "config/rbac/kustomization.yaml"),
        *("config/samples/kustomization.yaml", "pyproject.toml", "Makefile", "tests/conftest.py", "README.md"),
    ]
    for name in edited:
        (folder / name).write_text((folder / name).read_text() + "# mine\n")
    made(folder, *EVERYTHING[2:])
    assert [name for name in edited if not (folder / name).read_text().endswith("# mine\n")] == []
    made(folder, f"{API} --force")
    changed = [name for name in edited if not (folder / name).read_text().endswith("# mine\n")]
    assert changed == edited[:2]
    tests = run(folder, "pytest", "-q", "-p", "no:cacheprovider")
    assert tests.returncode == 0, tests.stdout + tests.stderr


def test_a_missing_marker_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = made(tmp_path, INIT)
    setup = folder / "welcome_operator/setup.py"
    setup.write_text(setup.read_text().replace("# scaffold:controllers", ""))
    files = contents(folder)
    assert cli.main([*API.split(), "--folder", str(folder)]) == 1
    assert "welcome_operator/setup.py has no line `# scaffold:controllers` any more" in capsys.readouterr().err
    assert contents(folder) == files


def test_a_folder_in_use_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "README.md").write_text("mine")
    (tmp_path / "Makefile").write_text("mine")
    assert cli.main([*INIT.split(), "--folder", str(tmp_path)]) == 1
    assert "isn't empty (Makefile): begin in an empty folder" in capsys.readouterr().err
    assert contents(tmp_path) == {"README.md": "mine", "Makefile": "mine"}
    (tmp_path / "Makefile").unlink()
    made(tmp_path, INIT)
    assert (tmp_path / "README.md").read_text() == "mine"


def test_a_failed_write_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert cli.main([*INIT.split(), "--folder", str(tmp_path / "file")]) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"fakeapiserver init: {tmp_path / 'file'}")
    assert error.count("\n") == 1


def test_the_second_version_is_of_the_same_kind(tmp_path: Path) -> None:
    first = "create api --version v1 --kind Proxy --plural proxii --namespaced=false"
    folder = made(tmp_path, INIT, first, "create api --version v2 --kind Proxy --controller=false")
    (path,) = (folder / "config/crd/bases").glob("*.yaml")
    assert path.name == "example.com_proxii.yaml"
    definition = yaml.safe_load(path.read_text())
    assert [(row["name"], row["storage"]) for row in definition["spec"]["versions"]] == [("v1", True), ("v2", False)]
    assert definition["spec"]["scope"] == "Cluster"


def test_files_are_listed_for_programs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made(tmp_path, INIT)
    capsys.readouterr()
    made(tmp_path, f"create api {KIND} --output json")
    found: dict[str, Any] = yaml.safe_load(capsys.readouterr().out)
    assert "welcome_operator/controllers/welcome.py" in found["files"]
