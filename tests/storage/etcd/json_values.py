"""Objects as JSON in etcd, as the suite of all backends writes them."""

import msgspec

from fakeapiserver.storage.etcd.values import Decoded
from fakeapiserver.storage.interface import Index
from fakeapiserver.testing import storage_suite as suite


class JSONValues:
    """The label `note` is the object's own `note`. What expires does so after `ttl` seconds."""

    def __init__(self, ttl: int = 0) -> None:
        self.decoded = 0
        self._ttl = ttl

    def encode(self, key: str, value: bytes, index: Index) -> bytes:
        return value

    def decode(self, key: str, data: bytes) -> Decoded | None:
        self.decoded += 1
        if not data.startswith(b"{"):
            raise ValueError("is no JSON")
        labels = {"note": note} if (note := msgspec.json.decode(data).get("note")) is not None else {}
        return Decoded(data, suite.OFFSET, Index(labels))

    def can_be_stale(self, key: str) -> bool:
        return False

    def is_stale(self, key: str, data: bytes) -> bool:
        return False

    def seconds(self, key: str) -> int:
        return self._ttl
