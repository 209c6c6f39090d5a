"""The values in etcd: what a backend needs to know about them, which is the business of higher layers."""

from typing import Protocol

from msgspec import Struct

from fakeapiserver.storage.interface import Index


class Decoded(Struct, frozen=True):
    """An object as storage takes it: canonical JSON without a resourceVersion, the offset where that goes, and the index."""

    value: bytes
    offset: int
    index: Index


class Values(Protocol):
    """Converts between objects and the bytes that API servers keep in etcd, which have no resourceVersion. Keys begin with `/registry`."""

    def encode(self, key: str, value: bytes, index: Index) -> bytes:
        """The bytes for etcd."""

    def decode(self, key: str, data: bytes) -> Decoded | None:
        """The object in the bytes, or None for a key that holds none. Raises ValueError, with the rest of a sentence whose subject is the
        key, for bytes that can't be read, and TransformError for bytes that can't be decrypted."""

    def can_be_stale(self, key: str) -> bool:
        """Reports whether `is_stale` may be true of any bytes of the key."""

    def is_stale(self, key: str, data: bytes) -> bool:
        """Reports whether bytes that can be read are to be written again at the next update, though it changes nothing."""

    def seconds(self, key: str) -> int:
        """The seconds after which etcd deletes an object that is written to the key, 0 for never."""
