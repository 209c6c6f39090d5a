"""Requests as lines for people."""

from collections.abc import Iterable
from datetime import UTC, datetime

from fakeapiserver.evidence.entry import RequestEntry


def table(entries: Iterable[RequestEntry]) -> str:
    """A line for each request."""
    return "\n".join(map(line, entries)) or "no requests"


def line(entry: RequestEntry) -> str:
    """The time, client, verb, path, status and duration of a request, with what else there is to say."""
    time = datetime.fromtimestamp(entry.time, UTC).strftime("%H:%M:%S.%f")[:-3]
    agent = entry.user_agent.partition(" ")[0] or "no user agent"
    text = f"{time} {agent} {entry.verb} {entry.path} {entry.status or 'no answer'} {1000 * entry.duration:.1f} ms"
    return " ".join(f"{text} {entry.reason} {_watched(entry)} {entry.fault}".split())


def object_of(entry: RequestEntry) -> str:
    """The resource and the object of a request, as in `deployments.apps/status shop/web`; the path of other requests."""
    if not entry.resource:
        return entry.path
    group = f".{entry.group}" if entry.group else ""
    subresource = f"/{entry.subresource}" if entry.subresource else ""
    name = f"{entry.namespace}{'/' * bool(entry.namespace and entry.name)}{entry.name}"
    return f"{entry.resource}{group}{subresource} {name}".strip()


def _watched(entry: RequestEntry) -> str:
    if entry.verb != "watch" or entry.refused:
        return ""
    events = f"{entry.events} event{'s' * (entry.events != 1)}"
    return f"{events}, {f'ended by {entry.ended}' if entry.ended else 'open'}"
