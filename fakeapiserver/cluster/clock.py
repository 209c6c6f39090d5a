"""`cluster.clock`: the time of the server and its controllers."""

import asyncio

from fakeapiserver.apimachinery.duration import parse_duration
from fakeapiserver.clock import AdjustableClock
from fakeapiserver.cluster.faces import Blocking, blocking
from fakeapiserver.server.apiserver import APIServer


class AsyncClusterClock:
    """The clock of the server and its controllers."""

    def __init__(self, api: APIServer) -> None:
        self._api = api

    def now(self) -> float:
        """Seconds since the Unix epoch."""
        return self._api.clock.now()

    @property
    def is_stopped(self) -> bool:
        """Reports whether the time stands still until `advance` moves it."""
        return self._clock.stopped

    async def advance(self, time: float | str, timeout: float = 300.0) -> None:
        """Moves the time forward by seconds or by a duration such as "30m". Whatever is due meanwhile happens at its time, and
        after each such moment the controllers come to rest. NotSettled if they don't, TimeoutError after `timeout` real seconds,
        ValueError if `time` is no duration."""
        seconds = parse_duration(time) if isinstance(time, str) else time
        try:
            async with asyncio.timeout(timeout) as limit:
                await self._api.advance(seconds)
        except TimeoutError as error:
            if not limit.expired():  # NotSettled
                raise
            raise TimeoutError(f"the clock wasn't moved by {time} within {timeout:g} seconds") from error

    async def jump(self, time: float | str) -> None:
        """Sets the wall clock forward or, with a negative time such as "-5m", back, as an administrator or NTP does: certificates,
        tokens and leases expire sooner or later, and new objects are older than earlier ones. What waits isn't affected, because it waits
        for a duration: `advance` is for that. ValueError if `time` is no duration, or leaves the years 1970 to 9999."""
        self._clock.jump(parse_duration(time) if isinstance(time, str) else time)

    async def stop(self) -> None:
        """Stops the time: only `advance` moves it then."""
        self._clock.stop()

    async def start(self) -> None:
        """Lets the time go on."""
        self._clock.start()

    @property
    def _clock(self) -> AdjustableClock:
        clock = self._api.clock
        if not isinstance(clock, AdjustableClock):
            raise ValueError("this cluster's clock can't be turned")
        return clock


class ClusterClock(Blocking[AsyncClusterClock]):
    """The clock of the server and its controllers."""

    def now(self) -> float:
        """Seconds since the Unix epoch."""
        return self._core.now()

    @property
    def is_stopped(self) -> bool:
        """Reports whether the time stands still until `advance` moves it."""
        return self._core.is_stopped

    advance = blocking(AsyncClusterClock.advance)
    jump = blocking(AsyncClusterClock.jump)
    stop = blocking(AsyncClusterClock.stop)
    start = blocking(AsyncClusterClock.start)
