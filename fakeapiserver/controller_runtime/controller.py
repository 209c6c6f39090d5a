"""Requests from sources, one reconcile at a time for each.

Upstream: sigs.k8s.io/controller-runtime/pkg/internal/controller/controller.go, pkg/controller/controller.go.
"""

import asyncio
import logging
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from time import perf_counter
from typing import Final

from msgspec import Struct

from fakeapiserver.client.causes import WorkObserver, reconcile
from fakeapiserver.client.errors import is_conflict
from fakeapiserver.client.workqueue import (
    ItemExponentialFailureRateLimiter,
    PriorityQueue,
    RateLimiter,
    ShutDown,
    WorkQueue,
)
from fakeapiserver.clock import Timers
from fakeapiserver.controller_runtime import logging as runtime_logging
from fakeapiserver.controller_runtime.metrics import Metrics
from fakeapiserver.controller_runtime.reconcile import Reconciler, Request, Result, TerminalError
from fakeapiserver.controller_runtime.source import Source

log = logging.getLogger(__name__)

# What Python raises for mistakes in a program, where Go would panic.
_PANICS: Final = (ArithmeticError, AssertionError, AttributeError, LookupError, NameError, TypeError)


class ControllerOptions(Struct, frozen=True):
    """max_concurrent_reconciles: so many requests at once, never one twice.

    cache_sync_timeout: seconds until the caches must have come.
    recover_panic: a mistake in the reconciler is a failure like any other; False: it ends the manager.
    need_leader_election: runs on the leader only.
    reconciliation_timeout: seconds for one reconcile; 0: no limit.
    rate_limiter: when failures are tried again; None is after 5 ms, then twice as long each time, up to 1,000 s.
    use_priority_queue: what was there in the beginning, and what is looked at again, waits for what has changed. False: requests
        in their order, and by default no more than 10 a second are tried again.
    enable_warmup: caches are filled before leadership is won.
    skip_name_validation: several controllers of a manager may have the same name, and count together.
    """

    max_concurrent_reconciles: int = 1
    cache_sync_timeout: float = 120.0
    recover_panic: bool = True
    need_leader_election: bool = True
    reconciliation_timeout: float = 0.0
    rate_limiter: RateLimiter | None = None
    use_priority_queue: bool = True
    enable_warmup: bool = False
    skip_name_validation: bool = False


class Controller:
    """Runs workers that reconcile requests. `run()` it.

    Cancelled, it takes no more requests and waits for those in progress; cancelled again, it ends at once.
    """

    def __init__(
        self,
        name: str,
        reconciler: Reconciler,
        *,
        metrics: Metrics,
        options: ControllerOptions | None = None,
        values: dict[str, str] | None = None,
        clock: Timers | None = None,
        observer: WorkObserver | None = None,
    ) -> None:
        self.name = name
        self.options = options or ControllerOptions()
        if self.options.max_concurrent_reconciles < 1:
            raise ValueError(f"controller {name}: max_concurrent_reconciles must be at least 1")
        self.queue: WorkQueue[Request] = _queue(name, self.options, metrics, clock, notes_causes=observer is not None)
        self._observer = observer
        self._reconciler = reconciler
        self._metrics = metrics.of_controller(name, self.options.max_concurrent_reconciles)
        self._sources: list[Source] = []
        self._values = {"controller": name, **(values or {})}
        # Called before each reconcile: the clock shows that a lease is over before the event loop gets to its timer.
        self.may_work: Callable[[], bool] = lambda: True
        self._started = False
        self._ready = False
        self._starting: asyncio.Task[None] | None = None
        self._workers: list[asyncio.Task[None]] = []
        metrics.watch_queue(name, self.queue)

    @property
    def need_leader_election(self) -> bool:
        return self.options.need_leader_election

    @property
    def ready(self) -> bool:
        """Reports whether the controller runs, and its handlers were called for all objects that existed at the start."""
        return self._ready

    def add_source(self, source: Source) -> None:
        """Before it runs. RuntimeError afterwards: use `watch`."""
        if self._started:
            raise RuntimeError(f"controller {self.name} runs already: use `await controller.watch(source)`")
        self._sources.append(source)

    async def watch(self, source: Source) -> None:
        """Another source; started at once if the controller runs."""
        self._sources.append(source)
        if self._started:
            await source.start(self.queue)

    def abort(self) -> None:
        """Ends it at once, in the middle of its reconciles."""
        self.queue.shut_down()
        self.queue.drop_ready()
        for worker in self._workers:
            worker.cancel()

    async def run(self) -> None:
        """TimeoutError when the caches don't come in time; what a reconciler raised, without recover_panic."""
        if self._started:
            raise RuntimeError(f"controller {self.name} was started more than once: make another one")
        self._started = True
        log.debug("starting controller %s", self.name)
        workers = self._workers
        try:
            await self._start_sources()
            self._ready = True
            workers += [asyncio.ensure_future(self._work()) for _ in range(self.options.max_concurrent_reconciles)]
            done, _ = await asyncio.wait(workers, return_when=asyncio.FIRST_EXCEPTION)
            for worker in done:
                worker.result()
        except asyncio.CancelledError:
            self.queue.shut_down()
            self.queue.drop_ready()  # items that are not in progress are left for the next start
            await asyncio.gather(*workers)  # a second cancel goes to the workers
            raise
        finally:
            for source in self._sources:
                source.stop()
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
            log.debug("controller %s has stopped", self.name)

    async def warmup(self) -> None:
        """With enable_warmup: `run` finds its caches filled."""
        if self.options.enable_warmup:
            await self._start_sources()

    async def _start_sources(self) -> None:
        if self._starting is None:
            self._starting = asyncio.ensure_future(self._wait_for_sources())
        await self._starting

    async def _wait_for_sources(self) -> None:
        waiting = ""
        try:
            async with asyncio.timeout(self.options.cache_sync_timeout):
                for source in self._sources:
                    await source.start(self.queue)
                for source in [*self._sources]:
                    waiting = str(source)
                    await source.wait_for_sync()
        except TimeoutError:
            raise TimeoutError(
                f"failed to wait for {self.name} caches to sync {waiting}: timed out waiting for cache to be synced for {waiting}"
            ) from None

    async def _work(self) -> None:
        queue, active = self.queue, self._metrics.active_workers
        with suppress(ShutDown):
            while True:
                request, priority = await queue.get_with_priority()
                # for a turn or two: then it is cancelled, or the lease was renewed after all
                while not self.may_work():  # noqa: ASYNC110
                    await asyncio.sleep(0)
                active.inc()
                try:
                    if self._observer is None:
                        await self._reconcile(request, priority)
                    else:
                        await self._observed(request, priority, self._observer)
                finally:
                    active.dec()
                    queue.done(request)
                    if self._observer is not None:
                        self._observer.loaded(self.name, queue)
                # a turn of the event loop for each: a full queue keeps neither timers, probes nor a lost leadership waiting
                await asyncio.sleep(0)

    async def _observed(self, request: Request, priority: int, observer: WorkObserver) -> None:
        """Reconciles, and lets the observer record it with its causes."""
        observer.loaded(self.name, self.queue)
        number = observer.began()
        token = reconcile.set(number)
        error = "it was cancelled"
        try:
            error = await self._reconcile(request, priority)
        finally:
            reconcile.reset(token)
            again = self.queue.due_in(request)
            observer.ended(number, self.name, str(request), self.queue.causes(request), error, again)

    async def _reconcile(self, request: Request, priority: int) -> str:
        """Returns the text of the reconciler's error; empty if it succeeded."""
        metrics, start = self._metrics, perf_counter()
        token = runtime_logging.values.set(self._of(request))
        try:
            result = await self._call(request) or Result()
        except (Exception, asyncio.CancelledError) as error:
            if isinstance(error, asyncio.CancelledError) and _is_cancelled():
                raise
            if isinstance(error, _PANICS):
                metrics.panics.inc()
                if not self.options.recover_panic:
                    raise
            if _is_terminal(error):
                metrics.terminal_errors.inc()
            else:
                self.queue.add_rate_limited(request, priority)
            metrics.errors.inc()
            metrics.results["error"].inc()
            # another client wrote in between: no error, the next try uses the new state
            level = logging.INFO if is_conflict(error) else logging.ERROR
            log.log(
                level, "reconciler error: %s of %s: %s", self.name, request, error, exc_info=isinstance(error, _PANICS)
            )
            return str(error) or type(error).__name__
        else:
            self._follow_up(request, result, priority if result.priority is None else result.priority)
            return ""
        finally:
            metrics.time.observe(perf_counter() - start)
            runtime_logging.values.reset(token)

    def _of(self, request: Request) -> dict[str, object]:
        namespace, name = request
        values: dict[str, object] = {**self._values}
        if kind := self._values.get("controllerKind"):
            values[kind] = {"name": name, "namespace": namespace} if namespace else {"name": name}
        return values | {"namespace": namespace, "name": name, "reconcileID": str(uuid.uuid4())}

    def _follow_up(self, request: Request, result: Result, priority: int) -> None:
        if result.requeue_after > 0:
            outcome = "requeue_after"
            self.queue.forget(request)
            self.queue.add_after(request, result.requeue_after, priority)
        elif result.requeue:
            outcome = "requeue"
            self.queue.add_rate_limited(request, priority)
        else:
            outcome = "success"
            self.queue.forget(request)
        self._metrics.results[outcome].inc()

    async def _call(self, request: Request) -> Result | None:
        if not self.options.reconciliation_timeout:
            return await self._reconciler.reconcile(request)
        try:
            async with asyncio.timeout(self.options.reconciliation_timeout) as deadline:
                return await self._reconciler.reconcile(request)
        except TimeoutError:
            if deadline.expired():
                self._metrics.timeouts.inc()
            raise


def _queue(
    name: str, options: ControllerOptions, metrics: Metrics, clock: Timers | None, *, notes_causes: bool
) -> WorkQueue[Request]:
    counting = metrics.of_queue(name)
    if options.use_priority_queue:
        limiter = options.rate_limiter or ItemExponentialFailureRateLimiter()
        return PriorityQueue(name, rate_limiter=limiter, metrics=counting, clock=clock, notes_causes=notes_causes)
    return WorkQueue(name, rate_limiter=options.rate_limiter, metrics=counting, clock=clock, notes_causes=notes_causes)


def _is_terminal(error: BaseException | None) -> bool:
    """Reports whether the error, one of its causes or one of a group is a TerminalError."""
    while error is not None:
        if isinstance(error, TerminalError):
            return True
        if isinstance(error, BaseExceptionGroup) and any(map(_is_terminal, error.exceptions)):
            return True
        error = error.__cause__
    return False


def _is_cancelled() -> bool:
    """This task, as opposed to something that it waited for."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


__all__: Sequence[str] = ("Controller", "ControllerOptions")
