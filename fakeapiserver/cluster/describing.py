"""An object in messages for people: its YAML, its last events and its last writer."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.serializer import yaml

_MOST_LINES: Final = 60
_MOST_EVENTS: Final = 5


def object_lines(obj: Object, most: int = _MOST_LINES) -> Iterator[str]:
    """Yields the object as YAML, the status first, without managedFields; at most so many lines and one that says how many are left out."""
    metadata = {key: value for key, value in obj["metadata"].items() if key != "managedFields"}
    rest = {key: value for key, value in obj.items() if key != "status"} | {"metadata": metadata}
    lines = b"".join(map(yaml.encode, ({"status": obj.get("status") or {}}, rest))).decode().splitlines()
    yield from (f"  {line}" for line in lines[:most])
    if len(lines) > most:
        yield f"  … ({len(lines) - most} more lines)"


def event_lines(events: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yields a heading and the last events, of which the oldest must be first."""
    last = events[-_MOST_EVENTS:]
    yield "Its last events:" if last else "It has no events."
    for event in last:
        yield f"  {time_of(event)} {event.get('type')} {event.get('reason')}: {event.get('message') or event.get('note')}"


def time_of(event: Mapping[str, Any]) -> str:
    """When the event has happened last; empty if it doesn't say so."""
    return str(event.get("lastTimestamp") or event.get("eventTime") or "")


def last_writer(obj: Object) -> str:
    """A sentence about the field manager that wrote last."""
    entries = obj["metadata"].get("managedFields") or []
    if not entries:
        return "Its managedFields don't say who wrote it."
    last = max(entries, key=lambda entry: entry.get("time") or "")
    subresource = f" of {last['subresource']}" if last.get("subresource") else ""
    return f"It was last written by {last.get('manager')} ({last.get('operation')}{subresource}) at {last.get('time')}."
