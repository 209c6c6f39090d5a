"""A recording as a part of a saved state: written beside the history of objects, and read by the server that is started with it.

It is lines of JSON: the record `start`, and the records that are kept, each request with its bodies in front of it. Bodies that a saved
page hasn't, e.g. those of Secrets, aren't in it.
"""

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec
from msgspec import Struct

from fakeapiserver.evidence.timeline import embedded
from fakeapiserver.evidence.timeline.recorder import Recorder
from fakeapiserver.evidence.timeline.records import (
    Clock,
    Controller,
    Delivery,
    Fault,
    Gap,
    Kinds,
    Queue,
    Reconcile,
    Request,
    Restore,
    Start,
    State,
    Watch,
)
from fakeapiserver.storage.interface import StoredObject
from fakeapiserver.storage.memory import MemoryStorage

# How a watch has ended that was open when the state was saved.
_SAVED: Final = "saved"


class _Bodies(Struct, tag_field="t", tag="bodies"):
    """The bodies of the request in the next line."""

    shown: msgspec.Raw


class _Numbered(Struct):
    """The line of a request, as far as it is of interest."""

    seq: int


_Line = (
    Start
    | Kinds
    | State
    | Request
    | Watch
    | Delivery
    | Reconcile
    | Queue
    | Fault
    | Clock
    | Controller
    | Restore
    | Gap
    | _Bodies
)
_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(_Line).decode
_decode_number: Final = msgspec.json.Decoder(_Numbered).decode
_REQUEST: Final = b'{"t":"request"'


def lines(recorder: Recorder) -> bytes:
    """Returns the recording of a running server."""
    recording = recorder.recording
    requests = [record.seq for record in reversed(recording.kept) if isinstance(record, Request)]
    bodies = embedded.bodies(recorder, requests)
    return b"".join(_with_bodies([*recording.beginning(), *recording.after(0, recording.last)], bodies))


def _with_bodies(lines: list[bytes], bodies: Mapping[int, msgspec.Raw]) -> Iterator[bytes]:
    for line in lines:
        if line.startswith(_REQUEST) and (shown := bodies.get(_decode_number(line).seq)) is not None:
            yield _encode(_Bodies(shown)) + b"\n"
        yield line


def begin(recorder: Recorder, storage: MemoryStorage, data: bytes) -> None:
    """Begins a recording with that of an earlier server, whose state `storage` has, and goes on with it. Its watches have ended, and its
    faults are removed. Raises ValueError if `data` is something else than what `lines` has returned."""
    try:
        start, *records = map(_decode, data.splitlines())
    except msgspec.DecodeError as error:
        raise ValueError(f"the recording in the saved state is invalid: {error}") from None
    if not isinstance(start, Start):
        raise ValueError("the recording in the saved state has no beginning")
    _Replay(recorder, storage, start).run(records)


class _Replay:
    """Adds the records of an earlier recording to that of a server."""

    def __init__(self, recorder: Recorder, storage: MemoryStorage, start: Start) -> None:
        self._recorder = recorder
        self._recording = recorder.recording
        self._storage = storage
        self._start = start
        self._watches: dict[int, int] = {}  # open ones -> how many events they have sent
        self._faults: dict[int, Fault] = {}
        self._stored = _by_revision(storage)

    def run(self, records: list[_Line]) -> None:
        last = max((getattr(record, "at", 0.0) for record in records), default=0.0)
        self._recording.resume(self._start.began, self._start.time, last)
        self._recording.oldest = max(self._start.revision, self._storage.compacted)
        self._recorder.earlier = self._start
        bodies = b""
        for record in records:
            if isinstance(record, _Bodies):
                bodies = bytes(record.shown)
                continue
            self._add(record, bodies)
            bodies = b""
        for number, events in self._watches.items():
            self._recording.add(Watch(seq=number, at=self._recording.at(), events=events, ended=_SAVED))
        for number, fault in self._faults.items():
            at, time = self._recording.at(), self._recording.clock.now()
            self._recording.add(Fault(at=at, time=time, id=number, change="remove", fault=fault.fault))
        self._recorder.states.go_on()

    def _add(self, record: "_Line", bodies: bytes) -> None:
        match record:
            case State():
                stored = self._stored.get(record.content)
                if stored is not None:
                    self._recorder.states.replay(record, stored)
                return
            case Start() | Gap() | _Bodies():
                return
            case Request():
                self._recorder.requests.replay(record, bodies)
                if record.verb == "watch" and record.status < 400:
                    self._watches[record.seq] = 0
                return
            case Delivery() if record.seq in self._watches:
                self._watches[record.seq] += len(record.rev)
            case Watch():
                self._watches.pop(record.seq, None)
            case Reconcile():
                self._recorder.work.skip_to(record.id)
            case Fault(change="add"):
                self._faults[record.id] = record
            case Fault():
                self._faults.pop(record.id, None)
            case Kinds():
                self._recorder.states.served(record.kinds)
        self._recording.add(record)


def _by_revision(storage: MemoryStorage) -> Mapping[int, StoredObject]:
    """The states that the storage still has, by the revisions that wrote them."""
    states = {stored.mod_revision: stored for stored in storage.fork().base()}
    for change in storage.changes_after(storage.compacted):
        stored = change.current if change.current is not None else change.tombstone
        assert stored is not None
        states[change.revision] = stored
    return states
