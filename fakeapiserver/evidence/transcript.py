"""Requests as text that is the same in each run, to be committed and compared."""

import re
from collections.abc import Iterable
from typing import Final

from fakeapiserver.evidence.entry import RequestEntry
from fakeapiserver.evidence.table import object_of

_UID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def transcript(entries: Iterable[RequestEntry]) -> str:
    """A line for each request: the client without its version, verb, resource, object and status. Times, durations, and addresses are left
    out, and uids in names are replaced."""
    return "".join(f"{_line(entry)}\n" for entry in entries)


def _line(entry: RequestEntry) -> str:
    agent = entry.user_agent.partition(" ")[0].partition("/")[0] or "(no user agent)"
    status = f"{entry.status or 'no answer'} {entry.reason}".strip()
    fault = f"by {entry.fault}" if entry.fault else ""
    return _UID.sub("<uid>", " ".join(filter(None, (agent, f"{entry.verb} {object_of(entry)}", "->", status, fault))))
