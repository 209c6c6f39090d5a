"""`cluster.clock`: the time of the server and its controllers."""

from fakeapiserver.clock import AdjustableClock
from fakeapiserver.cluster.loop_thread import Call, in_loop
from fakeapiserver.server.local import LocalServer


class ClusterClock:
    """The clock of the server and its controllers."""

    def __init__(self, server: LocalServer, call: Call) -> None:
        self._server = server
        self._call = call

    def now(self) -> float:
        """Seconds since the Unix epoch."""
        return self._clock.now()

    def advance(self, time: float | str, timeout: float = 300.0) -> None:
        """Moves the time forward by seconds or by a duration such as "30m". Whatever is due meanwhile happens at its time, and
        after each such moment the controllers come to rest. NotSettled if they don't, ValueError if `time` is no duration."""
        from fakeapiserver.apimachinery.duration import parse_duration

        seconds = parse_duration(time) if isinstance(time, str) else time
        api = self._server.api
        assert api is not None
        self._call(lambda: api.advance(seconds), timeout)

    def stop(self) -> None:
        """Stops the time: only `advance` moves it then."""
        self._call(in_loop(self._clock.stop))

    def start(self) -> None:
        """Lets the time go on."""
        self._call(in_loop(self._clock.start))

    @property
    def _clock(self) -> AdjustableClock:
        clock = self._server.clock
        if not isinstance(clock, AdjustableClock):
            raise ValueError("this cluster's clock can't be turned")
        return clock
