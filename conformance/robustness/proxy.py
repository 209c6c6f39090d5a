"""A network between two processes: it passes bytes on, slowly if wanted, and can be cut."""

import asyncio
import threading
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, Final

_HOST: Final = "127.0.0.1"
_CHUNK: Final = 1 << 16


class Proxy:
    """Listens on loopback, in a thread of its own, and connects to `port` there. `delay`: seconds for which each piece is held back."""

    delay = 0.0

    def __init__(self, port: int) -> None:
        self._to = port
        self._is_cut = False
        self._open: set[asyncio.StreamWriter] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._server = self._call(asyncio.start_server(self._connected, _HOST, 0))

    @property
    def url(self) -> str:
        return f"http://{_HOST}:{self._server.sockets[0].getsockname()[1]}"

    def cut(self) -> None:
        """Resets every connection; new ones are closed at once, until `mend`."""
        self._is_cut = True
        self._call(self._reset())

    def mend(self) -> None:
        self._is_cut = False

    def close(self) -> None:
        """Ends everything. Nothing can be done with it afterwards."""
        self.cut()
        self._server.close()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _call(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _reset(self) -> None:
        for writer in self._open:
            writer.transport.abort()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            if not self._is_cut:
                to_reader, to_writer = await asyncio.open_connection(_HOST, self._to)
                await asyncio.gather(self._pass(reader, to_writer), self._pass(to_reader, writer))
        writer.close()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        try:
            while data := await reader.read(_CHUNK):
                if self.delay:
                    await asyncio.sleep(self.delay)
                writer.write(data)
                await writer.drain()
        except OSError:
            pass  # it was cut, or one side is gone
        finally:
            self._open.discard(writer)
            writer.close()
