"""The examples in Python, each run by a pytest of its own."""

import sys
from pathlib import Path

import pytest

from tests.commands import output_of
from tests.example_projects.running import copied, environment

__all__ = ["environment"]


@pytest.mark.slow  # each starts an interpreter, imports a client and waits for an operator or a node
@pytest.mark.parametrize(("name", "package", "passed"), [("pytest-kopf", "kopf", 2), ("pytest-kr8s", "kr8s", 1)])
def test_project(environment: dict[str, str], name: str, package: str, passed: int, tmp_path: Path) -> None:
    pytest.importorskip(package, reason="pip install -e '.[clients]'")
    output = output_of([sys.executable, "-m", "pytest", "-p", "no:cacheprovider"], copied(name, tmp_path), environment)
    assert f"{passed} passed" in output
