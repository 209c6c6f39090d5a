"""ASGI servers in a thread of the test's process, on a free port of 127.0.0.1."""

import asyncio
import http.client
import importlib
import pkgutil
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any, Literal

import uvicorn
from hypercorn.asyncio import serve
from hypercorn.config import Config

from fakeapiserver import controller_manager, controllers, nodes

# What a server imports when it starts is imported here, in the main thread: Python 3.11 fails in a server's thread where pytest has yet to
# rewrite a module ("AST constructor recursion depth mismatch").
for package in (controller_manager, controllers, nodes):
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        importlib.import_module(module.name)

Serving = Callable[[Any], AbstractContextManager[str]]


def _listener() -> socket.socket:
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(128)
    return listener


def _url(listener: socket.socket) -> str:
    return f"http://127.0.0.1:{listener.getsockname()[1]}"


def _answering(url: str) -> str:
    """The URL, once the server answers there."""
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=60)
    connection.request("GET", "/")
    connection.getresponse().read()
    connection.close()
    return url


@contextmanager
def by_uvicorn(app: Any, *, websockets: Literal["auto", "wsproto"] = "auto") -> Iterator[str]:
    """The base URL of `app` under uvicorn. `websockets`: the library that reads them."""
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=1, ws=websockets))
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


SERVERS: dict[str, Serving] = {
    "uvicorn": by_uvicorn,
    "uvicorn with wsproto": partial(by_uvicorn, websockets="wsproto"),
    "hypercorn": by_hypercorn,
}
