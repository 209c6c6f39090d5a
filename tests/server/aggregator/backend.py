"""An aggregated API server in a thread, by hand: it shows what it was asked, and can answer badly in many ways."""

import asyncio
import base64
import json
import ssl
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from fakeapiserver.transport.certificates import create_authority, issue_server, save

GROUP = "raw.example.com"
ROOT = f"/apis/{GROUP}/v1"
Answer = Callable[["Asked"], Awaitable[None]]


@dataclass
class Asked:
    """A request; `rest` is what follows its head."""

    method: str
    target: str
    headers: dict[str, list[str]]
    client: str
    rest: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def send(self, text: str) -> None:
        self.writer.write(text.encode())
        await self.writer.drain()

    async def answer(self, body: str, status: str = "200 OK", *headers: str) -> None:
        lines = [f"HTTP/1.1 {status}", "Content-Type: application/json", f"Content-Length: {len(body)}", *headers]
        await self.send("\r\n".join([*lines, "", body]))


class Backend:
    """`answers` by the last part of a path. `gone` counts the requests whose client left before they were answered."""

    def __init__(self, folder: Path, front_proxy_ca: str) -> None:
        self.answers: dict[str, Answer] = {}
        self.asked: list[Asked] = []
        self.gone = threading.Semaphore(0)
        self.started = threading.Semaphore(0)
        authority = create_authority()
        self.ca_bundle = base64.b64encode(authority.certificate).decode()
        save(folder, "backend", issue_server(authority, ["raw.default.svc"]))
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(folder / "backend.crt", folder / "backend.key")
        self._context.load_verify_locations(cadata=front_proxy_ca)
        self._context.verify_mode = ssl.CERT_REQUIRED
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        server = asyncio.run_coroutine_threadsafe(
            asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._context), self._loop
        )
        self.port: int = server.result(10).sockets[0].getsockname()[1]

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                await self._one(reader, writer)
        except (EOFError, OSError):
            pass
        finally:
            writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().rstrip().split("\r\n")
        method, target, _ = first.split(" ")
        headers: dict[str, list[str]] = {}
        for line in lines:
            name, _, value = line.partition(": ")
            headers.setdefault(name, []).append(value)
        subject = (writer.get_extra_info("peercert") or {}).get("subject", ())
        client = next((value for part in subject for key, value in part if key == "commonName"), "")
        asked = Asked(method, target, headers, client, reader, writer)
        answer = self.answers.get(target.partition("?")[0].rpartition("/")[2])
        if answer is not None:
            self.asked.append(asked)
            await answer(asked)
        elif target == ROOT:
            await asked.answer(json.dumps({"kind": "APIResourceList", "groupVersion": f"{GROUP}/v1", "resources": []}))
        else:
            await asked.answer("{}", "404 Not Found")

    async def hang(self, asked: Asked) -> None:
        """Sends no response until the client leaves."""
        self.started.release()
        await asked.rest.read()
        self.gone.release()
        raise EOFError
