"""Leader election: one of several processes is the leader as long as it renews a Lease.

Clocks of machines needn't agree: a lease counts from when its last change was seen, by one's own clock. A leader counts from
before it asked for its last renewal, and stops after `renew_deadline`; others wait `lease_duration` from when they saw that
renewal. So there is never a second leader while no clock runs faster than another by more than lease_duration / renew_deadline.
Upstream: k8s.io/client-go/tools/leaderelection/{leaderelection,resourcelock/leaselock}.go, which counts both from after the
answer, and goes on until the deadline if another candidate has the lease.
"""

import asyncio
import logging
import math
import random
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, Protocol, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from fakeapiserver.apimachinery.gvk import GroupVersionResource
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.timestamp import rfc3339_micro
from fakeapiserver.client.dynamic import DynamicClient
from fakeapiserver.client.errors import StatusError, is_not_found
from fakeapiserver.clock import SystemClock, Timer, Timers, sleep

__all__ = [
    "JITTER_FACTOR",
    "LEASES",
    "LeaderElectionRecord",
    "LeaderElector",
    "LeaseLock",
    "Lock",
]

log = logging.getLogger(__name__)
T = TypeVar("T")

LEASES: Final = GroupVersionResource("coordination.k8s.io", "v1", "leases")
JITTER_FACTOR: Final = 1.2


class LeaderElectionRecord(Struct, frozen=True):
    """The spec of a Lease. Times in wire format; `holder_identity` is "" after the leader has released it."""

    holder_identity: str = ""
    lease_duration_seconds: int = 0
    acquire_time: str = ""
    renew_time: str = ""
    leader_transitions: int = 0


class Lock(Protocol):
    """The place of the record (upstream: resourcelock.Interface). Its text names it in logs.

    Each method may raise any exception on failure; `get` raises a StatusError (404) if there is no record yet.
    """

    @property
    def identity(self) -> str:
        """The candidate's unique identity."""

    async def get(self) -> LeaderElectionRecord: ...

    async def create(self, record: LeaderElectionRecord) -> None:
        """Fails when there is one."""

    async def update(self, record: LeaderElectionRecord) -> None:
        """Replaces the record that was read or written last; fails if another candidate wrote in between."""


class LeaseLock:
    """A lock on the Lease `namespace/name`. `identity` must be unique. The leader's `labels` are put on the Lease."""

    def __init__(
        self,
        client: DynamicClient,
        namespace: str,
        name: str,
        identity: str,
        *,
        labels: Mapping[str, str] | None = None,
    ) -> None:
        self._identity = identity
        self._labels = dict(labels or {})
        self._leases = client.resource(LEASES, namespace)
        self._metadata: Object = {"namespace": namespace, "name": name}
        self._lease: Object | None = None

    @property
    def identity(self) -> str:
        return self._identity

    def __str__(self) -> str:
        return f"{self._metadata['namespace']}/{self._metadata['name']}"

    async def get(self) -> LeaderElectionRecord:
        """Reads the record. Raises StatusError (404 without a Lease), TransportError."""
        self._lease = await self._leases.get(self._metadata["name"])
        spec = self._lease.get("spec") or {}
        return LeaderElectionRecord(
            spec.get("holderIdentity") or "",
            spec.get("leaseDurationSeconds") or 0,
            spec.get("acquireTime") or "",
            spec.get("renewTime") or "",
            spec.get("leaseTransitions") or 0,
        )

    async def create(self, record: LeaderElectionRecord) -> None:
        """Creates the Lease. Raises StatusError (409 if another candidate was faster), TransportError."""
        lease: Object = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {**self._metadata, "labels": self._labels},
            "spec": _spec(record),
        }
        self._lease = await self._leases.create(lease)

    async def update(self, record: LeaderElectionRecord) -> None:
        """Updates the Lease.

        Raises StatusError (409 if another candidate wrote in between), TransportError, ValueError before a read.
        """
        if self._lease is None:
            raise ValueError("lease not initialized, call get or create first")
        metadata = self._lease["metadata"]
        wanted: Object = {
            **self._lease,
            "metadata": {**metadata, "labels": {**(metadata.get("labels") or {}), **self._labels}},
            "spec": {**(self._lease.get("spec") or {}), **_spec(record)},
        }
        self._lease = await self._leases.update(wanted)


def _spec(record: LeaderElectionRecord) -> Object:
    return {
        "holderIdentity": record.holder_identity,
        "leaseDurationSeconds": record.lease_duration_seconds,
        "acquireTime": record.acquire_time,
        "renewTime": record.renew_time,
        "leaseTransitions": record.leader_transitions,
    }


class LeaderElector:
    """Runs for leadership: `run()` waits to become the leader, and then until the leadership ends.

    lease_duration: seconds after which others may take over from a leader that doesn't renew; on the wire rounded up to whole ones.
    renew_deadline: seconds since it last asked for a renewal that it got, after which the leader stops; less than lease_duration.
        One request may take half of it.
    retry_period: seconds between tries; renew_deadline is more than 1.2 times as long.
    on_started_leading: the leader's work; cancelled when the leadership ends. If it returns, the leadership ends, too.
    on_stopped_leading: called once the leadership ended: at once if the lease was lost, otherwise after the work has ended. Not
        called if it never led.
    on_new_leader: called with the identity of each new leader, its own included.
    release_on_cancel: a leader that stops releases the lease, so that others need not wait. Its work must have ended with
        on_started_leading.
    Raises ValueError for durations that contradict each other and for a lock without an identity.
    """

    def __init__(
        self,
        lock: Lock,
        *,
        on_started_leading: Callable[[], Awaitable[None]],
        on_stopped_leading: Callable[[], None] | None = None,
        on_new_leader: Callable[[str], None] | None = None,
        lease_duration: float = 15.0,
        renew_deadline: float = 10.0,
        retry_period: float = 2.0,
        release_on_cancel: bool = False,
        clock: Timers | None = None,
    ) -> None:
        if lease_duration <= renew_deadline:
            raise ValueError("leaseDuration must be greater than renewDeadline")
        if renew_deadline <= JITTER_FACTOR * retry_period:
            raise ValueError("renewDeadline must be greater than retryPeriod*JitterFactor")
        if retry_period <= 0:
            raise ValueError("retryPeriod must be greater than zero")
        if not lock.identity:
            raise ValueError("Lock identity is empty")
        self._lock = lock
        self._on_started_leading = on_started_leading
        self._on_stopped_leading = on_stopped_leading
        self._on_new_leader = on_new_leader
        self._lease_duration = lease_duration
        self._renew_deadline = renew_deadline
        self._retry_period = retry_period
        self._release_on_cancel = release_on_cancel
        self._clock = clock or SystemClock()
        self._observed = LeaderElectionRecord()
        # when another candidate's record was seen to change; for its own record, the time before it was sent
        self._observed_at = float("-inf")
        self._reported = ""
        self._leading: asyncio.Future[None] | None = None
        self._watchdog: Timer | None = None

    @property
    def leader(self) -> str:
        """The identity that held the lease when it was last seen, "" if none."""
        return self._observed.holder_identity

    @property
    def is_leader(self) -> bool:
        """Reports whether this candidate leads: no other can at this moment."""
        return self._leading is not None and self._clock.monotonic() < self._observed_at + self._renew_deadline

    def check(self, tolerance: float = 0.0) -> None:
        """ValueError when a leader should have noticed by now (and `tolerance` seconds) that its lease is over."""
        late = self._clock.monotonic() - self._observed_at > self._lease_duration + tolerance
        if self._leading is not None and late:
            raise ValueError(f"failed election to renew leadership on lease {self._lock}")

    async def run(self) -> None:
        """Returns when the leadership is lost, or its work has ended; raises what that raised. Cancel it to stop: the lease is
        renewed until the work has ended."""
        await self._acquire()
        leading = self._leading = asyncio.ensure_future(self._on_started_leading())
        renewing = asyncio.ensure_future(self._renew())
        self._watch()
        try:
            await asyncio.wait((leading, renewing), return_when=asyncio.FIRST_COMPLETED)
        finally:
            leading.cancel()
            try:
                await asyncio.wait((leading,))
                renewing.cancel()
                await asyncio.wait((renewing,))
                is_lost = self._leading is None
                self._stop_leading()
                if self._release_on_cancel and not is_lost:
                    await self._release()
            finally:
                renewing.cancel()
                self._stop_leading()
        for task in (leading, renewing):
            if not task.cancelled():
                task.result()

    async def _acquire(self) -> None:
        log.info("attempting to acquire leader lease %s", self._lock)
        acquired = await self._try_acquire_or_renew()
        while not acquired:
            await sleep(self._clock, self._retry_period * (1 + random.random() * JITTER_FACTOR))
            acquired = await self._try_acquire_or_renew()
        log.info("successfully acquired lease %s", self._lock)

    async def _renew(self) -> None:
        """Renews the lease until another candidate has it; `_watch` enforces the deadline."""
        while self._holds:
            await sleep(self._clock, self._retry_period)
            await self._try_acquire_or_renew()
        self._lose()

    def _watch(self) -> None:
        """Whatever hangs: when the deadline has come, it leads no more."""
        if self._watchdog is not None:
            self._watchdog.cancel()
        left = self._observed_at + self._renew_deadline - self._clock.monotonic()
        self._watchdog = self._clock.call_later(max(left, 0.0), self._lose)

    def _lose(self) -> None:
        """In one turn of the event loop, so that the work doesn't go on for another step."""
        if self._leading is not None:
            log.error("failed to renew lease %s: it leads no more", self._lock)
            self._leading.cancel()
            self._stop_leading()

    def _stop_leading(self) -> None:
        if self._leading is None:
            return
        self._leading = None
        if self._watchdog is not None:
            self._watchdog.cancel()
        if self._on_stopped_leading is not None:
            self._on_stopped_leading()

    @property
    def _holds(self) -> bool:
        """Reports whether the last record names this candidate; the lease may have expired."""
        return self._observed.holder_identity == self._lock.identity

    async def _try_acquire_or_renew(self) -> bool:
        try:
            acquired = await self._attempt()
        except Exception as error:  # whatever it was, another try may succeed
            log.warning("failed to acquire or renew lease %s: %s", self._lock, str(error) or type(error).__name__)
            acquired = False
        if acquired and self._leading is not None:
            self._watch()
        self._report()
        return acquired

    async def _attempt(self) -> bool:
        stamp = rfc3339_micro(self._clock.now())
        wanted = LeaderElectionRecord(self._lock.identity, math.ceil(self._lease_duration), stamp, stamp)
        if self._holds and self._is_valid():
            try:
                await self._write(self._lock.update, self._renewed(wanted, self._observed))
            except Exception as error:
                log.debug("failed to update lease %s optimistically: %s", self._lock, error)
            else:
                return True
        asked = self._clock.monotonic()
        try:
            record = await self._within_limit(self._lock.get())
        except StatusError as error:
            if not is_not_found(error):
                raise
            await self._write(self._lock.create, wanted)
            return True
        if record != self._observed:
            mine = self._holds and record.holder_identity == self._lock.identity
            # its own record, from a request whose answer was lost: the time is unknown
            self._observe(record, self._observed_at if mine else self._clock.monotonic())
        if record.holder_identity and not self._holds and self._is_valid(asked):
            return False
        taken_over = replace(wanted, leader_transitions=record.leader_transitions + 1)
        await self._write(self._lock.update, self._renewed(wanted, record) if self._holds else taken_over)
        return True

    async def _write(
        self, write: Callable[[LeaderElectionRecord], Awaitable[None]], record: LeaderElectionRecord
    ) -> None:
        sent = self._clock.monotonic()
        await self._within_limit(write(record))
        self._observe(record, sent)

    async def _within_limit(self, request: Awaitable[T]) -> T:
        """Limits the time of a request, so that one that hangs does not cost the leadership.

        Upstream: controller-runtime/pkg/leaderelection.
        """
        async with asyncio.timeout(self._renew_deadline / 2):
            return await request

    @staticmethod
    def _renewed(wanted: LeaderElectionRecord, old: LeaderElectionRecord) -> LeaderElectionRecord:
        return replace(wanted, acquire_time=old.acquire_time, leader_transitions=old.leader_transitions)

    async def _release(self) -> None:
        stamp = rfc3339_micro(self._clock.now())
        try:
            record = await self._within_limit(self._lock.get())
            if record.holder_identity == self._lock.identity:
                await self._write(
                    self._lock.update, LeaderElectionRecord("", 1, stamp, stamp, record.leader_transitions)
                )
        except Exception as error:  # it is over anyway, a little later
            log.warning("failed to release lease %s: %s", self._lock, str(error) or type(error).__name__)

    def _is_valid(self, now: float | None = None) -> bool:
        """By the duration that its holder named."""
        now = self._clock.monotonic() if now is None else now
        return self._observed_at + self._observed.lease_duration_seconds > now

    def _observe(self, record: LeaderElectionRecord, now: float) -> None:
        self._observed = record
        self._observed_at = now

    def _report(self) -> None:
        if self.leader != self._reported:
            self._reported = self.leader
            if self._on_new_leader is not None and self.leader:
                self._on_new_leader(self.leader)
