"""The records of a recording. Each is a line of JSON, in which `t` says what it is and `n` is its number.

`at` are seconds of the machine since the recording began, `time` is the cluster's clock in seconds since 1970. `r` names a resource:
`pods`, `deployments.apps`. `rev` is a resourceVersion, `seq` the number of a request, from 1 on.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct, field

Op = Literal["base", "create", "update", "delete"]


class Record(Struct, kw_only=True, tag_field="t"):
    """Something that happened. Numbers rise by 1."""

    n: int = 0


class Start(Record, tag="start"):
    """The first record of each stream. `revision` is the oldest one that can be shown, `began` and `time` are the times at `at` 0, of the
    machine and of the cluster. `stopped`: the cluster's clock stands still when the stream begins. `title` distinguishes the server, e.g.
    as a fork; it may be empty."""

    version: str
    began: float
    time: float
    revision: int
    nodes: int
    controllers: Mapping[str, str]
    stopped: bool = False
    levers: bool = True
    title: str = ""


class Kind(Struct):
    """A kind that is served, in its preferred version."""

    r: str
    group: str
    version: str
    resource: str
    kind: str
    namespaced: bool
    short: Sequence[str]


class Kinds(Record, tag="kinds"):
    """The kinds that are served from now on."""

    kinds: Sequence[Kind]


class State(Record, tag="state"):
    """The state of an object from revision `rev` on; with `delete` the object is gone. `base`: it was there when the recording began, or
    it is the oldest state that is still known. `owners` are uids, `by` is the request that wrote the state (0: none did).

    `of`: the revision under which the state is found; 0: under `rev`. A restore changes many objects at one revision: then `of` is that
    of the write that made the state at first, and `rev` has a fraction, so that each state has a revision of its own."""

    rev: int | float
    at: float
    time: float
    r: str
    ns: str
    name: str
    uid: str
    op: Op
    owners: Sequence[str]
    labels: Mapping[str, str]
    created: float
    deleting: bool
    by: int
    of: int

    @property
    def content(self) -> int:
        """The revision under which the state is found."""
        return self.of or int(self.rev)


class Request(Record, tag="request"):
    """An answered request; that of a watch when its answer begins. `client` is a short name, `bundled` marks controllers, the scheduler
    and nodes of this process; `rev` is the revision in the answer, `began` the newest one when the request began, `why` the authorizer's
    reason, `admission` the plugins and webhooks that changed the object, `reconcile` what it was a part of (0: nothing)."""

    seq: int
    at: float
    time: float
    ms: float
    verb: str
    path: str
    r: str
    sub: str
    ns: str
    name: str
    query: str
    user: str
    agent: str
    client: str
    bundled: bool
    status: int
    reason: str
    message: str
    fault: str
    dry: bool
    rev: int
    began: int
    changed: bool
    why: str
    admission: Sequence[str]
    reconcile: int
    bytes_in: int
    bytes_out: int


class Watch(Record, tag="watch"):
    """The watch `seq` has ended, after so many events. `ended` is as in `RequestEntry`, or `saved`: it was open when the state was saved
    with which this server was started."""

    seq: int
    at: float
    events: int
    ended: str


class Delivery(Record, tag="delivery"):
    """The watch `seq` has sent events of these revisions."""

    seq: int
    at: float
    rev: Sequence[int]


class Reconcile(Record, tag="reconcile"):
    """A reconcile that has ended. `causes` are the revisions of the events that put its key into the queue, `after` is the reconcile that
    did so (0: none), `waited` are milliseconds in the queue, `again` seconds until it is looked at again."""

    id: int
    controller: str
    key: str
    at: float
    ms: float
    waited: float
    causes: Sequence[int]
    after: int
    error: str
    again: float | None


class Queue(Record, tag="queue"):
    """The items of a controller's queue."""

    at: float
    controller: str
    ready: int
    delayed: int
    processing: int


class Fault(Record, tag="fault"):
    """A fault was added or removed."""

    at: float
    time: float
    id: int
    change: Literal["add", "remove"]
    fault: Mapping[str, Any]


class Clock(Record, tag="clock"):
    """The cluster's clock was stopped, started, advanced or set by so many seconds."""

    at: float
    time: float
    change: Literal["stop", "start", "advance", "jump"]
    seconds: float


class Controller(Record, tag="controller"):
    """A controller got another mode."""

    at: float
    name: str
    mode: str


class Restore(Record, tag="restore"):
    """The objects changed at once; records of their states follow."""

    at: float
    revision: int


class Gap(Record, tag="gap"):
    """Everything that was older than this revision is forgotten."""

    before: int


class AdmissionStep(Struct):
    """A change that a plugin or a webhook made, as JSON patch operations; none if it has refused the object."""

    plugin: str
    kind: Literal["mutating", "validating", "webhook"]
    patch: Sequence[Any] = field(default_factory=list)
