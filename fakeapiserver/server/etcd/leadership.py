"""Leader election: one server of all on an etcd runs the controllers: that which holds kube-controller-manager's Lease.

A real kube-controller-manager takes part in the same election, so controllers never run twice. The lease is renewed by the machine's
clock, whatever the server's clock shows, since the others don't have that.

Upstream: cmd/kube-controller-manager/app/controllermanager.go.
"""

import asyncio
import logging
import socket
import uuid
from collections.abc import Awaitable, Callable
from typing import Final

from fakeapiserver.client.dynamic import DynamicClient
from fakeapiserver.client.leaderelection import LeaderElector, LeaseLock
from fakeapiserver.client.rest import RESTClient

_NAMESPACE, _NAME = "kube-system", "kube-controller-manager"
# Seconds that a server waits at its start until it leads, or knows who does.
_START: Final = 5.0
log = logging.getLogger(__name__)


class Leadership:
    """`client` reads and writes the Lease. `begin` and `run` are the work of the leader, `resign` is called when it leads no more."""

    def __init__(
        self,
        client: RESTClient,
        begin: Callable[[], Awaitable[None]],
        run: Callable[[], Awaitable[None]],
        resign: Callable[[], None],
    ) -> None:
        self._client = client
        self._begin = begin
        self._run = run
        self._resign = resign
        self._identity = f"{socket.gethostname()}_{uuid.uuid4()}"
        # Set when this server leads and has begun, or another one leads.
        self._decided = asyncio.Event()

    async def decided(self) -> None:
        """Returns when this server's controllers have begun or others' run, and after five seconds in any case."""
        try:
            async with asyncio.timeout(_START):
                await self._decided.wait()
        except TimeoutError:
            log.warning("it isn't known yet which server runs the controllers")

    async def run(self) -> None:
        """Takes part in the election, again after each loss of the leadership, until it is cancelled."""
        while True:
            elector = LeaderElector(
                LeaseLock(DynamicClient(self._client), _NAMESPACE, _NAME, self._identity),
                on_started_leading=self._lead,
                on_stopped_leading=self._resign,
                on_new_leader=self._see,
                release_on_cancel=True,
            )
            try:
                await elector.run()
            except Exception as error:
                log.error("the controllers can't go on: %s", error)
                await asyncio.sleep(1)

    async def _lead(self) -> None:
        log.info("this server runs the controllers")
        await self._begin()
        self._decided.set()
        await self._run()

    def _see(self, leader: str) -> None:
        if leader != self._identity:
            log.info("%s runs the controllers", leader)
            self._decided.set()
