"""The states of objects in a recording, each under the revision that wrote it."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Final

import msgspec
from msgspec import Struct, field

from fakeapiserver.apis.conversion import storage_gvk
from fakeapiserver.apis.resource_table import ResourceTable
from fakeapiserver.endpoints.scopes import key_name
from fakeapiserver.evidence.timeline import current
from fakeapiserver.evidence.timeline.recording import Recording
from fakeapiserver.evidence.timeline.records import Kind, Kinds, Op, Restore, State
from fakeapiserver.storage.interface import StoredObject
from fakeapiserver.storage.keys import prefix_of, resource_of
from fakeapiserver.storage.memory import MemoryStorage
from fakeapiserver.storage.mvcc import Change


class _Owner(Struct):
    uid: str = ""


class _Manager(Struct):
    time: str | None = None


class _Meta(Struct):
    creationTimestamp: str = ""  # noqa: N815
    deletionTimestamp: str = ""  # noqa: N815
    ownerReferences: list[_Owner] = field(default_factory=list)  # noqa: N815
    managedFields: list[_Manager] = field(default_factory=list)  # noqa: N815


class _Object(Struct):
    metadata: _Meta


# The revisions of restored states differ by a millionth.
_MILLION: Final = 1_000_000
_decode: Final = msgspec.json.Decoder(_Object).decode
_NO_META: Final = _Meta()


class States:
    """Records each change of a storage: a ChangeObserver."""

    def __init__(self, storage: MemoryStorage, table: ResourceTable) -> None:
        self._storage = storage
        self._table = table
        # By the revision that wrote it; a state that was restored belongs to several records.
        self._by_revision: dict[int, StoredObject] = {}
        self._uses: dict[int, int] = {}
        # What the records so far add up to, by key.
        self._present: dict[str, StoredObject] = {}
        # Whether the changes were made before the recording began.
        self._is_past = False
        self._generation = -1
        self._kinds: Sequence[Kind] = ()
        # By the beginning of keys: the resource as records name it.
        self._resources: dict[str, tuple[str, str]] = {}
        self.recording: Recording

    def begin(self, *, with_history: bool = False) -> None:
        """Records what is stored now, and every change from now on. `with_history`: also the changes that the storage still knows, at the
        times that the objects have."""
        storage = self._storage
        changes = [*storage.changes_after(storage.compacted)] if with_history else []
        base = storage.fork().base() if changes else self._stored().values()
        self.recording.oldest = storage.compacted if changes else storage.revision
        self._present.clear()
        self._generation, self._kinds = -1, ()
        self.check_kinds()
        for stored in sorted(base, key=lambda stored: stored.mod_revision):
            self._add(stored, "base", stored.mod_revision)
        self._is_past = True
        for change in changes:
            self._change(change, 0)
        self._is_past = False
        storage.observe(self)

    def replay(self, record: State, stored: StoredObject) -> None:
        """Adds a state that an earlier server has recorded."""
        content = self._keep(stored)
        record.of = 0 if content == record.rev else content
        if record.op == "delete":
            self._present.pop(stored.key, None)
        else:
            self._present[stored.key] = stored
        self.recording.add(record, len(stored.value))

    def served(self, kinds: Sequence[Kind]) -> None:
        """Notes the kinds that an earlier server has recorded last."""
        self._kinds = kinds

    def go_on(self) -> None:
        """Records what differs from the states that were replayed, and every change from now on."""
        self.check_kinds()
        self.interrupted()
        self._storage.observe(self)

    def published(self, change: Change) -> None:
        """See ChangeObserver."""
        self._change(change, current.writer(change))

    def _change(self, change: Change, by: int) -> None:
        stored = change.current if change.current is not None else change.tombstone
        assert stored is not None
        op: Op = "delete" if change.current is None else "update" if change.previous is not None else "create"
        self._add(stored, op, change.revision, by)

    def interrupted(self) -> None:
        """See ChangeObserver. Records changes that were no writes, after the present revision (`State.rev`)."""
        now = self._stored()
        changed = [stored for key, stored in now.items() if self._present.get(key) is not stored]
        gone = [stored for key, stored in self._present.items() if key not in now]
        if not changed and not gone:
            return
        revision = self._storage.revision
        self.recording.add(Restore(at=self.recording.at(), revision=revision))
        for number, stored in enumerate(gone):
            self._add(stored, "delete", revision + number / _MILLION)
        for number, stored in enumerate(changed, len(gone)):
            self._add(stored, "update" if stored.key in self._present else "create", revision + number / _MILLION)

    def get(self, revision: int) -> StoredObject | None:
        """The state that was written at a revision; None if it is forgotten."""
        return self._by_revision.get(revision)

    def resource(self, key: str) -> tuple[str, str]:
        """Returns the group and the resource of a key."""
        self.check_kinds()
        bucket = resource_of(key)
        group, _, resource = bucket.rpartition("/")
        return self._resources.get(bucket) or (group, resource)

    def forget(self, state: State) -> None:
        """Forgets the state of a record, unless another record has it, too."""
        content = state.content
        self._uses[content] -= 1
        if not self._uses[content]:
            del self._uses[content], self._by_revision[content]

    def check_kinds(self) -> None:
        """Records the kinds that are served if they have changed."""
        if self._table.generation == self._generation:
            return
        self._generation = self._table.generation
        kinds = _kinds(self._table)
        self._resources |= _resources(self._table)
        if kinds != self._kinds:
            self._kinds = kinds
            self.recording.add(Kinds(kinds=kinds))

    def _stored(self) -> Mapping[str, StoredObject]:
        return {key: stored for bucket in self._storage.snapshot().buckets.values() for key, stored in bucket.items()}

    def _keep(self, stored: StoredObject) -> int:
        """Keeps a state, and returns the revision under which it is found."""
        content = stored.mod_revision
        known = self._by_revision.get(content)
        if known is not None and known.key != stored.key:
            # etcd deletes all keys of a lease at one revision: the state before is shown, which differs in that only.
            stored = self._present[stored.key]
            content = stored.mod_revision
        self._by_revision[content] = stored
        self._uses[content] = self._uses.get(content, 0) + 1
        return content

    def _add(self, stored: StoredObject, op: Op, revision: float, by: int = 0) -> None:
        recording = self.recording
        group, resource = self.resource(stored.key)
        namespace, _, name = stored.key[len(prefix_of(resource_of(stored.key))) :].rpartition("/")
        meta = _meta(stored)
        content = self._keep(stored)
        if op == "delete":
            self._present.pop(stored.key, None)
        else:
            self._present[stored.key] = stored
        record = State(
            rev=revision,
            at=0.0 if op == "base" or self._is_past else recording.at(),
            time=_written(meta) or recording.clock.now() if self._is_past else recording.clock.now(),
            r=named(group, resource),
            ns=namespace,
            name=name,
            uid=stored.index.uid,
            op=op,
            owners=[owner.uid for owner in meta.ownerReferences],
            labels=stored.index.labels,
            created=_seconds(meta.creationTimestamp),
            deleting=bool(meta.deletionTimestamp),
            by=by,
            of=0 if content == revision else content,
        )
        recording.add(record, len(stored.value))


def named(group: str, resource: str) -> str:
    """A resource as records name it."""
    return f"{resource}.{group}" if group else resource


def _meta(stored: StoredObject) -> _Meta:
    with suppress(msgspec.MsgspecError):
        return _decode(stored.value).metadata
    return _NO_META


def _written(meta: _Meta) -> float:
    """The time of the last write as the object has it; 0 if it has none."""
    times = (meta.creationTimestamp, meta.deletionTimestamp, *(manager.time or "" for manager in meta.managedFields))
    return max(map(_seconds, times))


def _seconds(text: str) -> float:
    """Seconds since 1970; 0 for a text that is no time."""
    with suppress(ValueError):
        return datetime.fromisoformat(text).timestamp() if text else 0.0
    return 0.0


def _kinds(table: ResourceTable) -> Sequence[Kind]:
    """The resources that can be read, each in the first version of its group that has it."""
    kinds: dict[tuple[str, str], Kind] = {}
    for group in table.groups():
        for view in group.versions:
            for row in view.resources:
                key = (row.gvr.group, row.gvr.resource)
                if "get" in row.verbs and key not in kinds:
                    kinds[key] = Kind(named(*key), *row.gvr, row.gvk.kind, row.namespaced, row.short_names)
    return [*kinds.values()]


def _resources(table: ResourceTable) -> Mapping[str, tuple[str, str]]:
    """The group and resource that are stored below each beginning of keys: those of the home of a kind that several groups serve."""
    return {
        key_name(row): (row.gvr.group, row.gvr.resource)
        for row in table
        if not row.custom and storage_gvk(row.gvk).group == row.gvk.group
    }
