"""Requests as text that is the same in each run, to be committed and compared."""

import re
from collections.abc import Iterable
from typing import Final

from fakeapiserver.evidence.entry import RequestEntry
from fakeapiserver.evidence.table import answer_of, object_of

_UID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def transcript(entries: Iterable[RequestEntry]) -> str:
    """A line for each request: the client without its version, verb, resource, object and status. Times, durations, and addresses are left
    out, uids in names are replaced, and generated names are numbered: `web-<1>`."""
    requests = tuple(entries)
    generated = _generated(requests)
    return "".join(f"{_line(entry, generated)}\n" for entry in requests)


def _generated(entries: Iterable[RequestEntry]) -> dict[str, str]:
    """Returns what stands for each generated name, numbered in the order in which they appear."""
    numbers: dict[str, int] = {}
    names: dict[str, str] = {}
    for entry in entries:
        prefix = entry.generate_name
        if prefix and entry.name not in names and entry.name.startswith(prefix):
            numbers[prefix] = numbers.get(prefix, 0) + 1
            names[entry.name] = f"{prefix}<{numbers[prefix]}>"
    return names


def _line(entry: RequestEntry, generated: dict[str, str]) -> str:
    agent = entry.user_agent.partition(" ")[0].partition("/")[0] or "(no user agent)"
    fault = f"by {entry.fault}" if entry.fault else ""
    shown = object_of(entry, generated.get(entry.name, entry.name))
    return _UID.sub("<uid>", " ".join(filter(None, (agent, f"{entry.verb} {shown}", "->", answer_of(entry), fault))))
