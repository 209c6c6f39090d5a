"""The metrics of configuration files that are read again when they change.

Upstream: k8s.io/apiserver/pkg/server/options/{authentication,authorization}config/metrics/metrics.go.
"""

import hashlib
import socket
from typing import Final

from fakeapiserver.apimachinery.instruments import Family, Instruments
from fakeapiserver.clock import Clock
from fakeapiserver.server.upkeep.identity import api_server_id

_SERVER: Final = "apiserver_id_hash"


class ConfigReloads:
    """The metrics of one file; `what` is `authentication` or `authorization`."""

    def __init__(self, what: str, instruments: Instruments, clock: Clock) -> None:
        prefix = f"apiserver_{what}_config_controller"
        self._reloads = Family(f"{prefix}_automatic_reloads_total", f"Reloads of {what}", (_SERVER, "status"))
        last = f"{prefix}_automatic_reload_last_timestamp_seconds"
        self._last = Family(last, "When that was last", (_SERVER, "status"), gauge=True)
        self._info = Family(f"{prefix}_last_config_info", "What is in use", (_SERVER, "hash"), gauge=True)
        self._instruments = instruments
        self._clock = clock
        self._server = _hash(api_server_id(socket.gethostname()).encode())

    def loaded(self, content: bytes) -> None:
        """Records the content that is in use from now on."""
        self._instruments.numbers.pop(self._info, None)
        self._instruments.set(self._info, 1, self._server, _hash(content))

    def succeeded(self, content: bytes) -> None:
        self._count("success")
        self.loaded(content)

    def failed(self) -> None:
        self._count("failure")

    def _count(self, status: str) -> None:
        self._instruments.count(self._reloads, self._server, status)
        self._instruments.set(self._last, int(self._clock.now()), self._server, status)


def _hash(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"
