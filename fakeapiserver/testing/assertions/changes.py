"""Changes that a part of a test makes, and objects that it leaves behind."""

from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Final

from msgspec import structs

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.cluster import describing
from fakeapiserver.evidence.requests import RequestList
from fakeapiserver.server.apiserver import APIServer
from fakeapiserver.state.diff import Diff, diff, title_of
from fakeapiserver.storage.interface import Compacted
from fakeapiserver.storage.keys import ROOT, resource_of
from fakeapiserver.storage.mvcc import Snapshot
from fakeapiserver.testing.assertions.objects import AnyCluster, in_cluster

_IGNORED: Final = ("events", "leases")
_MOST_REQUESTS: Final = 10
_MOST_OBJECTS: Final = 20


@contextmanager
def assert_unchanged(cluster: AnyCluster, *, ignore: Collection[str] = _IGNORED) -> Iterator[None]:
    """Asserts that nothing is written while the block runs: `with assert_unchanged(cluster): apply_again()`.

    Updates and patches that change nothing are no writes of the store. A change that is taken back counts.

    - `ignore`: resources whose changes don't count, e.g. `events`, `widgets.example.com`; by default events and leases."""
    snapshot, revision, mark = in_cluster(cluster, _now)
    yield
    if report := in_cluster(cluster, lambda api: _changes(api, snapshot, revision, mark, ignore)):
        raise AssertionError(report)


def _now(api: APIServer) -> tuple[Snapshot, int, int]:
    return api.snapshot(), api.storage.revision, api.request_log.last if api.request_log is not None else 0


def _changes(api: APIServer, before: Snapshot, revision: int, mark: int, ignore: Collection[str]) -> str:
    """A report about what was written since, or ""."""
    if api.storage.revision == revision:
        return ""
    now = api.snapshot()
    visible, all_fields = (_without(diff(before, now, noise=noise), ignore) for noise in (False, True))
    times = _times(api, revision)
    written = [title for title in times if title.partition(" ")[0] not in ignore]
    if not (all_fields or written):
        return ""
    named = {str(entry) for entry in (*visible.added, *visible.removed, *visible.changed)}
    hidden = Diff([], [], [entry for entry in all_fields.changed if str(entry) not in named])
    lines = [f"{len(written)} objects were written, where nothing should change:"]
    lines += [f"  {title}: {times[title]} times" for title in written[:_MOST_OBJECTS]]
    if visible:
        lines.append(str(visible))
    if hidden.changed:
        lines += ["only in fields that the server keeps, or times:", str(hidden)]
    log = api.request_log
    requests = RequestList(log.after(mark) if log is not None else ()).writes
    if requests:
        lines += ["the writes of clients:", str(requests[-_MOST_REQUESTS:])]
    return "\n".join(lines)


def _times(api: APIServer, revision: int) -> Counter[str]:
    """The number of writes to each object after the revision."""
    times: Counter[str] = Counter()
    try:
        for old, new in api.storage.changes_now(revision):
            stored = new or old
            if stored is not None:
                times[_title(stored.key)] += 1
    except Compacted:
        pass
    return times


def _title(key: str) -> str:
    """`pods default/web` for a key, as differences call the object."""
    resource = resource_of(key)
    return f"{title_of(resource)} {key.removeprefix(f'{ROOT}/{resource}/')}"


def _without(changes: Diff, ignore: Collection[str]) -> Diff:
    kept = ([entry for entry in entries if entry.resource not in ignore] for entries in structs.astuple(changes))
    return Diff(*kept)


def assert_nothing_left(cluster: AnyCluster, since: Snapshot, *, ignore: Collection[str] = _IGNORED) -> None:
    """Asserts that no object exists that didn't exist at `since`, a snapshot of the time before: `before = cluster.snapshot()`.

    - `ignore`: resources of which objects may be left, by default events and leases."""
    if report := in_cluster(cluster, lambda api: _left(api, since, ignore)):
        raise AssertionError(report)


def _left(api: APIServer, since: Snapshot, ignore: Collection[str]) -> str:
    now = api.snapshot()
    left = _without(diff(since, now), ignore).added
    if not left:
        return ""
    uids = {stored.index.uid for bucket in now.buckets.values() for stored in bucket.values()}
    lines = [f"{len(left)} objects are left:"]
    for entry in left[:_MOST_OBJECTS]:
        lines += [f"- {entry}: {_why(entry.object, uids)}", f"  {describing.last_writer(entry.object)}"]
    if len(left) > _MOST_OBJECTS:
        lines.append(f"… and {len(left) - _MOST_OBJECTS} more")
    return "\n".join(lines)


def _why(obj: Object, uids: Collection[str]) -> str:
    """The reason for which the object still exists."""
    meta = obj["metadata"]
    if meta.get("deletionTimestamp"):
        waits = meta.get("finalizers") or (obj.get("spec") or {}).get("finalizers")
        return (
            f"it is being deleted and waits for the finalizers {', '.join(waits)}" if waits else "it is being deleted"
        )
    owners = meta.get("ownerReferences") or []
    if not owners:
        return "it has no owner, so deleting others doesn't delete it"
    names = ", ".join(f"{owner['kind']} {owner['name']}" for owner in owners)
    if not any(owner.get("uid") in uids for owner in owners):
        return f"its owner {names} doesn't exist any more; the garbage collector hasn't deleted it yet"
    return f"its owner {names} still exists"
