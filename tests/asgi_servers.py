"""ASGI servers in a thread of the test's process, on a free port of 127.0.0.1."""

import asyncio
import http.client
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import uvicorn
from hypercorn.asyncio import serve
from hypercorn.config import Config

Serving = Callable[[Any], AbstractContextManager[str]]


def _listener() -> socket.socket:
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(128)
    return listener


def _url(listener: socket.socket) -> str:
    return f"http://127.0.0.1:{listener.getsockname()[1]}"


def _answering(url: str) -> str:
    """The URL, once the server answers there: two threads that import at the same time crash Python 3.11 under pytest."""
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=60)
    connection.request("GET", "/")
    connection.getresponse().read()
    connection.close()
    return url


@contextmanager
def by_uvicorn(app: Any) -> Iterator[str]:
    """The base URL of `app` under uvicorn."""
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=1))
    with _listener() as listener:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield _answering(_url(listener))
        finally:
            server.should_exit = True
            thread.join()


@contextmanager
def by_hypercorn(app: Any) -> Iterator[str]:
    """The base URL of `app` under hypercorn, which speaks HTTP/1.1 and HTTP/2."""
    loop = asyncio.new_event_loop()
    stopped = asyncio.Event()
    listener = _listener()
    url = _url(listener)
    config = Config()
    config.bind = [f"fd://{listener.detach()}"]  # hypercorn closes it
    config.graceful_timeout = 1
    config.errorlog = None

    async def run() -> None:
        await serve(app, config, shutdown_trigger=stopped.wait)

    thread = threading.Thread(target=loop.run_until_complete, args=(run(),))
    thread.start()
    try:
        yield _answering(url)
    finally:
        loop.call_soon_threadsafe(stopped.set)
        thread.join()
        loop.close()


SERVERS: dict[str, Serving] = {"uvicorn": by_uvicorn, "hypercorn": by_hypercorn}
