"""`cluster.operator(setup)`: an operator of fakeapiserver.controller_runtime in the cluster's event loop, by its clock.

with cluster.operator(setup) as operator:
    cluster.apply(widget)
    cluster.settle()             # waits for the operator, too
    cluster.clock.advance("1h")  # as does this: what the operator has put off for an hour happens
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Final, Self

from msgspec import structs

from fakeapiserver.auth.interfaces import UserInfo
from fakeapiserver.client.config import RESTConfig
from fakeapiserver.clock import AdjustableClock
from fakeapiserver.cluster.faces import Blocking, blocking
from fakeapiserver.controller_manager.manager import NotSettled
from fakeapiserver.controller_runtime.manager import Manager, ManagerOptions
from fakeapiserver.controller_runtime.webhook.server import WebhookServer
from fakeapiserver.server.in_process import InProcessRoundTripper
from fakeapiserver.server.local import LocalServer

Setup = Callable[[Manager], object]

# Turns of the event loop without anything moving after which nothing will.
_QUIET_TURNS: Final = 40
_FEW_TURNS: Final = 5
# So many looks come after some turns, those that follow after so many seconds: then it waits for something outside of this process.
_EVEN_LOOKS: Final = 2000
_PAUSE: Final = 0.005
# Seconds within which a retry counts as something that moves.
_SOON: Final = 1.5
_LEAST: Final = 1e-6
_AUTHENTICATED: Final = "system:authenticated"


class AsyncOperator:
    """An operator that isn't running yet: `async with cluster.operator(setup) as operator:`.

    `changed` is called with the operator when it has started and before it stops."""

    def __init__(
        self,
        server: LocalServer,
        setup: Setup,
        name: str,
        user: UserInfo,
        options: ManagerOptions | None,
        changed: Callable[["AsyncOperator", bool], None],
    ) -> None:
        self._name = name
        self._server = server
        self._setup = setup
        self._user = user
        self._options = options or ManagerOptions()
        self._changed = changed
        self._manager: Manager | None = None
        self._task: asyncio.Task[None] | None = None
        self._in_flight = 0

    @property
    def name(self) -> str:
        """Its user agent, and the name in managedFields."""
        return self._name

    @property
    def manager(self) -> Manager:
        """The present manager; each start makes another. Raises ValueError before the first."""
        if self._manager is None:
            raise ValueError(
                "this operator hasn't been started: use it inside `with cluster.operator(setup) as operator:`"
            )
        return self._manager

    @property
    def is_running(self) -> bool:
        """Whether it was started and not stopped, and no error has ended it."""
        return self._task is not None and not self._task.done()

    @property
    def error(self) -> BaseException | None:
        """The error that has ended it since it was started."""
        task = self._task
        return task.exception() if task is not None and task.done() and not task.cancelled() else None

    async def start(self) -> Self:
        """Starts the operator, and returns when its caches are filled and it leads. Raises what its setup and its start raise."""
        if self._task is not None:
            raise ValueError("this operator is running already")
        api = self._server.api
        assert api is not None
        transport = InProcessRoundTripper(api.application, self._user, self._count, as_client=True)
        options = self._options
        if not options.field_owner:
            options = structs.replace(options, field_owner=self.name)
        local = self._server.webhooks
        if options.webhook_server is None and local is not None and local.is_called:
            serving = WebhookServer(host=local.host, port=local.port, cert_dir=local.cert_dir)
            options = structs.replace(options, webhook_server=serving)
        config = RESTConfig(self._server.url, user_agent=self.name)
        chance = api.chance.source("operator", self.name).random
        manager = self._manager = Manager(
            config,
            options,
            transport=transport,
            clock=self._server.clock,
            chance=chance,
            observer=api.recorder.work if api.recorder is not None else None,
        )
        self._setup(manager)
        self._task = task = asyncio.ensure_future(manager.run())
        leads = asyncio.ensure_future(manager.elected.wait())
        await asyncio.wait((task, leads), return_when=asyncio.FIRST_COMPLETED)
        leads.cancel()
        if task.done():
            self._task = None
            task.result()
        self._changed(self, True)
        return self

    async def stop(self) -> None:
        """Stops the operator as a SIGTERM does. Does nothing if it isn't running."""
        task, self._task = self._task, None
        if task is not None:
            self._changed(self, False)
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def restart(self) -> None:
        """Stops the operator and starts it again, with empty caches and queues."""
        await self.stop()
        await self.start()

    def _moving(self) -> Iterator[str]:
        """Yields the operator's present work, in words. Raises the error that has ended it."""
        if self._task is not None and self._task.done() and not self._task.cancelled():
            self._task.result()
        if self._in_flight:
            yield f"{self.name} waits for {self._in_flight} answers"
        if self._manager is not None:
            yield from self._manager.busy

    def _count(self, change: int) -> None:
        self._in_flight += change

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.stop()


class Operator(Blocking[AsyncOperator]):
    """An operator that isn't running yet: `with cluster.operator(setup) as operator:`. It runs in the thread of the cluster."""

    @property
    def name(self) -> str:
        """Its user agent, and the name in managedFields."""
        return self._core.name

    @property
    def manager(self) -> Manager:
        """The present manager; each start makes another. Raises ValueError before the first. Its methods belong to the cluster's thread."""
        return self._core.manager

    @property
    def is_running(self) -> bool:
        """Whether it was started and not stopped, and no error has ended it."""
        return self._core.is_running

    @property
    def error(self) -> BaseException | None:
        """The error that has ended it since it was started."""
        return self._core.error

    start = blocking(AsyncOperator.start)
    stop = blocking(AsyncOperator.stop)
    restart = blocking(AsyncOperator.restart)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()


def user_info(user: str, groups: Iterable[str]) -> UserInfo:
    """The user that an operator is: a service account for `namespace/name`, by default the admin."""
    namespace, slash, account = user.partition("/")
    if slash:
        of_accounts = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}")
        return UserInfo(f"system:serviceaccount:{namespace}:{account}", groups=(*of_accounts, *groups, _AUTHENTICATED))
    if not user:
        return UserInfo("kubernetes-admin", groups=("system:masters", *groups, _AUTHENTICATED))
    return UserInfo(user, groups=(*groups, _AUTHENTICATED))


async def settle(server: LocalServer, operators: Sequence[AsyncOperator], timeout: float) -> None:
    """Waits until the bundled controllers and these operators have nothing to do at the same time. A clock that stands still is moved on
    to retries that come soon. Raises NotSettled after `timeout` seconds, and the error of an operator that has failed."""
    assert server.api is not None
    if not operators:
        if server.controllers is not None:
            await server.controllers.settle(timeout)
        return
    storage, loop = server.api.storage, asyncio.get_running_loop()
    deadline, looks = loop.time() + timeout, 0
    while True:
        if server.controllers is not None:
            await server.controllers.settle(max(0.0, deadline - loop.time()))
        revision = storage.revision
        work = [text for operator in operators for text in operator._moving()]
        if not work and not storage.undelivered:
            for _ in range(_QUIET_TURNS):
                await asyncio.sleep(0)
            is_quiet = storage.revision == revision and not any(text for each in operators for text in each._moving())
            if is_quiet and not await _retry(server, operators):
                return
        if loop.time() > deadline:
            raise NotSettled(f"still moving after {timeout:g} s: {'; '.join(work) or 'somebody goes on writing'}")
        looks += 1
        if looks > _EVEN_LOOKS:
            await asyncio.sleep(_PAUSE)
        else:
            for _ in range(_FEW_TURNS):
                await asyncio.sleep(0)


async def _retry(server: LocalServer, operators: Iterable[AsyncOperator]) -> bool:
    """Reports whether an operator tries something again soon; a clock that stands still is moved on to that."""
    retries = [seconds for each in operators if (seconds := each.manager.next_retry) is not None and seconds <= _SOON]
    clock = server.clock
    if retries and isinstance(clock, AdjustableClock) and clock.stopped:
        await clock.advance(max(min(retries), _LEAST), _nothing)
    return bool(retries)


async def _nothing() -> None:
    pass
