"""The container runtime of simulated nodes: logs, commands, terminals and ports, by the scripts of containers.

Upstream: pkg/kubelet/kubelet_pods.go (GetKubeletContainerLogs, GetExec, GetAttach, GetPortForward); messages of containerd's.
"""

import asyncio
import errno
import inspect
import io
import logging
import os
import socket
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Any, Final, TypeVar

from msgspec.structs import replace

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.clock import Timers
from fakeapiserver.component_helpers.streaming import KubeletError, LogOptions, Streams, Write
from fakeapiserver.controller_runtime.reconcile import Request
from fakeapiserver.nodes.behaviour import Call, Command, ContainerBehaviour, Output, Port, container_of
from fakeapiserver.nodes.commands import Process
from fakeapiserver.nodes.commands import run_of as command_run
from fakeapiserver.nodes.logs import Reader, Run, run_of, status_of
from fakeapiserver.nodes.node import address_of
from fakeapiserver.nodes.sessions import Session
from fakeapiserver.nodes.simulation import Simulation
from fakeapiserver.nodes.surroundings import references, surroundings_of
from fakeapiserver.transport.pipe import Pipe

log = logging.getLogger(__name__)
T = TypeVar("T")
_PIECE: Final = 1 << 16
_RUN: Final = "failed to exec in container: failed to start exec: OCI runtime exec failed: exec failed: unable to start"


class SimulatedKubelets:
    """The nodes of a simulation (component_helpers.streaming.Kubelets)."""

    def __init__(self, simulation: Simulation, clock: Timers) -> None:
        self._simulation = simulation
        self._runtime = SimulatedRuntime(simulation, clock)

    def runtime(self, node: str) -> "SimulatedRuntime | None":
        """Returns the runtime of a node, or None if it isn't simulated.

        Raises ConnectionError if the node is unplugged.
        """
        state = self._simulation.nodes.get(node)
        if state is None:
            return None
        if not state.runs:
            raise ConnectionError(f"dial tcp {address_of(state.number)}:10250: connect: no route to host")
        return self._runtime


class SimulatedRuntime:
    """The container runtime of all simulated nodes.

    Objects that are passed in may be newer or older than the kubelets' state.
    """

    def __init__(self, simulation: Simulation, clock: Timers) -> None:
        self._simulation = simulation
        self._clock = clock
        self._serving: set[asyncio.Future[None]] = set()

    async def logs(self, pod: Object, container: str, options: LogOptions) -> AsyncGenerator[bytes, None]:
        """KubeletError: there is no log of it."""
        run = self._run(pod, container, options)
        reader = Reader(self._behaviour(pod, container).log, run, options)
        return self._follow(pod, container, reader, options) if options.follow else _once(reader, self._clock.now())

    async def _follow(
        self, pod: Object, container: str, reader: Reader, options: LogOptions
    ) -> AsyncGenerator[bytes, None]:
        """Until the container's run ends."""
        yield reader.first(self._clock.now())
        request = _request_of(pod)
        begun = self._run(pod, container, options)
        while not reader.is_full:
            known = self._simulation.pod(request) or pod
            with suppress(KubeletError):
                run = self._run(known, container, options)
                if run.started != begun.started or run.restarts != begun.restarts:
                    return
                if run.ended is not None:
                    yield reader.further(run.ended)
                    return
            await self._simulation.change(request, self._clock, reader.next_at)
            if self._simulation.pod(request) is None:
                return
            if data := reader.further(self._clock.now()):
                yield data

    def check_running(self, pod: Object, container: str) -> None:
        """KubeletError 500: it doesn't run."""
        if not _runs(pod, container):
            raise KubeletError(500, f'container not found ("{container}")')

    async def execute(self, pod: Object, container: str, command: Sequence[str], streams: Streams) -> int:
        """Its exit code. What no script names runs in the simulator's shell."""
        scripted = self._behaviour(pod, container).exec
        if callable(scripted):
            return await _run(scripted, pod, container, command, streams)
        output = scripted.get(" ".join(command), scripted.get(""))
        if output is not None:
            return await _print(output, streams)
        if not command:
            why = 'exec: "": executable file not found in $PATH'
            raise KubeletError(500, f"error executing command in container: {_RUN} container process: {why}: unknown")
        spec = container_of(pod, container)
        objects = await self._simulation.read_objects(pod, references(pod, spec, command))
        surroundings = replace(surroundings_of(pod, spec, objects), is_container=False, is_terminal=streams.tty)
        return await Session(streams, self._clock).run(command, surroundings)

    async def attach(self, pod: Object, container: str, streams: Streams) -> None:
        """Runs until the container ends, or the function that is scripted."""
        scripted = self._behaviour(pod, container).attach
        if scripted is not None:
            await _run(scripted, pod, container, (), streams)
            return
        log = self._behaviour(pod, container).log
        if isinstance(log, Process) and streams.stdin is not None and command_run(log).reads:
            await self._converse(pod, container, log, streams)
            return
        # A script's log is shown from its beginning. Of a command a client sees what it prints from now on, as of a program.
        is_command = isinstance(log, Process)
        echoing = asyncio.ensure_future(_echo(streams) if streams.tty or not is_command else _drop(streams))
        try:
            options = LogOptions(follow=True, tail_lines=0 if is_command else None)
            async for data in await self.logs(pod, container, options):
                if streams.stdout is not None:
                    await streams.stdout(data)
        finally:
            echoing.cancel()
            await asyncio.gather(echoing, return_exceptions=True)

    async def _converse(self, pod: Object, container: str, process: Process, streams: Streams) -> None:
        """A command that reads its input goes on with what the client sends, and its end is the container's."""
        run = self._run(pod, container, LogOptions())
        session = Session(streams, self._clock)
        surroundings = replace(process.surroundings, is_terminal=streams.tty)
        code = await session.run(process.words, surroundings, resumes=True)
        seconds = max(0.0, self._clock.now() - run.started)
        printed = [*process.lines(run.started), *((seconds, line) for line in session.printed.splitlines())]
        self._simulation.finish(pod, container, runs_for=seconds, exit_codes=(code,), log=printed)

    async def dial(self, pod: Object, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connects to the server that the scripts name. Raises OSError if no server is at the port."""
        port_behaviour = self._port(pod, port)
        if port_behaviour is None or (pod.get("status") or {}).get("phase") != "Running":
            raise ConnectionRefusedError(errno.ECONNREFUSED, os.strerror(errno.ECONNREFUSED))
        if isinstance(port_behaviour, str):
            host, _, number = port_behaviour.rpartition(":")
            return await asyncio.open_connection(host.strip("[]") or "127.0.0.1", int(number))
        near, far = socket.socketpair()
        reader, writer = await asyncio.open_connection(sock=near)
        serving = asyncio.ensure_future(
            _serve_while_open(
                _saying(port_behaviour) if isinstance(port_behaviour, bytes) else port_behaviour, far, writer
            )
        )
        self._serving.add(serving)
        serving.add_done_callback(self._serving.discard)
        return reader, writer

    async def port_forward(self, pod: Object, port: int, received: Pipe, write: Write) -> None:
        """Forwards a client's connection. Raises KubeletError if no server is at the port."""
        if self._port(pod, port) is None:
            namespace = f"/var/run/netns/cni-{pod['metadata']['uid']}"
            refused = (
                f"IPv4: dial tcp4 127.0.0.1:{port}: connect: connection refused "
                f"IPv6: dial tcp6 [::1]:{port}: connect: connection refused"
            )
            told = f'failed to connect to localhost:{port} inside namespace "{namespace}", {refused}'
            raise KubeletError(500, f'failed to execute portforward in network namespace "{namespace}": {told}')
        reader, writer = await self.dial(pod, port)
        try:
            await _relay(reader, writer, received, write)
        finally:
            writer.close()

    def _run(self, pod: Object, container: str, options: LogOptions) -> Run:
        spans = self._simulation.spans(pod["metadata"]["uid"])
        return run_of(pod, container, spans, previous=options.previous)

    def _port(self, pod: Object, port: int) -> Port | None:
        """Returns the server at a port; a container's entry for it precedes any entry for all other ports."""
        known = [self._behaviour(pod, container["name"]).ports for container in pod["spec"]["containers"]]
        return next((ports[number] for number in (port, 0) for ports in known if number in ports), None)

    def _behaviour(self, pod: Object, container: str) -> ContainerBehaviour:
        main = any(spec["name"] == container for spec in pod["spec"]["containers"])
        return self._simulation.behaviours.of(pod, container, main=main)


def _request_of(pod: Object) -> Request:
    return Request(pod["metadata"]["namespace"], pod["metadata"]["name"])


def _runs(pod: Object, container: str) -> bool:
    status = status_of(pod, container)
    return status is not None and "running" in status["state"]


async def _once(reader: Reader, now: float) -> AsyncGenerator[bytes, None]:
    yield reader.first(now)


async def _echo(streams: Streams) -> None:
    """A terminal shows what is typed."""
    while streams.stdin is not None and (data := await streams.stdin.read()):
        if streams.stdout is not None:
            await streams.stdout(data)


async def _drop(streams: Streams) -> None:
    """Reads what a command never asks for."""
    while streams.stdin is not None and await streams.stdin.read():
        pass


async def _print(output: Output, streams: Streams) -> int:
    for text, write in ((output.stdout, streams.stdout), (output.stderr, streams.stderr)):
        if text and write is not None:
            await write(text.encode() if isinstance(text, str) else text)
    return output.exit_code


# --------------------------------------------------------------------- functions


async def _run(function: Command, pod: Object, container: str, command: Sequence[str], streams: Streams) -> int:
    """Runs the function in a thread. The client sees an exception like a program's traceback, with exit code 1."""
    loop = asyncio.get_running_loop()
    stdin: io.RawIOBase = _Input(streams.stdin, loop) if streams.stdin is not None else io.BytesIO()  # type: ignore[assignment]
    call = Call(
        pod["metadata"]["namespace"],
        pod["metadata"]["name"],
        container,
        list(command),
        io.BufferedReader(stdin),
        _Output(streams.stdout, loop),
        _Output(streams.stderr, loop),
        streams.tty,
        lambda: streams.size,
    )
    try:
        result = await _in_thread(lambda: _exited(function, call))
    except ConnectionError:
        raise
    except Exception as error:
        log.exception("the function scripted for %s in %s failed", command, call.pod)
        return await _print(Output(stderr=f"{type(error).__name__}: {error}\n", exit_code=1), streams)
    if isinstance(result, int):
        return result
    if isinstance(result, Output):
        return await _print(result, streams)
    return await _print(Output(stdout=result or ""), streams)


def _exited(function: Command, call: Call) -> int | str | bytes | Output | None:
    """`sys.exit` ends it as it ends a program."""
    try:
        return function(call)
    except SystemExit as exit_:
        if isinstance(exit_.code, str):
            return Output(stderr=exit_.code + "\n", exit_code=1)
        return exit_.code


async def _in_thread(work: Callable[[], T]) -> T:
    """Runs `work` in a thread, which is abandoned when its client is gone."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def tell(result: T | None, error: BaseException | None) -> None:
        if done.cancelled():
            return
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(result)  # type: ignore[arg-type]

    def run() -> None:
        result, error = None, None
        try:
            result = work()
        except BaseException as raised:
            error = raised
        with suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(tell, result, error)

    threading.Thread(target=run, name="exec", daemon=True).start()
    return await done


def _wait_for(work: Coroutine[Any, Any, T], loop: asyncio.AbstractEventLoop) -> T:
    return asyncio.run_coroutine_threadsafe(work, loop).result()


class _Input(io.RawIOBase):
    """A pipe as a thread reads it."""

    def __init__(self, pipe: Pipe, loop: asyncio.AbstractEventLoop) -> None:
        self._pipe = pipe
        self._loop = loop

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = _wait_for(self._pipe.read(len(buffer)), self._loop)
        buffer[: len(data)] = data
        return len(data)


class _Output:
    """A stream to the client as a thread writes it."""

    def __init__(self, write: Write | None, loop: asyncio.AbstractEventLoop) -> None:
        self._write = write
        self._loop = loop

    def write(self, data: str | bytes) -> int:
        """BrokenPipeError when the client is gone."""
        encoded = data.encode() if isinstance(data, str) else bytes(data)
        if self._write is not None:
            try:
                _wait_for(_all(self._write, encoded), self._loop)
            except (ConnectionError, RuntimeError) as error:
                raise BrokenPipeError("the client is gone") from error
        return len(data)

    def flush(self) -> None:
        """Does nothing: data is sent at once."""


async def _all(write: Write, data: bytes) -> None:
    await write(data)


# ------------------------------------------------------------------------- ports


def _saying(answer: bytes) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]:
    """A server with one answer, once something was said."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if await reader.read(_PIECE):
            writer.write(answer)
            await writer.drain()

    return serve


async def _serve_while_open(function: Callable[..., Any], far: socket.socket, near: asyncio.StreamWriter) -> None:
    serving, closing = asyncio.ensure_future(_serve(function, far)), asyncio.ensure_future(near.wait_closed())
    await asyncio.wait((serving, closing), return_when=asyncio.FIRST_COMPLETED)
    for task in (serving, closing):
        task.cancel()
    await asyncio.gather(serving, closing, return_exceptions=True)


async def _serve(function: Callable[..., Any], connection: socket.socket) -> None:
    """A scripted server's side of a connection."""
    if inspect.iscoroutinefunction(function):
        reader, writer = await asyncio.open_connection(sock=connection)
        try:
            await function(reader, writer)
        finally:
            writer.close()
        return

    def answer() -> None:
        with connection:
            function(connection)

    await _in_thread(answer)


async def _relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, received: Pipe, write: Write) -> None:
    """To and fro, until the server has said all."""

    async def upload() -> None:
        with suppress(ConnectionError):
            while data := await received.read():
                writer.write(data)
                await writer.drain()
            writer.write_eof()

    uploading = asyncio.ensure_future(upload())
    try:
        while data := await reader.read(_PIECE):
            await write(data)
    except ConnectionResetError:
        return
    finally:
        uploading.cancel()
        await asyncio.gather(uploading, return_exceptions=True)
