"""The network that the harness cuts: what passes, and for which processes."""

import os
import socket
import threading
from collections.abc import Iterator

import pytest

from conformance.robustness.proxy import Proxy, has_socket


@pytest.fixture
def echo() -> Iterator[int]:
    """The port of a server that sends back what it gets."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                threading.Thread(target=answer, args=(connection,), daemon=True).start()

        def answer(connection: socket.socket) -> None:
            with connection:
                while data := connection.recv(100):
                    connection.sendall(data)

        threading.Thread(target=serve, daemon=True).start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)


def connected(proxy: Proxy) -> socket.socket:
    host, _, port = proxy.url.removeprefix("http://").partition(":")
    return socket.create_connection((host, int(port)), timeout=5)


def passes(connection: socket.socket) -> bool:
    try:
        connection.sendall(b"x")
        return connection.recv(1) == b"x"
    except OSError:
        return False


def test_a_cut_resets_connections_and_refuses_new_ones_until_it_is_mended(echo: int) -> None:
    proxy = Proxy(echo)
    with connected(proxy) as first:
        assert passes(first)
        proxy.cut()
        assert not passes(first)
    with connected(proxy) as second:
        assert not passes(second)
    proxy.mend()
    with connected(proxy) as third:
        assert passes(third)
    proxy.close()


def test_a_deaf_network_loses_answers(echo: int) -> None:
    proxy = Proxy(echo)
    with connected(proxy) as connection:
        proxy.is_deaf = True
        connection.settimeout(0.1)
        assert not passes(connection)
    proxy.close()


def test_a_parted_process_is_recognised_by_its_sockets(echo: int) -> None:
    """Here that is this process, whose connection is reset; another process would stay connected."""
    parted: list[int] = []
    proxy = Proxy(echo, lambda port: not any(has_socket(process, port) for process in parted))
    with connected(proxy) as connection:
        parted.append(os.getppid())
        proxy.part()
        assert passes(connection)
        parted.append(os.getpid())
        proxy.part()
        assert not passes(connection)
    with connected(proxy) as connection:
        assert not passes(connection)
    proxy.close()
