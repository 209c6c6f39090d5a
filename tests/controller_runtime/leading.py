"""A manager among several: while it leads, its controller and another runnable leave a time stamp every few milliseconds.

python leading.py KUBECONFIG NAMESPACE NAME FILE
"""

import asyncio
import os
import sys
import time

from fakeapiserver.client import kubeconfig
from fakeapiserver.controller_runtime import (
    CacheOptions,
    Manager,
    ManagerOptions,
    ReconcilerFunc,
    Request,
    Result,
    controller_managed_by,
    gvk,
)

LEASE_DURATION, RENEW_DEADLINE, RETRY_PERIOD = 5.0, 4.0, 0.2
_PAUSE = 0.005


class Stamps:
    """A line for each: who, what, and the time that all processes of this machine share."""

    need_leader_election = True

    def __init__(self, name: str, path: str) -> None:
        self._name = name
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def leave(self, what: str) -> None:
        os.write(self._file, f"{self._name} {what} {time.monotonic_ns()}\n".encode())

    async def run(self) -> None:
        while True:
            self.leave("runnable")
            await asyncio.sleep(_PAUSE)

    async def reconcile(self, request: Request) -> Result:
        self.leave("reconcile")
        return Result(requeue_after=_PAUSE)


def main(config: str, namespace: str, name: str, path: str) -> None:
    options = ManagerOptions(
        cache=CacheOptions(namespaces=[namespace]),
        leader_election=True,
        leader_election_id="leading",
        leader_election_namespace=namespace,
        leader_election_release_on_cancel=True,
        lease_duration=LEASE_DURATION,
        renew_deadline=RENEW_DEADLINE,
        retry_period=RETRY_PERIOD,
    )
    manager = Manager(kubeconfig.load(config), options)
    stamps = Stamps(name, path)
    manager.add(stamps)
    controller_managed_by(manager).for_(gvk("v1", "ConfigMap")).complete(ReconcilerFunc(stamps.reconcile))
    asyncio.run(manager.run_until_signal())


if __name__ == "__main__":
    main(*sys.argv[1:])
