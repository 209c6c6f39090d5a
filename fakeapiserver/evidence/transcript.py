"""Requests as text that is the same in each run, to be committed and compared."""

import re
from collections.abc import Iterable
from typing import Final

from fakeapiserver.evidence.entry import RequestEntry

_UID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def transcript(entries: Iterable[RequestEntry]) -> str:
    """A line for each request: the client without its version, verb, resource, object and status. Times, durations, and addresses are left
    out, and uids in names are replaced."""
    return "".join(f"{_line(entry)}\n" for entry in entries)


def _line(entry: RequestEntry) -> str:
    agent = entry.user_agent.partition(" ")[0].partition("/")[0] or "(no user agent)"
    status = f"{entry.status or 'no answer'} {entry.reason}".strip()
    fault = f"by {entry.fault}" if entry.fault else ""
    return _UID.sub("<uid>", " ".join(filter(None, (agent, _request(entry), "->", status, fault))))


def _request(entry: RequestEntry) -> str:
    if not entry.resource:
        return f"{entry.verb} {entry.path}"
    group = f".{entry.group}" if entry.group else ""
    subresource = f"/{entry.subresource}" if entry.subresource else ""
    name = f"{entry.namespace}{'/' * bool(entry.namespace and entry.name)}{entry.name}"
    return f"{entry.verb} {entry.resource}{group}{subresource} {name}".strip()
