"""The etcd that a server's flags name: the connection, the storage, and what a server does for it."""

from collections.abc import Callable, Coroutine

from fakeapiserver.chance import Chance
from fakeapiserver.endpoints.scopes import RequestScopes
from fakeapiserver.server.etcd.values import ServerValues
from fakeapiserver.server.options.config import Config, EtcdOptions
from fakeapiserver.storage.etcd.addresses import TLSFiles
from fakeapiserver.storage.etcd.client import Client
from fakeapiserver.storage.etcd.compactor import Compactor
from fakeapiserver.storage.etcd.storage import EtcdStorage

# Seconds between compactions, unless a flag says otherwise (upstream: --etcd-compaction-interval).
COMPACTION_INTERVAL = 300.0


class EtcdBackend:
    """Raises ValueError, with one sentence, if an option is invalid."""

    def __init__(self, options: EtcdOptions) -> None:
        files = TLSFiles(cafile=options.cafile, certfile=options.certfile, keyfile=options.keyfile)
        self._options = options
        self._client = Client.of(options.servers, files)
        self._values = ServerValues(options.media_type, int(options.event_ttl))
        self._storage: EtcdStorage | None = None

    def new_storage(self, chance: Chance) -> EtcdStorage:
        """The storage of a server, which is empty until it is opened."""
        self._storage = EtcdStorage(self._client, self._values, self._options.prefix, chance)
        return self._storage

    async def open(self, scopes: RequestScopes) -> bool:
        """Reads everything, and follows etcd from then on. Returns whether etcd has objects already. Raises EtcdError, ImportError if
        the library is missing."""
        assert self._storage is not None
        self._values.scopes = scopes
        await self._storage.open()
        return any(self._storage.snapshot().buckets.values())

    def index_again(self) -> None:
        """Makes the indices of custom resources that were read before their definitions."""
        assert self._storage is not None
        unknown, self._values.unknown = self._values.unknown, set()
        for prefix in unknown:
            self._storage.reindex(prefix)

    def background(self, config: Config) -> list[Callable[[], Coroutine[None, None, None]]]:
        """Returns the work that goes on while the server does, each until it is cancelled: the compaction of etcd."""
        given = "etcd-compaction-interval" in config.given
        interval = config.etcd_compaction_interval if given else COMPACTION_INTERVAL
        compactor = Compactor(self._client)
        return [lambda: compactor.run(interval)] if interval else []
