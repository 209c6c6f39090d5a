"""A client's command in the simulator's shell: `kubectl exec` in a container that no script is for."""

import asyncio
from collections.abc import Sequence
from typing import Final

from fakeapiserver.clock import Timers, sleep
from fakeapiserver.component_helpers.streaming import Streams
from fakeapiserver.nodes.shell.interpreter import STDERR, Endless, Read, Shell, Sleep, Surroundings, Write
from fakeapiserver.nodes.shell.programs import PROGRAMS
from fakeapiserver.nodes.shell.syntax import NotFollowed

_NOT_FOUND: Final = 127
_NOT_FOLLOWED: Final = 126


async def run(command: Sequence[str], surroundings: Surroundings, streams: Streams, clock: Timers) -> int:
    """Runs the command in the clock's time and returns its exit code: 126 or 127 with a sentence for what the simulator can't
    follow. ConnectionError: the client has left."""
    shell = Shell(surroundings, PROGRAMS, now=clock.now())
    steps = shell.call(command)
    try:
        event = next(steps)
        while True:
            event = steps.send(await _handled(event, streams, clock))
    except StopIteration as end:
        code: int = end.value
        return code
    except Endless:
        await asyncio.Event().wait()  # until the client leaves
        raise AssertionError from None
    except NotFollowed as reason:
        program = command[0].rpartition("/")[2]
        await _write(streams, STDERR, _explanation(program, str(reason)))
        return _NOT_FOUND if program == str(reason) else _NOT_FOLLOWED


def _explanation(program: str, reason: str) -> str:
    what = program if program == reason else f"{program} ({reason})"
    return (
        f"fakeapiserver: the simulated container doesn't know what {what} does: script it with "
        f"cluster.nodes.script(exec=...), or with POST /fakeapiserver/scripts (docs/nodes.md).\n"
    )


async def _handled(event: Write | Sleep | Read, streams: Streams, clock: Timers) -> str:
    """What the shell gets in return: the input that it asks for."""
    match event:
        case Write(descriptor, text):
            await _write(streams, descriptor, text)
        case Sleep(seconds):
            await sleep(clock, seconds)
        case Read() if streams.stdin is not None:
            return (await streams.stdin.read()).decode("utf-8", "surrogateescape")
    return ""


async def _write(streams: Streams, descriptor: int, text: str) -> None:
    """A terminal has one output, whose lines end with a carriage return."""
    write = streams.stderr if descriptor == STDERR and not streams.tty else streams.stdout
    if write is not None:
        encoded = (text.replace("\n", "\r\n") if streams.tty else text).encode("utf-8", "surrogateescape")
        await write(encoded)
