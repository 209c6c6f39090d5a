"""Events about objects, as `kubectl describe` shows them.

Repetitions become a series of the first event; events that differ only in their text are combined; an object with too many events gets
no more for a while. Callers do not wait for the write.
Upstream: k8s.io/client-go/tools/events/{event_broadcaster,event_recorder}.go (series), tools/record/events_cache.go (spam filter,
aggregation).
"""

import asyncio
import logging
import random
import socket
from collections.abc import Awaitable, Callable, Hashable, Mapping
from contextlib import suppress
from typing import Any, Final

from fakeapiserver.apimachinery.gvk import GroupVersionResource
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.names import is_dns1123_subdomain
from fakeapiserver.apimachinery.timestamp import rfc3339_micro, seconds_of
from fakeapiserver.client.dynamic import STRATEGIC_MERGE_PATCH, DynamicClient
from fakeapiserver.client.errors import StatusError, TransportError, is_already_exists, is_not_found
from fakeapiserver.client.event_correlator import EventCorrelator, combined
from fakeapiserver.clock import Clock, SystemClock

__all__ = ["EVENTS", "NORMAL", "WARNING", "EventBroadcaster", "EventRecorder", "object_reference"]

log = logging.getLogger(__name__)

EVENTS: Final = GroupVersionResource("events.k8s.io", "v1", "events")
NORMAL: Final = "Normal"
WARNING: Final = "Warning"
_MAX_QUEUED: Final = 1000
_MAX_TRIES: Final = 12
_RETRY_SECONDS: Final = 10.0
_FINISH_SECONDS: Final = 6 * 60.0
_REFRESH_SECONDS: Final = 30 * 60.0
_MAX_NOTE: Final = 1024


class EventBroadcaster:
    """Writes the events of its recorders; `run()` it. At most a thousand wait, what comes beyond is dropped."""

    def __init__(
        self,
        client: DynamicClient,
        *,
        clock: Clock | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.clock = clock or SystemClock()
        self._client = client
        self._sleep = sleep
        self._queue: asyncio.Queue[Object] = asyncio.Queue(_MAX_QUEUED)
        self._series: dict[Hashable, Object] = {}
        self._correlator = EventCorrelator()

    def new_recorder(self, reporting_controller: str, reporting_instance: str = "") -> "EventRecorder":
        """`reporting_controller` as in `example.com/widget-controller`; the instance is named for this host by default."""
        return EventRecorder(
            self, reporting_controller, reporting_instance or f"{reporting_controller}-{socket.gethostname()}"
        )

    def record(self, event: Object) -> None:
        """Takes an events.k8s.io/v1 Event to be written."""
        if not self._allows(event):
            return
        try:
            self._queue.put_nowait(self._combined(event))
        except asyncio.QueueFull:
            log.warning("too many events wait to be written: one about %s is dropped", event["regarding"].get("name"))

    async def run(self) -> None:
        """Runs until it is cancelled."""
        keeping = asyncio.ensure_future(self._keep_series())
        try:
            while True:
                event = await self._queue.get()
                try:
                    await self._write(event)
                except Exception:
                    log.exception("an event could not be written")
                finally:
                    self._queue.task_done()
        finally:
            keeping.cancel()

    async def flush(self) -> None:
        """Waits until everything that was recorded is written, or given up."""
        await self._queue.join()

    # ------------------------------------------------------------- what is let through

    def _allows(self, event: Object) -> bool:
        key = (event["reportingController"], event["reportingInstance"], event["type"], _frozen(event["regarding"]))
        return self._correlator.allows(key, self.clock.monotonic())

    def _combined(self, event: Object) -> Object:
        note = event.get("note", "")
        if not self._correlator.combines(_key(event), note, self.clock.monotonic()):
            return event
        return {**event, "note": _cut(combined(note))}

    # ------------------------------------------------------------------------- writing

    async def _write(self, event: Object) -> None:
        key, now = _key(event), rfc3339_micro(self.clock.now())
        known = self._series.get(key)
        if known is None:
            self._series[key] = event
            await self._attempt(event)
        elif "series" in known:
            known["series"] = {"count": known["series"]["count"] + 1, "lastObservedTime": now}
        else:
            known["series"] = {"count": 2, "lastObservedTime": now}
            await self._attempt(known)

    async def _attempt(self, event: Object) -> None:
        for _ in range(_MAX_TRIES):
            if not await self._is_to_be_tried_again(event):
                return
            await self._sleep(_RETRY_SECONDS * (1 + random.random() * 0.25))
        log.error("unable to write event %s: retry limit exceeded", event["metadata"]["name"])

    async def _is_to_be_tried_again(self, event: Object) -> bool:
        events = self._client.resource(EVENTS, event["metadata"]["namespace"])
        try:
            if "series" in event:
                with suppress(_Missing):
                    await _patched(events.patch, event)
                    return False
            await events.create(event)
        except StatusError as error:
            if is_already_exists(error):
                return "series" in event  # the series' first event came in between
            log.warning("the server rejected event %s: %s", event["metadata"]["name"], error)
        except (TransportError, TimeoutError, OSError) as error:
            log.warning("unable to write event %s, trying again: %s", event["metadata"]["name"], error)
            return True
        return False

    async def _keep_series(self) -> None:
        """Writes how far series have come, every half hour and when they are over: then they are forgotten."""
        refreshed = self.clock.monotonic()
        while True:
            await self._sleep(_FINISH_SECONDS)
            now = self.clock.monotonic()
            refreshing = now - refreshed >= _REFRESH_SECONDS
            refreshed = now if refreshing else refreshed
            for key, event in [*self._series.items()]:
                last = (event.get("series") or {}).get("lastObservedTime") or event["eventTime"]
                over = (seconds_of(last) or 0.0) < self.clock.now() - _FINISH_SECONDS
                if over:
                    del self._series[key]
                if "series" in event and (over or refreshing):
                    await self._attempt(event)


class EventRecorder:
    """Creates the events of one controller."""

    def __init__(self, broadcaster: EventBroadcaster, reporting_controller: str, reporting_instance: str) -> None:
        self._broadcaster = broadcaster
        self._controller = reporting_controller
        self._instance = reporting_instance

    def event(
        self,
        regarding: Object,
        type_: str,
        reason: str,
        action: str,
        note: str,
        *,
        related: Object | None = None,
        annotations: Mapping[str, str] | None = None,
    ) -> None:
        """Returns at once. `type_` is NORMAL or WARNING, `reason` a CamelCase word such as `Created`, `action` what was done or
        tried, `note` a sentence of at most 1,024 bytes (longer ones are cut). `regarding` and `related` are objects, or references to
        some. ValueError for another type, or an object that
        doesn't say what it is."""
        if type_ not in (NORMAL, WARNING):
            raise ValueError(f"unsupported event type {type_!r}: use {NORMAL} or {WARNING}")
        now = self._broadcaster.clock.now()
        reference, stamp = object_reference(regarding), f"{int(now * 1e9):x}"
        name = f"{reference['name']}.{stamp}"
        event: Object = {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {
                # names that no event can have are left out
                "name": f"event.{stamp}" if is_dns1123_subdomain(name) else name,
                "namespace": reference.get("namespace") or "default",
            },
            "eventTime": rfc3339_micro(now),
            "reportingController": self._controller,
            "reportingInstance": self._instance,
            "action": action,
            "reason": reason,
            "regarding": reference,
            "note": _cut(note),
            "type": type_,
        }
        if annotations:
            event["metadata"]["annotations"] = dict(annotations)
        if related is not None:
            event["related"] = object_reference(related)
        self._broadcaster.record(event)


def object_reference(obj: Object) -> Object:
    """An ObjectReference; one that is given is the answer itself. ValueError for an object without apiVersion, kind or name
    (upstream: tools/reference/ref.go)."""
    if "metadata" not in obj and obj.get("name"):
        return obj
    metadata = obj.get("metadata") or {}
    reference = {
        "kind": obj.get("kind"),
        "namespace": metadata.get("namespace"),
        "name": metadata.get("name"),
        "uid": metadata.get("uid"),
        "apiVersion": obj.get("apiVersion"),
        "resourceVersion": metadata.get("resourceVersion"),
    }
    missing = [key for key in ("kind", "name", "apiVersion") if not reference[key]]
    if missing:
        raise ValueError(f"can't make a reference: the object has no {', '.join(missing)}")
    return {key: value for key, value in reference.items() if value}


def _cut(note: str) -> str:
    return note.encode()[:_MAX_NOTE].decode("utf-8", "ignore")


class _Missing(Exception):
    """The event that is to be patched isn't there any more."""


async def _patched(patch: Callable[..., Awaitable[Object]], event: Object) -> None:
    try:
        await patch(event["metadata"]["name"], {"series": event["series"]}, patch_type=STRATEGIC_MERGE_PATCH)
    except StatusError as error:
        if is_not_found(error):
            raise _Missing from None
        raise


def _key(event: Object) -> Hashable:
    """Events with the same one are a series."""
    names = ("type", "action", "reason", "reportingController", "reportingInstance")
    return (*(event[name] for name in names), _frozen(event["regarding"]), _frozen(event.get("related") or {}))


def _frozen(reference: Mapping[str, Any]) -> Hashable:
    return tuple(sorted(reference.items()))
