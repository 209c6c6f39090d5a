"""What the containers of simulated pods do, as a test scripts it."""

import asyncio
import inspect
import socket
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, BinaryIO, Final, Protocol

from msgspec import Struct, field
from msgspec.structs import replace

from fakeapiserver.apimachinery import labels
from fakeapiserver.client.cache.indexer import Object
from fakeapiserver.component_helpers.objects import controller_of, labels_of
from fakeapiserver.nodes.commands import Run, run_of


class Writable(Protocol):
    """A stream to a client. BrokenPipeError when it is gone."""

    def write(self, data: str | bytes) -> int: ...


class Call(Struct, frozen=True):
    """What a scripted command is called with, as a program is: it reads `stdin` and writes to `stdout` and `stderr`. `command` is empty
    for who attaches. `size`: columns and rows of the terminal, once they are known."""

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
    """What a command prints, and how it ends."""

    stdout: str | bytes = ""
    stderr: str | bytes = ""
    exit_code: int = 0


# Answers an exit code (None: 0), what it prints, or both. Runs in a thread of its own; SystemExit is its exit code.
Command = Callable[[Call], int | str | bytes | Output | None]
# Lines and when they are printed, in seconds after the container's start, in order.
Lines = Iterable[tuple[float, str]]
Log = str | Sequence[tuple[float, str]] | Callable[[int], str | Lines]
# A port answers: these bytes once something was said, whoever listens at "host:port", or a function that has the connection.
Port = (
    bytes
    | str
    | Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
    | Callable[[socket.socket], None]
)


class Failing(Struct, frozen=True):
    """A probe says no: from `after` until `until` (seconds after the container's start; None: for good), no more than so many times.
    message: what is told of it; "": what a probe of its kind says."""

    after: float = 0.0
    until: float | None = None
    times: int | None = None
    message: str = ""


class Hook(Struct, frozen=True):
    """What a lifecycle hook does: it takes so many seconds, and fails where it has an error."""

    seconds: float = 0.0
    error: str = ""


class ContainerBehaviour(Struct, frozen=True):
    """One container's. Times in seconds of the cluster's clock.

    starts_after: the image is pulled and the container made.
    pull_error: the image never comes, with this message; "" it does.
    runs_for: until it ends by itself; None: it runs until it is stopped.
    exit_codes: of its first run, its second …; the last goes for all further ones.
    message: its termination message.
    ready_after: its start, when its readiness probe says yes; None: never. Where no probe is defined it is ready at once.
    started_after: its start, when its startup probe says yes; None: never.
    unhealthy_after: its start, when its liveness probe begins to say no; None: never.
    probes: how its probes fail, by their kinds: startup, readiness, liveness.
    pre_stop, post_start: its hooks; None: as their handlers plainly say (sleep, exec of a plain command), else at once and well.
    stops_after: being told to stop, at most the grace period.
    stop_exit_code: then; 143 is SIGTERM's.
    resizes_after: being given other resources, it has them.
    resize_error: it never has, with this message; resize_infeasible: its node never gives them.
    admission_error: the node refuses its pod, with this message.
    usage: what it uses of its node's resources (memory, ephemeral-storage, pids), for evictions.
    log: what it prints: text at its start, or lines with the seconds after it; or a function of the number of restarts that gives either.
    exec: a function, or what commands (their words with a blank between) print. "": any other command.
    attach: a function; None: who attaches sees the log, and what is typed is echoed.
    ports: who answers at a port of the pod; 0: at any other.
    """

    starts_after: float = 0.0
    pull_error: str = ""
    runs_for: float | None = None
    exit_codes: Sequence[int] = (0,)
    message: str = ""
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
        """Of the run after so many restarts."""
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


class Behaviours:
    """The scripts of a cluster: of those that match, each says what it names, the last one last."""

    def __init__(self) -> None:
        self._rules: list[_Rule] = []

    def add(
        self, *, namespace: str = "", name: str = "", selector: str = "", container: str = "", **changes: Any
    ) -> None:
        """Changes what containers do, by fields of ContainerBehaviour: of pods in `namespace`, called `name`, selected by
        `selector`, of containers called `container`; what isn't said is any. ValueError for what is no selector, TypeError for
        a field there isn't."""
        replace(_RUNS, **changes)
        if any(inspect.iscoroutinefunction(changes.get(name)) for name in ("exec", "attach")):
            raise ValueError("exec and attach take plain functions: they run in a thread of their own")
        if unknown := set(changes.get("probes", ())) - {"startup", "readiness", "liveness"}:
            raise ValueError(f"there is no {sorted(unknown)[0]} probe: they are startup, readiness and liveness")
        if not changes.get("exit_codes", (0,)):
            raise ValueError("exit_codes needs one exit code at least")
        self._rules.append(_Rule(namespace, name, labels.parse(selector), container, changes))

    def clear(self) -> None:
        """Nothing is scripted any more."""
        self._rules.clear()

    def of(self, pod: Object, container: str, *, main: bool) -> ContainerBehaviour:
        """`main`: it is no init container. Unscripted it does what its command plainly says; else it ends at once with success where
        something waits for its end (init containers, jobs), and runs until it is stopped elsewhere."""
        found = _unscripted(pod, container, main=main)
        for rule in self._rules:
            if rule.matches(pod, container):
                found = replace(found, **rule.changes)
        return found


def _unscripted(pod: Object, container: str, *, main: bool) -> ContainerBehaviour:
    spec: Object = next(
        (found for kind in _KINDS for found in pod["spec"].get(kind) or () if found["name"] == container), {}
    )
    run = run_of(spec)
    if run is not None:
        return _behaviour(run)
    owner = controller_of(pod)
    ends = not main or (owner is not None and owner["kind"] == "Job")
    return _COMPLETES if ends else _RUNS


@lru_cache(maxsize=256)
def _behaviour(run: Run) -> ContainerBehaviour:
    return ContainerBehaviour(runs_for=run.seconds, exit_codes=(run.exit_code,))
