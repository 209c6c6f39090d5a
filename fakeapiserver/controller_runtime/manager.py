"""Everything an operator runs, started in order and stopped in order.

Upstream: sigs.k8s.io/controller-runtime/pkg/manager/{manager,internal,runnable_group}.go, pkg/cluster.
"""

import asyncio
import logging
import random
import signal
import socket
import uuid
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from enum import IntEnum
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol

from msgspec import Struct, field

from fakeapiserver.client.causes import WorkObserver
from fakeapiserver.client.config import RESTConfig
from fakeapiserver.client.discovery import DiscoveryClient, MemoryCache
from fakeapiserver.client.dynamic import DynamicClient
from fakeapiserver.client.leaderelection import LeaderElector, LeaseLock
from fakeapiserver.client.record import NORMAL, EventBroadcaster, EventRecorder
from fakeapiserver.client.rest import RESTClient
from fakeapiserver.client.rest_mapper import RESTMapper
from fakeapiserver.client.round_tripper import RoundTripper
from fakeapiserver.clock import SystemClock, Timers, sleep
from fakeapiserver.controller_runtime.cache import Cache, CacheOptions, FieldIndexFunc
from fakeapiserver.controller_runtime.client import APIReader, Client
from fakeapiserver.controller_runtime.controller import Controller, ControllerOptions
from fakeapiserver.controller_runtime.healthz import Checker, Health
from fakeapiserver.controller_runtime.http_server import Application, HTTPServer, Receive, Scope, Send, respond
from fakeapiserver.controller_runtime.metrics import CONTENT_TYPE, Metrics
from fakeapiserver.controller_runtime.scheme import Kind, gvk_for
from fakeapiserver.controller_runtime.webhook.server import WebhookServer
from fakeapiserver.transport.signals import default_signal, handle_signal

log = logging.getLogger(__name__)

# Seconds for tasks that must end at once, and for the last events.
_LAST_SECONDS: Final = 1.0
_NAMESPACE: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


class Runnable(Protocol):
    """Something that runs as long as the manager does. If it has `need_leader_election` and that is False, it runs before
    leadership is won, and goes on without it."""

    def run(self) -> Coroutine[Any, Any, None]:
        """Runs until it is cancelled or done. An exception ends the manager."""


class _Order(IntEnum):
    """Groups in the order they are started."""

    HTTP_SERVERS = 0
    WEBHOOKS = 1
    CACHES = 2
    OTHERS = 3
    LEADER_ELECTION = 4


_STOPPED: Final = (_Order.OTHERS, _Order.LEADER_ELECTION, _Order.CACHES, _Order.WEBHOOKS, _Order.HTTP_SERVERS)


class ManagerOptions(Struct, frozen=True):
    """Options of a manager.

    leader_election: needs leader_election_id, the Lease's name; leader_election_namespace is the pod's by default.

    lease_duration, renew_deadline, retry_period: seconds, see LeaderElector.
    leader_election_release_on_cancel: releases the Lease when it stops: only for programs that end with the manager.
    leader_election_labels: put on the Lease by the leader.
    metrics_bind_address, health_probe_bind_address: `:8080`, `127.0.0.1:0`; "0" or "": no such server.
    graceful_shutdown_timeout: seconds that everything may take to stop; 0: ends at once; negative: as long
        as it takes. A manager that lost the leadership ends at once.
    controller: defaults for controllers without options.
    """

    cache: CacheOptions = field(default_factory=CacheOptions)
    leader_election: bool = False
    leader_election_id: str = ""
    leader_election_namespace: str = ""
    leader_election_release_on_cancel: bool = False
    leader_election_labels: Mapping[str, str] = field(default_factory=dict)
    lease_duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0
    metrics_bind_address: str = "0"
    health_probe_bind_address: str = "0"
    graceful_shutdown_timeout: float = 30.0
    webhook_server: WebhookServer | None = None
    field_owner: str = ""
    controller: ControllerOptions = field(default_factory=ControllerOptions)


class Manager:
    """client: reads from the cache, writes to the server. api_reader: reads from the server. metrics.registry takes metrics of
    your own.

    manager = Manager(kubeconfig.load())
    builder.controller_managed_by(manager).for_(WIDGET).complete(WidgetReconciler(manager.client))
    asyncio.run(manager.run())

    `transport`: see RESTClient. `clock`: what requeues, events and leases wait for; by default the machine's. `chance`: returns numbers in
    [0, 1) for the ends of watches. `observer` records what its controllers do. ValueError for options that don't go together.
    """

    def __init__(
        self,
        config: RESTConfig,
        options: ManagerOptions | None = None,
        *,
        transport: RoundTripper | None = None,
        clock: Timers | None = None,
        chance: Callable[[], float] = random.random,
        observer: WorkObserver | None = None,
    ) -> None:
        self.config = config
        self.observer = observer
        self.clock: Timers = clock or SystemClock()
        self.options = options or ManagerOptions()
        if self.options.leader_election and not self.options.leader_election_id:
            raise ValueError("LeaderElectionID must be configured: leader_election_id, the name of the Lease")
        self.metrics = Metrics()
        self._transport = transport
        self.rest = RESTClient(config, transport, self.clock, metrics=self.metrics.count_request)
        self.dynamic = DynamicClient(self.rest)
        self.mapper = RESTMapper(MemoryCache(DiscoveryClient(self.rest)))
        self.cache = Cache(self.dynamic, self.mapper, self.options.cache, chance=chance)
        self.client = Client(self.dynamic, self.mapper, self.cache, field_owner=self.options.field_owner)
        self.api_reader = APIReader(self.dynamic, self.mapper)
        self.health = Health()
        self.elected = asyncio.Event()
        self.health_server = _server("health probe", self.health, self.options.health_probe_bind_address)
        self.metrics_server = _server("metrics", self._serve_metrics, self.options.metrics_bind_address)
        self._broadcaster = EventBroadcaster(self.dynamic, clock=self.clock, sleep=partial(sleep, self.clock))
        self._runnables: dict[_Order, list[Runnable]] = {order: [] for order in _Order}
        self._running: dict[_Order, list[asyncio.Task[None]]] = {order: [] for order in _Order}
        self._begun: set[_Order] = set()
        self._names: set[str] = set()
        self._pages: dict[str, Application] = {"/metrics": self._show_metrics}
        self._electing: asyncio.Task[None] | None = None
        self._elector: LeaderElector | None = None
        self._recording: asyncio.Task[None] | None = None
        self._grace = self.options.graceful_shutdown_timeout
        self._failure: asyncio.Future[None] | None = None
        self._stopping = False
        self._webhook_server: WebhookServer | None = None
        if self.options.webhook_server is not None:
            self._add_webhook_server(self.options.webhook_server)

    # ---------------------------------------------------------------------- setting up

    def add(self, runnable: Runnable) -> None:
        """Runs with the manager; at once, if that has come so far. RuntimeError: the manager stops."""
        if self._stopping:
            raise RuntimeError("can't accept new runnable as stop procedure is already engaged")
        order = _Order.LEADER_ELECTION if getattr(runnable, "need_leader_election", True) else _Order.OTHERS
        self._runnables[order].append(runnable)
        if order in self._begun:
            self._start(order, runnable)

    def name_controller(self, name: str, *, skip_validation: bool = False) -> None:
        """ValueError: another controller has the name."""
        if name in self._names and not skip_validation:
            raise ValueError(
                f"controller with name {name} already exists. Controller names must be unique to avoid multiple controllers "
                "reporting the same metric. This validation can be disabled via the SkipNameValidation option"
            )
        self._names.add(name)

    def add_metrics_server_extra_handler(self, path: str, application: Application) -> None:
        """Adds a page, an ASGI application, to the metrics server. ValueError if the path is taken."""
        if path in self._pages:
            raise ValueError(f"can't register extra handler for duplicate path {path!r} on metrics http server")
        self._pages[path] = application

    def add_healthz_check(self, name: str, check: Checker) -> None:
        """See Health."""
        self.health.add_healthz_check(name, check)

    def add_readyz_check(self, name: str, check: Checker) -> None:
        """See Health."""
        self.health.add_readyz_check(name, check)

    def event_recorder(self, name: str, instance: str = "") -> EventRecorder:
        """Returns a recorder of events as the controller `name`, e.g. `example.com/widget-controller`."""
        return self._broadcaster.new_recorder(name, instance)

    def index_field(self, kind: Kind, name: str, function: FieldIndexFunc) -> None:
        """See Cache.index_field."""
        self.cache.index_field(gvk_for(kind), name, function)

    @property
    def webhook_server(self) -> WebhookServer:
        """The webhook server, made with its defaults if the options named none."""
        return self._webhook_server or self._add_webhook_server(WebhookServer())

    def _add_webhook_server(self, server: WebhookServer) -> WebhookServer:
        server.count_in(self.metrics)
        self._webhook_server = server
        self._runnables[_Order.WEBHOOKS].append(server)
        return server

    @property
    def busy(self) -> Sequence[str]:
        """The work that its controllers have now, in words; empty if all are ready, have seen what has come, and have nothing in their
        queues."""
        reading = [f"{informers.resource} are being read" for informers in self.cache.informers if not informers.idle]
        controllers = [runnable for group in self._runnables.values() for runnable in group]
        return reading + [
            f"{controller.name} works on {', '.join(map(str, controller.queue.worked_on))}"
            if controller.queue.processing
            else f"{controller.name} has {len(controller.queue)} to look at"
            if controller.ready
            else f"{controller.name} starts"
            for controller in controllers
            if isinstance(controller, Controller) and not (controller.ready and controller.queue.at_rest)
        ]

    @property
    def next_retry(self) -> float | None:
        """Seconds until a controller looks again at an object at which it failed; None: at none."""
        controllers = [runnable for group in self._runnables.values() for runnable in group]
        retries = [each.queue.next_retry for each in controllers if isinstance(each, Controller)]
        return min((seconds for seconds in retries if seconds is not None), default=None)

    # ------------------------------------------------------------------------- running

    async def run(self) -> None:
        """Runs until it is cancelled (then it stops gracefully), or something it runs fails, which is raised. A lost leadership is a
        RuntimeError. TimeoutError: something didn't stop in time.
        """
        if self._failure is not None:
            raise RuntimeError("manager already started")
        self._failure = asyncio.get_running_loop().create_future()
        try:
            await self._start_all()
            await self._failure
        finally:
            await self._stop_all()

    async def run_until_signal(self) -> None:
        """`run` until SIGTERM or SIGINT; a second one ends the process at once."""
        task = asyncio.ensure_future(self.run())

        def stop(number: int) -> None:
            task.cancel()
            default_signal(number)

        for number in (signal.SIGTERM, signal.SIGINT):
            handle_signal(number, stop)
        with suppress(asyncio.CancelledError):
            await task

    async def _start_all(self) -> None:
        for server in (self.metrics_server, self.health_server):
            if server is not None:
                server.bind()
                self._runnables[_Order.HTTP_SERVERS].append(server)
        self._start_group(_Order.HTTP_SERVERS)
        self._start_group(_Order.WEBHOOKS)
        if self._webhook_server is not None:
            await self._or_failure(self._webhook_server.wait_until_ready())
        self._recording = asyncio.ensure_future(self._broadcaster.run())
        self._runnables[_Order.CACHES].append(self.cache)
        self._start_group(_Order.CACHES)
        await self._or_failure(self.cache.wait_for_sync())
        self._start_group(_Order.OTHERS)
        for runnable in self._runnables[_Order.LEADER_ELECTION]:
            if isinstance(runnable, Controller):
                self._track(_Order.OTHERS, runnable.warmup())
        if self.options.leader_election:
            self._electing = asyncio.ensure_future(self._lead())
            self._electing.add_done_callback(self._ended)
        else:
            self._start_leading()

    async def _or_failure(self, waiting: Coroutine[Any, Any, None]) -> None:
        """Waits, unless something fails meanwhile."""
        assert self._failure is not None
        task = asyncio.ensure_future(waiting)
        try:
            await asyncio.wait((task, self._failure), return_when=asyncio.FIRST_COMPLETED)
            if self._failure.done():
                self._failure.result()
            await task
        finally:
            task.cancel()

    def _start_leading(self) -> None:
        self.elected.set()
        self._start_group(_Order.LEADER_ELECTION)

    async def _lead(self) -> None:
        """RuntimeError: it led, and doesn't any more."""
        options = self.options
        namespace = options.leader_election_namespace or (
            _NAMESPACE.read_text(encoding="utf-8").strip() if _NAMESPACE.exists() else self.config.namespace
        )
        identity = f"{socket.gethostname()}_{uuid.uuid4()}"
        gauge = self.metrics.leader.labels(options.leader_election_id)
        gauge.set(0)
        recorder = self.event_recorder(identity)
        lease = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"namespace": namespace, "name": options.leader_election_id},
        }

        async def lead() -> None:
            gauge.set(1)
            recorder.event(lease, NORMAL, "LeaderElection", "Acquire", f"{identity} became leader")
            self._start_leading()
            await asyncio.Event().wait()

        def stop() -> None:
            gauge.set(0)
            recorder.event(lease, NORMAL, "LeaderElection", "Stop", f"{identity} stopped leading")
            self._abort()

        # a client of its own: renewals don't wait for what controllers send
        config = replace(self.config, user_agent=f"{self.config.user_agent}/leader-election")
        async with RESTClient(config, self._transport, metrics=self.metrics.count_request) as rest:
            self._elector = LeaderElector(
                LeaseLock(
                    DynamicClient(rest),
                    namespace,
                    options.leader_election_id,
                    identity,
                    labels=options.leader_election_labels,
                ),
                on_started_leading=lead,
                on_stopped_leading=stop,
                lease_duration=options.lease_duration,
                renew_deadline=options.renew_deadline,
                retry_period=options.retry_period,
                release_on_cancel=options.leader_election_release_on_cancel,
                clock=self.clock,
            )
            await self._elector.run()
        raise RuntimeError("leader election lost")

    def _abort(self) -> None:
        """Ends the work of a leader that lost its lease at once, unless everything is stopping anyway."""
        self._grace, self._stopping = 0.0, True
        for runnable in self._runnables[_Order.LEADER_ELECTION]:
            if isinstance(runnable, Controller):
                runnable.abort()
        for task in self._running[_Order.LEADER_ELECTION]:
            task.cancel()

    def _start_group(self, order: _Order) -> None:
        self._begun.add(order)
        for runnable in self._runnables[order]:
            self._start(order, runnable)

    def _start(self, order: _Order, runnable: Runnable) -> None:
        if order is _Order.LEADER_ELECTION and isinstance(runnable, Controller) and self._elector is not None:
            elector = self._elector
            runnable.may_work = lambda: elector.is_leader
        self._track(order, runnable.run())

    def _track(self, order: _Order, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._running[order].append(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        error: BaseException | None = None
        if not task.cancelled():
            error = task.exception()
        elif not self._stopping:  # it waited for something that was cancelled
            error = RuntimeError(f"{task.get_coro()} was cancelled")
        if error is not None and self._failure is not None and not self._failure.done():
            self._failure.set_exception(error)

    async def _stop_all(self) -> None:
        """Reconciles that go on may end; reads and probes are answered until they have. The Lease is kept until nothing runs."""
        assert self._failure is not None
        self._failure.cancel()
        self._stopping = True
        loop = asyncio.get_running_loop()
        seconds = self._grace
        deadline = None if seconds < 0 else loop.time() + seconds
        for order in _STOPPED:
            for task in self._running[order]:
                task.cancel()
            if self._running[order]:
                left = None if deadline is None else max(deadline - loop.time(), 0.0)
                await asyncio.wait(self._running[order], timeout=left)
        late = [task for tasks in self._running.values() for task in tasks if not task.done()]
        for task in late:
            task.cancel()  # a second time: at once
        if late:
            await asyncio.wait(late, timeout=_LAST_SECONDS)
        if self._electing is not None:
            self._electing.cancel()
            await asyncio.wait((self._electing,))
        await self._stop_events()
        self.rest.close()
        if late and seconds > 0:
            raise TimeoutError(f"failed waiting for all runnables to end within grace period of {seconds:g} s")

    async def _stop_events(self) -> None:
        """Events that still wait are written if that takes no time."""
        if self._recording is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(_LAST_SECONDS):
                    await self._broadcaster.flush()
            self._recording.cancel()
            await asyncio.wait((self._recording,))

    async def _serve_metrics(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        page = self._pages.get(scope["path"])
        if page is None:
            await respond(send, 404, b"404 page not found\n")
        else:
            await page(scope, receive, send)

    async def _show_metrics(self, scope: Scope, receive: Receive, send: Send) -> None:
        await respond(send, 200, self.metrics.exposition(), CONTENT_TYPE)


def _server(name: str, application: Application, address: str) -> HTTPServer | None:
    return HTTPServer(name, application, address) if address not in ("", "0") else None


__all__ = ["Manager", "ManagerOptions", "Runnable"]
