"""Runs controllers, lets a test hold them, step them and wait for them (upstream: cmd/kube-controller-manager/app/controllermanager.go)."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from random import Random
from typing import Final, Literal, get_args

from msgspec import Struct

from fakeapiserver.client.cache.shared_informer import SharedInformer, SharedInformerFactory, strip_managed_fields
from fakeapiserver.client.causes import WorkObserver
from fakeapiserver.client.core_events import CoreEventBroadcaster
from fakeapiserver.client.discovery import DiscoveryClient, MemoryCache
from fakeapiserver.client.dynamic import DynamicClient
from fakeapiserver.client.rest_mapper import RESTMapper
from fakeapiserver.client.workqueue import WorkQueue
from fakeapiserver.clock import AdjustableClock, SystemClock, Timers, sleep
from fakeapiserver.component_helpers.configuration import KubeControllerManagerConfiguration
from fakeapiserver.component_helpers.controller_context import ControllerContext, Shared, Signing
from fakeapiserver.controller_manager.clients import ClientBuilder
from fakeapiserver.controller_manager.deferral import Deferral, Occasion
from fakeapiserver.controller_manager.descriptor import AVAILABLE, DESCRIPTORS, QUEUE_NAMES, canonical, selected
from fakeapiserver.controller_manager.queue_contents import QueueContents, contents_of
from fakeapiserver.controller_runtime.controller import Controller
from fakeapiserver.controller_runtime.metrics import Metrics
from fakeapiserver.controller_runtime.reconcile import Request

log = logging.getLogger(__name__)

# run: by itself. step: it notes what there is to do, and does it when `step` says so. off: it isn't there.
Mode = Literal["run", "step", "off"]
MODES: Final[Sequence[Mode]] = get_args(Mode)

# Pods need an account, and what they trust.
FIRST: Final = ("serviceaccount-controller", "root-ca-certificate-publisher-controller")
_FIRST_SECONDS: Final = 1.0
# Those that have something to do in a cluster to which nothing was added, and the seconds until they start: many tests are over by then.
_BUSY: Final = (
    "clusterrole-aggregation-controller",
    "kube-apiserver-serving-clustertrustbundle-publisher-controller",
    "service-cidr-controller",
)
_BUSY_SECONDS: Final = 0.05
# Seconds that a stopping controller has to finish its work.
_GRACE: Final = 1.0
# Turns of the event loop without anything moving after which nothing will.
_QUIET_TURNS: Final = 40
_FEW_TURNS: Final = 5
# Seconds between two looks at what moves, twice as many after each.
_SHORTEST_PAUSE: Final = 0.0005
_LONGEST_PAUSE: Final = 0.008
# So many looks of a seeded manager come after a number of turns instead.
_EVEN_LOOKS: Final = 2000
# Seconds within which a retry counts as something that moves.
_SOON: Final = 1.5
_LEAST: Final = 1e-6


class Extra(Struct, frozen=True):
    """Something that runs like a controller, as `user`."""

    user: str
    new: Callable[[ControllerContext], Sequence[Controller]]


class NotSettled(TimeoutError):
    """Something still moves; the text says what."""


class _Running(Struct):
    """A controller that is there."""

    context: ControllerContext
    controllers: Sequence[Controller]
    tasks: Sequence["asyncio.Task[None]"] = ()


class ControllerManager:
    """`run()` it in the event loop it was made in.

    controllers: as --controllers: `*`, names, `-name`, `none`. stepped: those that wait for `step`.
    extra: more that isn't kube-controller-manager's, by name: it always runs.
    root_ca: PEM of the authorities that pods trust. signing: what tokens and certificates are signed with.
    start_interval: seconds between two starts of controllers.
    random: the seeded source of orders and pauses; None: pauses are random, and controllers start in upstream's order.
    in_flight, revision: of a server in the same process: requests it works on and watches it will wake, the newest write;
        `settle` waits for both.
    observer: records what the controllers do.
    occasion: until it returns, or a caller waits for the controllers, most don't start; None: all start at once.
    ValueError for a name that no controller has.
    """

    def __init__(
        self,
        clients: ClientBuilder,
        *,
        controllers: Sequence[str] = ("*",),
        stepped: Sequence[str] = (),
        extra: Mapping[str, Extra] | None = None,
        configuration: KubeControllerManagerConfiguration | None = None,
        clock: Timers | None = None,
        metrics: Metrics | None = None,
        root_ca: bytes = b"",
        signing: Signing | None = None,
        in_flight: Callable[[], int] = lambda: 0,
        revision: Callable[[], int] = lambda: 0,
        start_interval: float = 0.0,
        random: Random | None = None,
        observer: WorkObserver | None = None,
        occasion: Occasion | None = None,
    ) -> None:
        self.clock = clock or SystemClock()
        self.metrics = metrics or Metrics(QUEUE_NAMES)
        self._clients = clients
        self._in_flight = in_flight
        self._revision = revision
        self._start_interval = start_interval
        # While controllers are being started: the revision at which the server became ready for users; "" otherwise.
        self._begun_at = ""
        # With a seeded source, controllers are started in an order that depends on it.
        self._order = random
        self._shared = self._new_shared(
            configuration or KubeControllerManagerConfiguration(), root_ca, signing or Signing(), random or Random()
        )
        self._shared.observer = self._observer = observer
        # What ended a controller that should run, by its name.
        self.failures: dict[str, str] = {}
        self._events: dict[str, CoreEventBroadcaster] = {}
        self._background: list[asyncio.Task[None]] = []
        steps = {canonical(name) for name in stepped}
        self._modes: dict[str, Mode] = {
            descriptor.name: "step" if descriptor.name in steps else "run" for descriptor in selected(controllers)
        }
        self._extra = extra or {}
        self._modes |= dict.fromkeys(self._extra, "run")
        self._running: dict[str, _Running] = {}
        self._to_start: Sequence[str] = ()
        self._deferral = Deferral(occasion) if occasion is not None else None
        self._changing = asyncio.Lock()
        # The revision at which nothing moved; -1: never.
        self._settled_at = -1

    def _new_shared(
        self, configuration: KubeControllerManagerConfiguration, root_ca: bytes, signing: Signing, random: Random
    ) -> Shared:
        """Returns what the controllers share: informers, discovery, and what they are configured with."""
        root = DynamicClient(self._clients.client(""))
        discovery = DiscoveryClient(root.rest.with_turns_of_its_own())
        by_clock = partial(sleep, self.clock)
        make_informers = partial(
            SharedInformerFactory,
            transform=strip_managed_fields,
            sleep_unserved=by_clock,
            since=lambda: self._begun_at,
            chance=random.random,
        )
        return Shared(
            informers=make_informers(root),
            # they are many, and no work waits for them; other requests must not wait behind them (upstream: shared-informers,
            # metadata-informers and controller-discovery are clients each)
            metadata_informers=make_informers(DynamicClient(root.rest.with_turns_of_its_own()), metadata_only=True),
            discovery=discovery,
            mapper=RESTMapper(MemoryCache(discovery)),
            metrics=self.metrics,
            clock=self.clock,
            configuration=configuration,
            root_ca=root_ca,
            signing=signing,
            random=random,
        )

    async def begin(self, *, is_prepared: bool = False) -> None:
        """Starts the controllers without which no pod can be created, and waits until the existing namespaces have what these make, unless
        they have it already (`is_prepared`).

        Afterwards users may write. The other controllers, which `run` starts, first see the state of this moment and then every
        change since: an object that is written before its controller runs is treated as if the controller had been there."""
        for name in () if is_prepared else FIRST:
            if name in self._modes:
                self._make(name)
                self._launch(name)
        if self._running:
            with suppress(NotSettled):  # they may do nothing (whatever the reason), which is no reason not to begin
                await self.settle(_FIRST_SECONDS)
        self._begun_at = str(self._revision() or "")

    async def run(self) -> None:
        """Starts the controllers and runs them until it is cancelled."""
        try:
            names = [*self._modes]
            if self._order is not None:
                self._order.shuffle(names)
            begun = int(self._begun_at or 0)
            if self._deferral is not None and not await self._deferral.wait(names, begun, _BUSY_SECONDS):
                await self._start([name for name in names if name in _BUSY])
                await self._deferral.wait(names, begun)
            await self._start(names)
            self._begun_at = ""
            await asyncio.Event().wait()
        finally:
            self._to_start = ()
            await _cancel([task for running in self._running.values() for task in running.tasks])
            self._running.clear()
            await self._shared.informers.shutdown()
            await self._shared.metadata_informers.shutdown()
            for task in self._background:
                task.cancel()
            await asyncio.gather(*self._background, return_exceptions=True)
            self._clients.close()

    async def _start(self, names: Sequence[str]) -> None:
        """Starts those of the controllers that don't run. No informer starts before each of them has added its handlers (upstream:
        BuildControllers, InformerFactory.Start, RunControllers)."""
        self._to_start = names
        for name in names:
            if name not in self._running and self._modes[name] != "off":
                self._make(name)
                await asyncio.sleep(0)  # requests that the server gets meanwhile are answered
        while self._to_start:
            name, *self._to_start = self._to_start
            if self._launch(name):
                await asyncio.sleep(self._start_interval)
        await asyncio.sleep(0)  # every informer has begun, and knows where

    # ------------------------------------------------------------------------- modes

    @property
    def modes(self) -> Mapping[str, Mode]:
        """Every controller there is, and what it does."""
        return {name: self._modes.get(name, "off") for name in (*AVAILABLE, *self._extra)}

    @property
    def started(self) -> Sequence[str]:
        """The running controllers in order, without those whose configuration leaves them no work."""
        return [name for name, running in self._running.items() if running.controllers]

    def mode(self, name: str) -> Mode:
        """ValueError for a controller there isn't."""
        return self.modes[self._known(name)]

    async def set_mode(self, name: str, mode: Mode) -> None:
        """ValueError for a controller or a mode there isn't."""
        name = self._known(name)
        if mode not in MODES:
            raise ValueError(f"a controller's mode is one of {', '.join(MODES)}, not {mode!r}")
        self._modes[name] = mode
        if self._observer is not None:
            self._observer.mode_changed(name, mode)
        async with self._changing:  # one that is being stopped still works: another of it has to wait
            await self._change(name)

    async def _change(self, name: str) -> None:
        """Starts or stops a controller as its mode says; a failed one is created again."""
        mode = self._modes[name]
        if mode == "off" or name in self.failures:
            await self._stop(name)
            self.failures.pop(name, None)
        if mode == "off":
            return
        if name not in self._running:
            self._make(name)
            self._launch(name)
        else:
            for controller in self._running[name].controllers:
                if mode == "step":
                    controller.queue.pause()
                else:
                    controller.queue.resume()

    async def step(self, name: str, timeout: float = 30.0) -> int:
        """Lets a controller that is in mode `step` do what there is to do now, and what follows from that for itself; how many
        requests that were. ValueError for one in another mode, NotSettled."""
        name = self._known(name)
        if self._modes.get(name) != "step":
            raise ValueError(f"{name} is {self._modes.get(name, 'off')}: only a controller in mode step is stepped")
        await self.set_mode(name, "step")  # it may not have been started yet
        await self._until_quiet(self._spreading, timeout, hurries=False)
        queues = [controller.queue for controller in self._running[name].controllers]
        before = sum(queue.taken for queue in queues)
        for queue in queues:
            queue.resume()
        try:
            await self._until_quiet(self._moving, timeout)
        finally:
            for queue in queues if self._modes[name] == "step" else ():
                queue.pause()
        return sum(queue.taken for queue in queues) - before

    def queue(self, name: str) -> QueueContents:
        """The contents of a controller's queues. ValueError for an unknown controller."""
        name = self._known(name)
        return contents_of(self._running[name].controllers if name in self._running else ())

    @asynccontextmanager
    async def held(self, timeout: float = 30.0) -> AsyncIterator[None]:
        """No controller takes anything to do while the block runs, and afterwards until every controller has seen what was written in
        it. NotSettled after `timeout` seconds, when they go on all the same."""
        queues = [queue for queue in self._queues() if not queue.paused]
        for queue in queues:
            queue.pause()
        try:
            yield
            await self._until_quiet(self._spreading, timeout, hurries=False)
        finally:
            for queue in queues:
                queue.resume()

    def _known(self, name: str) -> str:
        if name in self._extra:
            return name
        name = canonical(name)
        if name not in AVAILABLE:
            raise ValueError(f"{name} isn't there: {DESCRIPTORS[name].left_out}")
        return name

    # ------------------------------------------------------------------------ waiting

    async def settle(self, timeout: float = 30.0) -> None:
        """Waits until nothing moves: no controller has anything to do now, and every change has reached everybody. What waits for a time of
        the clock isn't waited for, but for retries that come soon; a clock that stands still is moved on to these. NotSettled after
        `timeout` seconds.
        """
        if self._deferral is not None:
            self._to_start = self._to_start or self._deferral.end()
        await self._until_quiet(self._moving, timeout)

    async def _until_quiet(self, moving: Callable[[], Iterator[str]], timeout: float, *, hurries: bool = True) -> None:
        """Waits until nothing moves, and nothing does after some turns of the event loop.

        `hurries`: calls `_hurry` then.
        """
        loop = asyncio.get_running_loop()
        deadline, resting, pause, looks = loop.time() + timeout, -1, _SHORTEST_PAUSE, 0
        while True:
            moves, revision = next(moving(), "") != "", self._revision()
            at_rest = not moves and revision == resting
            # only now that every change has reached everybody: what a retry finds out must not depend on who was faster
            if at_rest and not (hurries and await self._hurry()):
                self._settled_at = revision
                return
            if loop.time() > deadline:
                what = "; ".join(self.moving()) or "somebody goes on writing"
                raise NotSettled(f"still moving after {timeout:g} s: {what}")
            resting = -1 if moves or at_rest else revision
            if moves:
                if self._order is not None and looks < _EVEN_LOOKS:
                    # at the same turn of the event loop in each run, so that what follows begins in the same state
                    looks += 1
                    for _ in range(_FEW_TURNS):
                        await asyncio.sleep(0)
                    continue
                await asyncio.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
                continue
            # where nothing was written, nothing is on its way
            for _ in range(_FEW_TURNS if revision == self._settled_at else _QUIET_TURNS):
                await asyncio.sleep(0)

    @property
    def _stands_still(self) -> bool:
        """Reports whether only a test moves the clock."""
        return isinstance(self.clock, AdjustableClock) and self.clock.stopped

    async def _hurry(self) -> bool:
        """Moves a clock that stands still on to the next retry, if that comes soon."""
        if not isinstance(self.clock, AdjustableClock) or not self.clock.stopped:
            return False
        due = [soon for queue in self._queues() if (soon := _soon(queue)) is not None]
        if due:
            # a timer may be due a little later than its queue says: sums of times are rounded
            await self.clock.advance(max(min(due), _LEAST), _nothing)
        return bool(due)

    @property
    def informers(self) -> Sequence[SharedInformer]:
        """All that controllers have asked for, whole objects first."""
        return [*self._shared.informers.informers, *self._shared.metadata_informers.informers]

    def moving(self) -> Sequence[str]:
        """Returns what has to be done now, in words; empty for a cluster at rest."""
        return [*self._moving(), *(self._retrying() if self._stands_still else ())]

    def _moving(self) -> Iterator[str]:
        yield from self._spreading()
        for name in self._to_start:
            yield f"{name} hasn't been started yet"
        for name, running in self._running.items():
            for controller in running.controllers:
                queue = controller.queue
                if queue.at_rest and controller.ready:
                    continue
                if queue.processing:
                    yield f"{name} works on {', '.join(map(str, queue.worked_on))}"
                if len(queue) and not queue.paused:
                    yield f"{name} has {len(queue)} to look at"
            starts = not all(controller.ready for controller in running.controllers)
            if starts and name not in self.failures and not running.context.lacks:
                yield f"{name} starts"
        if not self._stands_still:
            yield from self._retrying()

    def _retrying(self) -> Iterator[str]:
        """Yields the retries that are due soon."""
        for name, running in self._running.items():
            for controller in running.controllers:
                if (soon := _soon(controller.queue)) is not None:
                    yield f"{name} tries again in {soon:.3f} s"

    def _spreading(self) -> Iterator[str]:
        """Yields what is on its way to controllers; what arrives first comes first."""
        if self._in_flight():
            yield f"{self._in_flight()} requests and watches are being answered"
        for informer in self.informers:
            if informer.unserved and informer.told:
                continue  # it is looked for again when definitions change, and by the clock
            if informer.failure:
                yield f"{informer.name} can't be read: {informer.failure}"
            elif not informer.idle or not informer.has_synced:
                yield f"{informer.name} is being read"
        if not all(events.idle for events in self._events.values()):
            yield "events are being written"

    def _queues(self) -> Iterator[WorkQueue[Request]]:
        for running in self._running.values():
            for controller in running.controllers:
                yield controller.queue

    # --------------------------------------------------------------------- start, stop

    def _make(self, name: str) -> None:
        """Creates the controller, whose handlers its informers know from now on."""
        extra = self._extra.get(name)
        user = extra.user if extra is not None else AVAILABLE[name].account
        client = self._client_of(user)
        context = ControllerContext(name, self._shared, client, self._broadcaster(user, client), self._client_of)
        controllers = extra.new(context) if extra is not None else AVAILABLE[name].new(context)
        if self._modes[name] == "step":
            for controller in controllers:
                controller.queue.pause()
        self._running[name] = _Running(context, controllers)

    def _launch(self, name: str) -> bool:
        """Starts a controller that was made, and the informers. Returns False if it runs already or was switched off meanwhile."""
        running = self._running.get(name)
        if running is None or running.tasks:
            return False
        self._shared.informers.start()
        self._shared.metadata_informers.start()
        running.tasks = [
            asyncio.create_task(self._run(running.context, controller)) for controller in running.controllers
        ]
        log.debug("started %s", name)
        return True

    async def _run(self, context: ControllerContext, controller: Controller) -> None:
        try:
            await context.wait_for_sync()
            await controller.run()
        except Exception as error:
            log.exception("controller %s has failed", context.name)
            self.failures[context.name] = str(error)

    async def _stop(self, name: str) -> None:
        running = self._running.pop(name, None)
        if running is None:
            return
        await _cancel(running.tasks)
        log.debug("stopped %s", name)

    def _client_of(self, user: str) -> DynamicClient:
        return DynamicClient(self._clients.client(user))

    def _broadcaster(self, account: str, client: DynamicClient) -> CoreEventBroadcaster:
        if account not in self._events:
            events = self._events[account] = CoreEventBroadcaster(client, clock=self.clock)
            self._background.append(asyncio.create_task(events.run()))
        return self._events[account]


def _soon(queue: WorkQueue[Request]) -> float | None:
    """Returns the seconds until a retry that is due soon, or None."""
    soon = None if queue.paused else queue.soonest
    return soon if soon is not None and soon <= _SOON else None


async def _cancel(tasks: Collection["asyncio.Task[None]"]) -> None:
    """Cancels tasks after their current work, or during it if that takes long."""
    for wait in (_GRACE, None):
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=wait)


async def _nothing() -> None:
    pass
