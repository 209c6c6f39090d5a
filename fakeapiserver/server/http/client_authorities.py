"""The authorities for client certificates.

Upstream: k8s.io/apiserver/pkg/server/dynamiccertificates/dynamic_cafile_content.go.
"""

import logging
from collections.abc import Callable
from pathlib import Path

from fakeapiserver.server.http.tls_context import TLSContext, server_context
from fakeapiserver.server.options.watched_file import WatchedFile
from fakeapiserver.transport.ca_bundle import check_bundle
from fakeapiserver.transport.files import read_file
from fakeapiserver.transport.key_pair import KeyPair

log = logging.getLogger(__name__)


class ClientAuthorities:
    """The server's `own` authority (PEM) and those of --client-ca-file. OSError and ValueError for an unusable file."""

    def __init__(self, own: bytes, path: Path | None) -> None:
        self._own = own
        self._path = path
        self._users: list[Callable[[bytes], None]] = []
        self._content = read_file(path) if path is not None else b""
        if path is not None:
            check_bundle(self._name, self._content)

    @property
    def bundle(self) -> bytes:
        """Returns the authorities as PEM; b"" without any."""
        return self._own + self._content

    def subscribe(self, use: Callable[[bytes], None]) -> None:
        """Calls `use` with the bundle now, and with each one that replaces it."""
        self._users.append(use)
        use(self.bundle)

    def context(self, serving: KeyPair) -> TLSContext:
        """Returns a TLS context that announces the authorities to clients. ValueError for an unusable key pair."""
        context = server_context(serving.certificate, serving.key)
        self.subscribe(context.announce)
        return context

    async def run(self) -> None:
        """Reads the file again when it changes, until it is cancelled."""
        if self._path is not None:
            await WatchedFile(self._path, self._content, self.replace).run()

    @property
    def _name(self) -> str:
        return f"client-ca-bundle::{self._path}"

    async def replace(self, content: bytes) -> None:
        """Takes another content of the file, if it is any good."""
        try:
            check_bundle(self._name, content)
        except ValueError as error:
            log.error("%s; the last good one stays in use", error)
            return
        self._content = content
        for use in self._users:
            use(self.bundle)
