"""The input of the checks: the requests of clients with their answers, the events of watches, and the log of the store."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

# A write whose answer never came: it may have happened or not.
UNKNOWN: Final = "unknown"
Verb = Literal["create", "update", "delete"]


@dataclass(slots=True)
class Write:
    """A write. `value` is unlike that of any other; for a deletion it is the one that is to go. `expected` is the revision that it is to
    replace: 0 for none. `revision` is that of the answer, 0 if it was refused; `outcome` is done, refused or unknown. Times are seconds of
    one clock."""

    verb: Verb
    name: str
    value: str
    expected: int
    began: float
    ended: float = 0.0
    outcome: str = UNKNOWN
    revision: int = 0


@dataclass(slots=True)
class Read:
    """A consistent list: the objects by name as (revision, value), at `revision`."""

    began: float
    ended: float
    revision: int
    objects: Mapping[str, tuple[int, str]]


@dataclass(slots=True)
class Seen:
    """An event of a watch. `name` is empty for a bookmark."""

    type: str
    revision: int
    name: str
    value: str


@dataclass(slots=True)
class Watch:
    """An uninterrupted watch from the revision `start` on."""

    start: int
    events: list[Seen] = field(default_factory=list)


@dataclass(slots=True)
class Logged:
    """A revision of the store: `previous` is the revision that it replaces, 0 for none."""

    revision: int
    name: str
    value: str
    previous: int
    deleted: bool


@dataclass(slots=True)
class History:
    """Everything of one run. `log` has every revision after `since`, those of other objects with an empty name."""

    since: int
    writes: Sequence[Write]
    reads: Sequence[Read]
    watches: Sequence[Watch]
    log: Sequence[Logged]
