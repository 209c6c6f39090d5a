"""A client at the simulator's shell: `kubectl exec` in a container that no script is for, and `kubectl attach` to a command that
reads its input."""

import asyncio
import codecs
from collections import deque
from collections.abc import Sequence
from typing import Final

from fakeapiserver.clock import Timers, sleep
from fakeapiserver.component_helpers.streaming import Streams
from fakeapiserver.nodes.shell.events import STDERR, Endless, Read, Sleep, Surroundings, Write
from fakeapiserver.nodes.shell.interpreter import Shell
from fakeapiserver.nodes.shell.programs import PROGRAMS
from fakeapiserver.nodes.shell.tree import NotFollowed

_NOT_FOUND: Final = 127
_NOT_FOLLOWED: Final = 126
_INTERRUPTED: Final = 130
_INTERRUPT: Final = "\x03"
_END_OF_INPUT: Final = "\x04"
_ERASES: Final = ("\x7f", "\b")
# Bytes that are read in one turn of the event loop, of a program's input and of keys, each of which is echoed.
_INPUT: Final = 1 << 16
_KEYS: Final = 256
# Characters of a terminal's line, as of Linux', and of the output that is kept for a container's log.
_LINE: Final = 4095
_KEPT: Final = 1 << 20


class Session:
    """A client's streams and a shell."""

    def __init__(self, streams: Streams, clock: Timers) -> None:
        self._streams = streams
        self._clock = clock
        self._typed = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self._printed: deque[str] | None = None
        self._printed_size = 0

    @property
    def printed(self) -> str:
        """The last mebibyte of the output, if the command was resumed."""
        return "".join(self._printed or ())

    async def run(self, command: Sequence[str], surroundings: Surroundings, *, resumes: bool = False) -> int:
        """Runs the command in the clock's time and returns its exit code: 126 or 127 with a sentence for what the simulator can't
        follow. `resumes`: the command runs already, and waits for its first input. ConnectionError: the client has left."""
        self._printed = deque() if resumes else None
        shell = Shell(surroundings, PROGRAMS, now=self._clock.now())
        steps = shell.call(command)
        try:
            event = next(steps)
            prompt = ""
            while resumes and not isinstance(event, Read):
                prompt = event.text if isinstance(event, Write) else prompt
                event = steps.send("")
            if self._streams.tty and prompt and not prompt.endswith("\n"):
                await self._write(STDERR, prompt)
            while True:
                event = steps.send(await self._handled(event))
        except StopIteration as end:
            code: int = end.value
            return code
        except Endless:
            await self._interrupt()
            return _INTERRUPTED
        except NotFollowed as reason:
            program = command[0].rpartition("/")[2]
            await self._write(STDERR, _explanation(program, str(reason)))
            return _NOT_FOUND if program == str(reason) else _NOT_FOLLOWED

    async def _handled(self, event: Write | Sleep | Read) -> str:
        """Handles an event; returns the input that the shell asked for."""
        match event:
            case Write(descriptor, text):
                await self._write(descriptor, text)
            case Sleep(seconds):
                await sleep(self._clock, seconds)
            case Read():
                return await (self._line() if self._streams.tty else self._input())
        return ""

    async def _write(self, descriptor: int, text: str) -> None:
        """A terminal has one output, whose lines end with a carriage return."""
        self._keep(text)
        streams = self._streams
        write = streams.stderr if descriptor == STDERR and not streams.tty else streams.stdout
        if write is not None:
            shown = text.replace("\n", "\r\n") if streams.tty else text
            await write(shown.encode("utf-8", "surrogateescape"))

    def _keep(self, text: str) -> None:
        if self._printed is not None:
            self._printed.append(text)
            self._printed_size += len(text)
            while self._printed_size > _KEPT:
                self._printed_size -= len(self._printed.popleft())

    async def _input(self, size: int = _INPUT) -> str:
        """Reads some input, at most so many bytes; "" at its end. Others have their turn before."""
        await asyncio.sleep(0)
        while data := await self._streams.stdin.read(size) if self._streams.stdin is not None else b"":
            if text := self._decoder.decode(data):
                return text
        return self._decoder.decode(b"", final=True)

    async def _line(self) -> str:
        """Reads a line up to the Enter key, and echoes it; "" at the end of the input."""
        line = ""
        while self._typed or (more := await self._input(_KEYS)):
            self._typed = self._typed or more
            key, self._typed = self._typed[0], self._typed[1:]
            if key in ("\r", "\n"):
                await self._write(STDERR, "\n")
                return f"{line}\n"
            if key == _END_OF_INPUT and not line:
                return ""
            if key == _INTERRUPT:
                line = ""
                await self._write(STDERR, "^C\n")
                return "\n"
            if key in _ERASES:
                await self._write(STDERR, "\b \b" if line else "")
                line = line[:-1]
            elif key.isprintable() and len(line) < _LINE:
                line += key
                await self._write(STDERR, key)
        return line

    async def _interrupt(self) -> None:
        """Waits for Ctrl-C, or for the client to leave."""
        while self._streams.tty and (typed := self._typed or await self._input()):
            self._typed = ""
            if _INTERRUPT in typed:
                return
        await asyncio.Event().wait()


def _explanation(program: str, reason: str) -> str:
    what = program if program == reason else f"{program} ({reason})"
    return (
        f"fakeapiserver: the simulated container doesn't know what {what} does: script it with "
        f"cluster.nodes.script(exec=...), or with POST /fakeapiserver/scripts (docs/nodes.md).\n"
    )
