"""Detectors of bad habits of clients: each has a limit and shows the requests that it is about."""

from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple, TypedDict
from urllib.parse import parse_qs

from fakeapiserver.evidence.entry import RequestEntry
from fakeapiserver.evidence.query import READS, WRITES
from fakeapiserver.evidence.table import object_of, table

# Seconds of the cluster's clock within which requests count as repeated.
_LOOP: Final = 5.0
_MINUTE: Final = 60.0
_SHOWN: Final = 5
_LEASES: Final = "leases"


class Limits(TypedDict, total=False):
    """The limit of each detector, from which on there is a finding; 0 turns the detector off.

    - `hot_loops` (20): the same client sends the same verb for the same object so often within 5 seconds.
    - `unchanged_writes` (3): updates and patches of the same object that changed nothing.
    - `repeated_reads` (10): gets of the same object, or lists of the same objects, within a minute: a watch's cache would answer them.
    - `unlimited_lists` (1,000,000): bytes of a list's answer without the parameter `limit`, unless it has resourceVersion 0, as
      informers have.
    - `blind_retries` (1): writes after a conflict with the same resourceVersion, so without reading the object again.
    - `reopened_watches` (5): watches of the same objects that were opened within a minute.
    - `lost_leases` (1): writes of a client after its lease has expired, was released or has another holder. Clients are distinguished by
      user agent and user.

    Seconds are those of the cluster's clock; Leases count for the last two only.
    """

    hot_loops: int
    unchanged_writes: int
    repeated_reads: int
    unlimited_lists: int
    blind_retries: int
    reopened_watches: int
    lost_leases: int


class Finding(NamedTuple):
    """A bad habit that was found: the name of its detector, the client's user agent, a sentence, and the requests. `str()` has the first
    of them as a table."""

    detector: str
    client: str
    message: str
    requests: tuple[RequestEntry, ...]

    def __str__(self) -> str:
        shown = table(self.requests[:_SHOWN])
        more = len(self.requests) - _SHOWN
        return f"{self.detector}: {self.client} {self.message}\n{shown}" + (f"\n… {more} more" if more > 0 else "")


Detector = Callable[[Sequence[RequestEntry], int], Iterator[Finding]]


def findings(entries: Iterable[RequestEntry], only: Collection[str], limits: Limits) -> list[Finding]:
    """Runs the detectors, or those that `only` names. Raises ValueError for an unknown detector or a wrong limit."""
    known, given = ", ".join(_DETECTORS), dict[str, Any](limits)
    for name in (*only, *given):
        if name not in _DETECTORS:
            raise ValueError(f"there is no detector {name!r}: the detectors are {known}")
    for name, limit in given.items():
        if isinstance(limit, bool) or not isinstance(limit, int) or limit < 0:
            raise ValueError(f"{name} must be a whole number, 0 to turn it off, not {limit!r}")
    kept, found = tuple(entries), list[Finding]()
    for name, (detector, default) in _DETECTORS.items():
        limit = given.get(name, default)
        if limit and (not only or name in only):
            found += detector(kept, limit)
    return found


# ------------------------------------------------------------------ the detectors


def _hot_loops(entries: Sequence[RequestEntry], limit: int) -> Iterator[Finding]:
    relevant = (
        entry
        for entry in entries
        if entry.resource not in ("", _LEASES) and entry.verb != "watch" and "continue=" not in entry.query
    )
    for group in _groups(relevant, lambda entry: (entry.verb, _target(entry))):
        if crowd := _crowd(group, limit, _LOOP):
            sentence = f"sent {crowd[0].verb} {object_of(crowd[0])} {len(crowd)} times within {_LOOP:g} s"
            yield _finding("hot_loops", sentence, crowd)


def _unchanged_writes(entries: Sequence[RequestEntry], limit: int) -> Iterator[Finding]:
    relevant = (
        entry
        for entry in entries
        if entry.verb in ("update", "patch")
        and entry.revision
        and not (entry.changed or entry.dry_run or entry.resource == _LEASES)
    )
    for group in _groups(relevant, _target):
        if len(group) >= limit:
            yield _finding(
                "unchanged_writes", f"wrote {object_of(group[0])} {len(group)} times without changing it", group
            )


def _repeated_reads(entries: Sequence[RequestEntry], limit: int) -> Iterator[Finding]:
    relevant = (
        entry
        for entry in entries
        if entry.verb in READS and entry.resource not in ("", _LEASES) and "continue=" not in entry.query
    )
    for group in _groups(relevant, lambda entry: (entry.verb, _target(entry), entry.query)):
        if crowd := _crowd(group, limit, _MINUTE):
            sentence = f"sent {crowd[0].verb} {object_of(crowd[0])} {len(crowd)} times within a minute, which a cache would answer"
            yield _finding("repeated_reads", sentence, crowd)


def _unlimited_lists(entries: Sequence[RequestEntry], limit: int) -> Iterator[Finding]:
    relevant = (
        entry
        for entry in entries
        if entry.verb == "list" and entry.response_bytes >= limit and _is_unlimited(parse_qs(entry.query))
    )
    for group in _groups(relevant, _target):
        sentence = f"listed {object_of(group[0])} without limit: {max(entry.response_bytes for entry in group)} bytes"
        yield _finding("unlimited_lists", sentence, group)


def _blind_retries(entries: Sequence[RequestEntry], limit: int) -> Iterator[Finding]:
    relevant = (entry for entry in entries if entry.verb in ("update", "patch") and entry.resource != _LEASES)
    for group in _groups(relevant, _target):
        retries, refused = list[RequestEntry](), set[str]()
        for entry in group:
            revision = _sent_revision(entry)
            if revision in refused:
                retries.append(entry)
            if revision and entry.status == 409:
                refused.add(revision)
        if len(retries) >= limit:
            sentence = f"repeated the write of {object_of(group[0])} after a conflict, with the same resourceVersion"
            yield _finding("blind_retries", sentence, retries)


def _reopened_watches(entries: Sequence[RequestEntry], limit: int) -> Iterator[Finding]:
    for group in _groups((entry for entry in entries if entry.verb == "watch"), _target):
        if crowd := _crowd(group, limit, _MINUTE):
            sentence = f"opened watches of {object_of(crowd[0])} {len(crowd)} times within a minute"
            yield _finding("reopened_watches", sentence, crowd)


def _lost_leases(entries: Sequence[RequestEntry], limit: int) -> Iterator[Finding]:
    """Follows each lease: the last write of it that succeeded has its holder and how long that lasts."""
    held = dict[str, _Holder]()
    writes = defaultdict[tuple[Hashable, str], list[RequestEntry]](list)
    for entry in sorted(entries, key=lambda entry: entry.seq):
        if entry.resource == _LEASES:
            _follow(held, entry)
        elif entry.verb in WRITES and not entry.dry_run:
            for lease, holder in held.items():
                if _client(entry) in holder.former or (_client(entry) == holder.client and entry.time > holder.until):
                    writes[_client(entry), lease].append(entry)
    for (_, lease), group in writes.items():
        if len(group) >= limit:
            yield _finding("lost_leases", f"wrote {len(group)} times after it had lost the lease {lease}", group)


class _Holder(NamedTuple):
    """The client that holds a lease, until when without a renewal, and the clients that have held it before."""

    client: Hashable
    until: float
    former: frozenset[Hashable]


def _follow(held: dict[str, _Holder], entry: RequestEntry) -> None:
    spec = (
        (entry.answer or {}).get("spec") if entry.verb in ("create", "update", "patch") and not entry.refused else None
    )
    if not isinstance(spec, dict):
        return
    lease, client = f"{entry.namespace}/{entry.name}", _client(entry)
    before = held.get(lease)
    former = before.former | {before.client} if before is not None else frozenset()
    if spec.get("holderIdentity"):
        seconds = spec.get("leaseDurationSeconds") or 0
        held[lease] = _Holder(client, entry.time + seconds if seconds else float("inf"), former - {client})
    else:
        held[lease] = _Holder(None, 0.0, former | {client})


_DETECTORS: Final[dict[str, tuple[Detector, int]]] = {
    "hot_loops": (_hot_loops, 20),
    "unchanged_writes": (_unchanged_writes, 3),
    "repeated_reads": (_repeated_reads, 10),
    "unlimited_lists": (_unlimited_lists, 1_000_000),
    "blind_retries": (_blind_retries, 1),
    "reopened_watches": (_reopened_watches, 5),
    "lost_leases": (_lost_leases, 1),
}


# ------------------------------------------------------------------ shared by the detectors


def _groups(entries: Iterable[RequestEntry], key: Callable[[RequestEntry], Hashable]) -> Iterable[list[RequestEntry]]:
    """Returns the requests of each client that have the same key."""
    groups = defaultdict[Hashable, list[RequestEntry]](list)
    for entry in entries:
        groups[_client(entry), key(entry)].append(entry)
    return groups.values()


def _crowd(entries: Sequence[RequestEntry], limit: int, seconds: float) -> Sequence[RequestEntry]:
    """Returns the most requests that began within so many seconds, or none if they are fewer than the limit."""
    ordered, start, most = sorted(entries, key=lambda entry: entry.time), 0, slice(0, 0)
    for end, entry in enumerate(ordered, 1):
        while entry.time - ordered[start].time > seconds:
            start += 1
        if end - start > most.stop - most.start:
            most = slice(start, end)
    return ordered[most] if most.stop - most.start >= limit else ()


def _finding(detector: str, sentence: str, entries: Sequence[RequestEntry]) -> Finding:
    return Finding(detector, entries[0].user_agent.partition(" ")[0] or "(no user agent)", sentence, tuple(entries))


def _client(entry: RequestEntry) -> Hashable:
    return entry.user_agent, entry.user


def _target(entry: RequestEntry) -> Hashable:
    return entry.group, entry.resource, entry.subresource, entry.namespace, entry.name


def _is_unlimited(query: dict[str, list[str]]) -> bool:
    """Reports whether a list has no limit. At resourceVersion 0 the server has no use for one, and informers send none."""
    return "limit" not in query and query.get("resourceVersion") != ["0"]


def _sent_revision(entry: RequestEntry) -> str:
    meta = entry.body.get("metadata") if isinstance(entry.body, dict) else None
    revision = meta.get("resourceVersion") if isinstance(meta, dict) else None
    return revision if isinstance(revision, str) else ""
