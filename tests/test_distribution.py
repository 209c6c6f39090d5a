"""The files of a release are the same in each build, and setup-envtest's archive is complete."""

import gzip
import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path

import pytest
import yaml

from fakeapiserver.cli.flags import parse

DISTRIBUTION = Path(__file__).parents[1] / "distribution"
PROJECT = DISTRIBUTION.parent / "pyproject.toml"
ARCHIVE = "envtest_archive.py"


def run(script: str, *words: object, **environment: str) -> str:
    command = [sys.executable, str(DISTRIBUTION / script), *map(str, words)]
    return subprocess.run(
        command, check=True, capture_output=True, text=True, env={**os.environ, **environment}
    ).stdout.strip()


def sdist(path: Path, *, modified: int, owner: str, mode: int) -> Path:
    """An archive as setuptools writes it."""
    with tarfile.open(path, "w:gz") as archive:
        for name in ("package", "package/b.py", "package/a.py"):
            entry = tarfile.TarInfo(name)
            entry.mtime, entry.uname, entry.mode = modified, owner, mode
            entry.type = tarfile.REGTYPE if "." in name else tarfile.DIRTYPE
            entry.size = len(name) if entry.isreg() else 0
            archive.addfile(entry, io.BytesIO(name.encode()))
    return path


def test_sdists_of_two_builders_have_the_same_bytes(tmp_path: Path) -> None:
    one = sdist(tmp_path / "one.tar.gz", modified=1_700_000_123, owner="anna", mode=0o644)
    other = sdist(tmp_path / "other.tar.gz", modified=1_700_000_456, owner="ben", mode=0o664)
    assert one.read_bytes() != other.read_bytes()
    run("even_sdist.py", one, other, SOURCE_DATE_EPOCH="1700000000")
    assert one.read_bytes() == other.read_bytes()
    with tarfile.open(one) as archive:
        assert [entry.name for entry in archive] == ["package", "package/a.py", "package/b.py"]
        assert archive.extractfile("package/a.py").read() == b"package/a.py"  # type: ignore[union-attr]


def test_the_archive_has_the_programs_beside_the_single_file(tmp_path: Path) -> None:
    single = tmp_path / "single"
    single.write_text('#!/bin/sh\necho "$0" "$@"\n')
    packed = Path(run(f"single_file/{ARCHIVE}", "pack", single, tmp_path / "first"))
    again = Path(run(f"single_file/{ARCHIVE}", "pack", single, tmp_path / "second"))
    assert packed.read_bytes() == again.read_bytes()
    with tarfile.open(packed) as archive:
        assert {entry.name for entry in archive} == {
            f"controller-tools/envtest/{name}" for name in ("etcd", "fakeapiserver", "kube-apiserver", "kubectl")
        }
        archive.extractall(tmp_path, filter="data")
    programs = tmp_path / "controller-tools/envtest"
    done = subprocess.run([programs / "etcd", "--help"], check=True, capture_output=True, text=True)
    started, *words = done.stdout.split()
    assert Path(started) == programs / "fakeapiserver"
    assert words[-4:-2] == ["-m", "fakeapiserver.cli.etcd_stand_in"]
    assert words[-1] == "--help"


@pytest.mark.parametrize(("there", "status", "says"), [(True, 0, "found"), (False, 127, "there is no kubectl")])
def test_the_archives_kubectl_is_the_one_on_the_path(tmp_path: Path, there: bool, status: int, says: str) -> None:
    single = tmp_path / "single"
    single.touch()
    with tarfile.open(run(f"single_file/{ARCHIVE}", "pack", single, tmp_path)) as archive:
        archive.extractall(tmp_path, filter="data")
    elsewhere = tmp_path / "else where"
    elsewhere.mkdir()
    if there:
        (elsewhere / "kubectl").write_text("#!/bin/sh\necho found $1\n")
        (elsewhere / "kubectl").chmod(0o755)
    programs = tmp_path / "controller-tools/envtest"
    environment = {"PATH": f"{programs}:{elsewhere}:{_with_dirname(tmp_path)}"}
    done = subprocess.run(
        [programs / "kubectl", "version"], check=False, capture_output=True, text=True, env=environment
    )
    assert done.returncode == status
    assert says in done.stdout + done.stderr


def _with_dirname(tmp_path: Path) -> Path:
    """A folder with `dirname` alone: this machine may have a kubectl beside it."""
    folder = tmp_path / "tools"
    folder.mkdir()
    (folder / "dirname").symlink_to("/usr/bin/dirname")
    return folder


def test_the_index_names_each_archive_and_its_digest(tmp_path: Path) -> None:
    for name in ("envtest-v1.37.2-linux-amd64.tar.gz", "envtest-v1.37.2-darwin-arm64.tar.gz"):
        (tmp_path / name).write_bytes(gzip.compress(name.encode()))
    index = yaml.safe_load(Path(run(f"single_file/{ARCHIVE}", "index", tmp_path, "https://example.com/a/")).read_text())
    found = index["releases"]["v1.37.2"]
    assert sorted(found) == ["envtest-v1.37.2-darwin-arm64.tar.gz", "envtest-v1.37.2-linux-amd64.tar.gz"]
    for name, entry in found.items():
        assert entry["hash"] == hashlib.sha512((tmp_path / name).read_bytes()).hexdigest()
        assert entry["selfLink"] == f"https://example.com/a/{name}"


# ------------------------------------------------------------------ the image


def instructions() -> list[tuple[str, str]]:
    """The Dockerfile's instructions with their words; each has one line."""
    lines = (DISTRIBUTION / "Dockerfile").read_text(encoding="utf-8").splitlines()
    return [(name, rest) for name, _, rest in (line.partition(" ") for line in lines) if name.isupper()]


def test_the_images_command_is_one_of_the_package() -> None:
    (entry,) = [json.loads(words) for name, words in instructions() if name == "ENTRYPOINT"]
    (command,) = [json.loads(words) for name, words in instructions() if name == "CMD"]
    (exposed,) = [words for name, words in instructions() if name == "EXPOSE"]
    assert entry == [next(iter(tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]["scripts"]))]
    assert command[0] == "serve"
    config = parse(command[1:]).config
    assert (config.bind_address, str(config.secure_port)) == ("0.0.0.0", exposed)


def test_the_image_has_the_whole_package_and_no_administrator() -> None:
    """`COPY .` takes whatever .dockerignore doesn't name."""
    ignored = set((PROJECT.parent / ".dockerignore").read_text(encoding="utf-8").split())
    assert not ignored & {
        path.name for path in PROJECT.parent.iterdir() if path.name not in (".git", "build", "dist", ".venv")
    }
    assert [words for name, words in instructions() if name == "USER"] == ["fakeapiserver"]
