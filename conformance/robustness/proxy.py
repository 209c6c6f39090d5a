"""A network between two processes: it passes bytes on, slowly if wanted, and can be cut, in one direction or for some processes only."""

import asyncio
import os
import re
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

_HOST: Final = "127.0.0.1"
_CHUNK: Final = 1 << 16
_SOCKET: Final = re.compile(r"socket:\[(\d+)\]")


class Proxy:
    """Listens on loopback, in a thread of its own, and connects to `port` there. `delay`: seconds for which each piece is held back;
    `is_deaf`: what comes back isn't passed on; `admits`: whether a client with this port is connected."""

    delay = 0.0
    is_deaf = False

    def __init__(self, port: int, admits: Callable[[int], bool] = lambda port: True, own_port: int = 0) -> None:
        self._to = port
        self._admits = admits
        self._is_cut = False
        self._open: dict[asyncio.StreamWriter, int] = {}  # and the client's port
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._server = self._call(asyncio.start_server(self._connected, _HOST, own_port))

    @property
    def url(self) -> str:
        return f"http://{_HOST}:{self._server.sockets[0].getsockname()[1]}"

    def cut(self) -> None:
        """Resets every connection; new ones are closed at once, until `mend`."""
        self._is_cut = True
        self._call(self._reset(lambda port: False))

    def part(self) -> None:
        """Resets the connections of clients that aren't admitted any more."""
        self._call(self._reset(self._admits))

    def mend(self) -> None:
        self._is_cut = self.is_deaf = False
        self.delay = 0.0

    def close(self) -> None:
        """Ends everything. Nothing can be done with it afterwards."""
        self.cut()
        self._loop.call_soon_threadsafe(self._server.close)
        self._call(self._ended())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    @staticmethod
    async def _ended() -> None:
        """Cancels all that pass bytes on, and returns when they have ended."""
        passing = asyncio.all_tasks() - {asyncio.current_task()}
        for task in passing:
            task.cancel()
        await asyncio.gather(*passing, return_exceptions=True)

    def _call(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _reset(self, stays: Callable[[int], bool]) -> None:
        for writer, port in self._open.items():
            if not stays(port):
                writer.transport.abort()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        port: int = writer.get_extra_info("peername")[1]
        with suppress(OSError):
            if not self._is_cut and self._admits(port):
                to_reader, to_writer = await asyncio.open_connection(_HOST, self._to)
                self._open |= {writer: port, to_writer: port}
                await asyncio.gather(self._pass(reader, to_writer), self._pass(to_reader, writer, is_back=True))
        writer.close()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, is_back: bool = False) -> None:
        try:
            while data := await reader.read(_CHUNK):
                if self.delay:
                    await asyncio.sleep(self.delay)
                if is_back and self.is_deaf:
                    continue
                writer.write(data)
                await writer.drain()
        except OSError:
            pass  # it was cut, or one side is gone
        finally:
            self._open.pop(writer, None)
            writer.close()


def has_socket(process: int, port: int) -> bool:
    """Reports whether a process has the TCP connection whose own port this is (Linux)."""
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        if int(fields[1].rpartition(":")[2], 16) == port and fields[9] != "0":
            return fields[9] in _sockets(process)
    return False


def _sockets(process: int) -> set[str]:
    """The numbers of the sockets that a process has open."""
    numbers = set()
    with suppress(OSError):
        for entry in os.scandir(f"/proc/{process}/fd"):
            with suppress(OSError):
                if match := _SOCKET.fullmatch(os.readlink(entry.path)):
                    numbers.add(match[1])
    return numbers
