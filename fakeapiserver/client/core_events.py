"""core/v1 Events, as Kubernetes' own controllers write them (operators use `record`, events.k8s.io/v1).

Repetitions are counted in the first event; from the tenth text in ten minutes on, events that differ in nothing else
are combined; one source may write 25 about one object at once, then one every five minutes. Callers do not wait for the write.
Upstream: k8s.io/client-go/tools/record/{event,events_cache}.go.
"""

import asyncio
import logging
import random
from collections.abc import Hashable
from typing import ClassVar, Final
from weakref import WeakKeyDictionary

from msgspec import Struct

from fakeapiserver.apimachinery.gvk import GroupVersionResource
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.timestamp import rfc3339
from fakeapiserver.client.dynamic import STRATEGIC_MERGE_PATCH, DynamicClient
from fakeapiserver.client.errors import StatusError, TransportError, is_not_found
from fakeapiserver.client.event_correlator import CACHE_SIZE, EventCorrelator, Recent, combined
from fakeapiserver.client.record import object_reference
from fakeapiserver.clock import SystemClock, Timers, sleep

log = logging.getLogger(__name__)

EVENTS: Final = GroupVersionResource("", "v1", "events")
_MAX_QUEUED: Final = 1000
_MAX_TRIES: Final = 12
_RETRY_SECONDS: Final = 10.0


class CoreEventBroadcaster:
    """Writes the events of its recorders while `run()` is active.

    At most a thousand events wait; more are dropped, and the log has a line for each burst. Events that the rate limit of their source
    refuses do not wait, so that a thousand pods of one set don't push other sources' events out.
    """

    # The last stamp of each clock, which those who write events to the same server share.
    _last_stamps: ClassVar[WeakKeyDictionary[Timers, int]] = WeakKeyDictionary()

    def __init__(self, client: DynamicClient, *, clock: Timers | None = None) -> None:
        self.clock = clock or SystemClock()
        self._client = client
        self._queue: asyncio.Queue[tuple[Object, bool]] = asyncio.Queue(_MAX_QUEUED)
        self._writing = False
        self._dropped = 0
        self._written: Recent[_WrittenEvent] = Recent(CACHE_SIZE)
        self._correlator = EventCorrelator()

    def new_recorder(self, component: str, host: str = "") -> "CoreEventRecorder":
        """`component` is the source of the events, `deployment-controller` say."""
        return CoreEventRecorder(self, component, host)

    def record(self, event: Object) -> None:
        """Takes an Event to be written."""
        now = self.clock.monotonic()
        event, key = self._aggregated(event, now)
        told = self._written.get(key)
        if told is not None:
            event = {**event, "count": told.count + 1, "firstTimestamp": told.first}
            event["metadata"] = {**event["metadata"], "name": told.name}
        # events that are not written are counted, too
        self._written.put(key, _WrittenEvent(event["metadata"]["name"], event["count"], event["firstTimestamp"]))
        if not self._correlator.allows(_source_and_object(event), now):
            return
        try:
            self._queue.put_nowait((event, told is not None))
        except asyncio.QueueFull:
            if not self._dropped:
                log.warning("%d events wait to be written: more are dropped, first %s", _MAX_QUEUED, event["reason"])
            self._dropped += 1

    def stamp(self) -> int:
        """Nanoseconds since the Unix epoch that no other event by this clock has, even while the clock stands still: objects
        of different kinds and the same name have their events side by side."""
        last = self._last_stamps[self.clock] = max(
            self._last_stamps.get(self.clock, 0) + 1, int(self.clock.now() * 1e9)
        )
        return last

    @property
    def idle(self) -> bool:
        """Everything that was recorded is written, or given up."""
        return self._queue.empty() and not self._writing

    async def run(self) -> None:
        """Runs until it is cancelled."""
        while True:
            event, patched = await self._queue.get()
            self._writing = True
            try:
                await self._write(event, patched=patched)
            except Exception:
                log.exception("an event could not be written")
            finally:
                self._writing = False
            if self._dropped and self._queue.empty():
                log.warning("all events that waited are written; %d were dropped", self._dropped)
                self._dropped = 0

    async def _write(self, event: Object, *, patched: bool) -> None:
        """Writes an event to the server; `patched` if it repeats an earlier one."""
        for _ in range(_MAX_TRIES):
            try:
                await self._attempt(event, patched=patched)
            except StatusError as error:
                log.warning("the server rejected event %s: %s", event["metadata"]["name"], error)
                return
            except (TransportError, TimeoutError, OSError) as error:
                log.warning("unable to write event %s, trying again: %s", event["metadata"]["name"], error)
                await sleep(self.clock, _RETRY_SECONDS * (1 + random.random() * 0.25))
                continue
            return

    async def _attempt(self, event: Object, *, patched: bool) -> None:
        events = self._client.resource(EVENTS, event["metadata"]["namespace"])
        if patched:
            change = {name: event[name] for name in ("count", "lastTimestamp", "message")}
            try:
                await events.patch(event["metadata"]["name"], change, patch_type=STRATEGIC_MERGE_PATCH)
                return
            except StatusError as error:
                if not is_not_found(error):
                    raise
        await events.create(event)

    def _aggregated(self, event: Object, now: float) -> tuple[Object, Hashable]:
        """The event or the one that stands for many like it, and what it is counted under."""
        key = (*_source_and_object(event), event["reason"], event["reportingComponent"], event["reportingInstance"])
        if not self._correlator.combines(key, event["message"], now):
            return event, (*key, event["involvedObject"].get("fieldPath", ""), event["message"])
        message = combined(event["message"])
        # Upstream leaves out who reports it.
        return {**event, "message": message, "reportingComponent": "", "reportingInstance": ""}, key


class CoreEventRecorder:
    """Creates events in the name of one component. Its methods neither wait nor fail because of the server."""

    def __init__(self, broadcaster: CoreEventBroadcaster, component: str, host: str = "") -> None:
        self._broadcaster = broadcaster
        self._component = component
        self._host = host

    def event(self, regarding: Object, event_type: str, reason: str, message: str) -> None:
        """Records an event about an object or an ObjectReference. `event_type` is Normal or Warning.

        Raises ValueError if no reference to the object can be made.
        """
        reference = regarding if "metadata" not in regarding else object_reference(regarding)
        now = self._broadcaster.clock.now()
        source = {"component": self._component, **({"host": self._host} if self._host else {})}
        self._broadcaster.record(
            {
                "apiVersion": "v1",
                "kind": "Event",
                "metadata": {
                    "name": f"{reference['name']}.{self._broadcaster.stamp():x}",
                    "namespace": reference.get("namespace") or "default",
                },
                "involvedObject": reference,
                "reason": reason,
                "message": message,
                "source": source,
                "firstTimestamp": rfc3339(now),
                "lastTimestamp": rfc3339(now),
                "count": 1,
                "type": event_type,
                "reportingComponent": self._component,
                "reportingInstance": self._host,
            }
        )


class _WrittenEvent(Struct, frozen=True):
    """The event that was written last for a key."""

    name: str
    count: int
    first: str


def _source_and_object(event: Object) -> tuple[Hashable, ...]:
    source, involved = event["source"], event["involvedObject"]
    names = ("kind", "namespace", "name", "uid", "apiVersion")
    return (source["component"], source.get("host", ""), *(involved.get(name, "") for name in names), event["type"])
