"""A fault as data: which requests it strikes, what happens to them, and how often.

    fault({"verb": "update", "resource": "leases", "status": 409, "times": 3})

`readers.py` reads each field. `check` refuses combinations that make no sense, and parts that do nothing.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from fakeapiserver.faults.readers import FIELDS, READS, WRITES, Cause
from fakeapiserver.faults.schedule import Schedule
from fakeapiserver.spelling import did_you_mean

# The verbs with which a candidate of an election meets the holder of the lease.
LEASE_VERBS: Final = ("get", "update", "patch")


class Fault(Struct, frozen=True, kw_only=True):
    """A fault. Fields that choose requests are shell patterns (`web-*`), one or several, and choose everything while they are empty.

    Which requests:

    - `verb`: get, list, watch, create, update, patch, delete, deletecollection; `read` and `write` stand for several.
    - `resource`: the plural name: `leases`, with a subresource `deployments/status`, with a group `leases.coordination.k8s.io`.
    - `group`, `version`: the API group ("" in a list is the core group) and version; `subresource`: its name.
    - `namespace`, `name`, `labels` (a selector): of the object. `object`: a CEL expression over `object` (the body of a write, else the
      stored object) and `oldObject` (the stored object), for example `object.spec.replicas > 3`.
    - `user`, `user_group`, `user_agent`, `connection` (the client's `address:port`): of the client.
    - `path`: of the URL, for what isn't a resource, such as `/version`.
    - `bundled`: strikes the bundled controllers and nodes as well.

    What happens:

    - `status`: the answer, in the form in which kube-apiserver gives it; `reason`, `message`, `causes`, `retry_after` (seconds) change it.
      `when`: `before` the request is handled, or `after`, when a write is stored.
    - `latency`: waits so many seconds before the request is handled, or at random between two numbers.
    - `hang`: no answer, until the time-out or until the fault is removed. `when`: `after`, the write is stored first.
    - `reset`: the connection is reset `before` the request is handled, in the `body` of the answer, or `after` a write is stored.
    - `truncate`: the connection is closed after so many bytes of the answer's body. `rate`: bytes per second of the answer's body.

    Watches that are open or begin while the fault exists:

    - `delay`: each event comes so many seconds later. `lag`: events come when so many newer revisions exist. `coalesce`: seconds for which
      events are held back and merged, so that only the last one of each object is sent.
    - `unobserved`: an object (`web` or `default/web`, also as a pattern) of which some `states` are never seen: the first by default, or a
      range such as (1, 3), counted from when the fault was added. It is as if the watch had broken off and was opened again.
    - `stop_after`: the watch ends after so many events; `end`: how: `clean`, or `cut` without a goodbye.
    - `expire`: 410 Gone: `now` (with `stop_after`: then), or `resume`: for watches that begin at a revision.
    - `bookmarks=False`: no bookmarks but the one after the initial events. `watch_list=False`: refuses watches with `sendInitialEvents`.

    Reads:

    - `stale`: an API server that lags behind by so many revisions, or for `True` stays at the state of now, serves the client: reads that
      allow it (resourceVersion=0 or older) and watches. Quorum reads are never stale.
    - `expire_continue`: 410 Gone for the next pages of a list.

    Others who are in the way:

    - `holder`: a lease that the request reads or writes has just been taken and renewed by this other holder: the client's update is a
      conflict, and it has lost the election until it sees no renewal for the duration of the lease. For get, update and patch of leases.
    - `quota`: the namespace already has as many objects as a quota of this name allows. For create, and for apply that creates.

    Calls of webhooks: `webhook` chooses them by the webhook's name (a conversion webhook has that of its CustomResourceDefinition), and no
    other field does. The webhook itself isn't called, after a `latency` excepted.

    - `status` (with `message`), `hang`, `latency`, `reset="before"`: as above. `malformed`: an answer that is no review.
    - `certificate`: the webhook's is of an `unknown` authority, `expired`, or for another `name`.

    Calls of aggregated API servers: `apiservice` chooses them by the APIService's name, with the same effects but `malformed`. While they
    fail, the APIService isn't available.

    What no API server does; needs `unreal=True`: `duplicate` (each event comes twice), `reorder` (events of different objects change
    places), `lose` (every so many'th event is lost).

    How often, among the requests that match: `schedule`.
    """

    verb: tuple[str, ...] = ()
    group: tuple[str, ...] = ()
    version: tuple[str, ...] = ()
    resource: tuple[str, ...] = ()
    subresource: tuple[str, ...] = ()
    namespace: tuple[str, ...] = ()
    name: tuple[str, ...] = ()
    labels: str = ""
    object: str = ""
    user: tuple[str, ...] = ()
    user_group: tuple[str, ...] = ()
    user_agent: tuple[str, ...] = ()
    connection: tuple[str, ...] = ()
    path: tuple[str, ...] = ()
    bundled: bool = False
    holder: str = ""
    quota: str = ""
    webhook: tuple[str, ...] = ()
    apiservice: tuple[str, ...] = ()
    malformed: bool = False
    certificate: str = ""
    status: int = 0
    reason: str = ""
    message: str = ""
    causes: tuple[Cause, ...] = ()
    retry_after: int = 0
    when: str = "before"
    latency: tuple[float, float] | None = None
    hang: bool = False
    reset: str = ""
    truncate: int | None = None
    rate: int = 0
    delay: float = 0.0
    lag: int = 0
    coalesce: float = 0.0
    unobserved: str = ""
    states: tuple[int, int] = (1, 1)
    stop_after: int | None = None
    end: str = ""
    expire: str = ""
    bookmarks: bool = True
    watch_list: bool = True
    stale: int | None = None
    expire_continue: bool = False
    unreal: bool = False
    duplicate: bool = False
    reorder: bool = False
    lose: int = 0
    schedule: Schedule = Schedule()
    # What the caller wrote, for lists of faults and failure reports.
    text: str = ""

    @property
    def changes_open_watches(self) -> bool:
        """Reports whether it also changes watches that are open when it is added."""
        return self.stale is not None or (self.watches and self.expire != "resume" and self.watch_list)

    @property
    def watches(self) -> bool:
        """Reports whether it changes watches."""
        return bool(
            self.delay or self.lag or self.coalesce or self.unobserved or self.stop_after is not None or self.end or self.expire
            or not self.bookmarks or not self.watch_list or self.duplicate or self.reorder or self.lose
        )  # fmt: skip


def fault(fields: Mapping[str, Any]) -> Fault:
    """Returns the fault that a caller describes. Raises ValueError with one sentence."""
    if not isinstance(fields, Mapping):
        raise ValueError(f"a fault is described by fields such as verb, resource and status, not by {fields!r}")
    values: dict[str, Any] = {}
    timing: dict[str, Any] = {}
    for name, value in fields.items():
        if name not in FIELDS:
            raise ValueError(
                f"a fault has no field {name!r}{did_you_mean(str(name), FIELDS)}: its fields are {', '.join(FIELDS)}"
            )
        if value is None:
            continue
        (timing if name in Schedule.__struct_fields__ else values)[name] = FIELDS[name](name, value)
    text = " ".join(f"{name}={_shown(value)}" for name, value in fields.items() if value is not None)
    made = Fault(**values, schedule=Schedule(**timing), text=text)
    check(made)
    return made


def check(made: Fault) -> None:
    """Raises ValueError with one sentence if parts of the fault exclude or need each other."""
    effects = [name for name in _EFFECTS if getattr(made, name) != _DEFAULTS[name]]
    if not effects:
        raise ValueError(
            'this fault does nothing: say what happens, for example status=409, latency=2, hang=True, reset="after" or stop_after=3'
        )
    ends = [
        name
        for name in ("status", "hang", "reset", "truncate", "quota", "malformed", "certificate", "holder")
        if name in effects
    ]
    if len(ends) > 1:
        raise ValueError(f"a request ends in one way: choose one of {' and '.join(ends)}")
    _check_webhook(made)
    if made.when == "after" and not made.status and not made.hang:
        raise ValueError('when="after" is for status or hang: the answer of a write that is stored')
    for name in ("reason", "message", "causes", "retry_after"):
        if getattr(made, name) and not made.status:
            raise ValueError(f"{name} is part of an answer: add status, for example status=503")
    if made.retry_after and made.status not in (409, 429, 500, 503, 504):
        raise ValueError(f"retry_after is for the statuses 409, 429, 500, 503 and 504, not for {made.status}")
    if made.end and made.stop_after is None:
        raise ValueError(f'end="{made.end}" says how a watch ends: add stop_after, the number of events before')
    _check_unobserved(made)
    if made.expire == "resume" and made.stop_after is not None:
        raise ValueError('expire="resume" refuses a watch before its first event: leave stop_after out')
    if made.watches and made.verb and "watch" not in made.verb:
        raise ValueError(f"{_named(made, _WATCHING)} is for watches: leave verb out, or add watch to it")
    _check_verbs(made)
    unreal = [name for name in ("duplicate", "reorder", "lose") if name in effects]
    if unreal and not made.unreal:
        raise ValueError(f"{unreal[0]} is what no API server does: add unreal=True to test what your client does then")
    if made.unreal and not unreal:
        raise ValueError("unreal allows duplicate, reorder and lose: add one of them, or leave it out")
    _check_answer(made)
    made.schedule.check()


def _check_unobserved(made: Fault) -> None:
    """Raises ValueError with one sentence if the states of an object can't be left out."""
    if not made.unobserved:
        if made.states != _DEFAULTS["states"]:
            raise ValueError('states are those of an object that are never seen: add unobserved, such as "default/web"')
        return
    if others := [name for name in _WATCHING if name != "unobserved" and getattr(made, name) != _DEFAULTS[name]]:
        raise ValueError(f"unobserved decides alone which events are sent: leave {others[0]} out, or use two faults")


def _check_answer(made: Fault) -> None:
    """Raises ValueError with one sentence if an effect is on an answer that the request doesn't get."""
    ended = (
        (made.hang and made.when == "before")
        or made.quota
        or made.reset == "before"
        or (made.status and made.when == "before")
    )
    for name in ("rate", "stale", "expire_continue"):
        if ended and getattr(made, name) != _DEFAULTS[name]:
            end = _named(made, ("status", "hang", "reset", "quota"))
            raise ValueError(
                f"{name} changes an answer, which there is not after {end}: use two faults, or leave it out"
            )


def _check_verbs(made: Fault) -> None:
    """Raises ValueError with one sentence if an effect is for other requests than those that are chosen."""
    for name in ("reset", "when"):
        if getattr(made, name) == "after" and made.verb and not set(made.verb) & set(WRITES):
            raise ValueError(f'{name}="after" is for writes: leave verb out, or name {", ".join(WRITES)}')
    others = [name for name in _OF_RESOURCES if getattr(made, name)]
    if made.path and others:
        raise ValueError(f"path chooses requests that aren't for resources: leave {' and '.join(others)} out")
    for path in made.path:
        if not path.startswith(("/", "*")):
            raise ValueError(f"path begins with / or *, such as /version or /apis/*, not {path!r}")
    if made.subresource and any("/" in resource for resource in made.resource):
        raise ValueError("resource names the subresource already: leave subresource out")
    if made.stale is not None and made.verb and not set(made.verb) & set(READS):
        raise ValueError("stale is for reads: leave verb out, or name get, list or watch")
    if made.holder and not (
        made.resource and all("leases" in resource.partition(".")[0] for resource in made.resource)
    ):
        raise ValueError('holder takes leases: add resource="leases", and perhaps name and namespace')
    if made.holder and made.verb and not set(made.verb) & set(LEASE_VERBS):
        raise ValueError("holder is for reads and writes of one lease: leave verb out, or name get, update or patch")
    if made.quota and made.verb and not set(made.verb) & {"create", "patch"}:
        raise ValueError("quota refuses new objects: leave verb out, or name create or patch, with which apply creates")
    if made.expire_continue and made.verb and "list" not in made.verb:
        raise ValueError("expire_continue is for lists: leave verb out, or add list to it")


def _check_webhook(made: Fault) -> None:
    """Raises ValueError with one sentence if a fault for requests says what happens to calls of other servers, or the other way round."""
    if not (made.webhook or made.apiservice):
        for name in ("malformed", "certificate"):
            if getattr(made, name):
                raise ValueError(f'{name} is what a webhook\'s server does wrong: add webhook, for example webhook="*"')
        return
    chooser, called = ("webhook", "webhooks") if made.webhook else ("apiservice", "aggregated API servers")
    fitting = _OF_WEBHOOKS if made.webhook else _OF_API_SERVICES
    for name in Fault.__struct_fields__:
        if getattr(made, name) != _DEFAULTS[name] and name not in fitting:
            raise ValueError(f"{chooser} chooses calls of {called}, for which there is no {name}: leave it out")
    if made.reset not in ("", "before"):
        raise ValueError(f'a call of {called} is reset before the answer: reset="before", not {made.reset!r}')


def _named(made: Fault, names: Sequence[str]) -> str:
    return next(name for name in names if getattr(made, name) != _DEFAULTS[name])


def _shown(value: object) -> str:
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    text = str(value)
    return repr(text) if not text or re.search(r"\s", text) else text


_WATCHING: Final = (
    *("delay", "lag", "coalesce", "unobserved", "stop_after", "end", "expire", "bookmarks", "watch_list"),
    *("duplicate", "reorder", "lose"),
)
_EFFECTS: Final = (
    *("status", "latency", "hang", "reset", "truncate", "rate", "stale", "expire_continue", "malformed", "certificate"),
    *("holder", "quota"),
    *_WATCHING,
)
_OF_WEBHOOKS: Final = frozenset(
    (
        *("webhook", "malformed", "certificate", "status", "message", "retry_after", "latency", "hang", "reset"),
        *("schedule", "text"),
    )
)
_OF_API_SERVICES: Final = _OF_WEBHOOKS - {"webhook", "malformed", "retry_after"} | {"apiservice"}
_OF_RESOURCES: Final = ("resource", "group", "version", "subresource", "name", "namespace", "labels", "object")
_DEFAULTS: Final = {name: getattr(Fault(), name) for name in Fault.__struct_fields__}
