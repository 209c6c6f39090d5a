"""Requests that a test asks about, as an immutable sequence that shows itself as a table."""

import os
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TypedDict, Unpack, overload

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.evidence import audit_events, har, least_rights
from fakeapiserver.evidence.entry import RequestEntry
from fakeapiserver.evidence.findings import Finding, Limits, findings
from fakeapiserver.evidence.query import READS, WRITES, parse
from fakeapiserver.evidence.table import table
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

    def har(self, path: str | os.PathLike[str] | None = None) -> Object:
        """The requests as an HTTP Archive, which browsers show; also written to `path` as JSON. Raises OSError."""
        archive = har.archive(self._entries)
        if path is not None:
            Path(path).write_bytes(har.encoded(archive))
        return archive

    def audit_events(self, path: str | os.PathLike[str] | None = None) -> list[Object]:
        """The requests as events of audit.k8s.io/v1; also written to `path`, a line of JSON for each, as audit logs are. Raises OSError."""
        events = audit_events.events(self._entries)
        if path is not None:
            Path(path).write_bytes(audit_events.encoded(events))
        return events

    def roles(
        self, name: str = "used", *, names: bool = False, path: str | os.PathLike[str] | None = None
    ) -> list[Object]:
        """The least roles that allow these requests: a ClusterRole and a Role for each namespace, all called `name`. `cluster.rbac.used()`
        also counts older requests.

        - `names`: restrict rules to the names of the objects.
        - `path`: also write the roles there, as YAML. Raises OSError.
        """
        roles = list(least_rights.roles(least_rights.accesses(self._entries), name, names=names))
        if path is not None:
            least_rights.write(Path(path), roles)
        return roles

    def assert_count(self, expected: int) -> None:
        """Raises AssertionError with the table of requests if they are more or fewer."""
        if len(self._entries) != expected:
            raise AssertionError(f"{len(self._entries)} requests, not {expected}:\n{self}")

    def assert_none(self, query: str = "* *") -> None:
        """Raises AssertionError with a table if a request matches the query, which is by default one for any resource."""
        if found := self[query]:
            raise AssertionError(f"{len(found)} requests {query!r}, not 0:\n{found}")

    def assert_order(self, *queries: str) -> None:
        """Raises AssertionError with the table unless there is a request for each query, in this order; others may be in between."""
        rest = iter(self._entries)
        for query in queries:
            matches = parse(query).matches
            if not any(map(matches, rest)):
                after = f" after {queries[queries.index(query) - 1]!r}" if queries.index(query) else ""
                raise AssertionError(f"no request {query!r}{after}; the order should be {', '.join(queries)}:\n{self}")

    def findings(self, *only: str, **limits: Unpack[Limits]) -> list[Finding]:
        """The bad habits that the detectors find: `findings(hot_loops=50, repeated_reads=0)`, `findings("blind_retries")`.

        Each limit is the number from which on it counts, 0 turns the detector off. Raises ValueError for an unknown one."""
        return findings(self._entries, only, limits)

    def assert_healthy(self, *only: str, **limits: Unpack[Limits]) -> None:
        """Raises AssertionError with all findings; the parameters are those of `findings`."""
        if found := self.findings(*only, **limits):
            raise AssertionError("\n\n".join(map(str, found)))

    def __contains__(self, wanted: object) -> bool:
        """Reports whether a request matches the query, or is the entry: `"delete pods" in requests`."""
        return bool(self[wanted]) if isinstance(wanted, str) else wanted in self._entries

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[RequestEntry]:
        return iter(self._entries)

    def __eq__(self, other: object) -> bool:
        """Compares with other requests, or with a query for each: `requests.writes == ["create pods", "patch pods/status"]`."""
        if isinstance(other, list | tuple) and all(isinstance(query, str) for query in other):
            return len(other) == len(self._entries) and all(
                parse(query).matches(entry) for query, entry in zip(other, self._entries, strict=True)
            )
        return self._entries == other._entries if isinstance(other, RequestList) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._entries)

    def __repr__(self) -> str:
        return table(self._entries)


def _matches(entry: RequestEntry, fields: Fields) -> bool:
    for field, wanted in fields.items():
        value = getattr(entry, field)
        if not (fnmatchcase(value, wanted) if isinstance(wanted, str) else value == wanted):
            return False
    return True
