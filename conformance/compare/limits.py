"""Random bodies and heads at the limits, sent to a real server and to another one: prints each kind of difference once.

    python -m conformance.compare.limits --oracle URL --oracle-token T --server URL --token T [--seed N] [--count N]

Nests, aliases, numbers, duplicate keys and broken UTF-8 in JSON and YAML; bodies around 3 MiB by length and in chunks, to every verb that
reads one; patches of around 10,000 operations; long URLs and headers; compressed, slow and broken bodies. Writes ask for a dry run, beside
a namespace and the objects that they are about. Meanwhile a watchdog checks the other server's health and reports each request that blocks
the server for more than a second.
"""

import http.client
import io
import json
import re
import socket
import ssl
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from conformance.compare.edges import first_difference
from conformance.exchange import Client, comparing
from conformance.free_values import plain
from conformance.random.limits import DEFINITION, HELD_SECONDS, NAMESPACE, OBJECTS, Generator, Request


def exchange(url: str, token: str, request: Request) -> dict[str, Any]:
    """The status, the type, the warnings and the body; a status of 0 where none comes."""
    for _ in range(2):
        answer = _exchange(url, token, request)
        if answer["status"]:
            break
    return answer


def _exchange(url: str, token: str, request: Request) -> dict[str, Any]:
    parts = urlsplit(url)
    context = ssl._create_unverified_context()
    address = (parts.hostname or "", parts.port or 443)
    data = b""
    with context.wrap_socket(socket.create_connection(address, timeout=20)) as connection:
        try:
            for number, piece in enumerate(request.sent(token)):
                if number > 1:
                    time.sleep(0.05)
                connection.sendall(piece)
            if request.missing:
                connection.settimeout(1)
                connection.unwrap()  # nothing more will come
        except OSError:
            pass
        try:
            while piece := connection.recv(1 << 16):
                data += piece
        except (OSError, ValueError):
            pass
    return _parsed(data, request.method)


class _Held:
    """A socket substitute from which http.client reads a response."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def makefile(self, *_: Any, **__: Any) -> io.BytesIO:
        return io.BytesIO(self._data)


def _parsed(data: bytes, method: str) -> dict[str, Any]:
    response = http.client.HTTPResponse(_Held(data), method=method)  # type: ignore[arg-type]
    try:
        response.begin()
        body = response.read()
    except (http.client.HTTPException, ValueError):
        return {"status": 0, "told": ""}
    warnings = [_short(value) for value in response.headers.get_all("Warning", [])]
    told: Any = _short(body.decode(errors="replace"))
    try:
        found = json.loads(body)
        told = _neutral(found) if isinstance(found, dict) else found
    except (ValueError, RecursionError):
        pass
    kind = response.headers.get("Content-Type")
    return {"status": response.status, "type": kind, "warnings": warnings, "told": told}


def _short(text: str) -> str:
    return text if len(text) < 600 else f"{text[:300]} … {text[-200:]}"


def _neutral(value: Any) -> Any:
    if isinstance(value, dict):
        free = ("resourceVersion", "uid", "time")
        return {key: "*" if key in free else _neutral(found) for key, found in value.items()}
    if isinstance(value, list):
        return [_neutral(found) for found in value[:100]]
    return _short(str(plain(value))) if isinstance(value, str) else value


def prepare(url: str, token: str) -> None:
    """Creates the objects that the requests refer to."""
    client = Client(url, token)
    client.send({"method": "POST", "path": "/api/v1/namespaces", "body": {"metadata": {"name": NAMESPACE}}}, [])
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    client.send({"method": "POST", "path": definitions, "body": DEFINITION}, [])
    for path, obj in OBJECTS.items():
        for _ in range(50):
            if client.send({"method": "POST", "path": path, "body": obj}, [])["status"] in (201, 409):
                break
            time.sleep(0.1)


class Watchdog:
    """Asks a server for its health all the time, and remembers the longest wait."""

    def __init__(self, url: str) -> None:
        self.longest = 0.0
        self._address = urlsplit(url).netloc
        self._over = threading.Event()

    @contextmanager
    def watching(self) -> Iterator["Watchdog"]:
        thread = threading.Thread(target=self._watch, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._over.set()
            thread.join()

    def _watch(self) -> None:
        context = ssl._create_unverified_context()
        connection = http.client.HTTPSConnection(self._address, context=context, timeout=60)
        while not self._over.wait(0.05):
            begun = time.monotonic()
            try:
                connection.request("GET", "/livez/ping")
                connection.getresponse().read()
            except (http.client.HTTPException, OSError):
                connection.close()
            self.longest = max(self.longest, time.monotonic() - begun)


def main(arguments: Sequence[str] | None = None) -> int:
    options = comparing(__doc__, count=300).parse_args(arguments)
    prepare(options.oracle, options.oracle_token)
    prepare(options.server, options.token)
    generator = Generator(options.seed)
    kinds: Counter[str] = Counter()
    slow = 0
    with Watchdog(options.server).watching() as watchdog:
        for number in range(options.count):
            request = generator.request()
            expected = exchange(options.oracle, options.oracle_token, request)
            watchdog.longest = 0.0
            begun = time.monotonic()
            got = exchange(options.server, options.token, request)
            if watchdog.longest > HELD_SECONDS:
                slow += 1
                print(
                    f"{number} {request}\n    held the server for {watchdog.longest:.2f} s, took {time.monotonic() - begun:.2f} s"
                )
            if expected["status"] == 500 and got["status"] == 400:
                continue
            if found := first_difference(expected, got):
                kind = re.sub(r"\d+", "N", f"{found[:60]} {request.method}")
                kinds[kind] += 1
                if kinds[kind] == 1:
                    print(f"{number} {request}\n    {expected['status']} {got['status']} {found}")
    print(f"{options.count} requests, {kinds.total()} differ in {len(kinds)} ways, {slow} held the server")
    return 0


if __name__ == "__main__":
    sys.exit(main())
