"""Writes small files of bbolt, for tests of their reader."""

import struct
from collections.abc import Mapping
from typing import Any

from fakeapiserver.state.etcd.bolt import MAGIC, VERSION, checksum

BRANCH, LEAF, META, FREELIST = 0x01, 0x02, 0x04, 0x10
Tree = Mapping[bytes, Any]


def header(number: int, flags: int, count: int, further: int = 0) -> bytes:
    """The first 16 bytes of a page."""
    return struct.pack("<QHHI", number, flags, count, further)


def meta(number: int, page_size: int, root: int, end: int, transaction: int) -> bytes:
    """A root of the file, not filled up to a page."""
    fields = struct.pack("<IIIIQQQQQ", MAGIC, VERSION, page_size, 0, root, 0, 2, end, transaction)
    return header(number, META, 0) + fields + struct.pack("<Q", checksum(fields))


def leaf(number: int, items: list[tuple[int, bytes, bytes]], further: int = 0) -> bytes:
    """A leaf of (flags, key, value), not filled up to a page."""
    table, content = b"", b""
    for index, (flags, key, value) in enumerate(items):
        position = (len(items) - index) * 16 + len(content)
        table += struct.pack("<IIII", flags, position, len(key), len(value))
        content += key + value
    return header(number, LEAF, len(items), further) + table + content


def branch(number: int, children: list[tuple[bytes, int]]) -> bytes:
    """A branch of (first key, page), not filled up to a page."""
    table, content = b"", b""
    for index, (key, page) in enumerate(children):
        table += struct.pack("<IIQ", (len(children) - index) * 16 + len(content), len(key), page)
        content += key
    return header(number, BRANCH, len(children)) + table + content


class Builder:
    """A file of nested mappings: keys to values, or to further mappings, which are buckets."""

    def __init__(self, page_size: int = 4096, *, per_page: int = 50, inline: bool = True) -> None:
        self._size = page_size
        self._per_page = per_page
        self._inline = inline
        self._pages: list[bytes] = [b"", b"", header(2, FREELIST, 0).ljust(page_size, b"\0")]

    def build(self, tree: Tree, transaction: int = 7) -> bytes:
        """The bytes of the file. The first root is one transaction behind, and empty."""
        self._allocate(1)
        empty = self._write(3, lambda number, further: leaf(number, [], further))
        root = self._root(tree)
        end = len(self._pages)
        self._pages[0] = meta(0, self._size, empty, end, transaction - 1).ljust(self._size, b"\0")
        self._pages[1] = meta(1, self._size, root, end, transaction).ljust(self._size, b"\0")
        return b"".join(self._pages)

    def _root(self, tree: Tree) -> int:
        items = [self._item(key, tree[key]) for key in sorted(tree)]
        starts = range(0, max(len(items), 1), self._per_page)
        level = [
            (items[start][1] if items else b"", self._leaf(items[start : start + self._per_page])) for start in starts
        ]
        while len(level) > 1:
            starts = range(0, len(level), self._per_page)
            level = [(level[start][0], self._branch(level[start : start + self._per_page])) for start in starts]
        return level[0][1]

    def _item(self, key: bytes, value: bytes | Tree) -> tuple[int, bytes, bytes]:
        if isinstance(value, bytes):
            return 0, key, value
        if self._inline and len(value) < 8 and all(isinstance(item, bytes) for item in value.values()):
            return 1, key, struct.pack("<QQ", 0, 0) + leaf(0, [(0, name, value[name]) for name in sorted(value)])
        return 1, key, struct.pack("<QQ", self._root(value), 0)

    def _leaf(self, items: list[tuple[int, bytes, bytes]]) -> int:
        further = (len(leaf(0, items)) - 1) // self._size
        number = self._allocate(1 + further)
        return self._write(number, lambda number, further: leaf(number, items, further), further)

    def _branch(self, children: list[tuple[bytes, int]]) -> int:
        return self._write(self._allocate(1), lambda number, _: branch(number, children))

    def _allocate(self, pages: int) -> int:
        self._pages += [b""] * pages
        return len(self._pages) - pages

    def _write(self, number: int, page: Any, further: int = 0) -> int:
        self._pages[number] = page(number, further).ljust(self._size * (1 + further), b"\0")
        return number
