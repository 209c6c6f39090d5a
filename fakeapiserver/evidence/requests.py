"""Requests that a test asks about, as an immutable sequence that shows itself as a table."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import TypedDict, Unpack, overload

from fakeapiserver.evidence.entry import RequestEntry
from fakeapiserver.evidence.query import READS, WRITES, parse
from fakeapiserver.evidence.transcript import transcript


class Fields(TypedDict, total=False):
    """The fields of requests for `where`: shell patterns, a number for `status`, and whether it was refused."""

    verb: str
    group: str
    version: str
    resource: str
    subresource: str
    namespace: str
    name: str
    user: str
    user_agent: str
    fault: str
    status: int
    refused: bool


class RequestList:
    """Requests in the order of their answers. `str()` is a table with a line for each."""

    def __init__(self, entries: Iterable[RequestEntry]) -> None:
        self._entries = tuple(entries)

    @overload
    def __getitem__(self, key: int) -> RequestEntry: ...
    @overload
    def __getitem__(self, key: "str | slice") -> "RequestList": ...
    def __getitem__(self, key: "int | str | slice") -> "RequestEntry | RequestList":
        """The request with that index, or those that match a query such as `patch pods/status`."""
        if isinstance(key, str):
            return RequestList(filter(parse(key).matches, self._entries))
        return RequestList(self._entries[key]) if isinstance(key, slice) else self._entries[key]

    def where(self, **fields: Unpack[Fields]) -> "RequestList":
        """The requests whose fields match shell patterns: `where(verb="patch", user_agent="my-operator*")`."""
        unknown = fields.keys() - Fields.__annotations__.keys()
        if unknown:
            raise ValueError(f"unknown field {min(unknown)!r}: the fields are {', '.join(Fields.__annotations__)}")
        return RequestList(entry for entry in self._entries if _matches(entry, fields))

    def by(self, *, user_agent: str = "*", user: str = "*") -> "RequestList":
        """The requests of a client: `by(user_agent="my-operator*")`."""
        return self.where(user_agent=user_agent, user=user)

    def since(self, mark: int) -> "RequestList":
        """The requests that were answered after `mark`."""
        return RequestList(entry for entry in self._entries if entry.seq > mark)

    @property
    def writes(self) -> "RequestList":
        """The creates, updates, patches and deletes."""
        return RequestList(entry for entry in self._entries if entry.verb in WRITES)

    @property
    def reads(self) -> "RequestList":
        """The gets and lists of resources."""
        return RequestList(entry for entry in self._entries if entry.resource and entry.verb in READS)

    @property
    def watches(self) -> "RequestList":
        """The watches."""
        return RequestList(entry for entry in self._entries if entry.verb == "watch")

    @property
    def count(self) -> int:
        """The number of requests."""
        return len(self._entries)

    def transcript(self) -> str:
        """A line for each request, without times and uids: `my-operator patch pods/status default/web -> 200`."""
        return transcript(self._entries)

    def assert_count(self, expected: int) -> None:
        """Raises AssertionError with the table of requests if they are more or fewer."""
        if len(self._entries) != expected:
            raise AssertionError(f"{len(self._entries)} requests, not {expected}:\n{self}")

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[RequestEntry]:
        return iter(self._entries)

    def __eq__(self, other: object) -> bool:
        return self._entries == other._entries if isinstance(other, RequestList) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._entries)

    def __repr__(self) -> str:
        return "\n".join(map(_line, self._entries)) or "no requests"


def _matches(entry: RequestEntry, fields: Fields) -> bool:
    for field, wanted in fields.items():
        value = getattr(entry, field)
        if not (fnmatchcase(value, wanted) if isinstance(wanted, str) else value == wanted):
            return False
    return True


def _line(entry: RequestEntry) -> str:
    time = datetime.fromtimestamp(entry.time, UTC).strftime("%H:%M:%S.%f")[:-3]
    agent = entry.user_agent.partition(" ")[0] or "no user agent"
    line = f"{time} {agent} {entry.verb} {entry.path} {entry.status or 'no answer'} {1000 * entry.duration:.1f} ms"
    return " ".join(f"{line} {entry.reason} {entry.fault}".split())
