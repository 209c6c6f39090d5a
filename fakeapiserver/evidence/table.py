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
    return _joined(time, _agent(entry), entry.verb, entry.path, _answer(entry), _watched(entry), entry.fault)


def printed_line(entry: RequestEntry) -> str:
    """A line of a server's log: without the time, which each of its lines has, but with the query."""
    return _joined(_agent(entry), entry.verb, entry.uri, _answer(entry), entry.fault)


def _joined(*parts: str) -> str:
    """A line is a line, whatever a client has written into its path or user agent."""
    text = " ".join(filter(None, parts))
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def _agent(entry: RequestEntry) -> str:
    return entry.user_agent.partition(" ")[0] or "no user agent"


def _answer(entry: RequestEntry) -> str:
    return f"{entry.status or 'no answer'} {1000 * entry.duration:.1f} ms {entry.reason}".rstrip()


def answer_of(entry: RequestEntry) -> str:
    """`409 Conflict`"""
    return f"{entry.status or 'no answer'} {entry.reason}".rstrip()


def object_of(entry: RequestEntry, shown_name: str = "") -> str:
    """The resource and the object of a request, as in `deployments.apps/status shop/web`; the path of other requests. `shown_name`: what
    stands for the object's name."""
    if not entry.resource:
        return entry.path
    group = f".{entry.group}" if entry.group else ""
    subresource = f"/{entry.subresource}" if entry.subresource else ""
    name = f"{entry.namespace}{'/' * bool(entry.namespace and entry.name)}{shown_name or entry.name}"
    return f"{entry.resource}{group}{subresource} {name}".strip()


def _watched(entry: RequestEntry) -> str:
    if entry.verb != "watch" or entry.refused:
        return ""
    events = f"{entry.events} event{'s' * (entry.events != 1)}"
    return f"{events}, {f'ended by {entry.ended}' if entry.ended else 'open'}"
