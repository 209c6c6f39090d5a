"""The behaviour of the containers of simulated pods, as a test scripts it."""

import asyncio
import inspect
import re
import socket
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, BinaryIO, Final, Protocol, cast

from msgspec import Struct, field
from msgspec.structs import replace

from fakeapiserver.apimachinery import labels
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.component_helpers.objects import controller_of, labels_of
from fakeapiserver.nodes.commands import Process, exit_codes_of, process_of, run_of
from fakeapiserver.nodes.images import name_problem, pull_problem
from fakeapiserver.nodes.surroundings import Objects

__all__ = [
    "Call",
    "Command",
    "ContainerBehaviour",
    "Failing",
    "Hook",
    "Lines",
    "Log",
    "Output",
    "Port",
    "Writable",
]


class Writable(Protocol):
    """A stream to a client. BrokenPipeError if the client has disconnected."""

    def write(self, data: str | bytes) -> int: ...


class Call(Struct, frozen=True):
    """The argument of a scripted command, which reads `stdin` and writes to `stdout` and `stderr` as a program does. `command` is
    empty for attach. `size` returns the columns and rows of the terminal, None as long as they aren't known."""

    namespace: str
    pod: str
    container: str
    command: Sequence[str]
    stdin: BinaryIO
    stdout: Writable
    stderr: Writable
    tty: bool
    size: Callable[[], tuple[int, int] | None]


class Output(Struct, frozen=True):
    """The output of a command, and its exit code."""

    stdout: str | bytes = ""
    stderr: str | bytes = ""
    exit_code: int = 0


# Returns an exit code (None: 0), what the command prints, or both. Runs in a thread of its own; SystemExit sets the exit code.
Command = Callable[[Call], int | str | bytes | Output | None]
# Lines with the time at which they are printed, in seconds after the container's start and in order.
Lines = Iterable[tuple[float, str]]
Log = str | Sequence[tuple[float, str]] | Callable[[int], str | Lines] | Process
# What answers at a port: bytes, sent when the client has sent something; a server at "host:port"; or a function that gets the connection.
Port = (
    bytes
    | str
    | Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
    | Callable[[socket.socket], None]
)


class Failing(Struct, frozen=True):
    """When a probe fails: from `after` until `until`, in seconds after the container's start (None: for ever), at most `times` times.
    `message` is in its events; "": the message that such a probe has by default."""

    after: float = 0.0
    until: float | None = None
    times: int | None = None
    message: str = ""


class Hook(Struct, frozen=True):
    """The behaviour of a lifecycle hook: it takes `seconds`, and fails if it has an `error`."""

    seconds: float = 0.0
    error: str = ""


class ContainerBehaviour(Struct, frozen=True):
    """The behaviour of a container. Times are in seconds of the cluster's clock.

    - starts_after: how long pulling the image and making the container take.
    - pull_error: pulling the image fails with this message; "": it succeeds.
    - runs_for: how long it runs; None: until it is stopped.
    - exit_codes: of its first run, its second, and so on; the last one is for all further runs.
    - message: its termination message.
    - reason: why it ends with another exit code than 0, such as OOMKilled; "": Error.
    - ready_after: when its readiness probe succeeds, counted from its start; None: never. Without a probe it is ready then.
    - started_after: when its startup probe succeeds, counted from its start; None: never.
    - unhealthy_after: when its liveness probe begins to fail, counted from its start; None: never.
    - probes: how its probes fail, by kind: startup, readiness, liveness.
    - pre_stop, post_start: its hooks; None: simple handlers (sleep, exec of a simple command) are followed, all others succeed at
      once.
    - stops_after: how long it takes to stop, at most the grace period.
    - stop_exit_code: its exit code when it is stopped; 143 is SIGTERM's.
    - resizes_after: how long it takes to get other resources.
    - resize_error: its resize fails with this message; resize_infeasible: its node refuses the resize with this message.
    - admission_error: the node refuses its pod with this message.
    - usage: its usage of the node's resources (cpu, memory, ephemeral-storage, pids), for evictions and the node's statistics.
    - log: its output: a text at its start, lines with the seconds after it, or a function of the number of
      restarts that returns either.
    - exec: a function, the output of each command, or a table from commands (words joined by blanks) to their
      output; "" is for all other commands. An output is a text or an Output.
    - attach: a function; None: the client sees the log, and its input is echoed.
    - ports: the servers at the pod's ports; 0 is for all other ports. A text `HOST:PORT` is the address of a
      server, any other text is the answer.
    """

    starts_after: float = 0.0
    pull_error: str = ""
    runs_for: float | None = None
    exit_codes: Sequence[int] = (0,)
    message: str = ""
    reason: str = ""
    ready_after: float | None = 0.0
    started_after: float | None = 0.0
    unhealthy_after: float | None = None
    probes: Mapping[str, Failing] = field(default_factory=dict)
    pre_stop: Hook | None = None
    post_start: Hook | None = None
    stops_after: float = 0.0
    stop_exit_code: int = 143
    resizes_after: float = 0.0
    resize_error: str = ""
    resize_infeasible: str = ""
    admission_error: str = ""
    usage: Mapping[str, str] = field(default_factory=dict)
    log: Log = ""
    exec: Command | Mapping[str, Output] = field(default_factory=dict)
    attach: Command | None = None
    ports: Mapping[int, Port] = field(default_factory=dict)

    def exit_code(self, restarts: int) -> int:
        """The exit code of the run after so many restarts."""
        return self.exit_codes[min(restarts, len(self.exit_codes) - 1)]


_KINDS: Final = ("containers", "initContainers", "ephemeralContainers")
_RUNS: Final = ContainerBehaviour()
_COMPLETES: Final = ContainerBehaviour(runs_for=0.0)


class _Rule(Struct, frozen=True):
    namespace: str
    name: str
    selector: labels.Selector
    container: str
    changes: dict[str, Any]

    def matches(self, pod: Object, container: str) -> bool:
        metadata = pod["metadata"]
        return (
            self.container in ("", container)
            and self.namespace in ("", metadata["namespace"])
            and self.name in ("", metadata["name"])
            and self.selector.matches(labels_of(pod))
        )


# A server's address: a name, an IPv4 address or an IPv6 address in brackets, and a port.
_ADDRESS: Final = re.compile(r"([A-Za-z0-9._-]*|\[[0-9A-Fa-f:.]+\]):[0-9]{1,5}")


def _commands(table: Any) -> Command | Mapping[str, Output]:
    """`exec` of a script, in the forms that Python and HTTP share. ValueError for any other form."""
    if callable(table):
        return cast("Command", table)
    if not isinstance(table, Mapping):
        return {"": _output(table)}
    return {command: _output(output) for command, output in table.items()}


def _output(output: Any) -> Output:
    """A text, an Output or its fields."""
    if isinstance(output, str | bytes):
        return Output(output)
    if isinstance(output, Mapping) and output.keys() <= set(Output.__struct_fields__):
        return Output(**output)
    if not isinstance(output, Output):
        raise ValueError(f"exec: {output!r} is neither a function, a text nor an Output(stdout, stderr, exit_code)")
    return output


def _port(answer: Any) -> Port:
    """A text that is no address, and the table {"answer": text}, are what the port answers."""
    if isinstance(answer, str):
        return answer if _ADDRESS.fullmatch(answer) else answer.encode()
    if isinstance(answer, Mapping) and answer.keys() == {"answer"}:
        return str(answer["answer"]).encode()
    if not (isinstance(answer, bytes) or callable(answer)):
        raise ValueError(f'ports: {answer!r} is neither "HOST:PORT", an answer nor a function')
    return cast("Port", answer)


class Behaviours:
    """The scripts of a cluster. Each that matches a container sets the fields that it names; later ones override earlier ones.

    objects: the ConfigMaps and Secrets that the commands of a pod see, by the pod's uid."""

    def __init__(self) -> None:
        self._rules: list[_Rule] = []
        self.objects: dict[str, Objects] = {}
        # What containers did that a client ended, by the pod's uid and the container's name.
        self._finished: dict[str, dict[str, dict[str, Any]]] = {}

    def add(
        self, *, namespace: str = "", name: str = "", selector: str = "", container: str = "", **changes: Any
    ) -> None:
        """Sets fields of ContainerBehaviour for containers called `container`, in pods called `name` in `namespace` whose labels match
        `selector`; what is left empty matches any. ValueError for an invalid selector or value, TypeError for an unknown field."""
        replace(_RUNS, **changes)
        if "exec" in changes:
            changes["exec"] = _commands(changes["exec"])
        if "ports" in changes:
            changes["ports"] = {int(port): _port(answer) for port, answer in changes["ports"].items()}
        if any(inspect.iscoroutinefunction(changes.get(name)) for name in ("exec", "attach")):
            raise ValueError("exec and attach take plain functions: they run in a thread of their own")
        if unknown := set(changes.get("probes", ())) - {"startup", "readiness", "liveness"}:
            raise ValueError(f"there is no {sorted(unknown)[0]} probe: they are startup, readiness and liveness")
        if not changes.get("exit_codes", (0,)):
            raise ValueError("exit_codes needs one exit code at least")
        self._rules.append(_Rule(namespace, name, labels.parse(selector), container, changes))

    def finish(self, pod: Object, container: str, **changes: Any) -> None:
        """Sets fields of the behaviour of one container, which scripts override."""
        self._finished.setdefault(pod["metadata"]["uid"], {})[container] = changes

    def forget(self, uid: str) -> None:
        """The pod is gone."""
        self.objects.pop(uid, None)
        self._finished.pop(uid, None)

    def clear(self) -> None:
        """Removes all scripts."""
        self._rules.clear()
        self._finished.clear()

    def copy(self) -> "Behaviours":
        """Returns the same scripts, to be changed independently."""
        other = Behaviours()
        other._rules = [*self._rules]
        other._finished = {uid: dict(containers) for uid, containers in self._finished.items()}
        return other

    def of(self, pod: Object, container: str, *, main: bool) -> ContainerBehaviour:
        """Returns the behaviour of a container; `main`: it is no init container.

        An unscripted container follows its command. If the simulator can't follow the command, the container succeeds
        if its pod is to end (init containers, jobs, pods with the
        restart policies Never and OnFailure), and else runs until it is stopped. Without a command it succeeds in
        init containers and
        jobs alone."""
        uid = pod["metadata"].get("uid", "")
        behaviour = _unscripted(pod, container, self.objects.get(uid, {}), main=main)
        if uid in self._finished:
            behaviour = replace(behaviour, **self._finished[uid].get(container, {}))
        for rule in self._rules:
            if rule.matches(pod, container):
                behaviour = replace(behaviour, **rule.changes)
        return behaviour


def container_of(pod: Object, name: str) -> Object:
    """The container's part of the pod's spec; {} if there is no such container."""
    return _found(pod, name)[1]


def _found(pod: Object, name: str) -> tuple[str, Object]:
    rows = ((kind, spec) for kind in _KINDS for spec in pod["spec"].get(kind) or () if spec["name"] == name)
    return next(rows, ("", {}))


def _unscripted(pod: Object, container: str, objects: Objects, *, main: bool) -> ContainerBehaviour:
    kind, spec = _found(pod, container)
    owner = controller_of(pod)
    is_awaited = not main or (owner is not None and owner["kind"] == "Job")
    process = process_of(pod, spec, objects)
    if process is None:
        behaviour = _COMPLETES if is_awaited else _RUNS
    else:
        policy = spec.get("restartPolicy") or pod["spec"].get("restartPolicy") or "Always"
        behaviour = _followed(process, is_awaited or (kind == "containers" and policy != "Always"))
    problem = _image_problem(spec.get("image") or "")
    return replace(behaviour, pull_error=problem) if problem else behaviour


@lru_cache(maxsize=1024)
def _followed(process: Process, ends: bool) -> ContainerBehaviour:
    """`ends`: the container succeeds where its command can't be followed any further."""
    run = run_of(process)
    seconds = run.seconds if run.is_followed or ends else None
    return ContainerBehaviour(runs_for=seconds, exit_codes=exit_codes_of(process), message=run.message, log=process)


@lru_cache(maxsize=1024)
def _image_problem(image: str) -> str:
    return (name_problem(image) or pull_problem(image)) if image else ""
