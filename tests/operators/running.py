"""Starts the operators of `programs/` as processes."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fakeapiserver import Cluster
from tests.clients.fetching import fetched

PROGRAMS = Path(__file__).with_name("programs")


def _python(name: str, _: Path) -> list[str]:
    command = [sys.executable, str(PROGRAMS / f"{name}_operator.py")]
    if name == "kopf":
        pytest.importorskip("kopf", reason="pip install -e '.[clients]'")
        command[1:1] = ["-m", "kopf", "run", "--all-namespaces", "--standalone"]
    elif name != "runtime":
        pytest.importorskip(name, reason="pip install -e '.[clients]'")
    return command


def _go(_: str, folder: Path) -> list[str]:
    go = shutil.which("go")
    if go is None:
        pytest.skip("no Go on the PATH to build the operator with")
    program = str(folder / "operator")
    environment = {**os.environ, "CGO_ENABLED": "0", "GOTOOLCHAIN": "local"}
    fetched([go, "build", "-buildvcs=false", "-o", program, "."], PROGRAMS / "go", environment)
    return [program]


def _java(_: str, folder: Path) -> list[str]:
    if shutil.which("mvn") is None:
        pytest.skip("no mvn, Java's Maven, on the PATH to build the operator with")
    project = folder / "java"
    shutil.copytree(PROGRAMS / "java", project)
    fetched(["mvn", "-B", "-q", "compile", "dependency:build-classpath", "-Dmdep.outputFile=classpath"], project)
    return ["java", "-cp", f"{project}/target/classes:{(project / 'classpath').read_text()}", "Operator"]


# What returns the command that starts an operator, after building it in a folder.
BUILDERS: dict[str, Callable[[str, Path], list[str]]] = {
    "runtime": _python,
    "kopf": _python,
    "lightkube": _python,
    "kr8s": _python,
    "go": _go,
    "java": _java,
}


@contextmanager
def running(command: list[str], cluster: Cluster, bug: str = "") -> Iterator[None]:
    """Runs an operator from when it watches until the end of the block, with a fault in its code if `bug` names one."""
    environment = {**os.environ, "KUBECONFIG": cluster.kubeconfig, "BUG": bug}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        _wait_for_its_watch(cluster, process)
        yield
    finally:
        process.kill()
        output, _ = process.communicate()
        print(f"the operator printed:\n{output[-3000:]}")


def _wait_for_its_watch(cluster: Cluster, process: subprocess.Popen[str]) -> None:
    for _ in range(60):
        try:
            cluster.requests.wait_for("watch websites", timeout=0.5)
        except TimeoutError:
            assert process.poll() is None, "the operator has ended"
        else:
            return
    pytest.fail("the operator doesn't watch websites")
