"""`cluster.operator_process(command)`: an operator in any language, as a process of its own.

with cluster.operator_process("./bin/manager --metrics-bind-address=:{port:metrics}") as operator:
    cluster.apply(widget)
    cluster.settle(with_=operator.user)  # waits for the operator, too
    operator.kill()                      # as the out-of-memory killer does
    operator.start()
"""

import asyncio
import http.client
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import Final, Self, TypedDict, Unpack
from urllib.parse import urlsplit

from msgspec import Struct

from fakeapiserver.cluster import arguments, operators
from fakeapiserver.cluster.faces import Blocking, Call, blocking
from fakeapiserver.cluster.processes.process import CommandLine, Process
from fakeapiserver.cluster.requests import AsyncRequests
from fakeapiserver.cluster.webhooks import AsyncWebhooks
from fakeapiserver.server.local import LocalServer

_PAUSE: Final = 0.02
_LOOK: Final = 0.5
_LAST_LINES: Final = 10


class OperatorDoesNotStart(OSError):
    """The operator has ended before it was up, or isn't up in time. The text has its last lines."""


class Place(TypedDict, total=False):
    """The variables of an operator's environment, and its folder."""

    env: Mapping[str, str]
    folder: str | os.PathLike[str]


class Limits(Struct, frozen=True):
    """`ready`: a URL that is answered with a status below 400 once the operator is up, or "". `timeout`: the seconds that a start may
    take."""

    ready: str = ""
    timeout: float = 30.0


class _Described:
    """The part of an operator's process that needs no event loop."""

    _process: Process
    _user: str

    @property
    def user(self) -> str:
        """Its user, by which `cluster.requests.by(user=…)` and `cluster.settle(with_=…)` know its requests."""
        return self._user

    @property
    def log(self) -> str:
        """The end of its output (4 MiB), of all its starts."""
        return self._process.output()

    @property
    def exit_code(self) -> int | None:
        """The exit code if it has ended by itself since its last start, negative for a signal; None: it runs, or was stopped."""
        return self._process.ended

    @property
    def ports(self) -> Mapping[str, int]:
        """The ports that it was given, by the names in their placeholders: `ports["metrics"]` for `{port:metrics}`."""
        return self._process.ports


class AsyncOperatorProcess(_Described):
    """An operator that isn't running yet: `async with cluster.operator_process(command) as operator:`. `kubeconfig` is called for its
    credentials."""

    def __init__(
        self,
        process: Process,
        requests: AsyncRequests,
        webhooks: AsyncWebhooks | None,
        user: str,
        kubeconfig: Callable[[], str],
        limits: Limits,
    ) -> None:
        self._process = process
        self._user = user
        self._kubeconfig = kubeconfig
        self._requests = requests
        self._webhooks = webhooks
        self._ready, self._timeout = limits.ready, limits.timeout
        self._path = ""

    async def start(self) -> None:
        """Starts the operator, and returns when it is up. Raises OSError if there is no such program, and OperatorDoesNotStart."""
        if self._process.is_running:
            raise ValueError("this operator is running already")
        self._path = self._path or self._kubeconfig()
        mark = self._requests.mark()
        await asyncio.to_thread(self._process.launch, self._path, self._webhooks)
        deadline = asyncio.get_running_loop().time() + self._timeout
        while missing := await self._missing(mark):
            ended = self._process.ended
            if ended is not None or asyncio.get_running_loop().time() > deadline:
                problem = (
                    f"ended with exit code {ended}" if ended is not None else f"{missing} within {self._timeout:g} s"
                )
                lines = self.log.splitlines()[-_LAST_LINES:]
                await self.kill()
                raise OperatorDoesNotStart(f"the operator {problem}; its last lines:\n" + "\n".join(lines))
            await asyncio.sleep(_PAUSE)

    async def kill(self) -> None:
        """Kills the process and its children at once, as a node that fails does. Does nothing if it doesn't run."""
        await asyncio.to_thread(self._process.kill)

    async def stop(self) -> None:
        """Asks the process to end by SIGTERM, and kills it after five seconds. Does nothing if it doesn't run."""
        await asyncio.to_thread(self._process.stop)

    async def restart(self) -> None:
        """Stops the operator and starts it again, with the same ports and certificates."""
        await self.stop()
        await self.start()

    async def _missing(self, mark: int) -> str:
        """Returns what the operator hasn't done yet, in words, or "" if it is up."""
        if not len(self._requests.since(mark).by(user=self._user)):
            return "has sent no request"
        if self._webhooks is not None and (self._webhooks._local.is_called or self._process.command.serves_webhooks):
            try:
                await self._webhooks.wait(_LOOK)
            except TimeoutError:
                return f"serves no webhooks at {self._webhooks.url} with the certificate in {self._webhooks.cert_dir}"
        url = self._process.filled(self._ready)
        if url and not await asyncio.to_thread(_is_ready, url):
            return f"isn't ready by {url}"
        return ""

    async def close(self) -> None:
        """Stops the operator, and removes its log and its temporary files."""
        await self.stop()
        await asyncio.to_thread(self._process.close)

    async def __aenter__(self) -> Self:
        try:
            await self.start()
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()


class OperatorProcesses(ABC):
    """The part of a cluster that starts operators as processes."""

    _processes = 0

    @property
    @abstractmethod
    def _server(self) -> LocalServer:
        """The running server."""

    @property
    @abstractmethod
    def requests(self) -> AsyncRequests:
        """The last requests of clients."""

    @abstractmethod
    def _kubeconfig_of(self, user: str, groups: Sequence[str] | str) -> str:
        """The path of a kubeconfig for a user, or for a service account `namespace/name`."""

    def user_token(self, name: str, groups: Sequence[str] | str = ()) -> str:
        """A bearer token for a user, who may do what RBAC allows, as for `user()`. It is valid as long as the cluster runs."""
        api = self._server.api
        assert api is not None
        user = operators.user_info(name, arguments.as_names("groups", groups))
        return api.access.authentication.own_tokens.new(user)

    def operator_process(
        self,
        command: str | Sequence[str],
        *,
        user: str = "",
        groups: Sequence[str] | str = ("system:masters",),
        ready: str = "",
        timeout: float = 30.0,
        **place: Unpack[Place],
    ) -> AsyncOperatorProcess:
        """An operator in any language, as a process of its own: `async with cluster.operator_process("./bin/manager") as operator:`. See
        `Cluster.operator_process`."""
        self._processes += 1
        name = user or f"operator-{self._processes}"
        local = self._server.webhooks
        return AsyncOperatorProcess(
            Process(CommandLine.of(command, place.get("env", {}), place.get("folder"))),
            self.requests,
            AsyncWebhooks(local) if local is not None else None,
            operators.user_info(name, ()).name,
            partial(self._kubeconfig_of, name, groups),
            Limits(ready, timeout),
        )


class OperatorProcess(_Described, Blocking[AsyncOperatorProcess]):
    """An operator that isn't running yet: `with cluster.operator_process(command) as operator:`."""

    def __init__(self, core: AsyncOperatorProcess, call: Call) -> None:
        Blocking.__init__(self, core, call)
        self._process, self._user = core._process, core._user

    start = blocking(AsyncOperatorProcess.start)
    kill = blocking(AsyncOperatorProcess.kill)
    stop = blocking(AsyncOperatorProcess.stop)
    restart = blocking(AsyncOperatorProcess.restart)
    close = blocking(AsyncOperatorProcess.close)

    def __enter__(self) -> Self:
        self._call(self._core.__aenter__)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def _is_ready(url: str) -> bool:
    """Reports whether the URL is answered with a status below 400."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=_LOOK)
    with suppress(OSError, http.client.HTTPException):
        connection.request("GET", parts.path or "/")
        return connection.getresponse().status < 400
    return False
