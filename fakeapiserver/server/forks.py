"""The forks of a server: servers of their own in its process, from its state of a moment. They end with it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

from msgspec import Struct, structs

from fakeapiserver.server.options.config import Config, EtcdOptions

# The most forks of a server that run at a time.
_MOST: Final = 8


class Page(Protocol):
    """The page of a server."""

    def new_link(self) -> str: ...


class Server(Protocol):
    """A running server (server/local.py)."""

    @property
    def url(self) -> str: ...

    @property
    def page(self) -> Page | None: ...

    async def stop(self) -> None: ...


class Fork(Struct, frozen=True):
    """A fork that runs: its number, its server, and the revision from which it started."""

    id: int
    server: Server
    revision: int


def config_of(config: Config) -> Config:
    """Returns the configuration of a fork, which is in memory and has ports of its own."""
    config = structs.replace(config, secure_port=0, ui_port=0, crds=(), webhooks=())
    return structs.replace(config, data_dir=None, load=None, etcd=EtcdOptions(), read_only=False)


class Forks:
    """The forks of one server that run, by their numbers."""

    def __init__(self, start: Callable[[], Awaitable[Server]], revision: Callable[[], int]) -> None:
        """`start` forks the server and returns the fork, which runs. `revision`: that of the server's state."""
        self._start = start
        self._revision = revision
        self._running: dict[int, Fork] = {}
        self._last = 0
        self._lock = asyncio.Lock()
        self._is_closed = False

    async def add(self) -> Fork:
        """Starts a fork. Raises ValueError for too many of them, and OSError if it can't start."""
        async with self._lock:
            if self._is_closed:
                raise ValueError("this server is about to end")
            if len(self._running) >= _MOST:
                raise ValueError(f"{_MOST} forks run already: end one of them")
            revision = self._revision()
            server = await self._start()
            self._last += 1
            fork = self._running[self._last] = Fork(self._last, server, revision)
            return fork

    def list(self) -> list[Fork]:
        """Returns those that run, oldest first."""
        return [*self._running.values()]

    def find(self, number: int) -> Fork:
        """Returns a fork. Raises KeyError if none with this number runs."""
        return self._running[number]

    async def end(self, number: int) -> None:
        """Ends a fork. Raises KeyError if none with this number runs."""
        await self._running.pop(number).server.stop()

    async def close(self) -> None:
        """Ends all forks, and lets no other one start."""
        async with self._lock:
            self._is_closed = True
            while self._running:
                _, fork = self._running.popitem()
                await fork.server.stop()
