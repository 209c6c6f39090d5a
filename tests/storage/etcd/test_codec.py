"""etcd's messages: bytes that a real etcd and its clients write, and bytes that no one should."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakeapiserver.storage.etcd.codec import DecodeError, Message, decode, encode
from fakeapiserver.storage.etcd.messages import (
    DELETE,
    EQUAL,
    MOD,
    Compare,
    Event,
    KeyValue,
    LeaseKeepAliveResponse,
    Member,
    MemberListResponse,
    PutRequest,
    RangeRequest,
    RangeResponse,
    RequestOp,
    ResponseHeader,
    ResponseOp,
    StatusResponse,
    TxnRequest,
    TxnResponse,
    WatchCreateRequest,
    WatchProgressRequest,
    WatchRequest,
    WatchResponse,
)

# A message, and its bytes in the order in which etcd's own code writes them.
GOLDEN = [
    (RangeRequest(), b""),
    (RangeRequest(b"a", b"b", 500, 7, keys_only=True), b"\n\x01a\x12\x01b\x18\xf4\x03 \x07@\x01"),
    (PutRequest(b"k", b"v" * 128, 5), b"\n\x01k\x12\x80\x01" + b"v" * 128 + b"\x18\x05"),
    (
        TxnRequest(
            (Compare(EQUAL, MOD, b"k", mod_revision=0),),
            (RequestOp(request_put=PutRequest(b"k", b"v")),),
            (RequestOp(request_range=RangeRequest(b"k")),),
        ),
        b"\n\x07\x10\x02\x1a\x01k0\x00\x12\x08\x12\x06\n\x01k\x12\x01v\x1a\x05\n\x03\n\x01k",
    ),
    (WatchRequest(progress_request=WatchProgressRequest()), b"\x1a\x00"),
    (WatchRequest(create_request=WatchCreateRequest(b"a", fragment=True)), b"\n\x05\n\x01a@\x01"),
    (LeaseKeepAliveResponse(ResponseHeader(), 1, -1), b"\x10\x01\x18" + b"\xff" * 9 + b"\x01"),
    (Event(DELETE, KeyValue(b"k", mod_revision=9)), b"\x08\x01\x12\x05\n\x01k\x18\x09"),
]


@pytest.mark.parametrize(("message", "data"), GOLDEN)
def test_messages_and_their_bytes(message: Message, data: bytes) -> None:
    assert encode(message) == data
    assert decode(type(message), data) == message


def test_a_real_status_is_read() -> None:
    """etcd 3.6 has fields that 3.4 has not, and identifiers of 64 bits."""
    data = (
        b"\n\x1a\x08\xb2\x98\xea\xf1\x94\x83\x86\xfc\xcd\x01\x10\xcd\xd2\x91\x8b\xd2\xb8\x81\xcf\x8e\x01\x18\x01 \x02"
        b"\x12\x053.6.8\x18\x80\xe0\x01 \xcd\xd2\x91\x8b\xd2\xb8\x81\xcf\x8e\x01(\x040\x028\x04H\x80\xc0\x01Z\x053.6.0`"
        b"\x80\x80\x80\x80\x08j\x00"
    )
    status = decode(StatusResponse, data)
    assert (status.version, status.header, status.db_size) == ("3.6.8", ResponseHeader(1, 2), 28672)


WHOLE = encode(
    WatchResponse(
        ResponseHeader(300, 2),
        cancel_reason="why",
        events=(Event(kv=KeyValue(b"k", 1, 300, 1, b"v" * 200)), Event(DELETE, KeyValue(b"l"))),
    )
)


@pytest.mark.parametrize("size", range(1, len(WHOLE)))
def test_a_message_that_is_cut_off_is_refused_or_shorter(size: int) -> None:
    """Between two fields a cut can't be seen, since a message has no end of its own."""
    try:
        message = decode(WatchResponse, WHOLE[:size])
    except DecodeError:
        return
    assert WHOLE.startswith(encode(message))


@pytest.mark.parametrize(
    "data",
    [
        b"\x12",  # no size
        b"\x12\x05\n\x01a",  # a message that is longer than what follows
        b"\x12\x03\n\x05a",  # a key that is longer than its message
        b" \xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",  # a number of eleven bytes
        b"\x0b",  # a group
        b"\x7f",  # an invalid wire type
        b"2\x7fab",  # an unknown field that is longer than the message
    ],
)
def test_invalid_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(DecodeError):
        decode(RangeResponse, data)


def test_text_that_is_not_utf8_is_refused() -> None:
    with pytest.raises(DecodeError, match="not UTF-8"):
        decode(StatusResponse, b"\x12\x01\xff")


def test_fields_of_later_versions_are_skipped() -> None:
    later = b"\xa0\x06\x96\x01" + b"\xaa\x06\x03abc" + b"\xb1\x06" + b"x" * 8 + b"\xb5\x06" + b"x" * 4
    assert decode(RangeResponse, later + b"\x18\x01" + later) == RangeResponse(more=True)


NUMBERS = st.integers(-(1 << 63), (1 << 63) - 1)
HEADERS = st.builds(ResponseHeader, NUMBERS, NUMBERS)
KEY_VALUES = st.builds(KeyValue, st.binary(max_size=300), NUMBERS, NUMBERS, NUMBERS, st.binary(max_size=300), NUMBERS)
RANGES = st.builds(RangeResponse, HEADERS, st.lists(KEY_VALUES, max_size=3).map(tuple), st.booleans(), NUMBERS)
MEMBERS = st.builds(Member, NUMBERS, st.text(), st.lists(st.text(), max_size=2).map(tuple))
MESSAGES = (
    RANGES
    | st.builds(TxnResponse, HEADERS, st.booleans(), st.lists(st.builds(ResponseOp, RANGES), max_size=2).map(tuple))
    | st.builds(MemberListResponse, HEADERS, st.lists(MEMBERS, max_size=2).map(tuple))
)


@given(MESSAGES)
def test_what_is_written_is_read_again(message: Message) -> None:
    assert decode(type(message), encode(message)) == message


@given(st.binary(max_size=60))
def test_any_bytes_are_a_message_or_refused(data: bytes) -> None:
    with suppress(DecodeError):
        decode(WatchResponse, data)
