"""Writes small files of etcd, for tests of their reader."""

import hashlib
import struct

from tests.state.etcd.bolt_builder import Builder


def varint(value: int) -> bytes:
    """A number of protobuf."""
    encoded = bytearray()
    while value > 127:
        encoded.append(value & 127 | 128)
        value >>= 7
    return bytes([*encoded, value])


def key_value(key: bytes, value: bytes = b"", created: int = 0, modified: int = 0, version: int = 0) -> bytes:
    """mvccpb.KeyValue."""
    numbers = ((2, created), (3, modified), (4, version))
    encoded = b"\x0a" + varint(len(key)) + key
    encoded += b"".join(varint(number << 3) + varint(amount) for number, amount in numbers if amount)
    return encoded + (b"\x2a" + varint(len(value)) + value if value else b"")


def revision(main: int, sub: int = 0, *, tombstone: bool = False) -> bytes:
    """The key of a write in the bucket `key`."""
    return struct.pack(">Q1sQ", main, b"_", sub) + b"t" * tombstone


class Etcd:
    """A store that keeps every write, from revision 2 on."""

    def __init__(self) -> None:
        self.writes: dict[bytes, bytes] = {}
        self.meta: dict[bytes, bytes] = {}
        self.revision = 1
        self._versions: dict[bytes, tuple[int, int]] = {}

    def put(self, key: bytes, value: bytes) -> "Etcd":
        """Writes a key at the next revision."""
        self.revision += 1
        created, version = self._versions.get(key, (self.revision, 0))
        self._versions[key] = created, version + 1
        self.writes[revision(self.revision)] = key_value(key, value, created, self.revision, version + 1)
        return self

    def delete(self, *keys: bytes) -> "Etcd":
        """Deletes keys in one transaction."""
        self.revision += 1
        for sub, key in enumerate(keys):
            del self._versions[key]
            self.writes[revision(self.revision, sub, tombstone=True)] = key_value(key)
        return self

    def file(self, *, checksum: bool = True, page_size: int = 4096) -> bytes:
        """The bytes of a snapshot, or of a member's file, which has no sum."""
        data = Builder(page_size).build({b"key": self.writes, b"meta": self.meta, b"lease": {}})
        return data + hashlib.sha256(data).digest() * checksum
