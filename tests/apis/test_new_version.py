"""A new Kubernetes version is one folder of recorded tables and one constant, as CONTRIBUTING's recipe says."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

import fakeapiserver
from fakeapiserver.apis import recorded
from fakeapiserver.apis.recorded import NEWEST, VERSIONS, release_of
from fakeapiserver.cli.flags import parse

MADE_UP: Final = "v1.99"
RELEASE: Final = "v1.99.1"
PROGRAM: Final = """
import json, ssl, sys, urllib.request
from fakeapiserver import Cluster

def get(path):
    request = urllib.request.Request(cluster.url + path, headers={"Authorization": f"Bearer {cluster.token}"})
    return json.load(urllib.request.urlopen(request, context=ssl._create_unverified_context()))

with Cluster(**json.loads(sys.argv[1])) as cluster:
    paths = ["/version", "/apis", "/api/v1", "/apis/apps/v1", "/apis/resource.k8s.io/v1"]
    print(json.dumps({path: get(path) for path in paths}))
"""


def test_a_made_up_version_is_served(tmp_path: Path) -> None:
    package = tmp_path / "fakeapiserver"
    link_package(package)
    newest = documents(tmp_path)
    installed = documents(Path(fakeapiserver.__file__).parents[1])
    before = documents(tmp_path, kubernetes_version=NEWEST)
    releases = [served.pop("/version")["gitVersion"] for served in (newest, installed, before)]
    assert releases == [RELEASE, release_of(), release_of()]
    assert newest == installed == before


def link_package(package: Path) -> None:
    """Makes a copy of the package, of links, that has a version more: its newest folder again under another name."""
    source = Path(fakeapiserver.__file__).parent
    link_all(source, package, apart_from="apis")
    link_all(source / "apis", package / "apis", apart_from="versions")
    link_all(VERSIONS, package / "apis/versions")
    constant = package / "apis/recorded.py"
    text = constant.read_text()
    constant.unlink()
    assert text.count(f'"{NEWEST}"') == 1
    constant.write_text(text.replace(f'"{NEWEST}"', f'"{MADE_UP}"'))
    folder = package / "apis/versions" / MADE_UP
    link_all(VERSIONS / NEWEST, folder, apart_from="paths.json")
    paths = json.loads((VERSIONS / NEWEST / "paths.json").read_text())
    paths["version"]["gitVersion"] = RELEASE
    (folder / "paths.json").write_text(json.dumps(paths))


def link_all(source: Path, target: Path, *, apart_from: str = "") -> None:
    target.mkdir()
    for path in source.iterdir():
        if path.name not in (apart_from, "__pycache__"):
            (target / path.name).symlink_to(path)


def documents(root: Path, **options: str) -> dict[str, Any]:
    command = [sys.executable, "-c", PROGRAM, json.dumps(options)]
    completed = subprocess.run(
        command, check=True, capture_output=True, text=True, cwd=root, env={"PYTHONPATH": str(root)}
    )
    parsed: dict[str, Any] = json.loads(completed.stdout)
    return parsed


@pytest.mark.parametrize(
    ("release", "warnings"),
    [
        ("v1.37.2", []),
        ("v1.37.0-alpha.3", ["1.37 is a preview, recorded from 1.37.0-alpha.3: its release may differ"]),
        ("v1.37.0-rc.0", ["1.37 is a preview, recorded from 1.37.0-rc.0: its release may differ"]),
    ],
)
def test_a_preview_is_warned_of(monkeypatch: pytest.MonkeyPatch, release: str, warnings: list[str]) -> None:
    monkeypatch.setattr(recorded, "release_of", lambda version: release)
    assert parse(["--kubernetes-version=1.37"]).warnings == warnings
