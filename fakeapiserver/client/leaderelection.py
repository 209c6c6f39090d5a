"""One of several that run is the leader, by a Lease that it renews.

Clocks of machines needn't agree: a lease counts from when its last change was seen, by one's own clock.
Upstream: k8s.io/client-go/tools/leaderelection/{leaderelection,resourcelock/leaselock}.go.
"""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from fakeapiserver.apimachinery.gvk import GroupVersionResource
from fakeapiserver.apimachinery.timestamp import rfc3339_micro
from fakeapiserver.client.dynamic import DynamicClient
from fakeapiserver.client.errors import StatusError, TransportError, is_not_found
from fakeapiserver.client.rest import Object
from fakeapiserver.clock import Clock, SystemClock

log = logging.getLogger(__name__)

LEASES: Final = GroupVersionResource("coordination.k8s.io", "v1", "leases")
JITTER_FACTOR: Final = 1.2
_FAILURES: Final = (StatusError, TransportError, TimeoutError, OSError, ValueError)


@dataclass(frozen=True, slots=True)
class LeaderElectionRecord:
    """What a Lease's spec says. Times as they are on the wire."""

    holder_identity: str = ""
    lease_duration_seconds: int = 0
    acquire_time: str = ""
    renew_time: str = ""
    leader_transitions: int = 0


class LeaseLock:
    """A Lease, `namespace/name`; `identity` must be nobody else's."""

    def __init__(self, client: DynamicClient, namespace: str, name: str, identity: str) -> None:
        if not identity:
            raise ValueError("Lock identity is empty: give each candidate a name of its own")
        self.identity = identity
        self._leases = client.resource(LEASES, namespace)
        self._metadata: Object = {"namespace": namespace, "name": name}
        self._lease: Object | None = None

    def __str__(self) -> str:
        return f"{self._metadata['namespace']}/{self._metadata['name']}"

    async def get(self) -> LeaderElectionRecord:
        """StatusError (404 when there is none), TransportError."""
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
        """StatusError (409 when somebody was faster), TransportError."""
        lease = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": self._metadata,
            "spec": _spec(record),
        }
        self._lease = await self._leases.create(lease)

    async def update(self, record: LeaderElectionRecord) -> None:
        """Replaces what was read or written last: StatusError (409) when that is past."""
        if self._lease is None:
            raise ValueError("Lease not initialized: read or create it first")
        self._lease = await self._leases.update({**self._lease, "spec": {**self._lease["spec"], **_spec(record)}})


def _spec(record: LeaderElectionRecord) -> Object:
    return {
        "holderIdentity": record.holder_identity,
        "leaseDurationSeconds": record.lease_duration_seconds,
        "acquireTime": record.acquire_time,
        "renewTime": record.renew_time,
        "leaseTransitions": record.leader_transitions,
    }


class LeaderElector:
    """`run()` it: it waits to become the leader, and then until it isn't any more.

    lease_duration: seconds after which others may take over from a leader that doesn't renew.
    renew_deadline: seconds in which the leader must have renewed, else it stops; less than lease_duration.
    retry_period: seconds between tries; renew_deadline is more than 1.2 times as long.
    on_started_leading: what the leader does; cancelled, and waited for, when it leads no more.
    on_new_leader: told each leader that is seen, itself too.
    release_on_cancel: whoever stops gives the lease back, so that others needn't wait.
    """

    def __init__(
        self,
        lock: LeaseLock,
        *,
        on_started_leading: Callable[[], Awaitable[None]],
        on_stopped_leading: Callable[[], None] | None = None,
        on_new_leader: Callable[[str], None] | None = None,
        lease_duration: float = 15.0,
        renew_deadline: float = 10.0,
        retry_period: float = 2.0,
        release_on_cancel: bool = False,
        clock: Clock | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        if lease_duration <= renew_deadline:
            raise ValueError("leaseDuration must be greater than renewDeadline")
        if renew_deadline <= JITTER_FACTOR * retry_period:
            raise ValueError("renewDeadline must be greater than retryPeriod*JitterFactor")
        if retry_period <= 0:
            raise ValueError("retryPeriod must be greater than zero")
        self._lock = lock
        self._on_started_leading = on_started_leading
        self._on_stopped_leading = on_stopped_leading
        self._on_new_leader = on_new_leader
        self._lease_duration = lease_duration
        self._renew_deadline = renew_deadline
        self._retry_period = retry_period
        self._release_on_cancel = release_on_cancel
        self._clock = clock or SystemClock()
        self._sleep = sleep
        self._observed = LeaderElectionRecord()
        self._observed_at = float("-inf")
        self._reported = ""

    @property
    def leader(self) -> str:
        """The identity that held the lease when it was last seen, "" if none."""
        return self._observed.holder_identity

    @property
    def is_leader(self) -> bool:
        return self.leader == self._lock.identity

    def check(self, tolerance: float = 0.0) -> None:
        """ValueError when a leader should have noticed by now (and `tolerance` seconds) that its lease is over."""
        if self.is_leader and self._clock.monotonic() - self._observed_at > self._lease_duration + tolerance:
            raise ValueError(f"failed election to renew leadership on lease {self._lock}")

    async def run(self) -> None:
        """Returns when the leadership is lost. Cancel it to stop."""
        await self._acquire()
        leading = asyncio.ensure_future(self._on_started_leading())
        renewing = asyncio.ensure_future(self._renew())
        try:
            # the work ends by itself: nothing is left to lead
            await asyncio.wait((leading, renewing), return_when=asyncio.FIRST_COMPLETED)
        finally:
            leading.cancel()
            renewing.cancel()
            results = await asyncio.gather(leading, renewing, return_exceptions=True)
            if self._release_on_cancel and self.is_leader:
                await self._release()
            if self._on_stopped_leading is not None:
                self._on_stopped_leading()
        if isinstance(results[0], Exception):
            raise results[0]

    async def _acquire(self) -> None:
        log.info("attempting to acquire leader lease %s", self._lock)
        while not await self._try_within(self._renew_deadline):
            await self._sleep(self._retry_period * (1 + random.random() * JITTER_FACTOR))
        log.info("successfully acquired lease %s", self._lock)

    async def _renew(self) -> None:
        """Returns when it wasn't possible for too long."""
        while True:
            try:
                async with asyncio.timeout(self._renew_deadline):
                    while not await self._try_acquire_or_renew():
                        await self._sleep(self._retry_period)
            except TimeoutError:
                log.error("failed to renew lease %s", self._lock)
                return
            finally:
                self._report()
            if not self.is_leader:
                return
            await self._sleep(self._retry_period)

    async def _try_within(self, seconds: float) -> bool:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                return await self._try_acquire_or_renew()
        return False

    async def _try_acquire_or_renew(self) -> bool:
        try:
            acquired = await self._attempt()
        except _FAILURES as error:
            log.warning("failed to acquire or renew lease %s: %s", self._lock, error)
            acquired = False
        self._report()
        return acquired

    async def _attempt(self) -> bool:
        # the time before the request: the lease is never thought longer than others think it
        now, stamp = self._clock.monotonic(), rfc3339_micro(self._clock.now())
        wanted = LeaderElectionRecord(self._lock.identity, int(self._lease_duration), stamp, stamp)
        if self.is_leader and self._is_valid(now):
            renewed = self._renewed(wanted, self._observed)
            with suppress(*_FAILURES):
                await self._lock.update(renewed)
                self._observe(renewed, now)
                return True
        try:
            found = await self._lock.get()
        except StatusError as error:
            if not is_not_found(error):
                raise
            await self._lock.create(wanted)
            self._observe(wanted, now)
            return True
        if found != self._observed:
            self._observe(found, self._clock.monotonic())
        if found.holder_identity and not self.is_leader and self._is_valid(now):
            return False
        leads = self.is_leader
        transitions = found.leader_transitions + 1
        wanted = self._renewed(wanted, found) if leads else replace(wanted, leader_transitions=transitions)
        await self._lock.update(wanted)
        self._observe(wanted, now)
        return True

    @staticmethod
    def _renewed(wanted: LeaderElectionRecord, old: LeaderElectionRecord) -> LeaderElectionRecord:
        return replace(wanted, acquire_time=old.acquire_time, leader_transitions=old.leader_transitions)

    async def _release(self) -> None:
        stamp = rfc3339_micro(self._clock.now())
        released = LeaderElectionRecord("", 1, stamp, stamp, self._observed.leader_transitions)
        try:
            async with asyncio.timeout(self._renew_deadline):
                if (await self._lock.get()).holder_identity == self._lock.identity:
                    await self._lock.update(released)
                    self._observe(released, self._clock.monotonic())
        except _FAILURES as error:
            log.warning("failed to release lease %s: %s", self._lock, error)

    def _is_valid(self, now: float) -> bool:
        return self._observed_at + self._lease_duration > now

    def _observe(self, record: LeaderElectionRecord, now: float) -> None:
        self._observed = record
        self._observed_at = now

    def _report(self) -> None:
        if self.leader != self._reported:
            self._reported = self.leader
            if self._on_new_leader is not None and self.leader:
                self._on_new_leader(self.leader)
