"""Candidates for one lock, in virtual time: whatever becomes of their requests, never do two lead, and soon one does."""

import asyncio
import random
import selectors
from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from typing import Any

import pytest
from msgspec.structs import replace

from fakeapiserver.apimachinery.errors import status_error
from fakeapiserver.client.leaderelection import LeaderElectionRecord, LeaderElector

# The rate of the running candidate's clock, relative to real time.
RATE: ContextVar[float] = ContextVar("RATE", default=1.0)


class VirtualTime(asyncio.SelectorEventLoop):
    """An event loop in virtual time: when nothing is ready, time jumps to the next timer. Each task's clock has its own rate."""

    def __init__(self) -> None:
        self.now = 0.0
        super().__init__(_Jumps(self))

    def time(self) -> float:
        return self.now * RATE.get()

    def call_at(self, when: float, *args: Any, **options: Any) -> asyncio.TimerHandle:
        return super().call_at(when / RATE.get(), *args, **options)


class _Jumps(selectors.SelectSelector):
    def __init__(self, loop: VirtualTime) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[Any]:
        assert timeout is not None, "everybody waits for nothing"
        self._loop.now += timeout
        return super().select(0)


class TaskClock:
    """The clock of the task that asks; the time of day is wrong by `offset` seconds."""

    def __init__(self, offset: float = 0.0) -> None:
        self._offset = offset

    def now(self) -> float:
        return 1.8e9 + self._offset + self.monotonic()

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()

    def call_later(self, seconds: float, callback: Callable[[], object]) -> asyncio.TimerHandle:
        return asyncio.get_running_loop().call_later(seconds, callback)


class Server:
    """A server with a single record. While it storms, requests and responses are late or lost; a request may arrive after its client gave
    up.
    """

    def __init__(self, seed: int = 0, *, storms: bool = False) -> None:
        self.dice = random.Random(seed)
        self.storms = storms
        self.record: LeaderElectionRecord | None = None
        self.revision = 0

    async def ask(self, work: Callable[[], Any]) -> Any:
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Any] = loop.create_future()
        there, back = (self.delay(), self.delay()) if self.storms else (0.01, 0.01)

        def arrive() -> None:
            try:
                loop.call_later(back, tell, answer.set_result, work())
            except Exception as error:
                loop.call_later(back, tell, answer.set_exception, error)

        def tell(how: Callable[[Any], None], what: object) -> None:
            if not answer.done():
                how(what)

        if not (self.storms and self.dice.random() < 0.1):
            loop.call_later(there, arrive)
        return await answer

    def delay(self) -> float:
        return self.dice.choice((0.01, 0.2, 1.0, 6.0)) * self.dice.random()


class ModelLock:
    """A candidate's way to the server."""

    def __init__(self, server: Server, identity: str) -> None:
        self.identity = identity
        self.server = server
        self.cut_off = False
        self._revision = 0

    async def get(self) -> LeaderElectionRecord:
        def read() -> tuple[LeaderElectionRecord, int]:
            if self.server.record is None:
                raise status_error(404, "NotFound", "not found")
            return self.server.record, self.server.revision

        record, self._revision = await self._ask(read)
        found: LeaderElectionRecord = record
        return found

    async def create(self, record: LeaderElectionRecord) -> None:
        self._revision = await self._ask(lambda: self._write(record, 0))

    async def update(self, record: LeaderElectionRecord) -> None:
        known = self._revision
        self._revision = await self._ask(lambda: self._write(record, known))

    def _write(self, record: LeaderElectionRecord, known: int) -> int:
        if known != self.server.revision:
            raise status_error(409, "Conflict", "another client wrote in between")
        self.server.record = record
        self.server.revision += 1
        return self.server.revision

    async def _ask(self, work: Callable[[], Any]) -> Any:
        if self.cut_off:
            raise ConnectionError("cut off")
        return await self.server.ask(work)


class Candidates:
    """The current leaders, checked whenever a candidate begins to lead."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.leading: list[str] = []
        self.terms: list[str] = []
        self.seen: list[str] = []
        self.seconds_to_end = 0.0

    async def lead(self, name: str) -> None:
        assert self.leading == []
        self.leading.append(name)
        self.terms.append(name)
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            await asyncio.sleep(self.seconds_to_end)

    def stopped(self, name: str) -> None:
        if name in self.leading:  # it may have been stopped before its first step
            self.leading.remove(name)

    def elector(self, name: str, *, release: bool = False, offset: float = 0.0) -> tuple[ModelLock, LeaderElector]:
        lock = ModelLock(self.server, name)
        elector = LeaderElector(
            lock,
            on_started_leading=lambda: self.lead(name),
            on_stopped_leading=lambda: self.stopped(name),
            on_new_leader=self.seen.append,
            release_on_cancel=release,
            clock=TaskClock(offset),
        )
        return lock, elector


def run(work: Coroutine[Any, Any, None]) -> None:
    with asyncio.Runner(loop_factory=VirtualTime) as runner:
        runner.run(work)


async def stop(task: "asyncio.Task[None]") -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


@pytest.mark.parametrize("seed", range(24))
def test_never_two_leaders_and_one_soon(seed: int) -> None:
    """Clocks run at most 1.45 times as fast as each other; upstream promises lease_duration / renew_deadline, 1.5."""

    async def scenario() -> None:
        random.seed(seed)  # the electors' jitter
        server = Server(seed, storms=True)
        candidates, dice = Candidates(server), random.Random(seed)
        running: dict[str, tuple[ModelLock, asyncio.Task[None]]] = {}

        async def one(name: str) -> None:
            RATE.set(dice.uniform(1.0, 1.45))
            await elector.run()

        for step in range(150):
            for name in "abc":
                if name not in running or running[name][1].done():
                    if name in running:
                        running[name][1].result()  # it stopped by itself, and nothing was wrong
                    lock, elector = candidates.elector(
                        f"{name}{step}", release=dice.random() < 0.5, offset=dice.uniform(-1e6, 1e6)
                    )
                    running[name] = lock, asyncio.create_task(one(name))
                    await asyncio.sleep(0)
            await asyncio.sleep(dice.uniform(0.0, 20.0))
            lock, task = running[dice.choice("abc")]
            match dice.choice(("cut off", "back", "back", "stop", "nothing")):
                case "cut off":
                    lock.cut_off = True
                case "back":
                    lock.cut_off = False
                case "stop":
                    candidates.seconds_to_end = dice.choice((0.0, 5.0, 30.0))
                    await stop(task)
                    candidates.seconds_to_end = 0.0
                    running = {key: value for key, value in running.items() if value[1] is not task}

        server.storms = False
        for lock, _ in running.values():
            lock.cut_off = False
        live = [task for _, task in running.values() if not task.done()]
        assert live
        await asyncio.sleep(15 + 2 * 2.2 * 2 + 1)
        assert len(candidates.leading) == 1
        terms = len(candidates.terms)
        await asyncio.sleep(120)
        assert len(candidates.terms) == terms > 5
        for task in live:
            await stop(task)
        assert candidates.leading == []

    run(scenario())


def test_a_leader_that_cannot_renew_stops_before_others_may_lead() -> None:
    async def scenario() -> None:
        candidates = Candidates(Server())
        lock, elector = candidates.elector("a")
        running = asyncio.create_task(elector.run())
        await asyncio.sleep(5)
        assert (elector.is_leader, elector.leader) == (True, "a")
        lock.cut_off = True
        await asyncio.sleep(9.9)
        assert not elector.is_leader  # its last renewal was sent at 4 s
        await running
        assert candidates.leading == []

    run(scenario())


def test_a_leader_stops_as_soon_as_it_sees_another() -> None:
    async def scenario() -> None:
        server = Server()
        candidates = Candidates(server)
        _, elector = candidates.elector("a")
        running = asyncio.create_task(elector.run())
        await asyncio.sleep(5)
        assert server.record is not None
        server.record, server.revision = replace(server.record, holder_identity="b"), 99
        await asyncio.sleep(2.1)
        assert running.done()
        assert candidates.seen == ["a", "b"]

    run(scenario())


def test_one_request_that_hangs_costs_no_leadership() -> None:
    async def scenario() -> None:
        server = Server()
        candidates = Candidates(server)
        _, elector = candidates.elector("a")
        running = asyncio.create_task(elector.run())
        await asyncio.sleep(3)
        answer = server.ask

        async def hangs(work: Callable[[], Any]) -> Any:
            server.ask = answer  # type: ignore[method-assign]
            await asyncio.sleep(3600)

        server.ask = hangs  # type: ignore[method-assign]
        await asyncio.sleep(30)
        assert candidates.terms == ["a"] == candidates.leading
        await stop(running)

    run(scenario())


@pytest.mark.parametrize(
    ("found", "seconds"),
    [
        (LeaderElectionRecord("", 1), 0.1),  # given back
        (LeaderElectionRecord("b", 3), 3 + 2 * 2.2),  # the holder's own duration counts, not this candidate's
        (LeaderElectionRecord("b", 60), 60 + 2 * 2.2),
        (LeaderElectionRecord("a", 15), 0.1),  # its own, of a life before
    ],
)
def test_how_long_a_candidate_waits_for_a_lease_without_renewals(found: LeaderElectionRecord, seconds: float) -> None:
    async def scenario() -> None:
        server = Server()
        server.record = found
        candidates = Candidates(server)
        _, elector = candidates.elector("a")
        running = asyncio.create_task(elector.run())
        if seconds > 1:
            await asyncio.sleep(found.lease_duration_seconds - 0.1)
            assert candidates.leading == []
        await asyncio.sleep(seconds)
        assert candidates.leading == ["a"]
        await stop(running)

    run(scenario())


def test_work_that_ends_ends_the_leadership_and_its_failure_is_reported() -> None:
    async def scenario() -> None:
        async def work() -> None:
            raise KeyError("a mistake")

        server = Server()
        lock = ModelLock(server, "a")
        with pytest.raises(KeyError, match="a mistake"):
            await LeaderElector(lock, on_started_leading=work, release_on_cancel=True, clock=TaskClock()).run()
        assert server.record is not None
        assert (server.record.holder_identity, server.record.lease_duration_seconds) == ("", 1)

    run(scenario())


@pytest.mark.parametrize(
    ("identity", "durations", "message"),
    [
        ("", (15.0, 10.0, 2.0), "Lock identity is empty"),
        ("a", (10.0, 10.0, 2.0), "leaseDuration must be greater than renewDeadline"),
        ("a", (15.0, 10.0, 9.0), r"renewDeadline must be greater than retryPeriod\*JitterFactor"),
        ("a", (15.0, 10.0, 0.0), "retryPeriod must be greater than zero"),
    ],
)
def test_what_does_not_go_together_is_refused(
    identity: str, durations: tuple[float, float, float], message: str
) -> None:
    lease_duration, renew_deadline, retry_period = durations
    with pytest.raises(ValueError, match=message):
        LeaderElector(
            ModelLock(Server(), identity),
            on_started_leading=lambda: asyncio.sleep(0),
            lease_duration=lease_duration,
            renew_deadline=renew_deadline,
            retry_period=retry_period,
        )
