"""Protobuf as recordings hold it: the same bytes back, and only what a server may choose left aside."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance import wire

MAGIC = b"k8s\x00"


@pytest.mark.parametrize(
    ("data", "form"),
    [
        (b"", []),
        (b"\x0a\x02v1", [[1, "v1"]]),
        (b"\x0a\x00\x10\x00", [[1, ""], [2, 0]]),
        (b"\x0a\x04\x0a\x02v1", [[1, [[1, "v1"]]]]),
        (b"\x0a\x02\xff\xfe", [[1, {"hex": "fffe"}]]),
        (b"\x09\x00\x00\x00\x00\x00\x00\xf0\x3f", [[1, {"fixed64": "000000000000f03f"}]]),
        (b"\x0d\x00\x00\x80\x3f", [[1, {"fixed32": "0000803f"}]]),
        (b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", [[1, 2**64 - 1]]),
    ],
)
def test_messages_are_written_down_and_sent_as_they_are(data: bytes, form: object) -> None:
    assert wire.decoded(MAGIC + data) == form
    assert wire.encoded(form) == MAGIC + data


NUMBERS = st.integers(1, 2**20)
LEAVES = st.integers(0, 2**64 - 1) | st.text() | st.binary().map(lambda data: {"hex": data.hex()})
VALUES = st.recursive(LEAVES, lambda inner: st.lists(st.tuples(NUMBERS, inner).map(list), max_size=4), max_leaves=8)


@given(st.lists(st.tuples(NUMBERS, VALUES).map(list), max_size=4))
def test_equal_forms_are_equal_bytes(message: list[list[object]]) -> None:
    data = wire.encoded(message)
    assert wire.encoded(wire.decoded(data)) == data


@pytest.mark.parametrize("data", [b"", b"{}", MAGIC + b"\x0a\x05", MAGIC + b"\x02\x00"])
def test_what_is_no_object_is_refused(data: bytes) -> None:
    with pytest.raises((ValueError, IndexError)):
        wire.decoded(data)


META = [[1, "a"], [2, ""], [3, "default"], [4, ""], [5, "uid"], [6, "17"], [7, 1], [8, [[1, 1795260037], [2, 0]]]]
FREE = [[1, "a"], [2, ""], [3, "default"], [4, ""], [5, "uid"], [6, "FREE"], [7, 1], [8, "TIME"]]


@pytest.mark.parametrize(
    ("message", "plain"),
    [
        ([[1, META], [2, "17"]], [[1, FREE], [2, "17"]]),
        ([[1, [[1, ""], [2, "17"], [3, "token"]]]], [[1, [[1, ""], [2, "FREE"], [3, "FREE"]]]]),
        ([[1, [[1, ""], [2, ""], [3, ""]]]], [[1, [[1, ""], [2, ""], [3, ""]]]]),
        ([[1, 30], [2, 0]], [[1, 30], [2, 0]]),
    ],
)
def test_revisions_and_times_are_free(message: object, plain: object) -> None:
    assert wire.plain(message) == plain


def test_frames_of_a_watch() -> None:
    raw = MAGIC + b"\x0a\x02v1"
    event = b"\x0a\x05ADDED\x12" + bytes([len(raw) + 2]) + b"\x0a" + bytes([len(raw)]) + raw
    frame = len(event).to_bytes(4, "big") + event
    assert wire.decoded_frames(frame * 2) == [{"type": "ADDED", "object": [[1, "v1"]]}] * 2
