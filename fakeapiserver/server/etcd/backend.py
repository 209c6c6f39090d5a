"""The etcd that a server's flags name: the connection, the storage, and what a server does for it."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from typing import Final

from fakeapiserver.chance import Chance
from fakeapiserver.endpoints.scopes import RequestScopes
from fakeapiserver.server.etcd.port_record import EtcdPortRecord
from fakeapiserver.server.etcd.values import ServerValues
from fakeapiserver.server.options.config import Config, EtcdOptions
from fakeapiserver.server.options.watched_file import WatchedFile
from fakeapiserver.storage.encryption import configuration
from fakeapiserver.storage.encryption.transformers import NO_ENCRYPTION
from fakeapiserver.storage.etcd.addresses import TLSFiles
from fakeapiserver.storage.etcd.client import Client
from fakeapiserver.storage.etcd.compactor import Compactor
from fakeapiserver.storage.etcd.connection import MissingLibrary
from fakeapiserver.storage.etcd.errors import EtcdError, NeedsUser, NoQuorum, NoSpace
from fakeapiserver.storage.etcd.storage import EtcdStorage
from fakeapiserver.storage.interface import Unreadable

# Seconds between compactions, unless a flag says otherwise (upstream: --etcd-compaction-interval).
COMPACTION_INTERVAL: Final = 300.0
# The longest time of a request, as upstream's for reads; the deadline of a client's request is shorter.
_TIMEOUT: Final = 60.0
# Seconds that a check of etcd's health may take (upstream: --etcd-healthcheck-timeout), and between two of them.
_HEALTH_TIMEOUT: Final = 2.0
_HEALTH_INTERVAL: Final = 1.0

_ADVICE: Final[Mapping[type[EtcdError], str]] = {
    NoQuorum: "; more than half of its members must be up, and reach each other",
    NoSpace: "; compact and defragment it and disarm its alarm, or only read it, by --read-only",
    NeedsUser: (
        "; it has authentication enabled, and knows a server by the common name of its client certificate: name one by --etcd-certfile "
        "and --etcd-keyfile, or disable authentication"
    ),
}
log = logging.getLogger(__name__)


class EtcdBackend:
    """Raises ValueError, with one sentence, if an option is invalid."""

    def __init__(self, options: EtcdOptions) -> None:
        files = TLSFiles(cafile=options.cafile, certfile=options.certfile, keyfile=options.keyfile)
        self._options = options
        self._client = Client.of(options.servers, files, _TIMEOUT)
        file = options.encryption_config
        self._encryption = b"" if file is None else configuration.read(file)
        encryption = NO_ENCRYPTION if file is None else configuration.transformers(self._encryption, str(file))
        self._values = ServerValues(options.media_type, int(options.event_ttl), encryption, options.prefix)
        self.port_record = EtcdPortRecord(self._client, self._values, options.prefix)
        self._storage: EtcdStorage | None = None
        # Whether etcd has responded to the last check.
        self.is_healthy = True

    def new_storage(self, chance: Chance, *, is_read_only: bool = False) -> EtcdStorage:
        """The storage of a server, which is empty until it is opened."""
        self._client.is_read_only = is_read_only
        self._storage = EtcdStorage(self._client, self._values, self._options.prefix, chance)
        return self._storage

    async def open(self, scopes: RequestScopes) -> bool:
        """Reads everything, and follows etcd from then on. Returns whether etcd has objects already. Raises OSError, with one sentence, if
        etcd can't be used or the library is missing."""
        assert self._storage is not None
        self._values.scopes = scopes
        try:
            await self._storage.open()
        except MissingLibrary as error:
            raise OSError(str(error)) from None
        except EtcdError as error:
            raise _problem(error) from None
        return any(self._storage.snapshot().buckets.values())

    @staticmethod
    async def started(starting: Coroutine[None, None, None]) -> None:
        """Waits for the start of the server. Raises OSError, with one sentence, if what is needed for it can't be decrypted or written."""
        try:
            await starting
        except Unreadable as error:
            raise OSError(f"{error.in_list}: --encryption-provider-config has no key for it") from None
        except EtcdError as error:
            raise _problem(error) from None

    def decode_again(self) -> None:
        """Decodes the custom resources again that were read before their definitions, if these are there now."""
        assert self._storage is not None
        for prefix in self._values.defined():
            self._storage.decode_again(prefix)

    def background(self, config: Config) -> list[Callable[[], Coroutine[None, None, None]]]:
        """Returns the work that goes on while the server does, each until it is cancelled: the compaction of etcd, and what
        watches a file."""
        given = "etcd-compaction-interval" in config.given
        interval = config.etcd_compaction_interval if given else COMPACTION_INTERVAL
        assert self._storage is not None
        compactor = Compactor(self._client, self._storage.forget)
        compacts = interval and not config.read_only
        work = [self._look_after, *([lambda: compactor.run(interval)] if compacts else [])]
        file = self._options.encryption_config
        if file is not None and self._options.reloads_encryption:
            work.append(WatchedFile(file, self._encryption, self._encrypt_by).run)
        return work

    async def _encrypt_by(self, content: bytes) -> None:
        """Uses a changed configuration from now on, unless it is invalid."""
        file = self._options.encryption_config
        try:
            self._values.encryption = configuration.transformers(content, str(file))
        except ValueError as error:
            log.error("error processing encryption config file %s: %s", file, error)
            return
        assert self._storage is not None
        try:
            await self._storage.read_again()
        except EtcdError as error:
            log.error("what couldn't be decrypted can't be read again: %s", error)

    async def _look_after(self) -> None:
        """Checks etcd's health, and what has changed since."""
        assert self._storage is not None
        while True:
            self.decode_again()
            self.is_healthy = await self._storage.is_healthy(_HEALTH_TIMEOUT)
            await asyncio.sleep(_HEALTH_INTERVAL)


def _problem(error: EtcdError) -> OSError:
    """Why a server can't start, with advice."""
    return OSError(f"{error}{next((advice for kind, advice in _ADVICE.items() if isinstance(error, kind)), '')}")
