"""The input of the checks: the requests of clients with their answers, the events of watches, and the log of the store.

`save` writes a history as JSON lines, so that other programs can check it; `load` reads them. Each line is an object whose `type` is one of
`run` (the first line), `write`, `read`, `watch`, `logged` and `disturbance`; its other fields are those of the classes below. Names of
objects are `RESOURCE/NAME`; times are seconds of one monotonic clock; revisions are numbers, 0 for none; `null` stands for what isn't
known or isn't set.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal

import msgspec
from msgspec import Struct, field

# A write whose answer never came, or came as an error of the server: it may have happened or not.
UNKNOWN: Final = "unknown"
Verb = Literal["create", "update", "patch", "status", "delete"]
Promise = Literal["newest", "any", "not older", "exact"]


class Content(Struct, frozen=True):
    """The parts of an object: `value` is set by creations and updates, `mark` by patches and by updates of the status, `color` is a label,
    `uid` is the server's. In a write, null leaves a part to the server, or as it is."""

    value: str | None = ""
    mark: str | None = ""
    color: str | None = ""
    uid: str | None = ""


def merged(content: Content, before: Content) -> Content:
    """Returns the content of an object after a write of `content` to a state with the content `before`."""
    return Content(
        before.value if content.value is None else content.value,
        before.mark if content.mark is None else content.mark,
        before.color if content.color is None else content.color,
        before.uid if content.uid is None else content.uid,
    )


class Scope(Struct, frozen=True):
    """The objects of a list or a watch: those of `resource`, with the label `color` and the name `name` unless these are empty."""

    resource: str
    color: str = ""
    name: str = ""

    def selects(self, name: str, content: Content) -> bool:
        resource, _, last = name.partition("/")
        return resource == self.resource and self.color in ("", content.color) and self.name in ("", last)


class Write(Struct, tag="write"):
    """A write by one client. It sets a `value` or a `mark` that no other write sets. `expected` is the revision that it is to replace: 0
    for no object, null for any. `outcome` is done, refused or unknown; `status` the HTTP status, 0 without an answer; `revision` and
    `answer` what the answer shows, which for a deletion is nothing."""

    client: str
    server: int
    verb: Verb
    name: str
    content: Content
    expected: int | None
    began: float
    ended: float = 0.0
    outcome: str = UNKNOWN
    status: int = 0
    revision: int = 0
    answer: Content | None = None


class Stored(Struct, frozen=True):
    """An object in an answer."""

    revision: int
    content: Content


class Read(Struct, tag="read"):
    """A list, or a read of one object (`is_get`), whose answer has no revision of its own. `promise` says which state was asked for: the
    newest one, any, one not older than `asked`, or that of `asked`. `pages` are the revisions of a list's pages."""

    client: str
    server: int
    scope: Scope
    promise: Promise
    asked: int
    began: float
    ended: float
    revision: int
    objects: dict[str, Stored]
    is_get: bool = False
    pages: list[int] = field(default_factory=list)


class Seen(Struct):
    """An event of a watch, received at the time `at`. `name` is empty for a bookmark."""

    type: str
    revision: int
    name: str
    content: Content
    at: float


class Watch(Struct, tag="watch"):
    """An uninterrupted watch from the revision `start` on. Initial events of a watch that lists are a Read, and not in here."""

    client: str
    server: int
    scope: Scope
    start: int
    events: list[Seen] = field(default_factory=list)


class Logged(Struct, tag="logged"):
    """A change in the store. A revision may have several, of different objects; those of objects that aren't the traffic's have an empty
    name. `previous` is the revision of the state that it replaces; `content` of a deletion is that of the last state. `has_lease`: the
    store deletes the object after some time."""

    revision: int
    name: str
    content: Content
    previous: int
    deleted: bool
    has_lease: bool = False


class Disturbance(Struct, tag="disturbance"):
    text: str
    began: float
    ended: float


class History(Struct, tag="run"):
    """Everything of one run. `log` has every change after the revision `since`; `late` what clients still waited for at the end, as
    sentences. `expiry`: the least number of seconds after which an object with a lease may go."""

    since: int
    writes: Sequence[Write] = ()
    reads: Sequence[Read] = ()
    watches: Sequence[Watch] = ()
    log: Sequence[Logged] = ()
    disturbances: Sequence[Disturbance] = ()
    late: Sequence[str] = ()
    expiry: float = 0.0


def save(history: History, path: Path) -> None:
    """Writes the history as JSON lines."""
    encoder = msgspec.json.Encoder()
    first = History(history.since, late=history.late, expiry=history.expiry)
    records = (first, *history.writes, *history.reads, *history.watches, *history.log, *history.disturbances)
    with path.open("wb") as file:
        for record in records:
            file.write(encoder.encode(record) + b"\n")


def load(path: Path) -> History:
    """Reads what `save` has written. Raises msgspec.MsgspecError for anything else."""
    decoder = msgspec.json.Decoder(History | Write | Read | Watch | Logged | Disturbance)
    with path.open("rb") as file:
        first, *records = map(decoder.decode, file)
    if not isinstance(first, History):
        raise msgspec.ValidationError(f"{path} doesn't begin with a line of the type `run`")
    return History(
        first.since,
        [record for record in records if isinstance(record, Write)],
        [record for record in records if isinstance(record, Read)],
        [record for record in records if isinstance(record, Watch)],
        [record for record in records if isinstance(record, Logged)],
        [record for record in records if isinstance(record, Disturbance)],
        first.late,
        first.expiry,
    )
