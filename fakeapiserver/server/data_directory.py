"""The data directory of a server: what it starts with, and what it keeps there.

The Kubernetes version, the certificate authority, the admin's token and the key of tokens are kept with the objects, so that every
credential is valid after a restart. Flags are not kept.
"""

from pathlib import Path
from typing import Final, cast

import msgspec
from msgspec import structs

from fakeapiserver.chance import Chance
from fakeapiserver.clock import Clock
from fakeapiserver.server.options.config import Config
from fakeapiserver.server.origin import Origin, origin_of
from fakeapiserver.state import file
from fakeapiserver.storage.file import database as databases
from fakeapiserver.storage.file import file_storage
from fakeapiserver.storage.file.copied import copied
from fakeapiserver.storage.mvcc import MVCC

_encoder: Final = msgspec.json.Encoder()
_decoder: Final = msgspec.json.Decoder(file.Keys)


class DataDirectory:
    """An open data directory. Raises OSError and ValueError as storage.file.database.Database does."""

    def __init__(self, folder: Path, sync: str) -> None:
        self.folder = folder
        self.database = databases.Database(folder, cast("databases.Sync", sync))
        self.is_fresh = self.database.is_empty
        self._storage: file_storage.FileStorage | None = None

    def origin(self, config: Config) -> tuple[Config, Origin]:
        """The kept state, and the configuration of a server for it."""
        return _origin(self.database, config)

    def new_storage(self, clock: Clock, state: MVCC | None, chance: Chance) -> "file_storage.FileStorage":
        """The storage of a server; what it writes isn't kept before `begin`, unless the directory has its state already."""
        self._storage = file_storage.FileStorage(self.database, clock.now, state, chance)
        if not self.is_fresh:
            self._storage.resume()
        return self._storage

    async def begin(self, kubernetes_version: str, keys: "file.Keys") -> None:
        """Keeps the state of the server from now on, with these keys."""
        assert self._storage is not None
        facts = databases.Facts(kubernetes_version, _encoder.encode(keys))
        if self.is_fresh:
            await self._storage.begin(facts)
        else:
            self.database.describe(facts)

    def close(self) -> None:
        self.database.close()


def read(folder: Path, config: Config) -> tuple[Config, Origin]:
    """The kept state, and the configuration of a server for it, without a write to the folder. Raises OSError and ValueError as
    storage.file.database.Database does."""
    with copied(folder) as database:
        return _origin(database, config)


def _origin(database: databases.Database, config: Config) -> tuple[Config, Origin]:
    """`config` is completed by the Kubernetes version of the state, unless it asks for one."""
    facts = database.facts
    keys = _decoder.decode(facts.keys)
    saved = file.Saved(facts.kubernetes_version, database.load(), database.seconds, keys=keys)
    if "kubernetes-version" not in config.given:
        config = structs.replace(config, kubernetes_version=facts.kubernetes_version)
    return config, origin_of(saved)
