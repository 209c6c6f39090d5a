"""Reads files of bbolt, the B+ trees that etcd keeps its keys in.

A file is made of pages. Pages 0 and 1 are two copies of the root; the valid one with the higher transaction is used. All others are
reached from it: branches, leaves, and buckets, which are trees below a key of a leaf (small ones lie in the leaf itself). No byte is
trusted: each number is checked before it is used, and a page that is reached twice is refused, so every file ends in time.

Upstream: go.etcd.io/bbolt, internal/common/{meta,page,inode}.go and bucket.go.
"""

import struct
from collections.abc import Iterator
from mmap import mmap
from typing import Final

from msgspec import Struct

MAGIC: Final = 0xED0CDAED
VERSION: Final = 2
# The sizes of pages that are looked for if page 0 is damaged: bbolt's own list.
PAGE_SIZES: Final = tuple(1024 << shift for shift in range(15))
_HEADER: Final = struct.Struct("<QHHI")  # id, flags, count of elements, number of further pages
_META: Final = struct.Struct(
    "<IIIIQQQQQQ"
)  # magic, version, page size, flags, root, sequence, freelist, end, transaction, checksum
_BRANCH_ELEMENT: Final = struct.Struct("<IIQ")  # position, size of the key, page
_LEAF_ELEMENT: Final = struct.Struct("<IIII")  # flags, position, size of the key, size of the value
_BUCKET: Final = struct.Struct("<QQ")  # root, sequence
_BRANCH, _LEAF = 0x01, 0x02
_IS_BUCKET: Final = 0x01
_ELEMENT_SIZE: Final = 16


class Meta(Struct, frozen=True):
    """The root of a file. `end` is the number of pages that are in use."""

    page_size: int
    root: int
    end: int
    transaction: int


class _Page(Struct, frozen=True):
    """A page with its further pages. `label` is its name in messages."""

    label: str
    flags: int
    count: int
    data: bytes


class Bolt:
    """A file's content. `size` leaves off what follows the pages; messages begin with `name`."""

    def __init__(self, data: bytes | mmap, name: str, size: int | None = None) -> None:
        """Raises ValueError, with one sentence, if neither of the first two pages is valid or the file is too short."""
        self._data = data
        self._name = name
        size = len(data) if size is None else size
        self.meta = _newest(data, size, name)
        if size < self.meta.end * self.meta.page_size:
            raise self.damaged(
                f"it has {size} bytes, but its {self.meta.end} pages take {self.meta.end * self.meta.page_size}"
            )

    def damaged(self, found: str) -> ValueError:
        """Returns the error of a file in which `found` is."""
        return ValueError(f"{self._name} is truncated or damaged: {found}")

    @property
    def root(self) -> "Bucket":
        """The bucket that holds the others."""
        return Bucket(self, "the root bucket", self.meta.root)

    def page(self, number: int) -> _Page:
        """Returns a page. Raises ValueError if it isn't a branch or a leaf within the file, with its own number."""
        end, size = self.meta.end, self.meta.page_size
        if not 2 <= number < end:
            raise self.damaged(f"a branch or bucket names page {number}, but pages 2 to {end - 1} are in use")
        found, flags, count, further = _HEADER.unpack_from(self._data, number * size)
        if found != number:
            raise self.damaged(f"page {number} has the number {found}")
        if number + further >= end:
            raise self.damaged(f"page {number} claims {further} further pages, but the last page is {end - 1}")
        return _Page(f"page {number}", flags, count, self._data[number * size : (number + 1 + further) * size])


class Bucket:
    """A tree of keys and values. An `inline` one is a single page, which lies in the leaf of another bucket."""

    def __init__(self, file: Bolt, label: str, root: int, inline: bytes = b"") -> None:
        self._file = file
        self._label = label
        self._root = root
        self._inline = inline

    def items(self) -> Iterator[tuple[bytes, bytes]]:
        """Yields the keys and values, in the order of the keys, without those of nested buckets. Raises ValueError."""
        return ((key, value) for flags, key, value in self._elements() if not flags & _IS_BUCKET)

    def bucket(self, name: bytes) -> "Bucket | None":
        """Returns a nested bucket, or None if no bucket has that name. Raises ValueError."""
        for flags, key, value in self._elements():
            if key == name and flags & _IS_BUCKET:
                return self._nested(name, value)
        return None

    def _nested(self, name: bytes, value: bytes) -> "Bucket":
        label = f"the bucket {name.decode(errors='backslashreplace')}"
        if len(value) < _BUCKET.size:
            raise self._file.damaged(f"{label} is described by {len(value)} bytes, which is too short")
        root, _ = _BUCKET.unpack_from(value)
        return Bucket(self._file, label, root, b"" if root else value[_BUCKET.size :])

    def _elements(self) -> Iterator[tuple[int, bytes, bytes]]:
        """The flags, key and value of each element of the leaves."""
        previous: bytes | None = None
        for page in self._leaves():
            for flags, key, value in self._elements_of(page):
                if previous is not None and key <= previous:
                    raise self._file.damaged(f"the keys in {page.label} are not in order")
                previous = key
                yield flags, key, value

    def _leaves(self) -> Iterator[_Page]:
        if not self._root:
            yield self._inline_page()
            return
        reached = bytearray(self._file.meta.end)
        waiting = [self._root]
        while waiting:
            number = waiting.pop()
            page = self._file.page(number)
            end = number + len(page.data) // self._file.meta.page_size
            if any(reached[number:end]):
                raise self._file.damaged(f"page {number} is reached twice in {self._label}")
            reached[number:end] = b"\x01" * (end - number)
            if page.flags == _LEAF:
                yield page
            elif page.flags == _BRANCH:
                waiting += reversed(self._children(page))
            else:
                raise self._file.damaged(f"{page.label} has the flags {page.flags:#x}, which are not those of a tree")

    def _inline_page(self) -> _Page:
        label = f"the page of {self._label}"
        if len(self._inline) < _HEADER.size:
            raise self._file.damaged(f"{label} has {len(self._inline)} bytes, which is too short")
        _, flags, count, _ = _HEADER.unpack_from(self._inline)
        if flags != _LEAF:
            raise self._file.damaged(f"{label} has the flags {flags:#x}, which are not those of a leaf")
        return _Page(label, flags, count, self._inline)

    def _children(self, page: _Page) -> list[int]:
        if not page.count:
            raise self._file.damaged(f"{page.label} is a branch without children")
        return [child for _, _, child in _BRANCH_ELEMENT.iter_unpack(self._table(page))]

    def _elements_of(self, page: _Page) -> Iterator[tuple[int, bytes, bytes]]:
        """The elements of a leaf, whose keys and values must fit into the page together."""
        table = self._table(page)
        data, end, room = page.data, len(page.data), len(page.data) - len(table)
        at = _HEADER.size
        first = at + len(table)
        for flags, position, key_size, value_size in _LEAF_ELEMENT.iter_unpack(table):
            start = at + position
            middle = start + key_size
            room -= key_size + value_size
            if start < first or middle + value_size > end or room < 0:
                raise self._file.damaged(f"a key or value in {page.label} lies outside of the page")
            yield flags, data[start:middle], data[middle : middle + value_size]
            at += _ELEMENT_SIZE

    def _table(self, page: _Page) -> bytes:
        """The headers of a page's elements."""
        table = page.data[_HEADER.size : _HEADER.size + page.count * _ELEMENT_SIZE]
        if len(table) < page.count * _ELEMENT_SIZE:
            raise self._file.damaged(f"{page.label} claims {page.count} elements, which don't fit into it")
        return table


def is_bolt(data: bytes | mmap) -> bool:
    """Returns whether the content begins with one of bbolt's two roots, valid or not."""
    return any(_magic_at(data, start) for start in (0, *PAGE_SIZES))


def checksum(data: bytes) -> int:
    """FNV-1a with 64 bits."""
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return value


def _magic_at(data: bytes | mmap, start: int) -> bool:
    return data[start + _HEADER.size : start + _HEADER.size + 4] == MAGIC.to_bytes(4, "little")


def _newest(data: bytes | mmap, size: int, name: str) -> Meta:
    """The valid root of the higher transaction. Raises ValueError with the first root's fault if neither is valid."""
    roots: list[Meta] = []
    faults: list[str] = []
    for start in (0, *PAGE_SIZES):
        if size < start + _HEADER.size + _META.size or not _magic_at(data, start):
            continue
        meta = _meta_at(data, start)
        if isinstance(meta, str):
            faults.append(meta)
        elif start in (0, meta.page_size):
            roots.append(meta)
            if start:
                break
    if roots:
        return max(roots, key=lambda meta: meta.transaction)
    if faults:
        raise ValueError(f"{name} is truncated or damaged: {faults[0]}")
    raise ValueError(f"{name} is not a file of etcd: it doesn't begin with a page of bbolt")


def _meta_at(data: bytes | mmap, start: int) -> Meta | str:
    """The root in the page that begins at `start`, or what is wrong with it."""
    start += _HEADER.size
    _, version, page_size, _, root, _, _, end, transaction, expected = _META.unpack_from(data, start)
    if checksum(data[start : start + _META.size - 8]) != expected:
        return "the checksums of its first two pages are wrong"
    if version != VERSION:
        return f"it has bbolt's version {version}, but only version {VERSION} can be read"
    if page_size not in PAGE_SIZES:
        return f"its pages have {page_size} bytes, which is not a power of two from 1024 to {PAGE_SIZES[-1]}"
    return Meta(page_size, root, end, transaction)
