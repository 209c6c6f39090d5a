"""Free ports of this machine, for servers that are started later."""

import itertools
import os
import socket
from contextlib import closing, suppress
from typing import Final

_HOST: Final = "127.0.0.1"
# Below the ephemeral ports of systems: no other process gets one of these by chance before the server is started, and a client that polls
# for the server can't connect to itself.
_PORTS: Final = range(20_000, 30_000)
_given: Final = itertools.count()


def free_port() -> int:
    """Returns another port each time, and other ports than processes next to this one. Raises OSError if none is free."""
    for _ in _PORTS:
        port = _PORTS[(os.getpid() * 97 + next(_given)) % len(_PORTS)]
        with closing(socket.socket()) as probe, suppress(OSError):
            probe.bind((_HOST, port))
            return port
    raise OSError(f"none of the ports {_PORTS[0]} to {_PORTS[-1]} is free")
