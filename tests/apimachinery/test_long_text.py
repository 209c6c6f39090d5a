"""Text of any length is read in time in proportion to its length: one request must not keep the server from all others.

A server reads a megabyte of request line and headers, and three of a body. What copies the rest of the text at each step, or
tries each way of reading it, takes minutes for that.
"""

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from time import process_time
from typing import Any, NamedTuple

import pytest

from fakeapiserver.apimachinery import labels
from fakeapiserver.apimachinery.duration import parse_duration
from fakeapiserver.languages.cel import parser
from fakeapiserver.languages.cel.errors import CompileError


class _Reader(NamedTuple):
    """`read` gets a text of about `length` characters, and one of eight times as many."""

    read: Callable[[str], Any]
    text_of: Callable[[int], str]
    length: int = 16_000


_READERS = {
    "duration of many parts": _Reader(parse_duration, lambda length: "1h" * (length // 2), 40_000),
    "duration of one long fraction": _Reader(parse_duration, lambda length: f"1.{'0' * length}s"),
    "label selector of brackets": _Reader(labels.parse, lambda length: "(" * length),
    "label selector of equals signs": _Reader(labels.parse, lambda length: f"a{'=' * length}"),
    "label selector of empty values": _Reader(labels.parse, lambda length: f"a in ({',' * length})"),
    "expression of characters without meaning": _Reader(parser.parse, lambda length: "é" * length, 2_000),
    "label selector of spaces": _Reader(labels.parse, lambda length: f"a{' ' * length}\0"),
}


@contextmanager
def _without_collector() -> Iterator[None]:
    """The garbage collector's work depends on all that the process holds."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _seconds(reader: _Reader, length: int) -> float:
    """Returns the CPU time that the process spends."""
    text = reader.text_of(length)
    start = process_time()
    with suppress(ValueError, CompileError):
        reader.read(text)
    return process_time() - start


@pytest.mark.parametrize("reader", _READERS.values(), ids=_READERS)
def test_eight_times_the_text_takes_about_eight_times_as_long(reader: _Reader) -> None:
    with _without_collector():
        short = min(_seconds(reader, reader.length) for _ in range(3))
        long = _seconds(reader, 8 * reader.length)
    # What takes the square of the length takes 64 times as long; a millisecond is what can't be measured.
    assert long < 24 * max(short, 0.001)
