"""Runs a parsed script step by step, in the time of its driver. Pure: a run is a generator of events.

A driver handles each Write, lets the time of each Sleep pass, and sends what a Read asks for ("" at the end of
input). The generator
returns the exit code. It raises NotFollowed for what the simulator can't follow, and Endless for a run that never ends: a loop that
repeats itself, or more than MAX_STEPS steps.
"""

import re
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import suppress
from typing import Final

from msgspec import Struct, field

from fakeapiserver.nodes.shell import syntax, tree
from fakeapiserver.nodes.shell.events import (
    STDERR,
    STDOUT,
    STEP_TEXT,
    Endless,
    Event,
    Exit,
    LoopExit,
    Read,
    Sink,
    Sleep,
    Steps,
    Surroundings,
    Write,
    bounded,
)
from fakeapiserver.nodes.shell.expansion import expanded, text_of
from fakeapiserver.nodes.shell.tree import Node, NotFollowed

# Commands and rounds of loops that one run may have.
MAX_STEPS: Final = 5_000
# Shells that run in each other.
_MAX_SCRIPTS: Final = 10
_DEVICES: Final = {
    "/dev/null": None,
    **dict.fromkeys(("/dev/stdout", "/proc/1/fd/1", "/proc/self/fd/1"), STDOUT),
    **dict.fromkeys(("/dev/stderr", "/proc/1/fd/2", "/proc/self/fd/2"), STDERR),
}


Program = Callable[["Shell", Sequence[str]], Steps]


class Shell(Struct):
    """The state of one run. `now`: seconds since the epoch. `programs`: by name."""

    surroundings: Surroundings
    programs: Mapping[str, Program]
    now: float = 0.0
    variables: dict[str, str] = field(default_factory=dict)
    exported: set[str] = field(default_factory=set)
    files: dict[str, str] = field(default_factory=dict)
    directories: set[str] = field(default_factory=set)
    positional: tuple[str, ...] = ("sh",)
    status: int = 0
    stops_on_failure: bool = False
    # Whether the output of the run is of no interest, only its end.
    is_silent: bool = False
    _sinks: dict[int, Sink] = field(default_factory=lambda: {STDOUT: STDOUT, STDERR: STDERR})
    _input: list[str] | None = None
    _steps: int = 0
    _changes: int = 0
    _checking: int = 0
    _scripts: int = 0

    def __post_init__(self) -> None:
        self.variables = {"PWD": "/", **dict(self.surroundings.environment)}
        self.exported = {name for name, _ in self.surroundings.environment}
        self.files = dict(self.surroundings.files)
        self.directories = {"/", "/tmp", *self.surroundings.directories}

    # ------------------------------------------------------------ what programs call

    def write(self, text: str, descriptor: int = STDOUT) -> Generator[Event, str, None]:
        """Writes to wherever the descriptor leads."""
        self.count(len(text) // STEP_TEXT)
        sink = self._sinks.get(descriptor)
        if isinstance(sink, int):
            self._changes += not self.is_silent
            yield Write(sink, text)
        elif isinstance(sink, list):
            sink.append(bounded(text, sum(map(len, sink))))
        elif sink is not None:
            self.put(sink, bounded(self.files.get(sink, "") + text))

    def read(self) -> Generator[Event, str, str]:
        """The next input, "" at its end."""
        self._changes += 1
        if self._input is not None:
            return self._input.pop() if self._input else ""
        return (yield Read())

    def sleep(self, seconds: float) -> Generator[Event, str, None]:
        self.now += seconds
        yield Sleep(seconds)

    def clock(self) -> float:
        """The time, which makes one round of a loop differ from the next."""
        self._changes += 1
        return self.now

    def assign(self, name: str, value: str) -> None:
        if self.variables.get(name) != value:
            self._changes += 1
            self.variables[name] = bounded(value)

    def put(self, path: str, text: str) -> None:
        """Writes a file, of which only this run knows."""
        self._changes += self.files.get(path) != text
        self.files[path] = text

    def remove(self, path: str) -> None:
        """Removes a file or a directory with all that is in it, as far as this run is concerned."""
        for known in [known for known in self.files if known == path or known.startswith(f"{path}/")]:
            self._changes += 1
            del self.files[known]
        self.directories -= {known for known in self.directories if known == path or known.startswith(f"{path}/")}

    def path(self, name: str) -> str:
        """An absolute path without dots."""
        parts: list[str] = []
        for part in (name if name.startswith("/") else f"{self.variables['PWD']}/{name}").split("/"):
            if part == "..":
                del parts[-1:]
            elif part not in ("", "."):
                parts.append(part)
        return "/" + "/".join(parts)

    def is_directory(self, path: str) -> bool:
        """Reports whether there is a directory, as far as the simulator knows."""
        return path in self.directories or any(
            known.startswith(f"{path}/") for known in (*self.files, *self.directories)
        )

    # ---------------------------------------------------------------------- commands

    def script(self, text: str, positional: Sequence[str] = ("sh",), *, stops_on_failure: bool = False) -> Steps:
        """Runs a script to its end; its variables stay its own."""
        before = self.positional
        self.positional = tuple(positional)
        self._scripts += 1
        if self._scripts > _MAX_SCRIPTS:
            raise NotFollowed(f"scripts that run each other more than {_MAX_SCRIPTS} deep")
        try:
            yield from self._subshell(syntax.parse(text), stops_on_failure=stops_on_failure)
        finally:
            self.positional = before
            self._scripts -= 1
        return self.status

    def lines(self, text: str) -> Steps:
        """Runs lines of an interactive session, which share their variables. Exit: the session ends."""
        with suppress(LoopExit):  # outside of a loop it does nothing
            yield from self._node(syntax.parse(text))
        return self.status

    def call(self, words: Sequence[str]) -> Steps:
        """Runs a program with its arguments."""
        self.count()
        name = words[0].rpartition("/")[2]
        program = self.programs.get(name)
        if program is None:
            raise NotFollowed(name)
        self.status = yield from program(self, words[1:])
        return self.status

    def _node(self, node: Node) -> Generator[Event, str, None]:
        match node:
            case tree.Simple():
                yield from self._simple(node)
            case tree.Sequence(items):
                for item in items:
                    yield from self._node(item)
            case tree.AndOr(first, others):
                yield from self._and_or(first, others)
            case tree.Not(body):
                self.status = int((yield from self._check(body)))
            case tree.If(branches, otherwise):
                yield from self._if(branches, otherwise)
            case tree.Loop(condition, body, until):
                yield from self._loop(condition, body, until)
            case tree.For(name, words, body):
                items_ = self.positional[1:] if words is None else (yield from expanded(self, words))
                yield from self._for(name, items_, body)
            case tree.Subshell(body):
                yield from self._subshell(body)
                self._stop_on_failure()
            case tree.Redirected(body, redirects):
                yield from self._redirected(body, redirects)

    def _simple(self, node: tree.Simple) -> Generator[Event, str, None]:
        self.count()
        words = yield from expanded(self, node.words)
        values = []
        for name, word in node.assignments:
            values.append((name, (yield from text_of(self, word))))
        if not words:
            for name, value in values:
                self.assign(name, value)
            if not any(isinstance(part, tree.Substitution) for _, word in node.assignments for part in word.parts):
                self.status = 0
        else:
            before = {name: self.variables.get(name) for name, _ in values}
            for name, value in values:
                self.variables[name] = value
            self.exported |= set(before)
            yield from self._called(words)
            for name, old in before.items():
                if old is None:
                    self.variables.pop(name, None)
                else:
                    self.variables[name] = old
        self._stop_on_failure()

    def _stop_on_failure(self) -> None:
        if self.status and self.stops_on_failure and not self._checking:
            raise Exit(self.status)

    def _called(self, words: Sequence[str]) -> Generator[Event, str, None]:
        match words[0]:
            case "exit" | "return":
                raise Exit(self._number(words[1]) % 256 if len(words) > 1 else self.status)
            case "exec" if len(words) > 1:
                raise Exit((yield from self.call(words[1:])))
            case "break" | "continue":
                raise LoopExit(self._number(words[1]) if len(words) > 1 else 1, goes_on=words[0] == "continue")
            case "set":
                self._set(words[1:])
            case "cd":
                self.assign("PWD", self.path(words[1] if len(words) > 1 else "/"))
                self.status = 0
            case _:
                yield from self.call(words)

    def _set(self, options: Sequence[str]) -> None:
        for option in options:
            if option[:1] in ("-", "+") and "e" in option and option[1:].isalpha():
                self.stops_on_failure = option.startswith("-")
        if options and not options[0].startswith(("-", "+")):
            raise NotFollowed("set with arguments")
        self.status = 0

    def _number(self, text: str) -> int:
        if not re.fullmatch(r"-?\d{1,9}", text):
            raise NotFollowed(f"the number {text!r}")
        return int(text)

    def _and_or(self, first: Node, others: Sequence[tuple[str, Node]]) -> Generator[Event, str, None]:
        nodes = [("", first), *others]
        for number, (operator, node) in enumerate(nodes):
            if operator and (operator == "&&") != (self.status == 0):
                continue
            if number == len(nodes) - 1:
                yield from self._node(node)  # only the last failure counts for `set -e`
            else:
                yield from self._check(node)

    def _check(self, node: Node) -> Generator[Event, str, bool]:
        """Runs a condition; whether it holds."""
        self._checking += 1
        try:
            yield from self._node(node)
        finally:
            self._checking -= 1
        return self.status == 0

    def _if(self, branches: Sequence[tuple[Node, Node]], otherwise: Node | None) -> Generator[Event, str, None]:
        for condition, body in branches:
            if (yield from self._check(condition)):
                yield from self._node(body)
                return
        self.status = 0
        if otherwise is not None:
            yield from self._node(otherwise)

    def _loop(self, condition: Node, body: Node, until: bool) -> Generator[Event, str, None]:
        while True:
            before = self._changes
            if (yield from self._check(condition)) == until:
                self.status = 0
                return
            if not (yield from self._round(body)):
                return
            if self._changes == before:
                raise Endless

    def _for(self, name: str, words: Sequence[str], body: Node) -> Generator[Event, str, None]:
        self.status = 0
        for word in words:
            self.assign(name, word)
            if not (yield from self._round(body)):
                return

    def _round(self, body: Node) -> Generator[Event, str, bool]:
        """Runs the body of a loop once; returns whether the loop continues."""
        self.count()
        try:
            yield from self._node(body)
        except LoopExit as leave:
            if leave.levels > 1:
                raise LoopExit(leave.levels - 1, goes_on=leave.goes_on) from None
            return leave.goes_on
        return True

    def _subshell(self, body: Node, *, stops_on_failure: bool = False) -> Generator[Event, str, None]:
        variables, stops = dict(self.variables), self.stops_on_failure
        self.stops_on_failure |= stops_on_failure
        try:
            yield from self._node(body)
        except Exit as exit_:
            self.status = exit_.code
        except LoopExit:
            pass  # outside of a loop it does nothing
        finally:
            self.variables, self.stops_on_failure = variables, stops

    def _redirected(self, body: Node, redirects: Sequence[tree.Redirect]) -> Generator[Event, str, None]:
        sinks, input_ = dict(self._sinks), self._input
        try:
            for redirect in redirects:
                target = yield from text_of(self, redirect.target)
                self._redirect(redirect.descriptor, redirect.operator, target)
            yield from self._node(body)
        except FileNotFoundError as error:
            self.status = 1
            yield from self.write(f"sh: can't open {error}: no such file\n", STDERR)
        finally:
            self._sinks, self._input = sinks, input_

    def _redirect(self, descriptor: int, operator: str, target: str) -> None:
        if operator == ">&" and target in ("1", "2"):
            self._sinks[descriptor] = self._sinks[int(target)]
            return
        path = self.path(target)
        if operator == "<":
            text = "" if path == "/dev/null" else self.files.get(path)
            if text is None:
                raise FileNotFoundError(target)
            self._input = [text] if text else []
            return
        sink: Sink = path
        if path in _DEVICES:
            device = _DEVICES[path]
            sink = None if device is None else self._sinks[device]
        elif operator != ">>":
            self.put(path, "")
        self._sinks[descriptor] = sink
        if operator in ("&>", ">&"):
            self._sinks[STDERR] = sink

    def variable(self, name: str) -> str | None:
        """The value of a variable or a special parameter; None: it is unset."""
        if name.isdigit():
            number = int(name)
            return self.positional[number] if number < len(self.positional) else None
        match name:
            case "?":
                return str(self.status)
            case "$":
                return "1"
            case "#":
                return str(len(self.positional) - 1)
            case "@" | "*":
                return " ".join(self.positional[1:])
            case "RANDOM":
                raise NotFollowed("$RANDOM")
        return self.variables.get(name)

    def output(self, body: Node) -> Generator[Event, str, str]:
        """Returns the output of commands, without line breaks at its end."""
        printed: list[str] = []
        sinks = dict(self._sinks)
        self._sinks[STDOUT] = printed
        try:
            yield from self._subshell(body)
        finally:
            self._sinks = sinks
        return "".join(printed).rstrip("\n")

    def count(self, steps: int = 1) -> None:
        """Counts steps. Endless: there are too many."""
        self._steps += steps
        if self._steps > MAX_STEPS:
            raise Endless
