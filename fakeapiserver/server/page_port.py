"""The page in a browser: served by the HTTPS port, and by a port without TLS on loopback, where no browser warns of the certificate."""

from typing import Final

from fakeapiserver.endpoints.request import ASGIApplication
from fakeapiserver.server.http.serving import Server
from fakeapiserver.ui.application import UIApplication
from fakeapiserver.ui.sessions import Sessions

_LOOPBACK: Final = "127.0.0.1"


class PagePort:
    """The page of one server. Call order: construct, `await start()`, `await stop()`."""

    def __init__(self, application: ASGIApplication, port: int) -> None:
        """`application`: the API server. `port`: on loopback; 0 takes a free one."""
        self._sessions = Sessions()
        self.application = UIApplication(application, self._sessions)
        self._server = Server(UIApplication(application, self._sessions, is_open=False), host=_LOOPBACK, port=port)

    async def start(self) -> None:
        """Opens the port on loopback. Raises OSError if it can't be had."""
        try:
            await self._server.start()
        except OSError as error:
            raise OSError(
                f"can't listen on {_LOOPBACK}:{self._server.port}: {error.strerror or error}; choose another with --ui-port"
            ) from error

    async def stop(self) -> None:
        """Closes it."""
        await self._server.stop()

    def new_link(self) -> str:
        """Returns an address that logs one browser in, once, within an hour."""
        return f"http://{_LOOPBACK}:{self._server.port}/ui/login?code={self._sessions.new_code()}"
