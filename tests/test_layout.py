"""The two linked folders are seen by every tool, and README's table names files that exist."""

import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("name", ["auth", "admission"])
def test_a_link_leads_to_the_real_folder(name: str) -> None:
    link = ROOT / "fakeapiserver" / name
    assert link.is_symlink()
    assert link.resolve() == ROOT / name


def test_they_import_as_parts_of_the_package_only() -> None:
    program = (
        "import fakeapiserver.auth.union as a, fakeapiserver.admission.chain, sys; assert 'auth' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_any_package_may_be_imported_first() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "tests" / "each_alone.py"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_the_type_checker_sees_them(tmp_path: Path) -> None:
    """mypy finds a planted mistake in the use of each folder; from another place, as users of an editable install are."""
    pytest.importorskip("mypy", reason="mypy is not installed: pip install -e '.[dev]'")
    for name in ("auth.union", "admission.chain"):
        source = f"import fakeapiserver.{name} as m\nm.no_such_name_anywhere\n"
        command = [sys.executable, "-m", "mypy", "--strict", f"--cache-dir={ROOT / '.mypy_cache'}", "-c", source]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
        assert 'has no attribute "no_such_name_anywhere"' in done.stdout


def test_import_linter_sees_them() -> None:
    grimp = pytest.importorskip("grimp", reason="import-linter is not installed: pip install -e '.[dev]'")
    modules = grimp.build_graph("fakeapiserver").modules
    assert {"fakeapiserver.auth.union", "fakeapiserver.admission.chain"} <= modules


def test_coverage_measures_them(tmp_path: Path) -> None:
    pytest.importorskip("coverage", reason="coverage is not installed: pip install -e '.[dev]'")
    program = tmp_path / "program.py"
    program.write_text("import fakeapiserver.auth.union, fakeapiserver.admission.chain\n")
    data = f"--data-file={tmp_path}/data"
    run = [sys.executable, "-m", "coverage", "run", data, "--source=fakeapiserver", str(program)]
    subprocess.run(run, check=True, cwd=ROOT, capture_output=True)
    report = subprocess.run(
        [sys.executable, "-m", "coverage", "report", data, "--include=*/auth/*,*/admission/*"],
        check=True,
        cwd=ROOT,
        capture_output=True,
        text=True,
    ).stdout
    for name in ("auth/union.py", "admission/chain.py"):
        assert re.search(rf"{name}\s+\d+\s+\d+.* [1-9]\d*%", report), name


def test_ruff_reads_the_real_folders_once() -> None:
    pytest.importorskip("ruff", reason="ruff is not installed: pip install -e '.[dev]'")
    command = [sys.executable, "-m", "ruff", "check", "--show-files", "."]
    shown = subprocess.run(command, check=True, cwd=ROOT, capture_output=True, text=True).stdout.splitlines()
    assert sum(line.endswith("auth/union.py") for line in shown) == 1


@pytest.mark.slow
def test_a_wheel_holds_real_files(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(tmp_path), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no wheel can be built here: {done.stderr.strip().splitlines()[-1]}")
    names = zipfile.ZipFile(next(tmp_path.glob("*.whl"))).namelist()
    for name in (
        "auth/union.py",
        "admission/chain.py",
        "apis/versions/v1.36/schemas.json",
        "apimachinery/schema/go_types.json",
    ):
        assert f"fakeapiserver/{name}" in names
    assert not any(name.startswith(("auth/", "admission/", "tests/", "conformance/")) for name in names)


@pytest.mark.parametrize("document", ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"])
def test_documents_name_files_that_exist(document: str) -> None:
    places = re.findall(
        r"`((?:fakeapiserver|auth|admission|conformance|tests)/[\w/.]+)`", (ROOT / document).read_text()
    )
    missing = [place for place in places if not (ROOT / place).exists()]
    assert missing == []


def test_banned_module_names() -> None:
    banned = {"utils", "helpers", "common", "base", "misc"}
    found = [path for path in (ROOT / "fakeapiserver").rglob("*.py") if path.stem in banned]
    assert found == []


def test_the_entry_points_exist() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for target in (project["scripts"]["fakeapiserver"], project["entry-points"]["pytest11"]["fakeapiserver"]):
        module, _, name = target.partition(":")
        program = f"import {module} as m; {f'm.{name}' if name else 'm'}"
        subprocess.run([sys.executable, "-c", program], check=True)
