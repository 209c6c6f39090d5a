"""A recording as one JSON document, with the states and bodies that a page needs to show it without a server.

Its newest states and bodies are in it, up to a number of bytes; of older ones only the records.
"""

from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec import Struct

from fakeapiserver.evidence.timeline import views
from fakeapiserver.evidence.timeline.recorder import Recorder
from fakeapiserver.evidence.timeline.records import Request, State
from fakeapiserver.evidence.timeline.views import Column, ShownRequest, ShownState

MOST_STATE_BYTES: Final = 48 << 20
MOST_BODY_BYTES: Final = 16 << 20
# So many states are read at once.
_PART: Final = 200


class Document(Struct):
    """The recording, its states by revision, the columns of tables by resource, and the bodies of requests by their numbers."""

    title: str
    failure: str
    records: list[msgspec.Raw]
    states: Mapping[int, msgspec.Raw]
    columns: Mapping[str, list[Column]]
    requests: Mapping[int, msgspec.Raw]


async def document(recorder: Recorder, *, title: str = "", failure: str = "", since: int = 0) -> bytes:
    """The recording as JSON. `since`: states of older revisions are left out."""
    recording = recorder.recording
    lines = [*recording.beginning(), *recording.after(0, recording.last)]
    newest = [*reversed(recording.kept)]
    revisions = [record.content for record in newest if isinstance(record, State) and record.rev >= since]
    states, columns = await _states(recorder, revisions)
    requests = bodies(recorder, [record.seq for record in newest if isinstance(record, Request)])
    records = [msgspec.Raw(line) for line in lines]
    return msgspec.json.encode(Document(title, failure, records, states, columns, requests))


async def _states(
    recorder: Recorder, revisions: list[int]
) -> tuple[Mapping[int, msgspec.Raw], Mapping[str, list[Column]]]:
    """The states at the first of the revisions, as many as may be, and the columns of their resources."""
    states: dict[int, msgspec.Raw] = {}
    columns: dict[str, list[Column]] = {}
    size = 0
    for start in range(0, len(revisions), _PART):
        shown = await views.states(recorder, revisions[start : start + _PART])
        columns |= shown.columns
        for revision, state in shown.states.items():
            states[revision] = raw = _raw(state)
            size += len(raw)
        if size > MOST_STATE_BYTES:
            break
    return states, columns


def bodies(recorder: Recorder, numbers: list[int]) -> Mapping[int, msgspec.Raw]:
    """The bodies of the first of the requests that have any, as many as may be."""
    requests: dict[int, msgspec.Raw] = {}
    size = 0
    for number in numbers:
        shown = views.request(recorder, number)
        if shown is not None and shown != views.NOTHING:
            requests[number] = raw = _raw(shown)
            size += len(raw)
            if size > MOST_BODY_BYTES:
                break
    return requests


def _raw(shown: ShownState | ShownRequest) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(shown))
