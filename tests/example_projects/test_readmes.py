"""The pages of the examples show code that is in them, and the helpers have the same names in each language."""

import re
from pathlib import Path

import pytest

from tests.example_projects.running import EXAMPLES
from tests.site.blocks import blocks_of

PROJECTS = sorted(path.parent.name for path in EXAMPLES.glob("*/README.md"))
HELPERS = {
    "go-controller-runtime": "fakecluster/fakecluster.go",
    "java-fabric8": "src/test/java/example/FakeCluster.java",
    "node-vitest": "fake-cluster.js",
    "rust-kube-rs": "tests/fake_cluster/mod.rs",
}
MEMBERS = ("start", "advance", "settle", "fault", "close", "url", "kubeconfig", "token", "ca")


def sources(project: Path) -> set[str]:
    """The lines of all files of a project, without their indentation."""
    files = [path for path in project.rglob("*") if path.is_file() and path.name not in ("README.md", "Cargo.lock")]
    built = {"node_modules", "target", "__pycache__"}
    return {
        line.strip() for path in files if not built & set(path.parts) for line in path.read_text().splitlines()
    }  # fmt: skip


@pytest.mark.parametrize("name", PROJECTS)
def test_a_page_shows_code_of_its_project(name: str) -> None:
    page = (EXAMPLES / name / "README.md").read_text()
    shown = [
        line.strip()
        for block in blocks_of(name, page)
        if block.language not in ("", "sh")
        for line in block.text.splitlines()
    ]
    assert {line for line in shown if line} <= sources(EXAMPLES / name)
    assert 20 <= page.count("\n") <= 40


def test_the_table_has_all_projects() -> None:
    assert sorted(set(re.findall(r"\]\(([\w-]+)\)", (EXAMPLES / "README.md").read_text()))) == PROJECTS


@pytest.mark.parametrize("name", HELPERS)
def test_a_helper_is_small_and_has_the_same_names(name: str) -> None:
    text = (EXAMPLES / name / HELPERS[name]).read_text()
    assert text.count("\n") < 200
    words = {word.lower() for word in re.findall(r"\w+", text)}
    assert {*MEMBERS, "fakecluster", "fakeapiserver", "pip"} <= words
