"""An operator that computes is not at rest, and one that waits is."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from fakeapiserver.sweep import case
from fakeapiserver.sweep.case import Target
from fakeapiserver.sweep.computing import computes
from fakeapiserver.sweep.process import Command
from fakeapiserver.sweep.scenario import Scenario, applying

WAITS = "import sys; print(flush=True); sys.stdin.read()"
COMPUTES = "print(flush=True)\nwhile True: pass"
BEGINS_ANOTHER = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {COMPUTES!r}])"


# Makes a Secret only after work of some seconds, in which it sends nothing, as for a private key.
SLOW = """
import asyncio, os, time
from fakeapiserver.client import kubeconfig
from fakeapiserver.controller_runtime import Manager, ManagerOptions, Request, controller_managed_by, gvk

class Reconciler:
    def __init__(self, client):
        self.client = client
        self.has_worked = False

    async def reconcile(self, request: Request) -> None:
        if request.name != "site":
            return
        began = time.process_time()
        while not self.has_worked and time.process_time() - began < 1.5:
            pass
        self.has_worked = True
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key", "namespace": "default"}}
        await self.client.create(secret)

async def main():
    manager = Manager(kubeconfig.load(os.environ["KUBECONFIG"]), ManagerOptions(metrics_bind_address="0"))
    controller_managed_by(manager).for_(gvk("v1", "ConfigMap")).complete(Reconciler(manager.client))
    await manager.run_until_signal()

asyncio.run(main())
"""
SITE = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "site"}}


@contextmanager
def running(program: str) -> Iterator[int]:
    """The process group of a program that has begun its work."""
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, process_group=0
    )
    assert process.stdout is not None
    try:
        process.stdout.readline()
        yield process.pid
    finally:
        subprocess.run(["kill", "-9", "--", f"-{process.pid}"], check=True)
        process.communicate()


ON_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="only Linux says which threads are runnable")


@ON_LINUX
@pytest.mark.parametrize("program", [COMPUTES, BEGINS_ANOTHER], ids=["itself", "child"])
def test_a_process_group_computes_if_one_of_its_threads_does(program: str) -> None:
    with running(program) as group:
        assert computes(group)


@ON_LINUX
def test_a_process_that_waits_computes_nothing() -> None:
    with running(WAITS) as group:
        while computes(group):  # on its way to the wait
            pass


def test_a_group_that_is_gone_computes_nothing() -> None:
    assert not computes(2**22 + 1)


@ON_LINUX
def test_a_step_ends_when_its_operator_computes_no_more() -> None:
    target = Target(Command([sys.executable, "-c", SLOW]), Scenario([applying([SITE], "default")]))
    run = case.run(target)
    assert "secrets default/key" in run.states[-1]
