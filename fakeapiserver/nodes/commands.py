"""The behaviour of containers by their own commands, as far as the simulator's shell follows them. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.nodes.images import image_of
from fakeapiserver.nodes.shell.events import Endless, Read, Sleep, Steps, Surroundings, Write
from fakeapiserver.nodes.shell.interpreter import Shell
from fakeapiserver.nodes.shell.programs import PROGRAMS
from fakeapiserver.nodes.shell.tree import NotFollowed
from fakeapiserver.nodes.surroundings import Objects, environment_of, expanded, references, surroundings_of

# Characters that one run of a container prints at most.
_MAX_LOG: Final = 1 << 20
_TERMINATION_LOG: Final = "/dev/termination-log"
# How much of that file is a termination message, in characters.
_MAX_MESSAGE: Final = 4096
# How many restarts of a container find other files than the run before.
_MAX_RESTARTS: Final = 8


class Run(NamedTuple):
    """The end of a run, in seconds after its start; None: it never ends. `is_followed` False: the simulator doesn't know further
    from then on. `message`: what it has written as its termination message. `reads`: it waits for input."""

    seconds: float | None
    exit_code: int = 0
    is_followed: bool = True
    message: str = ""
    reads: bool = False


class Process(Struct, frozen=True):
    """A command and what it finds. `has_input`: a client may attach to it."""

    words: tuple[str, ...]
    surroundings: Surroundings = Surroundings()
    has_input: bool = False
    message_path: str = _TERMINATION_LOG

    def lines(self, started: float) -> Iterator[tuple[float, str]]:
        """Yields the output: seconds after the start, and a line."""
        seconds, left, partial = 0.0, _MAX_LOG, ""
        events = self._events(Shell(self.surroundings, PROGRAMS, now=started))
        for event in events:
            if isinstance(event, Sleep):
                seconds += event.seconds
            elif isinstance(event, Write):
                left -= len(event.text)
                if left < 0:
                    break
                *complete, partial = (partial + event.text).split("\n")
                yield from ((seconds, line) for line in complete)
        if partial:
            yield seconds, partial

    def follow(self) -> tuple[Run, "Process"]:
        """Returns when and how it ends, and the process that is started after it, which finds its files in mounted directories."""
        shell = Shell(self.surroundings, PROGRAMS, is_silent=True)
        seconds = 0.0
        steps = shell.call(self.words)
        try:
            event = next(steps)
            while True:
                if isinstance(event, Read) and self.has_input:
                    return Run(None, reads=True), self
                if isinstance(event, Sleep):
                    seconds += event.seconds
                event = steps.send("")
        except StopIteration as end:
            code, is_followed = end.value, True
        except NotFollowed:
            code, is_followed = 0, False
        except Endless:
            return Run(None), self
        message = shell.files.get(self.message_path, "")[:_MAX_MESSAGE]
        return Run(seconds, code, is_followed, message), self._finding(shell.files)

    def _finding(self, files: Mapping[str, str]) -> "Process":
        """The same process with these files in its mounted directories."""
        mounted = tuple(f"{path.rstrip('/')}/" for path in self.surroundings.directories)
        kept = {path: text for path, text in self.surroundings.files if not path.startswith(mounted)}
        found = {path: text for path, text in files.items() if path.startswith(mounted)}
        return replace(self, surroundings=replace(self.surroundings, files=tuple((kept | found).items())))

    def _events(self, shell: Shell) -> Iterator[Write | Sleep | Read]:
        steps: Steps = shell.call(self.words)
        try:
            event = next(steps)
            while not (isinstance(event, Read) and self.has_input):
                yield event
                event = steps.send("")
        except (StopIteration, NotFollowed, Endless):
            return


@lru_cache(maxsize=1024)
def _outcome(process: Process) -> tuple[Run, Process]:
    """`process.follow()`, which is asked for at each look at a pod."""
    return process.follow()


def run_of(process: Process) -> Run:
    """When and how a process ends."""
    return _outcome(process)[0]


def restarted(process: Process, restarts: int) -> Process:
    """Returns the process of a container after so many restarts: it finds the files that those before it left in its volumes.

    From the eighth on, all are as the eighth.
    """
    for _ in range(min(restarts, _MAX_RESTARTS)):
        before, process = process, _outcome(process)[1]
        if process == before:
            break
    return process


def exit_codes_of(process: Process) -> tuple[int, ...]:
    """Returns the exit codes of a container's runs; the last one is that of all further runs.

    A run that takes another time than the first isn't followed, nor are those after it.
    """
    first = run_of(process)
    codes = [first.exit_code]
    for _ in range(_MAX_RESTARTS):
        before, process = process, restarted(process, 1)
        run = run_of(process)
        if process == before or (run.seconds, run.is_followed) != (first.seconds, first.is_followed):
            break
        codes.append(run.exit_code)
    return tuple(codes)


def process_of(pod: Object, spec: Object, objects: Objects) -> Process | None:
    """Returns the process of a container, or None if only its image determines it."""
    words = command_of(spec)
    if not words:
        return None
    environment = environment_of(pod, spec, objects) if any("$(" in word for word in words) else {}
    has_input = bool(spec.get("stdin"))
    path = spec.get("terminationMessagePath") or _TERMINATION_LOG
    if words[0] in ("sleep", "pause", "true", "false") and not environment:
        return Process(words, has_input=has_input, message_path=path)
    words = tuple(expanded(word, environment) for word in words) if environment else words
    return Process(words, surroundings_of(pod, spec, objects), has_input, path)


def hook_process(handler: Mapping[str, Any]) -> Process:
    """Returns the process of a lifecycle hook, whose output is shown nowhere."""
    return Process(tuple(handler.get("command") or ("true",)))


def needed_objects(pod: Object) -> set[tuple[str, str]]:
    """The ConfigMaps and Secrets, as (kind, name), that commands of the pod's containers can see."""
    specs = [spec for kind in ("initContainers", "containers") for spec in pod["spec"].get(kind) or ()]
    return {key for spec in specs if (words := command_of(spec)) for key in references(pod, spec, words)}


def command_of(spec: Object) -> tuple[str, ...]:
    """The words of a container's command: its own, or those of a known image."""
    command: Sequence[str] = spec.get("command") or ()
    arguments: Sequence[str] = spec.get("args") or ()
    if command:
        return (*command, *arguments)
    image = image_of(str(spec.get("image", "")))
    if not arguments:
        return (*image.entrypoint, *image.arguments) if image is not None else ()
    is_program = arguments[0].rpartition("/")[2] in PROGRAMS
    return (*arguments,) if image is None or is_program else (*image.entrypoint, *arguments)
