"""Files of bbolt, valid and damaged."""

import re
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fakeapiserver.state.etcd.bolt import Bolt, checksum, is_bolt
from tests.state.etcd.bolt_builder import Builder, Tree, branch, header, leaf, meta

SIZE = 4096
SMALL = {b"one": {b"a": b"1", b"b": b"2"}, b"two": {}}
LARGE = {b"many": {b"%06d" % number: b"value %d" % number for number in range(5000)}, b"big": {b"x": b"y" * 20_000}}


def items(data: bytes, *names: bytes) -> dict[bytes, bytes]:
    """The content of a nested bucket."""
    bucket = Bolt(data, "x.db").root
    for name in names:
        nested = bucket.bucket(name)
        assert nested is not None
        bucket = nested
    found = [*bucket.items()]
    assert found == sorted(found)
    return dict(found)


@pytest.mark.parametrize("page_size", [1024, 4096, 16384])
@pytest.mark.parametrize("inline", [True, False])
@pytest.mark.parametrize("tree", [SMALL, LARGE])
def test_a_bucket_has_its_keys_in_order(tree: dict[bytes, Tree], inline: bool, page_size: int) -> None:
    data = Builder(page_size, per_page=20, inline=inline).build(tree)
    for name, content in tree.items():
        assert items(data, name) == content
    assert items(data) == {}  # buckets are not keys


def test_buckets_nest() -> None:
    data = Builder().build({b"a": {b"key": b"value", b"b": {b"c": {b"d": b"e"}}}})
    assert items(data, b"a") == {b"key": b"value"}
    assert items(data, b"a", b"b", b"c") == {b"d": b"e"}
    assert Bolt(data, "x.db").root.bucket(b"c") is None


def test_the_valid_root_of_the_higher_transaction_is_used() -> None:
    data = Builder().build({b"a": {b"b": b"c"}}, transaction=7)
    assert Bolt(data, "x.db").meta.transaction == 7
    damaged = bytearray(data)
    damaged[SIZE + 40] ^= 1
    assert Bolt(bytes(damaged), "x.db").meta.transaction == 6
    damaged = bytearray(data)
    damaged[:100] = bytes(100)
    assert is_bolt(bytes(damaged))
    assert items(bytes(damaged), b"a") == {b"b": b"c"}


def test_checksum_is_fnv() -> None:
    assert checksum(b"") == 0xCBF29CE484222325
    assert checksum(b"foobar") == 0x85944171F73967E8


@pytest.mark.parametrize("data", [b"", b"\0" * 100, b"kind: Pod\n" * 2000])
def test_another_file_is_refused(data: bytes) -> None:
    assert not is_bolt(data)
    with pytest.raises(ValueError, match=r"^x\.db is not a file of etcd: it doesn't begin with a page of bbolt$"):
        Bolt(data, "x.db")


def pages(*contents: bytes, root: int = 2) -> bytes:
    """A file of the given pages, from page 2 on."""
    end = 2 + len(contents)
    roots = (meta(0, SIZE, root, end, 2), meta(1, SIZE, root, end, 1))
    return b"".join(page.ljust(SIZE, b"\0") for page in (*roots, *contents))


NESTED = struct.pack("<QQ", 9, 0)
DAMAGED = {
    "a root outside of the file": (pages(root=9), "a branch or bucket names page 9, but pages 2 to 1 are in use"),
    "a root among the roots": (pages(b"", root=1), "a branch or bucket names page 1, but pages 2 to 2 are in use"),
    "another page's number": (pages(leaf(3, [])), "page 2 has the number 3"),
    "too many further pages": (pages(leaf(2, [], 1)), "page 2 claims 1 further pages, but the last page is 2"),
    "flags": (pages(header(2, 0x10, 0)), "page 2 has the flags 0x10, which are not those of a tree"),
    "too many elements": (pages(header(2, 2, 0xFFFF)), "page 2 claims 65535 elements, which don't fit into it"),
    "a branch without children": (pages(branch(2, [])), "page 2 is a branch without children"),
    "a page that leads to itself": (pages(branch(2, [(b"a", 2)])), "page 2 is reached twice in the root bucket"),
    "a circle": (
        pages(branch(2, [(b"a", 3)]), branch(3, [(b"a", 2)])),
        "page 2 is reached twice in the root bucket",
    ),
    "a shared page": (
        pages(branch(2, [(b"a", 3), (b"b", 3)]), leaf(3, [])),
        "page 3 is reached twice in the root bucket",
    ),
    "a shared further page": (
        pages(branch(2, [(b"a", 3), (b"b", 4)]), leaf(3, [], 1), leaf(4, [])),
        "page 4 is reached twice in the root bucket",
    ),
    "keys in disorder": (pages(leaf(2, [(0, b"b", b""), (0, b"a", b"")])), "the keys in page 2 are not in order"),
    "a key twice": (pages(leaf(2, [(0, b"b", b""), (0, b"b", b"")])), "the keys in page 2 are not in order"),
    "a value that is too long": (
        pages(header(2, 2, 1) + struct.pack("<IIII", 0, 16, 1, 5000)),
        "a key or value in page 2 lies outside of the page",
    ),
    "a key in the table": (
        pages(header(2, 2, 1) + struct.pack("<IIII", 0, 0, 1, 1)),
        "a key or value in page 2 lies outside of the page",
    ),
    "values that overlap": (
        pages(header(2, 2, 2) + struct.pack("<IIIIIIII", 0, 32, 1, 4000, 0, 18, 1, 4000)),
        "a key or value in page 2 lies outside of the page",
    ),
    "a short bucket": (pages(leaf(2, [(1, b"a", b"123")])), "the bucket a is described by 3 bytes, which is too short"),
    "a bucket outside of the file": (
        pages(leaf(2, [(1, b"a", NESTED)])),
        "a branch or bucket names page 9, but pages 2 to 2 are in use",
    ),
    "an inline bucket without a page": (
        pages(leaf(2, [(1, b"a", bytes(16))])),
        "the page of the bucket a has 0 bytes, which is too short",
    ),
    "an inline branch": (
        pages(leaf(2, [(1, b"a", bytes(16) + branch(0, [(b"a", 2)]))])),
        "the page of the bucket a has the flags 0x1, which are not those of a leaf",
    ),
    "an inline bucket that is too long": (
        pages(leaf(2, [(1, b"a", bytes(16) + header(0, 2, 1))])),
        "the page of the bucket a claims 1 elements, which don't fit into it",
    ),
    "too few bytes": (pages(leaf(2, []))[:-1], "it has 12287 bytes, but its 3 pages take 12288"),
    "a version": (
        meta(0, SIZE, 2, 3, 1)[:20] + b"\3" + meta(0, SIZE, 2, 3, 1)[21:],
        "the checksums of its first two pages are wrong",
    ),
    "a size of pages": (
        meta(0, 1000, 2, 3, 1),
        "its pages have 1000 bytes, which is not a power of two from 1024 to 16777216",
    ),
}


def walk(data: bytes) -> dict[bytes, list[tuple[bytes, bytes]]]:
    """All of the buckets `a`, `one` and `two`, and of the root."""
    root = Bolt(data, "x.db").root
    nested = {name: root.bucket(name) for name in (b"a", b"one", b"two")}
    return {b"": [*root.items()]} | {name: [*bucket.items()] for name, bucket in nested.items() if bucket}


@pytest.mark.parametrize("damage", DAMAGED)
def test_damage_is_refused_with_one_sentence(damage: str) -> None:
    data, found = DAMAGED[damage]
    with pytest.raises(ValueError, match=f"^x.db is truncated or damaged: {re.escape(found)}$"):
        walk(data)


VALID = Builder(1024, per_page=2, inline=False).build({b"a": {b"%d" % number: b"-" * 9 for number in range(10)}})


@settings(max_examples=1500)
@given(st.lists(st.tuples(st.integers(0, len(VALID) - 1), st.integers(0, 255)), min_size=1, max_size=4))
def test_changed_bytes_give_an_answer_or_a_sentence(changes: list[tuple[int, int]]) -> None:
    data = bytearray(VALID)
    for at, byte in changes:
        data[at] = byte
    expect_an_end(bytes(data))


@settings(max_examples=300)
@given(st.integers(0, len(VALID)))
def test_a_truncated_file_is_refused(size: int) -> None:
    if size < len(VALID):
        with pytest.raises(ValueError, match=r"^x\.db is "):
            walk(VALID[:size])


@settings(max_examples=500)
@given(st.lists(st.binary(max_size=200), max_size=6), st.integers(0, 6))
def test_random_pages_give_an_answer_or_a_sentence(contents: list[bytes], root: int) -> None:
    expect_an_end(pages(*contents, root=root))


def expect_an_end(data: bytes) -> None:
    """All is read, or one sentence says why it can't be."""
    sentence = ""
    try:
        walk(data)
    except ValueError as error:
        sentence = str(error)
    assert re.fullmatch(r"|x\.db is [^\n]+", sentence)
