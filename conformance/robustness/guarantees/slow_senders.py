"""Connections that send slowly or nothing: they are closed in time, and delay no other client."""

import socket
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from typing import Final

from conformance.robustness.attacks.prober import Prober
from conformance.robustness.client import Credentials
from conformance.robustness.guarantees.guarantee import Report, milliseconds
from conformance.robustness.served import served

# Seconds: kube-apiserver's limit for a head (32) and what may be added, and between two bytes of a slow one.
_LIMIT: Final = 32.0
_MORE: Final = 5.0
_DRIP: Final = 3.0
_READ: Final = 4096
_ALLOWED: Final = 0.1


def _silent(_: ssl.SSLSocket) -> None:
    """Sends nothing after the handshake."""


def _half_a_head(connection: ssl.SSLSocket) -> None:
    connection.sendall(b"GET /version HTTP/1.1\r\nHost: a\r\nX-Half: ")


def _drip(connection: ssl.SSLSocket) -> None:
    connection.sendall(b"GET /version HTTP/1.1\r\nHost: a\r\nX-Slow: ")
    connection.settimeout(_DRIP)
    while True:
        try:
            if not connection.recv(_READ):
                return
        except TimeoutError:
            connection.sendall(b"x")


_KINDS: Final[Mapping[str, Callable[[ssl.SSLSocket], None]]] = {
    "silent": _silent,
    "half a head": _half_a_head,
    "a byte now and then": _drip,
}


def slow_senders(full: bool) -> Report:
    """Opens such connections, and measures when they end and how long another client waits."""
    each = 125 if full else 5
    ends: dict[str, list[float]] = {kind: [] for kind in ("no handshake", *_KINDS)}
    with served() as server:
        prober = Prober(server.kubeconfig, server.process)
        prober.begin()
        threads = [
            threading.Thread(target=_one, args=(server.credentials, kind, ends[kind]), daemon=True)
            for kind in ends
            for _ in range(each)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(_LIMIT + 2 * _MORE)
        waits = prober.end()
        prober.close()
    problems = []
    for kind, seconds in ends.items():
        if len(seconds) < each:
            problems.append(f"{kind}: {each - len(seconds)} of {each} connections were not closed")
        if seconds and max(seconds) > _LIMIT + _MORE:
            problems.append(f"{kind}: closed after {max(seconds):.0f} s only")
    if waits.held > _ALLOWED:
        problems.append(f"another client waited {milliseconds(waits.held)}")
    figures = {kind: f"closed after {max(seconds, default=0):.1f} s at most" for kind, seconds in ends.items()}
    return Report(
        {"connections": str(each * len(ends)), **figures, "longest wait of another client": milliseconds(waits.held)},
        problems,
    )


def _one(credentials: Credentials, kind: str, ends: list[float]) -> None:
    host, port = credentials.address.split(":")
    began = time.monotonic()
    with socket.create_connection((host, int(port)), timeout=_LIMIT + 2 * _MORE) as plain:
        try:
            if kind == "no handshake":
                _wait_for_end(plain)
            else:
                with credentials.context.wrap_socket(plain, server_hostname=host) as connection:
                    _KINDS[kind](connection)
                    _wait_for_end(connection)
        except TimeoutError:
            return
        except OSError:
            pass  # it is closed
    ends.append(time.monotonic() - began)


def _wait_for_end(connection: socket.socket) -> None:
    while connection.recv(_READ):
        pass
