"""Drops events beyond a limit and combines similar ones (upstream: k8s.io/client-go/tools/record/events_cache.go). Pure."""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Final, Generic, TypeVar

from fakeapiserver.client.flowcontrol import TokenBucket

V = TypeVar("V")

# How many keys each part remembers.
CACHE_SIZE: Final = 4096
_SPAM_BURST: Final = 25
_SPAM_QPS: Final = 1 / 300
_MAX_SIMILAR: Final = 10
_SIMILAR_SECONDS: Final = 600.0


class EventCorrelator:
    """The spam filter and the aggregator of one broadcaster. `now` in seconds of one monotonic clock."""

    def __init__(self) -> None:
        self._spam: Recent[TokenBucket] = Recent(CACHE_SIZE)
        self._similar: Recent[_Similar] = Recent(CACHE_SIZE)

    def allows(self, key: Hashable, now: float) -> bool:
        """25 events of one source about one object (`key`) at once, then one every five minutes."""
        bucket = self._spam.get(key)
        if bucket is None:
            bucket = TokenBucket(_SPAM_QPS, _SPAM_BURST)
            self._spam.put(key, bucket)
        return bucket.accepts(now)

    def combines(self, key: Hashable, message: str, now: float) -> bool:
        """From the tenth text in ten minutes on, all events that differ in nothing else (`key`) are one."""
        similar = self._similar.get(key)
        if similar is None or now - similar.last > _SIMILAR_SECONDS:
            similar = _Similar()
            self._similar.put(key, similar)
        similar.messages[message] = None
        similar.last = now
        if len(similar.messages) < _MAX_SIMILAR:
            return False
        similar.messages.popitem()  # the first ones stay distinct; upstream drops an arbitrary one
        return True


def combined(message: str) -> str:
    """Returns the message of an event that stands in for many."""
    return f"(combined from similar events): {message}"


class _Similar:
    def __init__(self) -> None:
        self.messages: dict[str, None] = {}
        self.last = 0.0


class Recent(Generic[V]):
    """The values that were used last, `size` of them."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._values: OrderedDict[Hashable, V] = OrderedDict()

    def get(self, key: Hashable) -> V | None:
        value = self._values.get(key)
        if value is not None:
            self._values.move_to_end(key)
        return value

    def put(self, key: Hashable, value: V) -> None:
        self._values[key] = value
        if len(self._values) > self._size:
            self._values.popitem(last=False)
