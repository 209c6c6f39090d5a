"""A client at the simulator's shell that sends very much."""

import asyncio

import pytest

from fakeapiserver.clock import SystemClock
from fakeapiserver.component_helpers.streaming import Streams
from fakeapiserver.nodes.sessions import Session
from fakeapiserver.nodes.shell.events import Surroundings
from fakeapiserver.transport.pipe import Pipe


async def conversation(sent: bytes, *, tty: bool) -> tuple[bytes, int]:
    """Returns what `cat` answers, and how many turns the event loop had meanwhile."""
    stdin, printed = Pipe(1 << 30), bytearray()

    async def write(data: bytes) -> None:
        printed.extend(data)

    await stdin.feed(sent)
    stdin.end()
    session = Session(Streams(stdin, write, write, tty), SystemClock())
    running = asyncio.ensure_future(session.run(("cat",), Surroundings()))
    turns = 0
    while not running.done():
        turns += 1
        await asyncio.sleep(0)
    await running
    return bytes(printed), turns


def test_a_long_line_of_a_terminal_ends_where_linux_ends_it_and_others_have_turns() -> None:
    printed, turns = asyncio.run(conversation(b"a" * 100_000 + b"\n", tty=True))
    assert printed == b"a" * 4095 + b"\r\n" + b"a" * 4095 + b"\r\n"
    assert turns > 300


@pytest.mark.parametrize("size", range(250, 260))
def test_a_character_may_be_cut_between_two_reads(size: int) -> None:
    text = b"a" * size + "é€😀".encode()
    printed, _ = asyncio.run(conversation(text + b"\n", tty=True))
    assert printed == (text + b"\r\n") * 2


def test_much_input_is_passed_on_in_several_turns() -> None:
    sent = bytes(range(256)) * 4_000
    printed, turns = asyncio.run(conversation(sent, tty=False))
    assert printed == sent
    assert turns > 10
