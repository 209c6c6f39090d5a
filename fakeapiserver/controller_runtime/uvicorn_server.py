"""uvicorn's server as a manager runs it: signals are the program's, and what is left can be aborted."""

import logging
import ssl
from contextlib import nullcontext
from typing import Any

import uvicorn


class Server(uvicorn.Server):
    """Serves an application of ASGI; `tls`: with HTTPS."""

    def __init__(self, application: Any, tls: ssl.SSLContext | None) -> None:
        config = uvicorn.Config(
            application,
            interface="asgi3",
            lifespan="off",
            proxy_headers=False,
            log_config=None,
            log_level=logging.WARNING,
            access_log=False,
        )
        config.load()
        config.ssl = tls
        super().__init__(config)

    def install_signal_handlers(self) -> None:
        """Signals are the program's."""

    def abort(self) -> None:
        """Closes the port, and resets the connections that are left."""
        for each in getattr(self, "servers", ()):
            each.close()
        for connection in [*self.server_state.connections]:
            transport = getattr(connection, "transport", None)
            if transport is not None:
                transport.abort()

    def capture_signals(self) -> Any:
        """The same."""
        return nullcontext()
